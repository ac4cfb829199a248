//! Links that queue, as in the fabric: switches store frames and send them on in the order in which
//! they came, from a queue for each output. What waits for one link holds up no other.
//!
//! A queue may have a bound. A frame that finds it full is lost, and its host sends it again. The
//! times of wires, switches and in-transit hosts are those of links that block.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::blocking::{ROUTING, TRANSIT, WIRE};
use crate::network::{Network, Track};
use crate::outcome::{Meter, Outcome, Span};
use crate::traffic::{Message, Waiting, Window};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queues {
    pub size: u32,
    /// Most bytes of a frame.
    pub frame: u32,
    pub window: Window,
    /// Frames that may wait for a link, if there is a bound. Hosts have room.
    pub bound: Option<usize>,
}

/// Frame times from a loss until the frame is sent again.
const REPAIR_FRAMES: u64 = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Frame {
    message: u32,
    bytes: u32,
    piece: u32,
    /// Place in the piece of the channel that it waits for or is on.
    hop: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The channel has sent what it was sending.
    Sent(u32),
    /// The frame is where its channel begins.
    Queue(Frame),
    /// The frame is at the end of its way.
    Arrive(Frame),
}

#[derive(Default)]
struct Channel {
    /// The first of them is being sent.
    frames: VecDeque<Frame>,
}

struct Fabric<'a> {
    network: &'a Network,
    messages: &'a [Message],
    queues: Queues,
    tracks: Vec<&'a Track>,
    channels: Vec<Channel>,
    /// With a number, so that what happens at the same time does so in the order of its causes.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    caused: u64,
    missing: Vec<u32>,
    waiting: Waiting,
    meter: Meter<'a>,
    left: usize,
    lost: u64,
}

/// Runs the messages, in the order in which they are due, until the end of the span; with `drain`
/// until all have arrived.
pub fn run(
    network: &Network,
    messages: &[Message],
    queues: Queues,
    span: Span,
    drain: bool,
) -> Outcome {
    let mut fabric = Fabric {
        network,
        messages,
        queues,
        tracks: messages
            .iter()
            .map(|message| network.track(message))
            .collect(),
        channels: (0..network.channels).map(|_| Channel::default()).collect(),
        events: BinaryHeap::new(),
        caused: 0,
        missing: vec![queues.size; messages.len()],
        waiting: Waiting::new(queues.window, network.hosts),
        meter: Meter::new(messages, span),
        left: 0,
        lost: 0,
    };
    let mut due = 0;
    loop {
        let at = fabric.events.peek().map(|Reverse((at, ..))| *at);
        let next = messages.get(due).map(|message| message.at);
        let Some(now) = at.into_iter().chain(next).min() else {
            break;
        };
        if now >= span.end && !drain {
            break;
        }
        if next == Some(now) {
            fabric.offer(due as u32, now);
            due += 1;
        } else if let Some(Reverse((_, _, event))) = fabric.events.pop() {
            fabric.handle(event, now);
        }
    }
    let left = fabric.left + (messages.len() - due);
    let mut outcome = fabric.meter.finish(left);
    outcome.lost = fabric.lost;
    outcome
}

impl Fabric<'_> {
    fn after(&mut self, at: u64, event: Event) {
        self.caused += 1;
        self.events.push(Reverse((at, self.caused, event)));
    }

    fn offer(&mut self, number: u32, now: u64) {
        let message = &self.messages[number as usize];
        self.left += 1;
        if self
            .waiting
            .is_free(number, message, self.network.pair(message))
        {
            self.inject(number, now);
        }
    }

    fn inject(&mut self, message: u32, now: u64) {
        let mut rest = self.queues.size;
        while rest > 0 {
            let bytes = rest.min(self.queues.frame);
            let frame = Frame {
                message,
                bytes,
                piece: 0,
                hop: 0,
            };
            self.queue(frame, now);
            rest -= bytes;
        }
    }

    fn piece(&self, frame: Frame) -> &[u32] {
        &self.tracks[frame.message as usize].pieces[frame.piece as usize]
    }

    fn handle(&mut self, event: Event, now: u64) {
        match event {
            Event::Sent(channel) => self.sent(channel, now),
            Event::Queue(frame) => self.queue(frame, now),
            Event::Arrive(frame) => self.arrive(frame, now),
        }
    }

    fn queue(&mut self, frame: Frame, now: u64) {
        let number = self.piece(frame)[frame.hop as usize];
        let frames = &mut self.channels[number as usize].frames;
        // The first does not wait.
        if self
            .queues
            .bound
            .is_some_and(|bound| frame.hop > 0 && frames.len() > bound)
        {
            self.lost += 1;
            let again = now + REPAIR_FRAMES * u64::from(self.queues.frame);
            self.after(
                again,
                Event::Queue(Frame {
                    piece: 0,
                    hop: 0,
                    ..frame
                }),
            );
            return;
        }
        frames.push_back(frame);
        if frames.len() == 1 {
            self.after(now + u64::from(frame.bytes), Event::Sent(number));
        }
    }

    fn sent(&mut self, number: u32, now: u64) {
        let frames = &mut self.channels[number as usize].frames;
        let mut frame = frames.pop_front().expect("it was sent");
        if let Some(next) = frames.front() {
            let at = now + u64::from(next.bytes);
            self.after(at, Event::Sent(number));
        }
        frame.hop += 1;
        if (frame.hop as usize) < self.piece(frame).len() {
            self.after(now + WIRE + ROUTING, Event::Queue(frame));
        } else if frame.piece as usize + 1 < self.tracks[frame.message as usize].pieces.len() {
            (frame.piece, frame.hop) = (frame.piece + 1, 0);
            self.after(now + WIRE + TRANSIT, Event::Queue(frame));
        } else {
            self.after(now + WIRE, Event::Arrive(frame));
        }
    }

    fn arrive(&mut self, frame: Frame, now: u64) {
        let missing = &mut self.missing[frame.message as usize];
        *missing -= frame.bytes;
        if *missing > 0 {
            return;
        }
        self.meter.arrive(frame.message, now);
        self.left -= 1;
        let done = &self.messages[frame.message as usize];
        if let Some(free) = self.waiting.next(done, self.network.pair(done)) {
            self.inject(free, now);
        }
    }
}
