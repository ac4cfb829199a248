//! Messages drawn with a seed, and when a host may send them.

use std::collections::VecDeque;

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// A message to be sent. Times are cycles; in one a link carries a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    pub at: u64,
    pub src: u32,
    pub dst: u32,
    /// Chooses a route where routes are drawn.
    pub draw: u32,
    /// Number among those of its pair; chooses a route where routes take turns.
    pub turn: u32,
}

/// Destinations of each host.
pub type Peers = Vec<Vec<u32>>;

/// So many other hosts for each host, drawn without order; all of them if there are no more.
pub fn draw_peers(hosts: u32, count: u32, seed: u64) -> Peers {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let others = |host| (0..hosts).filter(move |other| *other != host);
    (0..hosts)
        .map(|host| {
            let mut drawn: Vec<u32> = others(host).collect();
            let count = (count as usize).min(drawn.len());
            for place in 0..count {
                let left = (drawn.len() - place) as u64;
                drawn.swap(place, place + below(left, &mut rng) as usize);
            }
            drawn.truncate(count);
            drawn
        })
        .collect()
}

/// Poisson arrivals until `end`: `load` bytes a cycle by each host, to its peers alike. A higher
/// load has the same messages sooner.
pub fn draw(peers: &Peers, load: f64, size: u32, end: u64, seed: u64) -> Vec<Message> {
    let mut all = Vec::new();
    for (src, of_host) in peers.iter().enumerate() {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(1 + src as u64);
        // Senders have sent before: a run has too few messages of a pair for all its routes.
        let mut turns: Vec<u32> = of_host.iter().map(|_| rng.next_u32() >> 1).collect();
        let mut at = 0.0;
        loop {
            let uniform = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            at -= (1.0 - uniform).ln() * f64::from(size) / load;
            if at >= end as f64 {
                break;
            }
            let peer = below(of_host.len() as u64, &mut rng) as usize;
            all.push(Message {
                at: at as u64,
                src: src as u32,
                dst: of_host[peer],
                draw: rng.next_u32(),
                turn: turns[peer],
            });
            turns[peer] += 1;
        }
    }
    all.sort_by_key(|message| message.at);
    all
}

/// Uniform below `bound`; bounds are so small that the remainder does not matter.
fn below(bound: u64, rng: &mut ChaCha8Rng) -> u64 {
    rng.next_u64() % bound
}

/// How many messages may be under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// All that are due.
    Open,
    /// So many of a host; the next one waits for them, whatever its destination.
    Host(u32),
    /// So many of a pair of hosts; other pairs do not wait.
    Stream(u32),
}

/// Messages that are due and may not be sent yet.
pub struct Waiting {
    window: Window,
    under_way: Vec<u32>,
    waiting: Vec<VecDeque<u32>>,
}

impl Waiting {
    pub fn new(window: Window, hosts: u32) -> Waiting {
        let keys = match window {
            Window::Open => 0,
            Window::Host(_) => hosts,
            Window::Stream(_) => hosts * hosts,
        };
        Waiting {
            window,
            under_way: vec![0; keys as usize],
            waiting: vec![VecDeque::new(); keys as usize],
        }
    }

    fn key(&self, message: &Message, pair: usize) -> Option<(usize, u32)> {
        match self.window {
            Window::Open => None,
            Window::Host(most) => Some((message.src as usize, most)),
            Window::Stream(most) => Some((pair, most)),
        }
    }

    /// A message is due. Whether it may be sent at once.
    pub fn is_free(&mut self, number: u32, message: &Message, pair: usize) -> bool {
        let Some((key, most)) = self.key(message, pair) else {
            return true;
        };
        let free = self.under_way[key] < most;
        if free {
            self.under_way[key] += 1;
        } else {
            self.waiting[key].push_back(number)
        }
        free
    }

    /// A message has arrived. The one that may be sent for it.
    pub fn next(&mut self, message: &Message, pair: usize) -> Option<u32> {
        let (key, _) = self.key(message, pair)?;
        let next = self.waiting[key].pop_front();
        if next.is_none() {
            self.under_way[key] -= 1;
        }
        next
    }
}
