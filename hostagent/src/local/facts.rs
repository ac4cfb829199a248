//! What the agent is, for status.

use crate::directory::SharedControllerState;
use serde_json::{Value, json};
use wormcast_agent_core::figures::Figures;

/// What status says of the agent itself.
#[derive(Debug)]
pub struct AgentFacts {
    pub name: String,
    pub interface: String,
    /// Path of the local API.
    pub socket: String,
    pub controller: String,
    /// How it stands with it.
    pub controller_state: SharedControllerState,
}

impl AgentFacts {
    /// The answer to status (API.md §4).
    pub fn describe(&self, figures: &Figures) -> Value {
        let controller = self.controller_state.get();
        let mut status = figures.to_json();
        status["name"] = self.name.as_str().into();
        status["version"] = env!("CARGO_PKG_VERSION").into();
        status["socket"] = self.socket.as_str().into();
        status["link"]["interface"] = self.interface.as_str().into();
        status["controller"] = json!({
            "address": self.controller,
            "connected": controller.connected,
            "since_s": controller.since.elapsed().as_secs(),
            "attachments": controller.attachments,
            "last_error": controller.last_error,
        });
        status
    }
}
