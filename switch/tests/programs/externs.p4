// Registers, counters, meters, hashes, random numbers, digests, assertions, logging, an
// action profile with a selector, a parser value set, a header union.
#include <core.p4>
#include <v1model.p4>

header command_t {
    bit<8>   operation;
    bit<8>   index;
    bit<96>  value;
    bit<32>  hash32;
    bit<16>  hash16;
    bit<16>  xor16;
    bit<64>  identity;
    bit<8>   random;
    bit<8>   colour;
    bit<8>   member;
}

header small_t { bit<8> value; }
header large_t { bit<16> value; }
header_union either_t {
    small_t small;
    large_t large;
}

struct headers_t {
    command_t command;
    either_t  either;
}

struct digest_t {
    bit<8>  index;
    bit<96> value;
}

struct metadata_t {}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    value_set<bit<8>>(4) special;
    state start {
        packet.extract(hdr.command);
        transition select(hdr.command.operation) {
            special: large;
            8: large;
            9: small;
            default: accept;
        }
    }
    state small {
        packet.extract(hdr.either.small);
        transition accept;
    }
    state large {
        packet.extract(hdr.either.large);
        transition accept;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }
control update_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    register<bit<96>>(4) memory;
    counter(4, CounterType.packets_and_bytes) seen;
    direct_counter(CounterType.packets_and_bytes) hits;
    meter(2, MeterType.packets) limiter;
    direct_meter<bit<8>>(MeterType.bytes) entry_limiter;
    action_selector(HashAlgorithm.crc16, 8, 16) choices;

    action counted() { hits.count(); }
    action metered() { entry_limiter.read(hdr.command.colour); }
    action choose(bit<8> member) { hdr.command.member = member; }

    table counted_table {
        key = { hdr.command.index: exact; }
        actions = { counted; NoAction; }
        default_action = NoAction;
        counters = hits;
    }
    table metered_table {
        key = { hdr.command.index: exact; }
        actions = { metered; NoAction; }
        default_action = NoAction;
        meters = entry_limiter;
    }
    table chosen_table {
        key = {
            hdr.command.index: exact;
            hdr.command.value: selector;
        }
        actions = { choose; NoAction; }
        implementation = choices;
    }
    apply {
        standard_metadata.egress_spec = 1;
        bit<32> index = (bit<32>) hdr.command.index;
        seen.count(index);
        counted_table.apply();
        if (hdr.command.operation == 1) {
            memory.write(index, hdr.command.value);
        } else if (hdr.command.operation == 2) {
            memory.read(hdr.command.value, index);
        } else if (hdr.command.operation == 3) {
            hash(hdr.command.hash32, HashAlgorithm.crc32, 32w0,
                 { hdr.command.value, hdr.command.index }, 64w0x100000000);
            hash(hdr.command.hash16, HashAlgorithm.crc16, 16w100,
                 { hdr.command.value }, 32w50);
            hash(hdr.command.xor16, HashAlgorithm.xor16, 16w0,
                 { hdr.command.value, hdr.command.index }, 32w0x10000);
            hash(hdr.command.identity, HashAlgorithm.identity, 64w0,
                 { hdr.command.index, hdr.command.operation }, 64w0xffffffffffff);
        } else if (hdr.command.operation == 4) {
            random(hdr.command.random, 10, 13);
        } else if (hdr.command.operation == 5) {
            limiter.execute_meter(index, hdr.command.colour);
        } else if (hdr.command.operation == 6) {
            digest<digest_t>(1, { hdr.command.index, hdr.command.value });
            log_msg("digest of {}", { hdr.command.index });
        } else if (hdr.command.operation == 7) {
            assert(hdr.command.index != 9);
            metered_table.apply();
        } else if (hdr.command.operation == 8) {
            hdr.either.small.setValid();
            hdr.either.small.value = (bit<8>) hdr.command.index;
        } else if (hdr.command.operation == 10) {
            chosen_table.apply();
        }
        if (hdr.either.isValid()) {
            hdr.command.member = 0xff;
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) { apply {} }

control deparse(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.command); packet.emit(hdr.either); }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
