//! Settings of the queues of a switch.

use super::headroom::LosslessSettings;
use super::scheduler::SchedulerKind;
use super::units::{BitRate, Duration};

/// How the queues of a switch behave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueSettings {
    /// Lossless priorities, if there are any.
    pub lossless: Option<LosslessSettings>,
    /// How queues share their port.
    pub scheduler: SchedulerKind,
    /// Packets left behind in a queue from which on frames are marked.
    pub ecn_threshold: Option<u32>,
}

impl QueueSettings {
    /// Ports whose links have settings of their own.
    pub fn named_ports(&self) -> impl Iterator<Item = u16> + '_ {
        self.lossless
            .iter()
            .flat_map(|lossless| lossless.links.keys().copied())
    }

    /// Gives the link of a port another rate or delay. Nothing if nothing is lossless.
    pub fn set_link(&mut self, port: u16, rate: Option<BitRate>, delay: Option<Duration>) {
        let Some(lossless) = &mut self.lossless else {
            return;
        };
        let link = lossless.links.entry(port).or_insert(lossless.link);
        link.rate = rate.unwrap_or(link.rate);
        link.delay_us = delay.map_or(link.delay_us, Duration::as_us);
    }
}
