//! STF scripts, on programs of the repository. A script passes or fails with a line of its
//! own, and in the same way on both executions.
//!
//! Input: the number of a program, then the script.

use std::sync::OnceLock;

use super::draws::Draws;
use super::programs::{self, Case};
use wormcast_switch_jit::compiler_of;
use wormcast_switch_pipeline::{Execution, PipelineConfig};
use wormcast_switch_stf::{Failure, Passed, run_script};

fn cases() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(programs::cases)
}

pub fn run(data: &[u8]) {
    let mut draws = Draws::new(data);
    let case = &cases()[usize::from(draws.byte()) % cases().len()];
    let script = String::from_utf8_lossy(draws.rest());
    let run = |execution: Execution| -> Result<Passed, Failure> {
        let config = PipelineConfig {
            compiler: compiler_of(execution),
            ..PipelineConfig::default()
        };
        run_script(case.program.clone(), config, &script, None)
    };
    let ended = run(Execution::Interpreted);
    assert_eq!(ended, run(Execution::Compiled));
    match ended {
        Ok(passed) => assert!(passed.packets + passed.checks <= script.lines().count() * 2),
        Err(failure) => {
            assert!(!failure.message.is_empty());
            let lines = 1..=script.lines().count();
            assert!(
                failure.line.is_none_or(|line| lines.contains(&line)),
                "{failure}"
            );
        }
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (number, case) in cases().iter().enumerate() {
        let folder = super::programs_folder();
        if let Ok(script) = std::fs::read(folder.join(format!("{}.stf", case.name))) {
            seeds.push([&[number as u8][..], &script].concat());
        }
    }
    let every = "add ingress.addresses 1 hdr.ethernet.dst:0x0* ingress.forward(port:1) = $a\n\
                 remove $a\nwait 7\nmirroring_add 1 2\nmirroring_delete 1\nmc_mgrp_create 1\n\
                 mc_node_create 3 1 2\nmc_node_associate 1 0\nmc_node_update 0 4\n\
                 register_write ingress.marks 0 0x7\nregister_read ingress.marks 0 == 7\n\
                 counter_write ingress.received 0 1 2\ncheck_counter ingress.received(0) packets == 1\n\
                 meter_set_rates ingress.rates 0 0.5:10 1:20\nmeter_array_set_rates ingress.rates 1:1 2:2\n\
                 meter_get_rates ingress.rates 0\nmember ingress.choice 1 ingress.forward_on(port:2)\n\
                 group ingress.choice 1 1\npacket 1 00\nexpect 1 0*$\nno_packet\ncheck_drops too_long == 0\n";
    let objects = cases().iter().position(|case| case.name == "objects");
    let number = objects.expect("a program with objects") as u8;
    seeds.push([&[number][..], every.as_bytes()].concat());
    seeds
}
