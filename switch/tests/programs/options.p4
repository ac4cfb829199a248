// Variable fields, lookahead, advance, verify, parser errors, and checksums over them.
#include <core.p4>
#include <v1model.p4>

error { OptionUnknown }

header base_t {
    bit<4>  words;
    bit<4>  kind;
    bit<8>  error_seen;
    bit<16> checksum;
}

header options_t {
    varbit<64> bytes;
}

header skipped_t { bit<8> count; }

header tail_t {
    bit<16> value;
    bit<16> checksum;
}

struct headers_t {
    base_t    base;
    options_t options;
    options_t copy;
    skipped_t skipped;
    tail_t    tail;
}

struct metadata_t {}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.base);
        verify(hdr.base.kind < 8, error.OptionUnknown);
        packet.extract(hdr.options, (bit<32>) hdr.base.words * 16);
        transition select(packet.lookahead<bit<8>>(), hdr.base.kind) {
            (0x80 &&& 0x80, _): skip;
            (_, 1): accept;
            default: tail;
        }
    }
    state skip {
        packet.extract(hdr.skipped);
        packet.advance((bit<32>) (hdr.skipped.count & 0x7f) * 8);
        transition tail;
    }
    state tail {
        packet.extract(hdr.tail);
        transition accept;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.tail.isValid(), { hdr.base.kind, 4w0, hdr.options.bytes, hdr.tail.value },
                        hdr.tail.checksum, HashAlgorithm.csum16);
    }
}

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 1;
        if (standard_metadata.parser_error == error.OptionUnknown) {
            hdr.base.error_seen = 1;
        } else if (standard_metadata.parser_error == error.HeaderTooShort) {
            hdr.base.error_seen = 2;
        } else if (standard_metadata.parser_error == error.PacketTooShort) {
            hdr.base.error_seen = 3;
        } else if (standard_metadata.checksum_error == 1) {
            hdr.base.error_seen = 4;
        }
        if (hdr.base.kind == 2) {
            hdr.copy = hdr.options;
            hdr.options.setInvalid();
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) { apply {} }

control update_checksums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.base.kind != 3, { hdr.base.words, hdr.base.kind, hdr.base.error_seen,
                        hdr.options.bytes, hdr.copy.bytes, hdr.tail.value },
                        hdr.base.checksum, HashAlgorithm.csum16);
        update_checksum_with_payload(hdr.tail.isValid(), { hdr.tail.value },
                        hdr.tail.checksum, HashAlgorithm.csum16);
    }
}

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.base);
        packet.emit(hdr.options);
        packet.emit(hdr.skipped);
        packet.emit(hdr.tail);
        packet.emit(hdr.copy);
    }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
