//! Links in memory: frames from a port of one switch to a port of another one in this
//! process.
//!
//! One thread sends and one receives, without a lock. A link that is full takes no frame:
//! the sender keeps its packets queued and is notified when there is room. Buffers go back to
//! the sender, so a link allocates only until it has seen its longest queue.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use rtrb::{Consumer, Producer, RingBuffer};

/// Frames that may be on a link.
pub const LINK_FRAMES_MAX: usize = 64;
/// Bytes of these, but a frame finds an empty link in any case.
pub const LINK_BYTES_MAX: usize = 1 << 20;

/// Frames and bytes that passed one end of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    pub frames: u64,
    pub bytes: u64,
    /// Times the sender found the link full and waited.
    pub full: u64,
}

/// The end of a link that frames go into.
#[derive(Debug)]
pub struct LinkSender {
    frames: Producer<Vec<u8>>,
    returned: Consumer<Vec<u8>>,
    /// Buffers that are here, and bytes that they have room for.
    free: Vec<Vec<u8>>,
    free_bytes: usize,
    /// Bytes of frames that have not come back.
    away_bytes: usize,
    bytes_max: usize,
    waits: Arc<AtomicBool>,
    counts: LinkCounts,
}

/// The end of a link that frames come out of.
#[derive(Debug)]
pub struct LinkReceiver {
    frames: Consumer<Vec<u8>>,
    returned: Producer<Vec<u8>>,
    waits: Arc<AtomicBool>,
    /// Frames that wait and have been looked at, the oldest first: whether they were taken.
    looked: VecDeque<bool>,
    counts: LinkCounts,
}

/// One direction of a link for at most `frames_max` frames (at least one) and `bytes_max` bytes.
pub fn link(frames_max: usize, bytes_max: usize) -> (LinkSender, LinkReceiver) {
    let frames_max = frames_max.max(1);
    let (sending, receiving) = RingBuffer::new(frames_max);
    // One buffer more than the link holds can be on its way: the one that is being read.
    let (returning, returned) = RingBuffer::new(frames_max + 1);
    let waits = Arc::new(AtomicBool::new(false));
    let sender = LinkSender {
        frames: sending,
        returned,
        free: Vec::new(),
        free_bytes: 0,
        away_bytes: 0,
        bytes_max,
        waits: Arc::clone(&waits),
        counts: LinkCounts::default(),
    };
    let receiver = LinkReceiver {
        frames: receiving,
        returned: returning,
        waits,
        looked: VecDeque::new(),
        counts: LinkCounts::default(),
    };
    (sender, receiver)
}

impl LinkSender {
    /// Whether the link takes another frame. If not,
    /// [`LinkReceiver::takes_waiting`] says so to the receiver once it has made room.
    #[inline]
    pub fn has_room(&mut self) -> bool {
        if !self.is_full() {
            return true;
        }
        if !self.waits.swap(true, Ordering::SeqCst) {
            self.counts.full += 1;
        }
        // Either the receiver sees that we wait, or we see the room that it made.
        fence(Ordering::SeqCst);
        !self.is_full()
    }

    #[inline]
    fn is_full(&mut self) -> bool {
        if self.away_bytes >= self.bytes_max {
            self.collect();
        }
        self.frames.is_full() || self.away_bytes >= self.bytes_max
    }

    /// Takes back what the receiver has read, and keeps no more room than a link may hold.
    fn collect(&mut self) {
        while let Ok(buffer) = self.returned.pop() {
            self.away_bytes -= buffer.len();
            if self.free_bytes + buffer.capacity() <= self.bytes_max {
                self.free_bytes += buffer.capacity();
                self.free.push(buffer);
            }
        }
    }

    /// Puts a frame on the link; `false` if there is no room.
    #[inline]
    pub fn push(&mut self, frame: &[u8]) -> bool {
        if self.is_full() {
            return false;
        }
        if self.free.is_empty() {
            self.collect();
        }
        let mut buffer = self.free.pop().unwrap_or_default();
        self.free_bytes -= buffer.capacity();
        self.away_bytes += frame.len();
        buffer.clear();
        buffer.extend_from_slice(frame);
        self.counts.frames += 1;
        self.counts.bytes += frame.len() as u64;
        self.frames.push(buffer).is_ok()
    }

    pub fn counts(&self) -> LinkCounts {
        self.counts
    }
}

impl LinkReceiver {
    /// Whether a frame waits.
    #[inline]
    pub fn is_ready(&self) -> bool {
        !self.frames.is_empty()
    }

    /// Hands over at most `limit` frames, oldest first, and gives their number.
    pub fn receive(&mut self, limit: usize, mut take: impl FnMut(&[u8])) -> usize {
        let mut taken = 0;
        while taken < limit
            && let Ok(buffer) = self.frames.pop()
        {
            self.counts.frames += 1;
            self.counts.bytes += buffer.len() as u64;
            if self.looked.pop_front() != Some(true) {
                take(&buffer);
            }
            // There are never more buffers than it has room for; a lost one is made anew.
            let _ = self.returned.push(buffer);
            taken += 1;
        }
        taken
    }

    /// Shows every frame that waits, once, oldest first. What `take` takes is not handed
    /// over by [`receive`](Self::receive); all frames stay on the link until then.
    pub fn look_ahead(&mut self, mut take: impl FnMut(&[u8]) -> bool) {
        let waiting = self.frames.slots();
        let Ok(frames) = self.frames.read_chunk(waiting) else {
            return;
        };
        let (front, back) = frames.as_slices();
        let new = front.iter().chain(back).skip(self.looked.len());
        self.looked.extend(new.map(|frame| take(frame)));
    }

    /// Whether the sender has waited for room since this was last asked; to be asked after
    /// frames were received.
    #[inline]
    pub fn takes_waiting(&self) -> bool {
        fence(Ordering::SeqCst);
        self.waits.load(Ordering::Relaxed) && self.waits.swap(false, Ordering::SeqCst)
    }

    pub fn counts(&self) -> LinkCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_all(receiver: &mut LinkReceiver) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        receiver.receive(usize::MAX, |frame| frames.push(frame.to_vec()));
        frames
    }

    #[test]
    fn frames_pass_in_order_and_a_full_link_takes_none() {
        let (mut sender, mut receiver) = link(2, LINK_BYTES_MAX);
        assert!(!receiver.is_ready());
        assert!(sender.push(&[1]) && sender.push(&[2, 2]));
        assert!(!sender.has_room());
        assert!(!sender.push(&[3]));
        assert!(receiver.is_ready());
        assert_eq!(take_all(&mut receiver), [vec![1], vec![2, 2]]);
        assert!(receiver.takes_waiting());
        assert!(!receiver.takes_waiting());
        assert!(sender.has_room());
        let counts = LinkCounts {
            frames: 2,
            bytes: 3,
            full: 1,
        };
        assert_eq!(sender.counts(), counts);
        assert_eq!(receiver.counts(), LinkCounts { full: 0, ..counts });
    }

    #[test]
    fn what_is_taken_ahead_is_not_received_again() {
        let (mut sender, mut receiver) = link(4, LINK_BYTES_MAX);
        assert!(sender.push(&[1]) && sender.push(&[2]));
        let mut seen = Vec::new();
        let mut look = |receiver: &mut LinkReceiver| {
            receiver.look_ahead(|frame| {
                seen.push(frame[0]);
                frame[0].is_multiple_of(2)
            });
        };
        look(&mut receiver);
        assert!(sender.push(&[3]) && sender.push(&[4]));
        look(&mut receiver);
        assert_eq!(seen, [1, 2, 3, 4], "each once");
        assert!(!sender.has_room(), "they still wait");
        assert!(receiver.receive(1, |frame| assert_eq!(frame, [1])) == 1);
        assert_eq!(take_all(&mut receiver), [vec![3]]);
        assert!(sender.push(&[6]));
        assert_eq!(take_all(&mut receiver), [vec![6]], "not looked at");
    }

    #[test]
    fn a_link_is_full_with_so_many_bytes_however_few_frames() {
        let (mut sender, mut receiver) = link(64, 100);
        let long = [7; 60];
        assert!(sender.push(&long) && sender.push(&long));
        assert!(!sender.has_room() && !sender.push(&[1]));
        assert_eq!(receiver.receive(1, |frame| assert_eq!(frame, long)), 1);
        assert!(receiver.takes_waiting() && sender.has_room());
        assert!(sender.push(&[1]) && sender.push(&[2]) && sender.push(&[0; 1_000]));
        assert!(!sender.has_room());
        assert_eq!(take_all(&mut receiver).len(), 4);
        assert!(sender.has_room() && sender.free_bytes <= 100);
        assert_eq!(sender.away_bytes, 0);
    }

    #[test]
    fn buffers_are_used_again() {
        let (mut sender, mut receiver) = link(4, LINK_BYTES_MAX);
        let mut addresses = std::collections::BTreeSet::new();
        for number in 0..100u8 {
            assert!(sender.push(&[number; 100]));
            receiver.receive(1, |frame| {
                addresses.insert(frame.as_ptr() as usize);
            });
        }
        assert_eq!(addresses.len(), 1);
    }

    /// A sender that is notified of room, and only then tries again, loses nothing and does
    /// not wait for ever.
    #[test]
    fn two_threads_lose_no_frame_and_no_wake() {
        const FRAMES: u32 = 20_000;
        let (mut sender, mut receiver) = link(3, LINK_BYTES_MAX);
        let told = std::sync::Barrier::new(2);
        let (tell, room) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let told = &told;
            scope.spawn(move || {
                told.wait();
                for number in 0..FRAMES {
                    while !sender.has_room() {
                        room.recv().unwrap();
                    }
                    assert!(sender.push(&number.to_be_bytes()));
                }
            });
            told.wait();
            let mut next = 0u32;
            while next < FRAMES {
                let taken = receiver.receive(2, |frame| {
                    assert_eq!(frame, next.to_be_bytes());
                    next += 1;
                });
                if taken > 0 && receiver.takes_waiting() {
                    // The sender may have ended.
                    let _ = tell.send(());
                } else if taken == 0 {
                    std::thread::yield_now();
                }
            }
        });
    }
}
