// Multicast, clones of both kinds, resubmission, recirculation, truncation; the header
// records what each pass saw.
#include <core.p4>
#include <v1model.p4>

header command_t {
    bit<8>  operation;
    bit<8>  port;
    bit<16> trace;
    bit<8>  instance_type;
    bit<8>  kept;
    bit<16> rid;
    bit<32> length;
}

struct headers_t { command_t command; }

struct metadata_t {
    @field_list(1) bit<8> kept;
    bit<8> lost;
    @field_list(1, 2) bit<8> passes;
}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.command);
        transition accept;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }
control update_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    apply {
        bit<16> kind = (bit<16>) standard_metadata.instance_type[3:0];
        hdr.command.trace = (hdr.command.trace << 4) | kind;
        standard_metadata.egress_spec = (bit<9>) hdr.command.port;
        if (hdr.command.operation == 1) {
            standard_metadata.mcast_grp = 7;
        } else if (hdr.command.operation == 2) {
            meta.kept = 0x33;
            meta.lost = 0x44;
            clone_preserving_field_list(CloneType.I2E, 5, 1);
        } else if (hdr.command.operation == 3 && meta.passes < 2) {
            meta.passes = meta.passes + 1;
            meta.kept = 0x55;
            resubmit_preserving_field_list(1);
        } else if (hdr.command.operation == 4) {
            mark_to_drop(standard_metadata);
        } else if (hdr.command.operation == 5) {
            truncate(14);
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {
        bit<8> kind = (bit<8>) standard_metadata.instance_type;
        hdr.command.instance_type = kind;
        hdr.command.kept = meta.kept | meta.lost;
        hdr.command.rid = standard_metadata.egress_rid;
        hdr.command.length = standard_metadata.packet_length;
        if (hdr.command.operation == 6 && kind == 0) {
            meta.kept = 0x66;
            meta.lost = 0x77;
            clone_preserving_field_list(CloneType.E2E, 6, 1);
        } else if (hdr.command.operation == 7 && meta.passes < 3) {
            meta.passes = meta.passes + 1;
            meta.kept = 0x0f;
            recirculate_preserving_field_list(2);
        } else if (hdr.command.operation == 8) {
            mark_to_drop(standard_metadata);
        }
    }
}

control deparse(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.command); }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
