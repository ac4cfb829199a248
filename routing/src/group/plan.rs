//! A group planned, and who sends to whom.

use super::metrics::Metrics;
use super::request::GroupRequest;
use super::switch_delivery::SwitchDelivery;
use crate::structure::Edge;
use wormcast_wire::HostId;

/// A group planned on a topology.
#[derive(Clone, Debug)]
pub struct GroupPlan {
    /// What was planned, with every choice filled in; members are ascending.
    pub request: GroupRequest,
    /// Members in the order the scheme works on.
    pub ordered: Vec<HostId>,
    /// Steps until the last member has the last packet. k-binomial under FPFS: T1 +
    /// (m−1)·k, which a source with fewer than k children undercuts. Switch: one for each
    /// worm of each packet, and one more with a relay.
    pub steps: u64,
    pub delivery: Delivery,
    /// What the sends cost the network, if it was asked for ([`super::measure_group`]).
    pub metrics: Option<Metrics>,
}

/// Who sends to whom.
#[derive(Clone, Debug)]
pub enum Delivery {
    Hosts {
        /// Sends of the first packet, in the order of the schedule.
        edges: Vec<Edge>,
    },
    Switches(Box<SwitchDelivery>),
}
