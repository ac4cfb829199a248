//! Egress queue of one port: what waits between ingress and egress.

use std::collections::VecDeque;

use wormcast_switch_flow::{PRIORITIES, PrioritySet, Scheduler, SchedulerKind};

/// Queues of a port, one a priority.
///
/// Each holds at most `frames_max` packets, and as many bytes as these have with [`MEAN_BYTES_MAX`]
/// each; the next one is turned away (tail drop) and counted. Queues of lossless priorities have no such bound: what is in them is bounded
/// where it came in. Depths are in packets, as BMv2 reports them, and over the packet's own
/// queue.
#[derive(Debug)]
pub struct EgressQueue<T> {
    queues: Vec<Queue<T>>,
    scheduler: Scheduler,
    lossless: PrioritySet,
    frames: usize,
    filled: PrioritySet,
}

/// Bytes that packets of a full queue have on average at most.
pub const MEAN_BYTES_MAX: u64 = 16_384;

#[derive(Debug)]
struct Queue<T> {
    waiting: VecDeque<Waiting<T>>,
    frames_max: usize,
    counts: QueueCounts,
}

#[derive(Debug)]
struct Waiting<T> {
    item: T,
    bytes: u32,
    enqueued_us: u64,
    depth: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    pub priority: u8,
    pub frames: usize,
    pub bytes: u64,
    /// Most packets it ever held.
    pub frames_max: usize,
    /// Packets that have come in.
    pub frames_in: u64,
    /// Bytes that have come in.
    pub bytes_in: u64,
    /// Packets that have come out.
    pub frames_out: u64,
    /// Bytes that have come out.
    pub bytes_out: u64,
    pub tail_drops: u64,
}

/// A packet that leaves its queue.
#[derive(Debug, PartialEq, Eq)]
pub struct Dequeued<T> {
    pub item: T,
    /// The queue it was in.
    pub priority: u8,
    /// When it was queued, microseconds.
    pub enqueued_us: u64,
    /// Packets that were in its queue before it.
    pub enqueue_depth: u32,
    /// Packets it leaves behind in its queue.
    pub dequeue_depth: u32,
}

impl<T> EgressQueue<T> {
    /// Queues for priorities 0 to `priorities` − 1 (at most 8) of at most `frames_max`
    /// packets each, served strictly from the highest priority down.
    pub fn new(priorities: u8, frames_max: usize) -> Self {
        let queue = |priority| Queue {
            waiting: VecDeque::new(),
            frames_max,
            counts: QueueCounts {
                priority,
                ..QueueCounts::default()
            },
        };
        Self {
            queues: (0..priorities.clamp(1, PRIORITIES as u8))
                .map(queue)
                .collect(),
            scheduler: Scheduler::new(SchedulerKind::Strict),
            lossless: PrioritySet::NONE,
            frames: 0,
            filled: PrioritySet::NONE,
        }
    }

    /// The same queues, served otherwise.
    pub fn scheduled(mut self, kind: SchedulerKind) -> Self {
        self.scheduler = Scheduler::new(kind);
        self
    }

    /// The same queues, some of which turn nothing away.
    pub fn lossless(mut self, lossless: PrioritySet) -> Self {
        self.lossless = lossless;
        self
    }

    /// How many queues there are.
    pub fn priorities(&self) -> u8 {
        self.queues.len() as u8
    }

    /// Bounds one queue, or all, anew. What is in them stays.
    pub fn set_frames_max(&mut self, priority: Option<u8>, frames_max: usize) {
        for queue in &mut self.queues {
            if priority.is_none_or(|priority| priority == queue.counts.priority) {
                queue.frames_max = frames_max;
            }
        }
    }

    /// Adds a packet of so many bytes; `Err` gives it back if its queue is full. A priority
    /// above the highest counts as the highest.
    pub fn push(&mut self, priority: u8, item: T, bytes: u32, now_us: u64) -> Result<(), T> {
        let priority = usize::from(priority).min(self.queues.len() - 1);
        let queue = &mut self.queues[priority];
        let depth = queue.waiting.len();
        let bytes_max = queue.frames_max as u64 * MEAN_BYTES_MAX;
        let is_full = depth >= queue.frames_max
            || (depth > 0 && queue.counts.bytes + u64::from(bytes) > bytes_max);
        if is_full && !self.lossless.contains(priority as u8) {
            queue.counts.tail_drops += 1;
            return Err(item);
        }
        queue.waiting.push_back(Waiting {
            item,
            bytes,
            enqueued_us: now_us,
            depth: depth as u32,
        });
        let counts = &mut queue.counts;
        counts.frames = depth + 1;
        counts.frames_max = counts.frames_max.max(counts.frames);
        counts.frames_in += 1;
        counts.bytes += u64::from(bytes);
        counts.bytes_in += u64::from(bytes);
        self.frames += 1;
        self.filled.insert(priority as u8);
        Ok(())
    }

    /// Counts a packet that goes through at once, as one that came and went.
    #[inline]
    pub fn count_passed(&mut self, priority: u8, bytes: u32) {
        let priority = usize::from(priority).min(self.queues.len() - 1);
        let counts = &mut self.queues[priority].counts;
        counts.frames_in += 1;
        counts.frames_out += 1;
        counts.bytes_in += u64::from(bytes);
        counts.bytes_out += u64::from(bytes);
    }

    /// Takes the packet whose turn it is.
    pub fn pop(&mut self) -> Option<Dequeued<T>> {
        self.pop_of(PrioritySet::ALL)
    }

    /// Takes the packet whose turn it is among the queues of a set.
    pub fn pop_of(&mut self, allowed: PrioritySet) -> Option<Dequeued<T>> {
        let ready = PrioritySet(self.filled.0 & allowed.0);
        let queues = &self.queues;
        let head = |priority: u8| {
            let front = queues[usize::from(priority)].waiting.front();
            front.map_or(0, |waiting| waiting.bytes)
        };
        let priority = self.scheduler.choose(ready, head)?;
        let queue = &mut self.queues[usize::from(priority)];
        let waiting = queue.waiting.pop_front()?;
        let counts = &mut queue.counts;
        counts.frames = queue.waiting.len();
        counts.frames_out += 1;
        counts.bytes -= u64::from(waiting.bytes);
        counts.bytes_out += u64::from(waiting.bytes);
        self.frames -= 1;
        if counts.frames == 0 {
            self.filled.remove(priority);
        }
        Some(Dequeued {
            item: waiting.item,
            priority,
            enqueued_us: waiting.enqueued_us,
            enqueue_depth: waiting.depth,
            dequeue_depth: queue.waiting.len() as u32,
        })
    }

    /// Queues that hold a packet.
    #[inline]
    pub fn filled(&self) -> PrioritySet {
        self.filled
    }

    /// Packets in all queues of the port.
    pub fn len(&self) -> usize {
        self.frames
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.frames == 0
    }

    /// Packets turned away because their queue was full.
    pub fn tail_drops(&self) -> u64 {
        self.queues().map(|counts| counts.tail_drops).sum()
    }

    /// Counts of every queue, the lowest priority first.
    pub fn queues(&self) -> impl Iterator<Item = &QueueCounts> {
        self.queues.iter().map(|queue| &queue.counts)
    }

    /// Counts of one queue; all zero if there is none of this priority.
    pub fn counts(&self, priority: u8) -> QueueCounts {
        let queue = self.queues.get(usize::from(priority));
        queue.map(|queue| queue.counts).unwrap_or_default()
    }

    /// Every packet that waits, with its priority.
    pub fn waiting(&self) -> impl Iterator<Item = (u8, &T)> {
        self.queues.iter().flat_map(|queue| {
            let priority = queue.counts.priority;
            let items = queue.waiting.iter();
            items.map(move |waiting| (priority, &waiting.item))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_bounded_anew() {
        let mut queue = EgressQueue::new(2, 1);
        queue.set_frames_max(Some(1), 3);
        let pushed = |queue: &mut EgressQueue<u8>, priority| {
            let tries = std::iter::repeat_with(|| queue.push(priority, 0, 60, 0));
            tries.take_while(Result::is_ok).count()
        };
        assert_eq!((pushed(&mut queue, 0), pushed(&mut queue, 1)), (1, 3));
        queue.set_frames_max(None, 2);
        assert_eq!((pushed(&mut queue, 0), pushed(&mut queue, 1)), (1, 0));
        assert_eq!((queue.len(), queue.priorities()), (5, 2));
    }

    #[test]
    fn serves_in_order_and_tells_depths() {
        let mut queue = EgressQueue::new(1, 8);
        for (time, item) in [(10, 'a'), (11, 'b'), (12, 'c')] {
            queue.push(0, item, 100, time).unwrap();
        }
        let first = queue.pop().unwrap();
        assert_eq!(
            first,
            Dequeued {
                item: 'a',
                priority: 0,
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
        let counts = queue.counts(0);
        assert_eq!(
            (counts.frames, counts.bytes, counts.frames_max),
            (1, 100, 3)
        );
        assert_eq!(
            (counts.bytes_in, counts.bytes_out, counts.frames_out),
            (300, 200, 2)
        );
    }

    #[test]
    fn drops_the_tail_when_full_and_counts_it() {
        let mut queue = EgressQueue::new(2, 2);
        queue.push(0, 1, 60, 0).unwrap();
        queue.push(0, 2, 60, 0).unwrap();
        assert_eq!(queue.push(0, 3, 60, 0), Err(3));
        assert_eq!(queue.tail_drops(), 1);
        queue.push(1, 4, 60, 0).unwrap();
        assert_eq!(queue.len(), 3);
    }

    #[test]
    fn long_packets_fill_a_queue_by_their_bytes() {
        let mut queue = EgressQueue::new(1, 4);
        queue.push(0, 1, 65_549, 0).unwrap();
        assert_eq!(queue.push(0, 2, 60, 0), Err(2), "one finds it empty");
        assert_eq!(queue.pop().map(|taken| taken.item), Some(1));
        queue.push(0, 3, 32_768, 0).unwrap();
        queue.push(0, 4, 32_768, 0).unwrap();
        assert_eq!(queue.push(0, 5, 60, 0), Err(5));
        assert_eq!(queue.tail_drops(), 2);
    }

    #[test]
    fn lossless_queues_turn_nothing_away() {
        let mut queue = EgressQueue::new(2, 2).lossless(PrioritySet::of(1));
        for item in 0..100 {
            queue.push(1, item, 60, 0).unwrap();
        }
        assert_eq!(queue.waiting().count(), 100);
    }

    #[test]
    fn higher_priorities_go_first() {
        let mut queue = EgressQueue::new(3, 8);
        for priority in [0, 2, 1, 2, 9] {
            queue.push(priority, priority, 60, 0).unwrap();
        }
        let order: Vec<u8> = std::iter::from_fn(|| queue.pop().map(|gone| gone.item)).collect();
        assert_eq!(order, [2, 2, 9, 1, 0]);
    }

    #[test]
    fn a_queue_that_may_not_send_holds_up_no_other() {
        let mut queue = EgressQueue::new(8, 8).scheduled(SchedulerKind::FAIR);
        for priority in [4, 3, 4, 0] {
            queue.push(priority, priority, 60, 0).unwrap();
        }
        let allowed = PrioritySet::ALL.without(PrioritySet::of(4));
        let mut out: Vec<u8> =
            std::iter::from_fn(|| queue.pop_of(allowed).map(|gone| gone.item)).collect();
        out.sort_unstable();
        assert_eq!(out, [0, 3]);
        assert_eq!(queue.filled(), PrioritySet::of(4));
        assert_eq!(queue.len(), 2);
    }
}
