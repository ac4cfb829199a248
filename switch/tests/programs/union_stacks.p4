// Stacks of header unions that are pushed, popped, copied and compared.
#include <core.p4>
#include <v1model.p4>

header command_t { bit<8> what; bit<8> count; bit<8> last; }
header short_t { bit<8> tag; }
header long_t { bit<8> tag; bit<8> value; }
header bytes_t { bit<8> tag; bit<8> length; varbit<32> value; }
header_union option_t {
    short_t short;
    long_t  long;
    bytes_t bytes;
}

struct headers_t {
    command_t   command;
    option_t[4] options;
    option_t[4] copies;
}

struct metadata_t { bit<8> left; }

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.command);
        meta.left = hdr.command.count;
        transition more;
    }
    state more {
        transition select(meta.left) {
            0: accept;
            default: option;
        }
    }
    state option {
        meta.left = meta.left - 1;
        transition select(packet.lookahead<bit<8>>()) {
            1: short;
            2: long;
            3: bytes;
            default: accept;
        }
    }
    state short {
        packet.extract(hdr.options.next.short);
        hdr.command.last = (bit<8>)hdr.options.lastIndex;
        transition more;
    }
    state long {
        packet.extract(hdr.options.next.long);
        transition more;
    }
    state bytes {
        packet.extract(hdr.options.next.bytes, (bit<32>)packet.lookahead<bit<16>>()[7:0] * 8);
        transition more;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }
control update_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 1;
        if (hdr.command.what == 1) {
            hdr.options.push_front(1);
            hdr.options[0].short.setValid();
            hdr.options[0].short.tag = 0x77;
        } else if (hdr.command.what == 2) {
            hdr.options.push_front(2);
        } else if (hdr.command.what == 3) {
            hdr.options.push_front(5);
        } else if (hdr.command.what == 4) {
            hdr.options.pop_front(1);
        } else if (hdr.command.what == 5) {
            hdr.options.pop_front(3);
        } else if (hdr.command.what == 6) {
            hdr.options.pop_front(7);
        } else if (hdr.command.what == 7) {
            hdr.copies = hdr.options;
            hdr.options.pop_front(1);
        } else if (hdr.command.what == 8) {
            hdr.copies = hdr.options;
            if (hdr.copies[0] == hdr.options[1]) {
                hdr.command.what = 0xff;
            }
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) { apply {} }

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.command);
        packet.emit(hdr.options);
        packet.emit(hdr.copies);
    }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
