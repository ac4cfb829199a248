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

fn engine(host: HostId, hops: usize) -> Engine {
    let mac = [2, 0, 0, 0, 0, host.0 as u8];
    let config = EngineConfig::new(host, mac, 600, 5, 100);
    let mut engine = Engine::new(config).expect("a valid configuration");
    let route = |to: HostId| {
        let is_across = host != ORIGIN && to != ORIGIN;
        let length = if is_across { 2 * hops } else { hops };
        (to, vec![to.0 as u8; length])
    };
    let others = MEMBERS.iter().filter(|to| **to != host);
    let routes: BTreeMap<HostId, Vec<u8>> = others.map(|to| route(*to)).collect();
    engine.set_routes(routes, Instant::ZERO).expect("routes");
    let plan = GroupPlan {
        id: GROUP,
        epoch: 1,
        choices: Choice::only(Replication::Hosts),
        members: MEMBERS.to_vec(),
        mtu: None,
        structures: Arc::new(Line(host)),
        tells_begun: false,
        gathered: None,
    };
    engine.set_group(plan, Instant::ZERO).expect("a plan");
    engine
}

#[test]
fn packets_leave_room_for_the_routes_there_are() {
    for hops in [1, 11, 24, 60] {
        let mut engines = MEMBERS.map(|host| engine(host, hops));
        let written = engines[0].write(GROUP, &[7; 5_000], true, Instant::ZERO);
        assert_eq!(written, Ok(5_000));
        let mut stable = None;
        for ms in 0..2_000 {
            let now = Instant::from_micros(1_000 * ms);
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
                    let to = usize::from(worm.route[0]) - 1;
                    _ = engines[to].handle_frame(&frame, now);
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
            stable = stable.or(engines[0].poll_event());
        }
        let all = MEMBERS[1..].to_vec();
        let is_there =
            matches!(&stable, Some(Event::Stable { confirmed, .. }) if *confirmed == all);
        assert!(is_there, "{hops} switches: {stable:?}");
        assert!(engines.iter().all(|one| one.counters().route_too_long == 0));
    }
}
