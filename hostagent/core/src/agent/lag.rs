//! Who lags in a stream, as far as this host knows or can ask.

use super::Agent;
use wormcast_protocol::{BranchAnswer, BranchQuestion, StreamLag};
use wormcast_wire::HostId;

/// What this host knows of who lags.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LagReport {
    /// Of whose streams to the group it knows.
    pub origins: Vec<HostId>,
    /// The one asked for; none: it knows of none.
    pub stream: Option<StreamLag>,
}

impl Agent {
    /// What this host knows of a stream; with branches it asks switches too, each once.
    ///
    /// # Errors
    /// A sentence that names the value and the choices; no switch is asked then.
    pub fn report_lag(
        &mut self,
        origin: HostId,
        question: BranchQuestion,
    ) -> (LagReport, Result<(), String>) {
        let group = question.group;
        let Some(engine) = self.engine.as_mut().filter(|_| self.plan.is_some()) else {
            return (
                LagReport::default(),
                Err("this host has no plan yet".to_owned()),
            );
        };
        let asked = if question.branches.is_empty() {
            Ok(())
        } else {
            engine
                .ask_branches(question)
                .map_err(|error| error.to_string())
        };
        let report = LagReport {
            origins: engine.origins(group).collect(),
            stream: engine.lag(group, origin),
        };
        (report, asked)
    }

    /// The next answer of a switch, for the controller.
    pub fn poll_branch_answer(&mut self) -> Option<BranchAnswer> {
        self.engine.as_mut()?.poll_branch_answer()
    }
}
