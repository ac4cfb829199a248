// Arithmetic of every kind on widths from 4 to 200 bits: the packet carries the operands,
// the answer the results.
#include <core.p4>
#include <v1model.p4>

header operands_t {
    bit<8>   a;
    bit<8>   b;
    bit<32>  c;
    bit<32>  d;
    bit<64>  e;
    bit<64>  f;
    bit<128> g;
    bit<128> h;
    int<16>  i;
    int<16>  j;
}

header results_t {
    bit<8>   sum_saturated;
    bit<8>   difference_saturated;
    bit<8>   sum;
    bit<8>   difference;
    bit<32>  product;
    bit<32>  shifted_left;
    bit<32>  shifted_right;
    bit<64>  sum_64;
    bit<64>  product_64;
    bit<64>  complement_64;
    bit<128> sum_128;
    bit<128> difference_128;
    bit<128> product_128;
    bit<128> shifted_128;
    bit<128> xor_128;
    int<16>  sum_signed;
    int<16>  sum_signed_saturated;
    int<16>  shifted_signed;
    bit<16>  slices;
    bit<8>   comparisons;
    bit<200> wide;
}

struct headers_t {
    operands_t operands;
    results_t  results;
}

struct metadata_t {}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.operands);
        transition accept;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }
control update_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    bit<8> flags;
    action compute() {
        operands_t o = hdr.operands;
        hdr.results.setValid();
        hdr.results.sum_saturated = o.a |+| o.b;
        hdr.results.difference_saturated = o.a |-| o.b;
        hdr.results.sum = o.a + o.b;
        hdr.results.difference = o.a - o.b;
        hdr.results.product = o.c * o.d;
        hdr.results.shifted_left = o.c << o.b;
        hdr.results.shifted_right = o.c >> o.a[3:0];
        hdr.results.sum_64 = o.e + o.f;
        hdr.results.product_64 = o.e * o.f;
        hdr.results.complement_64 = ~o.e;
        hdr.results.sum_128 = o.g + o.h;
        hdr.results.difference_128 = o.g - o.h;
        hdr.results.product_128 = o.g * o.h;
        hdr.results.shifted_128 = (o.g << 70) | (o.h >> o.b);
        hdr.results.xor_128 = o.g ^ o.h;
        hdr.results.sum_signed = o.i + o.j;
        hdr.results.sum_signed_saturated = o.i |+| o.j;
        hdr.results.shifted_signed = o.i >> 3;
        hdr.results.slices = o.c[23:16] ++ o.g[100:93];
        hdr.results.wide = o.g[71:0] ++ (o.h & ~o.g);
    }
    action compare() {
        operands_t o = hdr.operands;
        flags = 0;
        flags[0:0] = (bit<1>)(o.a < o.b);
        flags[1:1] = (bit<1>)(o.c >= o.d);
        flags[2:2] = (bit<1>)(o.e > o.f);
        flags[3:3] = (bit<1>)(o.g < o.h);
        flags[4:4] = (bit<1>)(o.i < o.j);
        flags[5:5] = (bit<1>)(o.g == o.h);
        flags[6:6] = (bit<1>)(o.i <= -5);
        flags[7:7] = o.a == 0 ? 1w1 : (bit<1>)(o.b != o.a && !(o.c == 0));
        hdr.results.comparisons = flags;
    }
    apply {
        compute();
        compare();
        hdr.operands.setInvalid();
        standard_metadata.egress_spec = 1;
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) { apply {} }

control deparse(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.operands); packet.emit(hdr.results); }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
