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

/// Largest MTU of an interface that is used whole: that of veth, bytes after the Ethernet header.
pub const MTU_MAX: usize = 65_535;
/// Bytes of an Ethernet header.
const ETHERNET_BYTES: usize = 14;
/// Longest frame that is taken or sent, bytes without VLAN tag and check sequence.
pub const FRAME_BYTES_MAX: usize = MTU_MAX + ETHERNET_BYTES;
