//! Latency of a small message on a torus (TORUS §5), fitted by the authors to a 4x4
//! unidirectional SCI torus of 1 GHz hosts.
//!
//! A multicast takes as long as its slowest path of unicasts: the overhead to send and to
//! receive, and on the way what the network and the intermediate hosts take (eq. 3, 4).
//! What intermediate hosts take is far the most, so that the simplified forms (eq. 6–8)
//! leave the network out. Eqs. 9–11 estimate the number of intermediate hosts; here they
//! are counted on the structure itself.

/// What the model is fitted to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constants {
    /// o of a message of [`Constants::overhead_bytes`]: to send it, or to receive it, ns.
    pub overhead_ns: f64,
    /// Bytes for which `overhead_ns` holds.
    pub overhead_bytes: f64,
    /// What o grows by with each byte, ns.
    pub overhead_per_byte_ns: f64,
    /// L_p: propagation over a link, ns.
    pub propagation_ns: f64,
    /// L_f: a switch on the way in one dimension, ns.
    pub forwarding_ns: f64,
    /// L_s: a switch where the message turns into another dimension, ns.
    pub switching_ns: f64,
}

impl Constants {
    /// Those of TORUS Fig. 8.
    pub const TORUS: Constants = Constants {
        overhead_ns: 1994.0,
        overhead_bytes: 128.0,
        overhead_per_byte_ns: 3.15,
        propagation_ns: 14.0,
        forwarding_ns: 60.0,
        switching_ns: 670.0,
    };

    /// o: sending or receiving a message of so many bytes, ns.
    pub fn overhead(&self, bytes: f64) -> f64 {
        self.overhead_ns + self.overhead_per_byte_ns * (bytes - self.overhead_bytes)
    }

    /// t_network of eq. 4 without the intermediate hosts, ns.
    pub fn network(&self, path: PathCounts) -> f64 {
        f64::from(path.hops) * self.propagation_ns
            + f64::from(path.forwarding) * self.forwarding_ns
            + f64::from(path.switching) * self.switching_ns
    }
}

/// t_process of TORUS Table 1: what a host takes to find whom to send to, ns.
pub const PROCESS_SEPARATE_NS: f64 = 7_000.0;
pub const PROCESS_MD_NS: f64 = 206_000.0;
pub const PROCESS_MU_NS: f64 = 201_000.0;
pub const PROCESS_U_NS: f64 = 629_000.0;
pub const PROCESS_S_NS: f64 = 265_000.0;

/// What a message passes on the way from the source to one member, through all unicasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// h_p: links.
    pub hops: u32,
    /// h_f: switches passed without a turn.
    pub forwarding: u32,
    /// h_s: switches at which it turns into another dimension.
    pub switching: u32,
    /// h_i: hosts that take it and send it on.
    pub intermediate: u32,
}

/// Simplified, separate addressing (eq. 6): (G−1)·(o + t_process) + o
/// for a group of G, the source included, ns. 0 for a group of one.
pub fn separate_ns(constants: &Constants, group: usize, process_ns: f64, bytes: f64) -> f64 {
    if group < 2 {
        return 0.0;
    }
    let o = constants.overhead(bytes);
    (group - 1) as f64 * (o + process_ns) + o
}

/// Simplified, any other (eq. 7): 2·o + h_i·L_i on the way with the most intermediate
/// hosts, where L_i = t_process + 2·o (eq. 5), ns.
pub fn forwarded_ns(constants: &Constants, intermediate: u32, process_ns: f64, bytes: f64) -> f64 {
    let o = constants.overhead(bytes);
    2.0 * o + f64::from(intermediate) * (process_ns + 2.0 * o)
}

/// In full (eq. 3, 4): 2·o + t_network on the slowest way, ns.
pub fn full_ns(
    constants: &Constants,
    paths: impl IntoIterator<Item = PathCounts>,
    process_ns: f64,
    bytes: f64,
) -> f64 {
    paths
        .into_iter()
        .map(|path| {
            forwarded_ns(constants, path.intermediate, process_ns, bytes) + constants.network(path)
        })
        .fold(0.0, f64::max)
}
