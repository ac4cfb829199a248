//! A receive ring of slots (TPACKET_V2): each has a frame, which is handed over at once.

use std::collections::VecDeque;
use std::io;
use std::mem::offset_of;
use std::os::fd::OwnedFd;

use super::layout::Layout;
use super::map::{Map, is_filled};
use super::received::{Received, half, word};
use super::socket;

/// The ring of a socket.
#[derive(Debug)]
pub(super) struct Slots {
    map: Map,
    layout: Layout,
    next: usize,
    /// Frames that wait and have been looked at, the oldest first: whether they were taken.
    looked: VecDeque<bool>,
}

impl Slots {
    /// A ring for a socket that is not bound.
    pub(super) fn open(socket: &OwnedFd, layout: Layout) -> io::Result<Self> {
        let version = libc::tpacket_versions::TPACKET_V2;
        socket::set_up_ring(socket, libc::PACKET_RX_RING, version, &layout.request())?;
        Ok(Self {
            map: Map::new(socket, layout.bytes())?,
            layout,
            next: 0,
            looked: VecDeque::new(),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.layout.slots
    }

    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        is_filled(self.map.status(self.layout.offset(self.next)))
    }

    /// Whether the oldest frame was taken when it was looked at.
    #[inline]
    pub(super) fn next_is_taken(&self) -> bool {
        self.looked.front() == Some(&true)
    }

    /// Shows each frame that waits, once, as it came.
    pub(super) fn look_ahead(&mut self, mut take: impl FnMut(&[u8]) -> bool) {
        while self.looked.len() < self.layout.slots {
            let offset = (self.layout).offset(self.layout.after(self.next, self.looked.len()));
            let Some((_, bytes)) =
                (self.map).piece(offset, offset, self.layout.slot_bytes, is_filled)
            else {
                return;
            };
            let length = word(bytes, offset_of!(libc::tpacket2_hdr, tp_len)) as usize;
            let captured = word(bytes, offset_of!(libc::tpacket2_hdr, tp_snaplen)) as usize;
            let start = usize::from(half(bytes, offset_of!(libc::tpacket2_hdr, tp_mac)));
            let frame = bytes.get(start..start.saturating_add(captured));
            let frame = frame.filter(|_| captured >= length);
            self.looked.push_back(frame.is_some_and(&mut take));
        }
    }

    /// Takes the oldest frame, `None` if it is too long for a slot; `false` if there is
    /// none.
    #[inline]
    pub(super) fn receive(&mut self, take: impl FnOnce(Option<&[u8]>)) -> bool {
        let offset = self.layout.offset(self.next);
        // The status is the first word of the header.
        let Some((status, bytes)) =
            (self.map).piece(offset, offset, self.layout.slot_bytes, is_filled)
        else {
            return false;
        };
        self.looked.pop_front();
        let received = Received {
            status,
            length: word(bytes, offset_of!(libc::tpacket2_hdr, tp_len)) as usize,
            captured: word(bytes, offset_of!(libc::tpacket2_hdr, tp_snaplen)) as usize,
            start: usize::from(half(bytes, offset_of!(libc::tpacket2_hdr, tp_mac))),
            tci: half(bytes, offset_of!(libc::tpacket2_hdr, tp_vlan_tci)),
            tpid: half(bytes, offset_of!(libc::tpacket2_hdr, tp_vlan_tpid)),
        };
        take(received.repair(bytes));
        self.map.give(offset, libc::TP_STATUS_KERNEL);
        self.next = self.layout.after(self.next, 1);
        true
    }
}
