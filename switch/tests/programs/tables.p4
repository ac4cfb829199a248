// Every match kind, constant entries, default actions, hit and miss, switch on the action
// that ran, a key wider than a word, a table over an invalid header.
#include <core.p4>
#include <v1model.p4>

header key_t {
    bit<8>   exact_key;
    bit<32>  lpm_key;
    bit<16>  ternary_key;
    bit<16>  range_key;
    bit<8>   optional_key;
    bit<128> wide_key;
    bit<8>   flags;
}

header answer_t {
    bit<8> exact_answer;
    bit<8> lpm_answer;
    bit<8> ternary_answer;
    bit<8> range_answer;
    bit<8> optional_answer;
    bit<8> wide_answer;
    bit<8> branch;
    bit<8> absent_answer;
}

header absent_t { bit<8> value; }

struct headers_t {
    key_t    key;
    answer_t answer;
    absent_t absent;
}

struct metadata_t {}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.key);
        transition accept;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }
control update_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    action exact_set(bit<8> value) { hdr.answer.exact_answer = value; }
    action exact_double(bit<8> value) { hdr.answer.exact_answer = value + value; }
    action lpm_set(bit<8> value) { hdr.answer.lpm_answer = value; }
    action ternary_set(bit<8> value) { hdr.answer.ternary_answer = value; }
    action range_set(bit<8> value) { hdr.answer.range_answer = value; }
    action optional_set(bit<8> value) { hdr.answer.optional_answer = value; }
    action wide_set(bit<8> value) { hdr.answer.wide_answer = value; }
    action absent_set(bit<8> value) { hdr.answer.absent_answer = value; }

    table exact_table {
        key = { hdr.key.exact_key: exact; }
        actions = { exact_set; exact_double; NoAction; }
        default_action = exact_set(0xe0);
        size = 4;
    }
    table lpm_table {
        key = { hdr.key.lpm_key: lpm; hdr.key.exact_key: exact; }
        actions = { lpm_set; NoAction; }
        default_action = NoAction;
    }
    table ternary_table {
        key = { hdr.key.ternary_key: ternary; }
        actions = { ternary_set; }
        const entries = {
            0x1200 &&& 0xff00: ternary_set(1);
            0x1234: ternary_set(2);
            0x0034 &&& 0x00ff: ternary_set(3);
        }
        default_action = ternary_set(0xe1);
    }
    table range_table {
        key = { hdr.key.range_key: range; hdr.key.exact_key: exact; }
        actions = { range_set; }
        const entries = {
            (100 .. 200, 1): range_set(1);
            (150 .. 0xffff, 1): range_set(2);
            (_, 2): range_set(3);
        }
        default_action = range_set(0xe2);
    }
    table optional_table {
        key = { hdr.key.optional_key: optional; hdr.key.exact_key: optional; }
        actions = { optional_set; }
        const entries = {
            (7, 1): optional_set(1);
            (7, _): optional_set(2);
            (_, 3): optional_set(3);
        }
        default_action = optional_set(0xe3);
    }
    table wide_table {
        key = { hdr.key.wide_key: exact; }
        actions = { wide_set; NoAction; }
        default_action = NoAction;
    }
    table absent_table {
        key = { hdr.absent.value: exact; hdr.absent.isValid(): exact; }
        actions = { absent_set; }
        const entries = { (0, false): absent_set(0xaa); }
        default_action = absent_set(0xee);
    }
    apply {
        hdr.answer.setValid();
        switch (exact_table.apply().action_run) {
            exact_set: { hdr.answer.branch = 1; }
            exact_double: { hdr.answer.branch = 2; }
            default: { hdr.answer.branch = 3; }
        }
        if (lpm_table.apply().hit) {
            hdr.answer.branch = hdr.answer.branch | 0x10;
        } else {
            hdr.answer.branch = hdr.answer.branch | 0x20;
        }
        ternary_table.apply();
        range_table.apply();
        optional_table.apply();
        wide_table.apply();
        hdr.absent.value = 9;
        absent_table.apply();
        standard_metadata.egress_spec = 1;
        if (hdr.key.flags == 1) { exit; }
        hdr.key.flags = 0xff;
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) { apply {} }

control deparse(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.answer); packet.emit(hdr.key); }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
