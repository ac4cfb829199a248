// Header stacks: next and last in the parser, overflow, push and pop, elements chosen at
// run time, whole-stack assignment, stack in a union's place.
#include <core.p4>
#include <v1model.p4>

header command_t {
    bit<8> operation;
    bit<8> index;
    bit<8> value;
    bit<8> error_seen;
}

header item_t {
    bit<7> value;
    bit<1> last;
    bit<8> tag;
}

struct headers_t {
    command_t command;
    item_t[4] items;
    item_t[4] copies;
}

struct metadata_t { bit<8> sum; }

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.command);
        transition more;
    }
    state more {
        packet.extract(hdr.items.next);
        meta.sum = meta.sum + (bit<8>) hdr.items.last.value;
        transition select(hdr.items.last.last) {
            1: accept;
            default: more;
        }
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }
control update_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 1;
        if (standard_metadata.parser_error == error.StackOutOfBounds) {
            hdr.command.error_seen = 0xee;
        } else if (standard_metadata.parser_error == error.PacketTooShort) {
            hdr.command.error_seen = 0xdd;
        } else if (standard_metadata.parser_error != error.NoError) {
            hdr.command.error_seen = 0xcc;
        } else {
            hdr.command.error_seen = meta.sum;
        }
        if (hdr.command.operation == 1) {
            hdr.items.push_front(2);
            hdr.items[0].setValid();
            hdr.items[0].tag = hdr.command.value;
        } else if (hdr.command.operation == 2) {
            hdr.items.pop_front(1);
        } else if (hdr.command.operation == 3) {
            hdr.items[hdr.command.index].tag = hdr.command.value;
        } else if (hdr.command.operation == 4) {
            hdr.command.value = hdr.items[hdr.command.index].tag;
        } else if (hdr.command.operation == 5) {
            hdr.copies = hdr.items;
        } else if (hdr.command.operation == 6) {
            hdr.items[1] = hdr.items[0];
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) { apply {} }

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.command);
        packet.emit(hdr.items);
        packet.emit(hdr.copies);
    }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
