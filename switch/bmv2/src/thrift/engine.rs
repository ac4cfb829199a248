//! The data plane as the Thrift interface sees it.

use super::context::Switch;
use wormcast_switch_dataplane::{Engine, Installed, PortStatus, Queues};
use wormcast_switch_pipeline::{Pipeline, PortId};

impl Switch for Engine {
    fn pipeline(&mut self) -> Option<&mut Pipeline> {
        Engine::pipeline(self)
    }

    fn installed(&self) -> Option<Installed> {
        Engine::installed(self)
    }

    fn install(&mut self, pipeline: Pipeline) {
        Engine::install(self, pipeline);
    }

    fn elapsed_us(&self) -> u64 {
        Engine::elapsed_us(self)
    }

    fn unix_us(&self) -> u64 {
        Engine::unix_us(self)
    }

    fn ports(&mut self) -> Vec<PortStatus> {
        Engine::look_at_ports(self)
    }

    fn add_port(&mut self, number: PortId, interface: &str) -> Result<(), String> {
        Engine::add_port(self, number, interface)
    }

    fn remove_port(&mut self, number: PortId) -> Result<(), String> {
        Engine::remove_port(self, number)
    }

    fn set_queue_depth(&mut self, which: Queues, frames: usize) -> Result<(), String> {
        Engine::set_queue_depth(self, which, frames)
    }

    fn set_queue_rate(&mut self, which: Queues, frames_a_second: u64) -> Result<(), String> {
        Engine::set_queue_rate(self, which, frames_a_second)
    }
}
