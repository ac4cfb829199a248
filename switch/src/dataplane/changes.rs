//! Changes to the ports of a running switch.

use super::engine::Engine;
use crate::pipeline::PortId;
use crate::thrift::{PortStatus, Queues};

impl Engine {
    /// Microseconds since the switch started.
    pub fn elapsed_us(&self) -> u64 {
        self.clock.now_us()
    }

    /// Microseconds since the start of 1970.
    pub fn unix_us(&self) -> u64 {
        self.clock.unix_us(self.clock.now_us())
    }

    /// Ports with interfaces, by number.
    pub fn port_statuses(&self) -> Vec<PortStatus> {
        Vec::new()
    }

    /// x
    pub fn add_port(&mut self, _: PortId, _: &str) -> Result<(), String> {
        Err("not yet".into())
    }

    /// x
    pub fn remove_port(&mut self, _: PortId) -> Result<(), String> {
        Err("not yet".into())
    }

    /// x
    pub fn set_queue_depth(&mut self, _: Queues, _: usize) -> Result<(), String> {
        Err("not yet".into())
    }

    /// x
    pub fn set_queue_rate(&mut self, _: Queues, _: u64) -> Result<(), String> {
        Err("not yet".into())
    }
}
