// Header unions and a stack of them: at most one member of a union is valid.
#include <core.p4>
#include <v1model.p4>

header count_t { bit<8> left; bit<8> error_seen; }
header kind_t { bit<8> kind; }
header byte_t { bit<8> value; }
header short_t { bit<16> value; }
header bytes_t { bit<8> length; varbit<32> value; }
header_union value_t {
    byte_t  byte;
    short_t short;
    bytes_t bytes;
}

struct headers_t {
    count_t    count;
    kind_t[3]  kinds;
    value_t[3] values;
    value_t    single;
}

struct metadata_t { bit<8> left; }

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.count);
        meta.left = hdr.count.left;
        transition more;
    }
    state more {
        transition select(meta.left) {
            0: accept;
            default: item;
        }
    }
    state item {
        meta.left = meta.left - 1;
        packet.extract(hdr.kinds.next);
        transition select(hdr.kinds.last.kind) {
            1: byte;
            2: short;
            3: bytes;
            default: accept;
        }
    }
    state byte {
        packet.extract(hdr.values.next.byte);
        transition more;
    }
    state short {
        packet.extract(hdr.values.next.short);
        transition more;
    }
    state bytes {
        packet.extract(hdr.values.next.bytes, (bit<32>)packet.lookahead<bit<8>>() * 8);
        transition more;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }
control update_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 1;
        if (standard_metadata.parser_error == error.StackOutOfBounds) {
            hdr.count.error_seen = 1;
        } else if (standard_metadata.parser_error != error.NoError) {
            hdr.count.error_seen = 2;
        }
        if (hdr.values[0].byte.isValid()) {
            hdr.values[0].short.setValid();
            hdr.values[0].short.value = 0xfeed;
        } else if (hdr.values[0].short.isValid()) {
            hdr.values[0].short.setInvalid();
        }
        if (hdr.values[1].byte.isValid()) {
            hdr.single.byte.setValid();
            hdr.single.byte.value = 0x42;
            hdr.single.short.setValid();
        }
        if (hdr.single.isValid()) {
            hdr.count.left = 0xee;
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) { apply {} }

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.count);
        packet.emit(hdr.kinds);
        packet.emit(hdr.values);
        packet.emit(hdr.single);
    }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
