//! The data plane as the Thrift interface sees it.

use super::context::Target;
use wormcast_switch_dataplane::{Installed, PortStatus, Queues, Switch};
use wormcast_switch_pipeline::{Pipeline, PortId};

impl Target for Switch {
    fn pipeline(&mut self) -> Option<&mut Pipeline> {
        Switch::pipeline(self)
    }

    fn installed(&self) -> Option<Installed> {
        Switch::installed(self)
    }

    fn install(&mut self, pipeline: Pipeline) {
        Switch::install(self, pipeline);
    }

    fn elapsed_us(&self) -> u64 {
        Switch::elapsed_us(self)
    }

    fn unix_us(&self) -> u64 {
        Switch::unix_us(self)
    }

    fn ports(&mut self) -> Vec<PortStatus> {
        Switch::look_at_ports(self)
    }

    fn add_port(&mut self, number: PortId, interface: &str) -> Result<(), String> {
        Switch::add_port(self, number, interface)
    }

    fn remove_port(&mut self, number: PortId) -> Result<(), String> {
        Switch::remove_port(self, number)
    }

    fn set_queue_depth(&mut self, which: Queues, frames: usize) -> Result<(), String> {
        Switch::set_queue_depth(self, which, frames)
    }

    fn set_queue_rate(&mut self, which: Queues, frames_a_second: u64) -> Result<(), String> {
        Switch::set_queue_rate(self, which, frames_a_second)
    }
}
