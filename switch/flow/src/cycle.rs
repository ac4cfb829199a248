//! Who waits for whom in a fabric: deadlocks, found exactly, and the ring named.
//!
//! A queue that is paused waits for the neighbour's ingress buffer to fall to its XON
//! threshold; that buffer waits for the queues that hold its frames. A set of queues is
//! dead when every one of them waits for a buffer that cannot fall to XON by whatever
//! leaves through queues outside the set.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A port of a switch of the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FabricPort {
    /// Device id of the switch.
    pub switch: u64,
    pub port: u16,
}

/// A queue, or a buffer, of one priority at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FabricQueue {
    pub at: FabricPort,
    pub priority: u8,
}

impl fmt::Display for FabricQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FabricPort { switch, port } = self.at;
        write!(f, "switch {switch} port {port} priority {}", self.priority)
    }
}

/// A frame that waits at a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingFrame {
    /// Port it came in by.
    pub ingress_port: u16,
    /// Priority it came in with.
    pub ingress_priority: u8,
    /// Which frame of its switch it is: its copies are one frame.
    pub frame: u32,
    pub bytes: u64,
}

/// A queue that is paused while frames wait in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PausedQueue {
    pub port: u16,
    pub priority: u8,
    /// Since when, µs of the switch's clock.
    pub since_us: u64,
    /// What waits in it, by where it came from.
    pub waiting: Vec<WaitingFrame>,
}

/// An ingress buffer that has stopped its neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoppedIngress {
    pub port: u16,
    pub priority: u8,
    pub held_bytes: u64,
    /// Bytes at which it lets the neighbour go on.
    pub xon_bytes: u64,
}

/// What one switch waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Its paused queues that hold frames.
    pub paused: Vec<PausedQueue>,
    /// Its ingress buffers that have stopped their neighbours.
    pub stopped: Vec<StoppedIngress>,
}

/// Finds the rings of waiting. `links` are the cables between switches, in either
/// direction. A queue that a host has paused is not part of any: a host may let it go.
/// Every ring begins at its least queue; each queue waits for the next, the last for the
/// first.
pub fn find_rings(
    switches: &BTreeMap<u64, Waits>,
    links: &[(FabricPort, FabricPort)],
) -> Vec<Vec<FabricQueue>> {
    let neighbours: BTreeMap<FabricPort, FabricPort> = links
        .iter()
        .flat_map(|(one, other)| [(*one, *other), (*other, *one)])
        .collect();
    let mut stopped = BTreeMap::new();
    let mut waiting = BTreeMap::new();
    for (&switch, waits) in switches {
        for ingress in &waits.stopped {
            let at = FabricPort {
                switch,
                port: ingress.port,
            };
            stopped.insert(
                FabricQueue {
                    at,
                    priority: ingress.priority,
                },
                *ingress,
            );
        }
        for queue in &waits.paused {
            let at = FabricPort {
                switch,
                port: queue.port,
            };
            waiting.insert(
                FabricQueue {
                    at,
                    priority: queue.priority,
                },
                queue,
            );
        }
    }
    // The buffer that each queue waits for.
    let buffer = |queue: &FabricQueue| {
        let at = *neighbours.get(&queue.at)?;
        let buffer = FabricQueue {
            at,
            priority: queue.priority,
        };
        stopped.contains_key(&buffer).then_some(buffer)
    };
    let mut dead: BTreeSet<FabricQueue> = waiting.keys().copied().collect();
    loop {
        let mut held_dead: BTreeMap<FabricQueue, u64> = BTreeMap::new();
        let mut counted = BTreeSet::new();
        for queue in &dead {
            for frame in &waiting[queue].waiting {
                if !counted.insert((queue.at.switch, frame.frame)) {
                    continue;
                }
                let port = frame.ingress_port;
                let at = FabricPort { port, ..queue.at };
                let priority = frame.ingress_priority;
                *held_dead.entry(FabricQueue { at, priority }).or_default() += frame.bytes;
            }
        }
        let stays = |queue: &FabricQueue| {
            buffer(queue).is_some_and(|buffer| {
                let held = held_dead.get(&buffer).copied().unwrap_or(0);
                held > stopped[&buffer].xon_bytes
            })
        };
        let before = dead.len();
        dead = dead.into_iter().filter(stays).collect();
        if dead.len() == before {
            break;
        }
    }
    let next = |queue: &FabricQueue| -> Vec<FabricQueue> {
        let Some(buffer) = buffer(queue) else {
            return Vec::new();
        };
        let holds = |other: &&FabricQueue| {
            other.at.switch == buffer.at.switch
                && waiting[*other].waiting.iter().any(|frame| {
                    frame.ingress_port == buffer.at.port
                        && frame.ingress_priority == buffer.priority
                })
        };
        dead.iter().filter(holds).copied().collect()
    };
    rings(&dead, next)
}

/// One ring through each queue that lies on one, none twice: walks with a path and
/// what has been left for good.
fn rings(
    queues: &BTreeSet<FabricQueue>,
    next: impl Fn(&FabricQueue) -> Vec<FabricQueue>,
) -> Vec<Vec<FabricQueue>> {
    let mut rings: BTreeSet<Vec<FabricQueue>> = BTreeSet::new();
    let mut done = BTreeSet::new();
    for start in queues {
        let mut path: Vec<(FabricQueue, Vec<FabricQueue>)> = Vec::new();
        if !done.contains(start) {
            path.push((*start, next(start)));
        }
        while let Some((queue, ahead)) = path.last_mut() {
            let queue = *queue;
            let Some(following) = ahead.pop() else {
                done.insert(queue);
                path.pop();
                continue;
            };
            let position = path.iter().position(|(queue, _)| *queue == following);
            if let Some(position) = position {
                let mut ring: Vec<_> = path[position..].iter().map(|(queue, _)| *queue).collect();
                let least = (0..ring.len()).min_by_key(|at| ring[*at]).unwrap_or(0);
                ring.rotate_left(least);
                rings.insert(ring);
            } else if !done.contains(&following) {
                let ahead = next(&following);
                path.push((following, ahead));
            }
        }
    }
    rings.into_iter().collect()
}

/// The ring in words.
pub struct RingText<'a>(pub &'a [FabricQueue]);

impl fmt::Display for RingText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for queue in self.0 {
            write!(f, "{queue} waits for ")?;
        }
        match self.0.first() {
            Some(first) => write!(f, "{first}"),
            None => f.write_str("nothing"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const XON: u64 = 100;

    /// Switches 0 to n − 1 in a ring: port 1 leads to the next, port 2 to the one before,
    /// port 3 to a host. `onward[i]`: bytes from port 2 that wait at port 1 of switch i.
    fn ring(
        onward: &[u64],
        paused: &[bool],
    ) -> (BTreeMap<u64, Waits>, Vec<(FabricPort, FabricPort)>) {
        let count = onward.len() as u64;
        let port = |switch, port| FabricPort { switch, port };
        let links = (0..count)
            .map(|at| (port(at, 1), port((at + 1) % count, 2)))
            .collect();
        let switches = (0..count)
            .map(|at| {
                let here = at as usize;
                let before = (here + onward.len() - 1) % onward.len();
                let mut waits = Waits::default();
                let from = |ingress_port, frame, bytes| WaitingFrame {
                    ingress_port,
                    ingress_priority: 3,
                    frame,
                    bytes,
                };
                if paused[here] {
                    // The second is another copy of the first.
                    let waiting = vec![
                        from(2, 1, onward[here]),
                        from(2, 1, onward[here]),
                        from(3, 2, 500),
                    ];
                    waits.paused.push(PausedQueue {
                        port: 1,
                        priority: 3,
                        since_us: 0,
                        waiting,
                    });
                }
                // What makes the switch before wait.
                if paused[before] {
                    waits.stopped.push(StoppedIngress {
                        port: 2,
                        priority: 3,
                        held_bytes: 300,
                        xon_bytes: XON,
                    });
                }
                waits.stopped.push(StoppedIngress {
                    port: 3,
                    priority: 3,
                    held_bytes: 500,
                    xon_bytes: XON,
                });
                (at, waits)
            })
            .collect();
        (switches, links)
    }

    #[test]
    fn a_ring_is_found_and_named() {
        let (switches, links) = ring(&[300, 300, 300], &[true; 3]);
        let rings = find_rings(&switches, &links);
        assert_eq!(rings.len(), 1);
        assert_eq!(
            RingText(&rings[0]).to_string(),
            "switch 0 port 1 priority 3 waits for switch 1 port 1 priority 3 waits for \
             switch 2 port 1 priority 3 waits for switch 0 port 1 priority 3"
        );
    }

    #[test]
    fn a_buffer_that_can_empty_itself_breaks_it() {
        // 300 bytes are held at switch 1, of which only 100 wait for the dead queue: the
        // rest leaves otherwise, and XON is sent.
        let (switches, links) = ring(&[300, 100, 300], &[true; 3]);
        assert_eq!(find_rings(&switches, &links), Vec::<Vec<_>>::new());
        let (switches, links) = ring(&[300; 3], &[true, false, true]);
        assert_eq!(find_rings(&switches, &links), Vec::<Vec<_>>::new());
        let (switches, mut links) = ring(&[300; 3], &[true; 3]);
        links.remove(1);
        assert_eq!(
            find_rings(&switches, &links),
            Vec::<Vec<_>>::new(),
            "paused by a host"
        );
    }

    proptest! {
        /// Around a ring there is a deadlock exactly when every switch waits and holds
        /// more than XON for the next.
        #[test]
        fn exactly_the_deadlocks(cells in proptest::collection::vec((0u64..300, any::<bool>()), 2..7)) {
            let onward: Vec<u64> = cells.iter().map(|cell| cell.0).collect();
            let paused: Vec<bool> = cells.iter().map(|cell| cell.1).collect();
            let (switches, links) = ring(&onward, &paused);
            let dead = paused.iter().all(|paused| *paused) && onward.iter().all(|bytes| *bytes > XON);
            let rings = find_rings(&switches, &links);
            prop_assert_eq!(rings.len(), usize::from(dead));
            if dead {
                prop_assert_eq!(rings[0].len(), cells.len());
            }
        }
    }
}
