//! Routes longer than packets leave room for by default.

use std::collections::BTreeMap;
use std::sync::Arc;
use wormcast_protocol::{
    Choice, Edge, Engine, EngineConfig, Event, GroupPlan, Instant, Role, Structures,
};
use wormcast_wire::{BufferClass, GroupId, HostId, Replication, worm};

const GROUP: GroupId = GroupId(3);
const ORIGIN: HostId = HostId(1);
const MEMBERS: [HostId; 3] = [ORIGIN, HostId(2), HostId(3)];

/// From the origin in the middle to one end of a line, and from there to the other.
struct Line(HostId);

impl Structures for Line {
    fn role(&self, origin: HostId, _choice: u8) -> Option<Role> {
        let edge = |from, to| Edge {
            from: HostId(from),
            to: HostId(to),
            class: BufferClass::One,
        };
        Role::from_edges(self.0, origin, &[edge(1, 2), edge(2, 3)])
    }
}

fn routes(host: HostId, hops: usize) -> BTreeMap<HostId, Vec<u8>> {
    let route = |to: HostId| {
        let is_across = host != ORIGIN && to != ORIGIN;
        let length = if is_across { 2 * hops } else { hops };
        (to, vec![to.0 as u8; length])
    };
    let others = MEMBERS.iter().filter(|to| **to != host);
    others.map(|to| route(*to)).collect()
}

fn engine(host: HostId, hops: usize) -> Engine {
    let mac = [2, 0, 0, 0, 0, host.0 as u8];
    let config = EngineConfig::new(host, mac, 600, 5, 100);
    let mut engine = Engine::new(config).expect("a valid configuration");
    engine
        .set_routes(routes(host, hops), Instant::ZERO)
        .expect("routes");
    let plan = GroupPlan {
        id: GROUP,
        epoch: 1,
        choices: Choice::only(Replication::Hosts),
        members: MEMBERS.to_vec(),
        mtu: None,
        structures: Arc::new(Line(host)),
        reports_begin: false,
        gathered: None,
    };
    engine.set_group(plan, Instant::ZERO).expect("a plan");
    engine
}

/// Frames go between all engines at this time, but to `cut`; members read. The events at the origin.
fn step(engines: &mut [Engine; 3], now: Instant, cut: Option<HostId>) -> Vec<Event> {
    for from in 0..3 {
        engines[from].handle_timeout(now);
        let mut buf = vec![0; engines[from].frame_length_max()];
        while let Some(sent) = engines[from].poll_transmit(now, &mut buf) {
            let worm = worm::decode(&buf[..sent.length]).expect("a worm");
            let mut frame = vec![0; 26];
            frame[..14].copy_from_slice(&buf[..14]);
            worm::encode_worm(&mut frame[14..], &worm.header, &[]);
            frame.extend_from_slice(worm.payload);
            // Every byte of a route names who it leads to.
            let to = HostId(worm.route[0].into());
            if cut != Some(to) {
                _ = engines[usize::from(to.0) - 1].handle_frame(&frame, now);
            }
        }
    }
    for member in &mut engines[1..] {
        let mut buf = [0; 9_000];
        while let Ok(read) = member.read(GROUP, ORIGIN, &mut buf, now)
            && read.length > 0
        {
            if read.end_of_message {
                member.confirm(GROUP, ORIGIN, now).expect("it is whole");
            }
        }
    }
    std::iter::from_fn(|| engines[0].poll_event()).collect()
}

/// Runs for so many milliseconds; gives who has and who lacks the message that becomes stable.
fn run_ms(engines: &mut [Engine; 3], ms: std::ops::Range<u64>) -> Option<[Vec<HostId>; 2]> {
    let mut outcome = None;
    for ms in ms {
        for event in step(engines, Instant::from_micros(1_000 * ms), None) {
            if let Event::Stable {
                confirmed, failed, ..
            } = event
            {
                let failed = failed.iter().map(|(host, _)| *host).collect();
                outcome = Some([confirmed, failed]);
            }
        }
    }
    outcome
}

#[test]
fn packets_leave_room_for_the_routes_there_are() {
    for hops in [1, 11, 24, 60] {
        let mut engines = MEMBERS.map(|host| engine(host, hops));
        let written = engines[0].write(GROUP, &[7; 5_000], true, Instant::ZERO);
        assert_eq!(written, Ok(5_000));
        let outcome = run_ms(&mut engines, 0..2_000);
        let all = MEMBERS[1..].to_vec();
        assert_eq!(outcome, Some([all, vec![]]), "{hops} switches");
        assert!(engines.iter().all(|one| one.counters().route_too_long == 0));
    }
}

/// A member to which a packet has no room for a route any more is given up as one that cannot be reached, not waited for.
#[test]
fn packets_cut_for_shorter_routes_hold_nobody_up_for_ever() {
    let mut engines = MEMBERS.map(|host| engine(host, 1));
    let now = Instant::ZERO;
    assert_eq!(engines[0].write(GROUP, &[7; 5_000], true, now), Ok(5_000));
    // The last member has nothing of it when routes grow.
    for ms in 0..30 {
        step(
            &mut engines,
            Instant::from_micros(1_000 * ms),
            Some(MEMBERS[2]),
        );
    }
    for (engine, host) in engines.iter_mut().zip(MEMBERS) {
        let now = Instant::from_micros(30_000);
        engine.set_routes(routes(host, 60), now).expect("routes");
    }
    let outcome = run_ms(&mut engines, 31..130_000);
    assert_eq!(outcome, Some([vec![MEMBERS[1]], vec![MEMBERS[2]]]));
    let now = Instant::from_micros(130_000_000);
    assert_eq!(engines[0].write(GROUP, &[7; 5_000], true, now), Ok(5_000));
    let outcome = run_ms(&mut engines, 130_001..132_000);
    assert_eq!(outcome, Some([MEMBERS[1..].to_vec(), vec![]]));
}
