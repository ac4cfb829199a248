//! Egress queue of one port: what waits between ingress and egress.

use std::collections::VecDeque;

/// Queues of a port, one a priority, served strictly from the highest priority down.
///
/// Each holds at most `frames_max` packets; the next one is turned away (tail drop) and
/// counted. Depths are in packets, as BMv2 reports them, and over the packet's own
/// queue.
#[derive(Debug)]
pub struct EgressQueue<T> {
    queues: Vec<Queue<T>>,
    frames_max: usize,
    frames: usize,
}

/// The queue of one priority.
#[derive(Debug)]
struct Queue<T> {
    waiting: VecDeque<Waiting<T>>,
    counts: QueueCounts,
}

/// Counts of the queue of one priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Packets taken in.
    pub enqueued: u64,
    /// Packets that left for egress.
    pub dequeued: u64,
    /// Packets turned away because the queue was full.
    pub tail_drops: u64,
    /// Packets in the queue now.
    pub depth: usize,
    /// Most packets there have been in it.
    pub depth_max: usize,
}

#[derive(Debug)]
struct Waiting<T> {
    item: T,
    enqueued_us: u64,
    depth: u32,
}

/// A packet that leaves its queue.
#[derive(Debug, PartialEq, Eq)]
pub struct Dequeued<T> {
    /// The packet.
    pub item: T,
    /// When it was queued, microseconds.
    pub enqueued_us: u64,
    /// Packets that were in its queue before it.
    pub enqueue_depth: u32,
    /// Packets it leaves behind in its queue.
    pub dequeue_depth: u32,
}

impl<T> EgressQueue<T> {
    /// Queues for priorities 0 to `priorities` − 1 of at most `frames_max` packets each.
    pub fn new(priorities: u8, frames_max: usize) -> Self {
        Self {
            queues: (0..priorities.max(1))
                .map(|_| Queue {
                    waiting: VecDeque::new(),
                    counts: QueueCounts::default(),
                })
                .collect(),
            frames_max,
            frames: 0,
        }
    }

    /// Adds a packet; `Err` gives it back if its queue is full. A priority above the
    /// highest counts as the highest.
    pub fn push(&mut self, priority: u8, item: T, now_us: u64) -> Result<(), T> {
        let index = usize::from(priority).min(self.queues.len() - 1);
        let queue = &mut self.queues[index];
        let depth = queue.waiting.len();
        if depth >= self.frames_max {
            queue.counts.tail_drops += 1;
            return Err(item);
        }
        queue.waiting.push_back(Waiting {
            item,
            enqueued_us: now_us,
            depth: depth as u32,
        });
        queue.counts.enqueued += 1;
        queue.counts.depth_max = queue.counts.depth_max.max(depth + 1);
        self.frames += 1;
        Ok(())
    }

    /// Takes the oldest packet of the highest priority that has one.
    pub fn pop(&mut self) -> Option<Dequeued<T>> {
        if self.frames == 0 {
            return None;
        }
        let queue = self
            .queues
            .iter_mut()
            .rev()
            .find(|queue| !queue.waiting.is_empty())?;
        let waiting = queue.waiting.pop_front()?;
        queue.counts.dequeued += 1;
        self.frames -= 1;
        Some(Dequeued {
            item: waiting.item,
            enqueued_us: waiting.enqueued_us,
            enqueue_depth: waiting.depth,
            dequeue_depth: queue.waiting.len() as u32,
        })
    }

    /// Packets in all queues of the port.
    pub fn len(&self) -> usize {
        self.frames
    }

    /// No packet waits.
    pub fn is_empty(&self) -> bool {
        self.frames == 0
    }

    /// Packets turned away because their queue was full.
    pub fn tail_drops(&self) -> u64 {
        let queues = self.queues.iter();
        queues.map(|queue| queue.counts.tail_drops).sum()
    }

    /// Counts of each priority, from 0 up.
    pub fn counts(&self) -> impl Iterator<Item = QueueCounts> {
        self.queues.iter().map(|queue| QueueCounts {
            depth: queue.waiting.len(),
            ..queue.counts
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serves_in_order_and_tells_depths() {
        let mut queue = EgressQueue::new(1, 8);
        for (time, item) in [(10, 'a'), (11, 'b'), (12, 'c')] {
            queue.push(0, item, time).unwrap();
        }
        let first = queue.pop().unwrap();
        assert_eq!(
            first,
            Dequeued {
                item: 'a',
                enqueued_us: 10,
                enqueue_depth: 0,
                dequeue_depth: 2
            }
        );
        let second = queue.pop().unwrap();
        assert_eq!(
            (second.item, second.enqueue_depth, second.dequeue_depth),
            ('b', 1, 1)
        );
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn drops_the_tail_when_full_and_counts_it() {
        let mut queue = EgressQueue::new(2, 2);
        queue.push(0, 1, 0).unwrap();
        queue.push(0, 2, 0).unwrap();
        assert_eq!(queue.push(0, 3, 0), Err(3));
        assert_eq!(queue.tail_drops(), 1);
        queue.push(1, 4, 0).unwrap();
        assert_eq!(queue.len(), 3);
        queue.pop().unwrap();
        queue.pop().unwrap();
        let counts: Vec<QueueCounts> = queue.counts().collect();
        let first = QueueCounts {
            enqueued: 2,
            dequeued: 1,
            tail_drops: 1,
            depth: 1,
            depth_max: 2,
        };
        let second = QueueCounts {
            enqueued: 1,
            dequeued: 1,
            tail_drops: 0,
            depth: 0,
            depth_max: 1,
        };
        assert_eq!(counts, [first, second]);
    }

    #[test]
    fn higher_priorities_go_first() {
        let mut queue = EgressQueue::new(3, 8);
        for priority in [0, 2, 1, 2, 9] {
            queue.push(priority, priority, 0).unwrap();
        }
        let order: Vec<u8> = std::iter::from_fn(|| queue.pop().map(|gone| gone.item)).collect();
        assert_eq!(order, [2, 2, 9, 1, 0]);
    }
}
