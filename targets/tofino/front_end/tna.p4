// What targets/tofino uses of the Tofino Native Architecture, declared in our own words, for readers that
// bring no tna.p4: p4c without its Tofino backend, which makes the P4Info with it, and the model of
// the chip in targets/tofino/tests/tofino. Names and widths are TNA's; intrinsic headers have only the
// fields in use. The chip is compiled for with the tna.p4 of its compiler.

#ifndef TNA_P4
#define TNA_P4

#include <core.p4>

typedef bit<9> PortId_t;
#ifdef T2NA_P4
typedef bit<7> QueueId_t;
const bit<32> PORT_METADATA_SIZE = 192;
#else
typedef bit<5> QueueId_t;
const bit<32> PORT_METADATA_SIZE = 64;
#endif

const bit<16> PARSER_ERROR_OK = 0x0000;

enum CounterType_t { PACKETS, BYTES, PACKETS_AND_BYTES }
enum MeterType_t { PACKETS, BYTES }
enum bit<8> MeterColor_t { GREEN = 0, YELLOW = 1, RED = 3 }

header ingress_intrinsic_metadata_t {
    bit<1> resubmit_flag;
    bit<6> pad;
    PortId_t ingress_port;
}

struct ingress_intrinsic_metadata_from_parser_t {
    bit<48> global_tstamp;
    bit<16> parser_err;
}

struct ingress_intrinsic_metadata_for_deparser_t {
    bit<3> drop_ctl;
    bit<3> resubmit_type;
}

struct ingress_intrinsic_metadata_for_tm_t {
    PortId_t ucast_egress_port;
    bit<3> ingress_cos;
    QueueId_t qid;
    bit<16> mcast_grp_a;
}

header egress_intrinsic_metadata_t {
    bit<7> pad;
    PortId_t egress_port;
    bit<5> pad2;
    bit<19> deq_qdepth;
    bit<16> egress_rid;
}

struct egress_intrinsic_metadata_from_parser_t {
    bit<48> global_tstamp;
    bit<16> parser_err;
}

struct egress_intrinsic_metadata_for_deparser_t {
    bit<3> drop_ctl;
}

struct egress_intrinsic_metadata_for_output_port_t {
    bit<1> capture_tstamp_on_tx;
}

extern Checksum {
    Checksum();
    void add<T>(in T data);
    bool verify();
    bit<16> update<T>(in T data);
}

extern ParserCounter {
    ParserCounter();
    void set<T>(in T value);
    void decrement(in bit<8> value);
    bool is_zero();
    bool is_negative();
}

// The parameter has the name by which p4c's P4Info of PSA looks for it; TNA calls it size.
extern Counter<W, I> {
    Counter(bit<32> n_counters, CounterType_t type);
    void count(in I index);
}

// The same of its first parameter. Returns a MeterColor_t.
extern Meter<I> {
    Meter(bit<32> n_meters, MeterType_t type);
    bit<8> execute(in I index);
}

extern Resubmit {
    Resubmit();
    void emit<T>(in T hdr);
}

parser IngressParserT<H, M>(packet_in pkt, out H hdr, out M ig_md,
                            out ingress_intrinsic_metadata_t ig_intr_md);
control IngressT<H, M>(inout H hdr, inout M ig_md,
                       in ingress_intrinsic_metadata_t ig_intr_md,
                       in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
                       inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                       inout ingress_intrinsic_metadata_for_tm_t ig_tm_md);
control IngressDeparserT<H, M>(packet_out pkt, inout H hdr, in M ig_md,
                               in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md);
parser EgressParserT<H, M>(packet_in pkt, out H hdr, out M eg_md,
                           out egress_intrinsic_metadata_t eg_intr_md);
control EgressT<H, M>(inout H hdr, inout M eg_md,
                      in egress_intrinsic_metadata_t eg_intr_md,
                      in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
                      inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
                      inout egress_intrinsic_metadata_for_output_port_t eg_oport_md);
control EgressDeparserT<H, M>(packet_out pkt, inout H hdr, in M eg_md,
                              in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md);

package Pipeline<IH, IM, EH, EM>(IngressParserT<IH, IM> ingress_parser,
                                 IngressT<IH, IM> ingress,
                                 IngressDeparserT<IH, IM> ingress_deparser,
                                 EgressParserT<EH, EM> egress_parser,
                                 EgressT<EH, EM> egress,
                                 EgressDeparserT<EH, EM> egress_deparser);

package Switch<IH, IM, EH, EM>(Pipeline<IH, IM, EH, EM> pipe);

#endif
