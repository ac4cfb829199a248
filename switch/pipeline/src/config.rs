//! Settings and limits of a pipeline.

use std::fmt;

use std::str::FromStr;

use super::loaded::Compiler;

/// Number of a switch port, as in `standard_metadata.ingress_port`: 0–511 in v1model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u16);

/// How packets are run through a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Execution {
    /// By machine code that is made when the program is loaded; interpreted where that
    /// cannot be.
    #[default]
    Compiled,
    /// An instruction at a time.
    Interpreted,
}

impl fmt::Display for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Execution::Compiled => "compiled",
            Execution::Interpreted => "interpreted",
        })
    }
}

impl FromStr for Execution {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "compiled" => Ok(Execution::Compiled),
            "interpreted" => Ok(Execution::Interpreted),
            _ => Err(format!(
                "`{text}` is not how packets are run: compiled or interpreted"
            )),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct PipelineConfig {
    /// A packet whose `egress_spec` is this port at the end of a control is dropped; what
    /// `mark_to_drop` writes. BMv2: `--drop-port`, 511 by default.
    pub drop_port: PortId,
    /// Egress queues a port has, 1–8; a packet whose `priority` is not below it is
    /// dropped. BMv2: `--priority-queues`, 1 by default.
    pub priorities: u8,
    /// Seed of the generator behind `random`.
    pub seed: u64,
    /// Times one packet may be recirculated; then it is dropped and counted. None: for ever, as BMv2 does it.
    pub recirculations_max: Option<u32>,
    /// Makes the program's machine code; packets are interpreted without. Both give the same.
    pub compiler: Option<Compiler>,
}

impl Default for PipelineConfig {
    fn default() -> Self {
        Self {
            drop_port: PortId(511),
            priorities: 8,
            seed: 0,
            recirculations_max: Some(limits::RECIRCULATIONS_MAX),
            compiler: None,
        }
    }
}

/// Limits of a pipeline. What happens beyond each is documented at the place that counts it.
pub mod limits {
    /// Longest packet taken or made, bytes: a frame of the largest MTU that interfaces have
    /// (veth: 65,535), and headers that a program adds.
    pub const PACKET_BYTES_MAX: usize = 65_535 + 256;
    /// Passes through ingress one packet may make in one go, resubmitted again and again.
    pub const PASSES_MAX: u8 = 200;
    /// Times one packet may be recirculated by default. It waits in a queue each time.
    pub const RECIRCULATIONS_MAX: u32 = 1 << 16;
    /// Clones of clones: how often a copy may itself be cloned.
    pub const CLONE_DEPTH_MAX: u8 = 16;
    /// Jumps backwards (loops in actions) one packet may make in a pass.
    pub const ACTION_LOOPS_MAX: u32 = 1 << 16;
    /// Parser states one packet may visit in a pass.
    pub const PARSER_STATES_MAX: u32 = 4096;
    /// Most multicast groups at a time.
    pub const MULTICAST_GROUPS_MAX: usize = 1 << 16;
    /// Most replicas of a multicast group or clone session.
    pub const REPLICAS_MAX: usize = 4096;
    /// Most clone sessions at a time.
    pub const CLONE_SESSIONS_MAX: usize = 1 << 10;
    /// Copies that wait for the traffic manager while a packet runs through egress in one
    /// go; when there are more, they are handed over before that packet's other copies.
    pub const DEFERRED_PACKETS_MAX: usize = 1024;
    /// Buffers kept for reuse.
    pub const POOL_PACKETS_MAX: usize = 8192;
    /// Bytes of packets that these have room for.
    pub const POOL_BYTES_MAX: usize = 16 << 20;
}
