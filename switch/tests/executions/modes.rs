//! The ways a packet can take through a pipeline, and what can be seen of them.

use std::sync::Arc;

use super::programs;
use super::wire::{Wire, forward};
use rand_core::RngCore;
use wormcast_switch_jit::compiler_of;
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_pipeline::{Execution, Pipeline, PipelineConfig};

/// One mode to run a pipeline.
#[derive(Clone, Copy, Debug)]
pub struct Mode {
    pub execution: Execution,
    pub passes: bool,
    /// Copies of one packet that go through egress; none: all.
    pub copies_max: Option<usize>,
}

const fn mode(execution: Execution, passes: bool) -> Mode {
    Mode {
        execution,
        passes,
        copies_max: None,
    }
}

/// The first one is what the others must equal.
pub const MODES: [Mode; 4] = [
    mode(Execution::Interpreted, false),
    mode(Execution::Interpreted, true),
    mode(Execution::Compiled, false),
    mode(Execution::Compiled, true),
];

pub struct Run {
    /// Everything that can be seen of the pipeline afterwards.
    pub seen: Vec<String>,
    /// Copies that were thrown away because of [`Mode::copies_max`].
    pub cut_off: usize,
}

impl Mode {
    /// Runs packets, which arrive at these ports, through a pipeline that the generator
    /// fills.
    pub fn run(
        self,
        program: &Arc<LoadedProgram>,
        generator: &mut impl RngCore,
        packets: &[(u16, Vec<u8>)],
    ) -> Run {
        let config = PipelineConfig {
            compiler: compiler_of(self.execution),
            ..PipelineConfig::default()
        };
        let mut pipeline = Pipeline::new(Arc::clone(program), config);
        assert_eq!(pipeline.execution(), self.execution);
        programs::fill(&mut pipeline, generator);
        let mut wire = Wire {
            passes: self.passes,
            copies_max: self.copies_max,
            ..Wire::default()
        };
        for (number, (port, packet)) in packets.iter().enumerate() {
            let now_us = 1_000 + number as u64 * 37;
            forward(&mut pipeline, &mut wire, *port, packet, now_us, 0);
        }
        Run {
            seen: observe(&mut pipeline, &wire),
            cut_off: wire.cut_off,
        }
    }
}

fn observe(pipeline: &mut Pipeline, wire: &Wire) -> Vec<String> {
    let mut seen = vec![
        format!("{:?}", pipeline.statistics()),
        format!("{:?}", wire.sent),
        format!("{:?}", wire.digests),
    ];
    seen.extend(programs::state(pipeline));
    seen
}
