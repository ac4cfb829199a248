//! The buffer of a switch: who holds how much of it, by the port and the priority that
//! frames came in with.
//!
//! A frame is held from its arrival until the last of its copies has left, and counts once.

use super::headroom::Thresholds;
use super::priority::PRIORITIES;

/// A frame in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHold(u32);

impl FrameHold {
    /// Tells frames in the buffer apart; given anew when the frame has left.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// What is known of a frame in the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Position of the port it came in by.
    pub port: u16,
    /// Priority it came in with.
    pub priority: u8,
    /// Its length then.
    pub bytes: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Hold {
    origin: Origin,
    copies: u32,
}

/// A priority of the neighbour at a port has to be stopped or started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// More is held than XOFF: stop.
    Xoff,
    /// No more is held than XON: go on.
    Xon,
}

/// What one port and priority hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IngressBuffer {
    thresholds: Option<Thresholds>,
    stopped: bool,
    held_bytes: u64,
    held_bytes_max: u64,
    refused: u64,
}

impl IngressBuffer {
    /// Thresholds; `None` for a lossy priority.
    pub fn thresholds(&self) -> Option<&Thresholds> {
        self.thresholds.as_ref()
    }

    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    pub fn held_bytes_max(&self) -> u64 {
        self.held_bytes_max
    }

    /// Frames that found no room: of a lossless priority, because the neighbour did not
    /// stop in time.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// XOFF has been crossed, and XON not yet.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    fn has_room(&self, bytes: u64) -> bool {
        self.thresholds
            .is_none_or(|thresholds| self.held_bytes + bytes <= thresholds.limit())
    }

    fn add(&mut self, bytes: u64) -> Option<Crossing> {
        self.held_bytes += bytes;
        self.held_bytes_max = self.held_bytes_max.max(self.held_bytes);
        let crosses = !self.stopped
            && self
                .thresholds
                .is_some_and(|thresholds| self.held_bytes > thresholds.xoff);
        self.stopped |= crosses;
        crosses.then_some(Crossing::Xoff)
    }

    fn remove(&mut self, bytes: u64) -> Option<Crossing> {
        self.held_bytes -= bytes;
        let crosses = self.stopped
            && self
                .thresholds
                .is_none_or(|thresholds| self.held_bytes <= thresholds.xon);
        self.stopped &= !crosses;
        crosses.then_some(Crossing::Xon)
    }
}

#[derive(Clone, Debug)]
pub struct SharedBuffer {
    ports: Vec<[IngressBuffer; PRIORITIES]>,
    holds: Vec<Hold>,
    free: Vec<u32>,
    lossy_bytes_limit: u64,
    lossy_bytes: u64,
    held_bytes: u64,
    held_bytes_max: u64,
    copies: u64,
    copies_max: u64,
}

impl SharedBuffer {
    /// An empty buffer. Each port has the thresholds of its lossless priorities; all other
    /// frames share `lossy_bytes_limit`.
    pub fn new(
        ports: impl IntoIterator<Item = [Option<Thresholds>; PRIORITIES]>,
        lossy_bytes_limit: u64,
    ) -> Self {
        let of_port = |thresholds: [Option<Thresholds>; PRIORITIES]| {
            thresholds.map(|thresholds| IngressBuffer {
                thresholds,
                ..IngressBuffer::default()
            })
        };
        Self {
            ports: ports.into_iter().map(of_port).collect(),
            holds: Vec::new(),
            free: Vec::new(),
            lossy_bytes_limit,
            lossy_bytes: 0,
            held_bytes: 0,
            held_bytes_max: 0,
            copies: 0,
            copies_max: 0,
        }
    }

    /// Takes a frame in, as one copy. `None` if there is no room for it, which is counted.
    pub fn admit(&mut self, origin: Origin) -> Option<(FrameHold, Option<Crossing>)> {
        let buffer = &mut self.ports[usize::from(origin.port)][usize::from(origin.priority)];
        let bytes = u64::from(origin.bytes);
        let lossy = buffer.thresholds.is_none();
        let lossy_full = lossy && self.lossy_bytes + bytes > self.lossy_bytes_limit;
        if lossy_full || !buffer.has_room(bytes) {
            buffer.refused += 1;
            return None;
        }
        let crossing = buffer.add(bytes);
        if lossy {
            self.lossy_bytes += bytes;
        }
        self.held_bytes += bytes;
        self.held_bytes_max = self.held_bytes_max.max(self.held_bytes);
        let hold = Hold { origin, copies: 1 };
        self.copies += 1;
        self.copies_max = self.copies_max.max(self.copies);
        let number = match self.free.pop() {
            Some(number) => {
                self.holds[number as usize] = hold;
                number
            }
            None => {
                self.holds.push(hold);
                (self.holds.len() - 1) as u32
            }
        };
        Some((FrameHold(number), crossing))
    }

    /// There is one copy more of a frame.
    #[inline]
    pub fn add_copy(&mut self, hold: FrameHold) {
        self.holds[hold.0 as usize].copies += 1;
        self.copies += 1;
        self.copies_max = self.copies_max.max(self.copies);
    }

    /// A copy has left. Says whether the last one has, and what that means for its origin.
    pub fn remove_copy(&mut self, hold: FrameHold) -> Option<(Origin, Option<Crossing>)> {
        let held = &mut self.holds[hold.0 as usize];
        assert!(held.copies > 0, "a frame leaves once");
        held.copies -= 1;
        self.copies -= 1;
        if held.copies > 0 {
            return None;
        }
        let origin = held.origin;
        self.free.push(hold.0);
        let bytes = u64::from(origin.bytes);
        let buffer = &mut self.ports[usize::from(origin.port)][usize::from(origin.priority)];
        if buffer.thresholds.is_none() {
            self.lossy_bytes -= bytes;
        }
        self.held_bytes -= bytes;
        Some((origin, buffer.remove(bytes)))
    }

    /// Where a frame came from.
    #[inline]
    pub fn origin(&self, hold: FrameHold) -> Origin {
        self.holds[hold.0 as usize].origin
    }

    pub fn ingress(&self, port: usize, priority: u8) -> &IngressBuffer {
        &self.ports[port][usize::from(priority)]
    }

    /// Bytes of all frames held.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    pub fn held_bytes_max(&self) -> u64 {
        self.held_bytes_max
    }

    /// Most copies there ever were at a time.
    pub fn copies_max(&self) -> u64 {
        self.copies_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const THRESHOLDS: Thresholds = Thresholds {
        xon: 1_000,
        xoff: 2_000,
        headroom: 3_000,
    };

    fn buffer() -> SharedBuffer {
        let mut port = [None; PRIORITIES];
        (port[3], port[4]) = (Some(THRESHOLDS), Some(THRESHOLDS));
        SharedBuffer::new([port, port], 4_000)
    }

    fn origin(port: u16, priority: u8, bytes: u32) -> Origin {
        Origin {
            port,
            priority,
            bytes,
        }
    }

    #[test]
    fn xoff_then_full_then_xon() {
        let mut buffer = buffer();
        let mut holds = Vec::new();
        let mut crossings = Vec::new();
        for _ in 0..5 {
            let (hold, crossing) = buffer.admit(origin(0, 3, 1_000)).unwrap();
            holds.push(hold);
            crossings.push(crossing);
        }
        assert_eq!(crossings, [None, None, Some(Crossing::Xoff), None, None]);
        assert!(buffer.admit(origin(0, 3, 1)).is_none());
        assert_eq!(buffer.ingress(0, 3).refused(), 1);
        // Others are not touched.
        assert!(buffer.admit(origin(1, 3, 1_000)).is_some());
        assert!(buffer.admit(origin(0, 4, 1_000)).is_some());
        let out: Vec<_> = holds
            .into_iter()
            .map(|hold| buffer.remove_copy(hold).unwrap().1)
            .collect();
        assert_eq!(out, [None, None, None, Some(Crossing::Xon), None]);
        assert_eq!(
            (buffer.held_bytes(), buffer.held_bytes_max()),
            (2_000, 7_000)
        );
    }

    #[test]
    fn a_frame_is_held_until_its_last_copy_leaves() {
        let mut buffer = buffer();
        let (hold, _) = buffer.admit(origin(0, 3, 700)).unwrap();
        buffer.add_copy(hold);
        buffer.add_copy(hold);
        assert_eq!(buffer.remove_copy(hold), None);
        assert_eq!(buffer.remove_copy(hold), None);
        assert_eq!(buffer.ingress(0, 3).held_bytes(), 700);
        assert_eq!(buffer.remove_copy(hold), Some((origin(0, 3, 700), None)));
        assert_eq!(
            (buffer.ingress(0, 3).held_bytes(), buffer.copies_max()),
            (0, 3)
        );
    }

    #[test]
    fn lossy_frames_share_what_is_left() {
        let mut buffer = buffer();
        assert!(buffer.admit(origin(0, 0, 3_000)).is_some());
        assert!(buffer.admit(origin(1, 7, 1_001)).is_none());
        assert!(buffer.admit(origin(1, 7, 1_000)).is_some());
        assert!(
            buffer.admit(origin(0, 3, 5_000)).is_some(),
            "lossless frames have their own"
        );
    }

    proptest! {
        /// Whatever comes and goes: no limit is exceeded, XOFF comes before the buffer is
        /// full by the headroom, and each XOFF is followed by one XON.
        #[test]
        fn bounds_hold(steps in proptest::collection::vec((0u16..2, 0u8..8, 60u32..1_600, any::<u8>()), 1..400)) {
            let mut buffer = buffer();
            let mut holds: Vec<FrameHold> = Vec::new();
            let mut stopped = [[false; 8]; 2];
            for (port, priority, bytes, choice) in steps {
                if choice % 3 == 0 && !holds.is_empty() {
                    let hold = holds.swap_remove(usize::from(choice) % holds.len());
                    if let Some((origin, Some(crossing))) = buffer.remove_copy(hold) {
                        let cell = &mut stopped[usize::from(origin.port)][usize::from(origin.priority)];
                        prop_assert_eq!((crossing, *cell), (Crossing::Xon, true));
                        *cell = false;
                    }
                } else if let Some((hold, crossing)) = buffer.admit(origin(port, priority, bytes)) {
                    holds.push(hold);
                    if choice % 3 == 1 {
                        buffer.add_copy(hold);
                        holds.push(hold);
                    }
                    let cell = &mut stopped[usize::from(port)][usize::from(priority)];
                    if let Some(crossing) = crossing {
                        prop_assert_eq!((crossing, *cell), (Crossing::Xoff, false));
                        *cell = true;
                    }
                } else if priority == 3 || priority == 4 {
                    prop_assert!(stopped[usize::from(port)][usize::from(priority)]);
                    let room = THRESHOLDS.limit() - buffer.ingress(usize::from(port), priority).held_bytes();
                    prop_assert!(room < u64::from(bytes));
                }
                for port in 0..2 {
                    for priority in [3, 4] {
                        let ingress = buffer.ingress(port, priority);
                        prop_assert!(ingress.held_bytes() <= THRESHOLDS.limit());
                        prop_assert!(ingress.is_stopped() || ingress.held_bytes() <= THRESHOLDS.xoff);
                    }
                }
                prop_assert!(buffer.held_bytes() <= 4 * THRESHOLDS.limit() + 4_000);
            }
            for hold in holds {
                buffer.remove_copy(hold);
            }
            prop_assert_eq!((buffer.held_bytes(), buffer.copies), (0, 0));
        }
    }
}
