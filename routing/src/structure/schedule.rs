//! When who sends: every host sends one packet a step, and forwards packet after packet,
//! each to all its children, as soon as it has received it (FPFS, PACKET §3.2).

use super::{Edge, Sends, Structure};

pub(super) fn edges(structure: &Structure) -> Vec<Edge> {
    let Sends { submission, sends } = structure.sends();
    let members = structure.order.len();
    let lead = u32::from(submission.is_some());
    let mut received = vec![0u32; members];
    let mut busy_until = vec![lead; members];
    let mut edges = Vec::with_capacity(sends.len() + 1);
    let mut push = |step, send: super::Send| {
        edges.push(Edge {
            step,
            from: structure.order[send.from],
            to: structure.order[send.to],
            class: send.class,
        });
    };
    if let Some(send) = submission {
        push(1, send);
        received[send.to] = 1;
    }
    for send in sends {
        let step = busy_until[send.from].max(received[send.from]) + 1;
        busy_until[send.from] = step;
        // In a circuit that returns, the source has had it from the beginning.
        if send.to != structure.source || submission.is_some() {
            received[send.to] = step;
        }
        push(step, send);
    }
    // Stable: sends of one step stay in the order in which parents got the message.
    edges.sort_by_key(|edge| edge.step);
    edges
}

pub(super) fn steps(structure: &Structure, packets: u32) -> u64 {
    let Sends { submission, sends } = structure.sends();
    let members = structure.order.len();
    let packets = packets as usize;
    if packets == 0 || sends.is_empty() {
        return 0;
    }
    // received[host][packet], and how many sends each host makes of every packet.
    let mut received: Vec<Vec<u64>> = vec![Vec::new(); members];
    let mut fan_out = vec![0usize; members];
    for send in &sends {
        fan_out[send.from] += 1;
    }
    let root = submission.map_or(structure.source, |send| send.to);
    received[root] = match submission {
        Some(_) => (1..=packets as u64).collect(),
        None => vec![0; packets],
    };
    // A source that submits sends packet p in step p, and forwards after that.
    let mut last = 0;
    let mut place = 0;
    while place < sends.len() {
        let from = sends[place].from;
        let children = &sends[place..place + fan_out[from]];
        let mut busy_until = match submission {
            Some(send) if send.from == from => packets as u64,
            _ => 0,
        };
        let mut arrivals = vec![Vec::with_capacity(packets); children.len()];
        for &ready in &received[from] {
            busy_until = busy_until.max(ready);
            for arrival in &mut arrivals {
                busy_until += 1;
                arrival.push(busy_until);
            }
        }
        last = last.max(busy_until);
        for (child, arrival) in children.iter().zip(arrivals) {
            if received[child.to].is_empty() {
                received[child.to] = arrival;
            }
        }
        place += children.len();
    }
    last
}
