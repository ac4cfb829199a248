//! Traces: probes along the ways of messages, and those that come.

use crate::agent::Agent;
use wormcast_protocol::{Observation, TraceRequest, Way};

impl Agent {
    /// Sends probes along the ways of messages, and gives these ways.
    ///
    /// # Errors
    /// A sentence that names the value and the choices.
    pub fn trace(&mut self, request: &TraceRequest) -> Result<Vec<Way>, String> {
        let Some(engine) = self.engine.as_mut().filter(|_| self.plan.is_some()) else {
            return Err("this host has no plan yet".to_owned());
        };
        engine.trace(request).map_err(|error| error.to_string())
    }

    /// The next probe that came, for the controller.
    pub fn poll_observation(&mut self) -> Option<Observation> {
        self.engine.as_mut()?.poll_observation()
    }
}
