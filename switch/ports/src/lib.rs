//! Ports: network interfaces as packet sockets, and what stands between the pipeline and
//! the wire: egress queues, rates, impairments, captures.
//!
//! `unsafe` code is in the sockets, their rings and the waiting only; the rest of
//! this module is pure and takes the time as an argument.

mod asker;
mod blocks;
pub mod checksum;
pub mod impairment;
pub mod interface;
mod layout;
mod link_events;
mod map;
pub mod memory;
pub mod pace;
pub mod pcap;
pub mod queue;
pub mod readable_set;
pub mod readiness;
pub mod receive;
mod received;
mod sending;
mod slots;
pub mod socket;
pub mod transmit;
pub mod vlan;

pub use asker::{Asker, InterfaceLook};
pub use impairment::{
    Impairment, ImpairmentCounts, ImpairmentError, ImpairmentSettings, ImpairmentTable,
};
pub use interface::{Interface, InterfaceError};
pub use link_events::{ChangedLinks, LinkEvents};
pub use memory::{LinkCounts, LinkReceiver, LinkSender};
pub use pace::Pace;
pub use pcap::{CapturedFrame, PcapError, PcapReader, PcapWriter};
pub use queue::{EgressQueue, QueueCounts};
pub use readable_set::ReadableSet;
pub use readiness::{Waker, wait};
pub use receive::{ReceiveCounts, ReceiveMode, ReceiveRing};
pub use transmit::{TransmitCounts, TransmitQueue};

/// Longest frame that is taken or sent, bytes without check sequence.
pub const FRAME_BYTES_MAX: usize = 16 * 1024;
