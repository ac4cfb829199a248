// An L2 switch with one of each thing that a controller can write or read, for the tests
// of the P4Runtime server. A packet passes `types` and `sizes` only while register
// `marks` 0 is 1, `spread` and meter `rates` (red is dropped) only while it is 2.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> pad;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> pad;
}

struct headers_t {
    packet_in_t packet_in;
    packet_out_t packet_out;
    ethernet_t ethernet;
}

struct metadata_t {}

const bit<9> CPU_PORT = 510;
const bit<32> CLONE_SESSION_CPU = 5;

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: from_cpu;
            default: ethernet;
        }
    }
    state from_cpu {
        packet.extract(hdr.packet_out);
        transition ethernet;
    }
    state ethernet {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) hits;
    counter(512, CounterType.packets) received;
    register<bit<32>>(16) marks;
    meter(4, MeterType.packets) rates;
    action_selector(HashAlgorithm.crc16, 16, 16) choice;

    @id(1) action forward(bit<9> port) {
        hits.count();
        standard_metadata.egress_spec = port;
    }
    @id(2) action flood(bit<16> group) {
        hits.count();
        standard_metadata.mcast_grp = group;
    }
    @id(6) action forward_on(bit<9> port) {
        standard_metadata.egress_spec = port;
    }
    @id(3) action drop() {
        mark_to_drop(standard_metadata);
    }
    @id(4) action to_cpu() {
        standard_metadata.egress_spec = CPU_PORT;
    }
    @id(5) action copy_to_cpu() {
        clone(CloneType.I2E, CLONE_SESSION_CPU);
    }

    @id(1) table addresses {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; flood; @tableonly to_cpu; @defaultonly drop; }
        const default_action = drop();
        counters = hits;
        size = 1024;
    }

    @id(2) table types {
        key = {
            hdr.ethernet.type: ternary;
            standard_metadata.ingress_port: optional;
            hdr.ethernet.src: lpm;
        }
        actions = { copy_to_cpu; NoAction; }
        default_action = NoAction();
        size = 8;
    }

    @id(3) table sizes {
        key = { standard_metadata.packet_length: range; }
        actions = { drop; NoAction; }
        default_action = NoAction();
        size = 4;
    }

    @id(4) table spread {
        key = {
            hdr.ethernet.type: exact;
            hdr.ethernet.src: selector;
        }
        actions = { forward_on; NoAction; }
        implementation = choice;
        size = 16;
    }

    apply {
        received.count((bit<32>) standard_metadata.ingress_port);
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            bit<32> mark;
            marks.read(mark, 0);
            addresses.apply();
            if (mark == 1) {
                types.apply();
                sizes.apply();
            }
            if (mark == 2) {
                spread.apply();
                rates.execute_meter<bit<32>>((bit<32>) standard_metadata.ingress_port, mark);
                if (mark == 2) {
                    mark_to_drop(standard_metadata);
                }
            }
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.egress_port == CPU_PORT) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = standard_metadata.ingress_port;
            hdr.packet_in.pad = 0;
        } else if (standard_metadata.egress_rid != 0
                   && standard_metadata.egress_port == standard_metadata.ingress_port) {
            mark_to_drop(standard_metadata);
        }
    }
}

control compute(inout headers_t hdr, inout metadata_t meta) { apply {} }

control deparse(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), compute(), deparse()) main;
