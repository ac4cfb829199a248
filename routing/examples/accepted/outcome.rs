//! What arrived in the measured time, and that nothing arrived twice or got lost.

use crate::traffic::Message;

/// Cycles that are simulated: those before `warm` are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub warm: u64,
    pub end: u64,
}

/// Counts messages as they arrive.
pub struct Meter<'m> {
    messages: &'m [Message],
    span: Span,
    arrived: Vec<bool>,
    arrived_count: usize,
    counted: u64,
    latency: u64,
}

/// What a run has found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Messages that were due in the measured time.
    pub drawn: u64,
    /// Messages that arrived in it.
    pub counted: u64,
    /// Mean of these in cycles, from when they were due.
    pub latency: f64,
    /// Messages under way or waiting at the end.
    pub left: usize,
    /// Most bytes that an in-transit host had of others.
    pub transit_bytes_max: u64,
    /// Frames that found a queue full, and were sent again.
    pub lost: u64,
}

impl<'m> Meter<'m> {
    pub fn new(messages: &'m [Message], span: Span) -> Meter<'m> {
        Meter {
            messages,
            span,
            arrived: vec![false; messages.len()],
            arrived_count: 0,
            counted: 0,
            latency: 0,
        }
    }

    /// All of a message has arrived.
    pub fn arrive(&mut self, number: u32, now: u64) {
        let seen = std::mem::replace(&mut self.arrived[number as usize], true);
        assert!(!seen, "message {number} has arrived twice");
        self.arrived_count += 1;
        if now >= self.span.warm && now < self.span.end {
            self.counted += 1;
            self.latency += now - self.messages[number as usize].at;
        }
    }

    /// The result. `left` is what the model still has of messages, counted by itself.
    pub fn finish(self, left: usize) -> Outcome {
        let all = self.messages.len();
        assert_eq!(self.arrived_count + left, all, "messages that vanished");
        let due = self.messages.iter();
        let due = due.filter(|message| message.at >= self.span.warm && message.at < self.span.end);
        Outcome {
            drawn: due.count() as u64,
            counted: self.counted,
            latency: self.latency as f64 / self.counted.max(1) as f64,
            left,
            ..Outcome::default()
        }
    }
}
