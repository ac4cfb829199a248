//! What is compared: each case differs in one thing from the one it names.

use crate::blocking::{self, Links, SLACK};
use crate::network::Network;
use crate::outcome::{Outcome, Span};
use crate::queueing::{self, Queues};
use crate::traffic::{Message, Window};

/// What links do.
#[derive(Clone, Copy)]
pub enum Model {
    Blocking { slack: u32 },
    Queueing { frame: u32, bound: Option<usize> },
}

pub struct Case {
    pub name: &'static str,
    pub meaning: &'static str,
    pub model: Model,
    pub window: Window,
    /// Bytes of a message.
    pub size: u32,
    /// Destinations of a host; all the others if there are no more.
    pub peers: u32,
}

const ALL_HOSTS: u32 = u32::MAX;
/// More than any buffer comes to.
const ENDLESS: u32 = 1 << 30;
/// Of the agents' traffic (bench/fabric/traffic.py): messages of a stream.
const UNDER_WAY: u32 = 4;

/// The paper's network: worms of 512 bytes to all hosts, which wait in one queue a host.
const WORM: Case = Case {
    name: "worm",
    meaning: "links block, slack buffers of 80 bytes, 512 bytes to any host, one queue a host (the paper)",
    model: Model::Blocking { slack: SLACK },
    window: Window::Open,
    size: 512,
    peers: ALL_HOSTS,
};

/// The same where links queue.
const QUEUE: Case = Case {
    name: "queue",
    meaning: "worm, but links queue whole frames, without a bound",
    model: Model::Queueing {
        frame: 512,
        bound: None,
    },
    ..WORM
};

/// The running fabric: every stream has a window of its own.
const STREAM: Case = Case {
    name: "stream",
    meaning: "queue, but each pair of hosts has 4 messages under way and no more",
    window: Window::Stream(UNDER_WAY),
    ..QUEUE
};

const PEERS: Case = Case {
    name: "peers",
    meaning: "stream, but each host sends to 6 others that are drawn",
    peers: 6,
    ..STREAM
};

const FRAMES: Case = Case {
    name: "frames",
    meaning: "peers, but messages of 16 KiB in frames of 1,500 bytes",
    size: 16_384,
    model: Model::Queueing {
        frame: 1_500,
        bound: None,
    },
    ..PEERS
};

pub const CASES: [Case; 11] = [
    WORM,
    Case {
        name: "short",
        meaning: "worm, but messages of 32 bytes",
        size: 32,
        ..WORM
    },
    Case {
        name: "whole",
        meaning: "worm, but a slack buffer of 1 KiB takes a blocked worm whole",
        model: Model::Blocking { slack: 1_024 },
        ..WORM
    },
    Case {
        name: "endless",
        meaning: "worm, but slack buffers without end; worms still wait behind one another",
        model: Model::Blocking { slack: ENDLESS },
        ..WORM
    },
    QUEUE,
    Case {
        name: "queue-host",
        meaning: "queue, but each host has 8 messages under way and no more, to whichever hosts",
        window: Window::Host(8),
        ..QUEUE
    },
    STREAM,
    PEERS,
    Case {
        name: "peers-worm",
        meaning: "peers, but links block",
        model: Model::Blocking { slack: SLACK },
        ..PEERS
    },
    FRAMES,
    Case {
        name: "loss",
        meaning: "frames, but a queue has room for 110 frames; what finds it full is lost and sent again",
        model: Model::Queueing {
            frame: 1_500,
            bound: Some(110),
        },
        ..FRAMES
    },
];

impl Case {
    /// Runs messages of its size until the end of the span; with `drain` until all have arrived.
    pub fn run(&self, network: &Network, messages: &[Message], span: Span, drain: bool) -> Outcome {
        let (size, window) = (self.size, self.window);
        match self.model {
            Model::Blocking { slack } => {
                let links = Links {
                    size,
                    slack,
                    window,
                };
                blocking::run(network, messages, links, span, drain)
            }
            Model::Queueing { frame, bound } => {
                let queues = Queues {
                    size,
                    frame,
                    window,
                    bound,
                };
                queueing::run(network, messages, queues, span, drain)
            }
        }
    }
}
