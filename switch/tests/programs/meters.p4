// Meters of packets and of bytes, a direct meter, and registers of several widths.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> op;
    bit<8> index;
    bit<32> value;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    meter(4, MeterType.packets) packets;
    meter(4, MeterType.bytes) bytes;
    direct_meter<bit<32>>(MeterType.packets) own;
    register<bit<32>>(4) words;
    register<bit<8>>(4) octets;
    register<bit<100>>(2) longs;
    bit<100> long_value;
    bit<8> octet;
    action coloured() {
        own.read(hdr.h.value);
    }
    table metered {
        key = { hdr.h.index: exact; }
        actions = { coloured; NoAction; }
        default_action = NoAction();
        meters = own;
    }
    apply {
        standard_metadata.egress_spec = 1;
        if (hdr.h.op == 0) {
            packets.execute_meter((bit<32>) hdr.h.index, hdr.h.value);
        } else if (hdr.h.op == 1) {
            bytes.execute_meter((bit<32>) hdr.h.index, hdr.h.value);
        } else if (hdr.h.op == 2) {
            metered.apply();
        } else if (hdr.h.op == 3) {
            words.write((bit<32>) hdr.h.index, hdr.h.value);
        } else if (hdr.h.op == 4) {
            words.read(hdr.h.value, (bit<32>) hdr.h.index);
        } else if (hdr.h.op == 5) {
            octets.write((bit<32>) hdr.h.index, (bit<8>) hdr.h.value);
            octets.read(octet, (bit<32>) hdr.h.index);
            hdr.h.value = (bit<32>) octet;
        } else if (hdr.h.op == 6) {
            longs.read(long_value, (bit<32>) hdr.h.index);
            longs.write((bit<32>) hdr.h.index, long_value + ((bit<100>) hdr.h.value << 64));
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {}
}

control update_checksums(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
