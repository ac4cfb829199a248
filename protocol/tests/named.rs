//! Whoever does not have a message is named at its origin, and nobody else: however many they are, however many
//! messages they lack, and whatever becomes of the ACKs that say so.
//!
//! What would make that false: a list that forgets; an ACK that says less and comes after one that said more; one
//! that goes further than the members it names; a host that is served again and was reported dead.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wormcast_protocol::{
    Choice, Edge, Engine, EngineConfig, Event, GroupPlan, Instant, LossReason, Role, Structures,
};
use wormcast_wire::{BufferClass, FailReason, GroupId, HostId, Replication, worm};

const GROUP: GroupId = GroupId(3);
const ORIGIN: HostId = HostId(0);
const STEP_US: u64 = 1_000;

/// Who serves whom: of each host but the origin its parent.
struct Tree {
    host: HostId,
    edges: Vec<Edge>,
}

impl Structures for Tree {
    fn role(&self, origin: HostId, _choice: u8) -> Option<Role> {
        Role::from_edges(self.host, origin, &self.edges)
    }
}

/// A plan in which the origin has no place.
struct WithoutOrigin;

impl Structures for WithoutOrigin {
    fn role(&self, _origin: HostId, _choice: u8) -> Option<Role> {
        None
    }
}

/// A seeded sequence (Vigna's splitmix64).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Who has and who lacks a message, by its number.
type Outcomes = BTreeMap<u64, (BTreeSet<HostId>, BTreeMap<HostId, FailReason>)>;

/// Engines, and a channel that may lose frames, send them twice, and let them overtake each other.
struct Net {
    engines: BTreeMap<HostId, Engine>,
    parents: Vec<u16>,
    now: Instant,
    /// Frames on their way, by when they arrive.
    flying: BTreeMap<(u64, u64), (HostId, Vec<u8>)>,
    sent: u64,
    draws: Draws,
    /// Of a thousand frames so many are lost, and as many sent twice; each takes up to so long, µs.
    lost_of_thousand: u64,
    delay_us: u64,
    /// Frames to and from these are lost.
    dead: BTreeSet<HostId>,
    /// Frames from the one to the other are lost.
    mute: Option<(HostId, HostId)>,
    /// It reads nothing.
    rests: Option<HostId>,
    /// Frames to it are kept here.
    kept: Option<(HostId, Vec<Vec<u8>>)>,
    outcomes: Outcomes,
    lost: Vec<(HostId, LossReason)>,
}

impl Net {
    /// Host i + 1 is served by `parents[i]`; host 0 is the origin.
    fn new(parents: &[u16]) -> Net {
        let hosts = (0..=parents.len() as u16).map(HostId);
        Net {
            engines: hosts
                .map(|host| (host, engine(host, parents, 100)))
                .collect(),
            parents: parents.to_vec(),
            now: Instant::from_micros(1_000),
            flying: BTreeMap::new(),
            sent: 0,
            draws: Draws(0),
            lost_of_thousand: 0,
            delay_us: 1,
            dead: BTreeSet::new(),
            mute: None,
            rests: None,
            kept: None,
            outcomes: Outcomes::new(),
            lost: Vec::new(),
        }
    }

    fn members(&self) -> impl Iterator<Item = HostId> + use<> {
        (1..=self.parents.len() as u16).map(HostId)
    }

    fn write(&mut self, bytes: &[u8], end: bool) {
        let now = self.now;
        let origin = self.engines.get_mut(&ORIGIN).expect("the origin");
        let accepted = origin.write(GROUP, bytes, end, now).expect("a member");
        assert_eq!(accepted, bytes.len());
    }

    /// The origin starts anew, and remembers nothing.
    fn restart_origin(&mut self) {
        self.engines
            .insert(ORIGIN, engine(ORIGIN, &self.parents, 5_000));
    }

    /// A step of time; `gives_up` says whether a member gives a message up, by what it says.
    fn step(&mut self, gives_up: &impl Fn(HostId, u8) -> Option<FailReason>) {
        self.now = self.now.plus_us(STEP_US);
        let now = self.now;
        let due = self.flying.split_off(&(now.as_micros(), 0));
        for (_, (to, frame)) in std::mem::replace(&mut self.flying, due) {
            if let Some(engine) = self.engines.get_mut(&to) {
                let _ = engine.handle_frame(&frame, now);
            }
        }
        let hosts: Vec<HostId> = self.engines.keys().copied().collect();
        for host in hosts {
            let engine = self.engines.get_mut(&host).expect("a host");
            if engine.poll_timeout().is_some_and(|at| at <= now) {
                engine.handle_timeout(now);
            }
            while let Some(event) = engine.poll_event() {
                match event {
                    Event::Stable {
                        message,
                        confirmed,
                        failed,
                        ..
                    } => {
                        let word = (
                            confirmed.into_iter().collect(),
                            failed.into_iter().collect(),
                        );
                        assert_eq!(self.outcomes.insert(message, word), None);
                    }
                    Event::MessageLost { reason, .. } => self.lost.push((host, reason)),
                    _ => {}
                }
            }
            if host != ORIGIN && self.rests != Some(host) {
                take_all(engine, now, |message| gives_up(host, message));
            }
            self.send(host);
        }
    }

    fn send(&mut self, host: HostId) {
        let now = self.now;
        let engine = self.engines.get_mut(&host).expect("a host");
        let mut buf = vec![0; engine.frame_length_max()];
        while let Some(sent) = engine.poll_transmit(now, &mut buf) {
            let (to, frame) = arriving(&buf[..sent.length]);
            let is_dead = self.dead.contains(&to) || self.dead.contains(&host);
            if is_dead || self.mute == Some((host, to)) {
                continue;
            }
            if let Some((_, kept)) = self.kept.as_mut().filter(|kept| kept.0 == to) {
                kept.push(frame.clone());
            }
            if self.draws.below(1_000) < self.lost_of_thousand {
                continue;
            }
            let copies = 1 + u64::from(self.draws.below(1_000) < self.lost_of_thousand);
            for _ in 0..copies {
                self.sent += 1;
                let at = now.as_micros() + self.draws.below(self.delay_us);
                self.flying.insert((at, self.sent), (to, frame.clone()));
            }
        }
    }

    fn run(&mut self, messages: u64, gives_up: &impl Fn(HostId, u8) -> Option<FailReason>) {
        for _ in 0..400_000 {
            self.step(gives_up);
            if self.outcomes.len() as u64 == messages {
                return;
            }
        }
        panic!("{} of {messages} messages are stable", self.outcomes.len());
    }
}

/// All that can be read at a member is read: a message is one byte that says which it is.
fn take_all(engine: &mut Engine, now: Instant, gives_up: impl Fn(u8) -> Option<FailReason>) {
    let mut buf = [0; 64];
    while let Ok(read) = engine.read(GROUP, ORIGIN, &mut buf, now) {
        if !read.end_of_message {
            return;
        }
        match gives_up(buf[0]) {
            Some(reason) => engine
                .abort(GROUP, ORIGIN, reason, now)
                .expect("being read"),
            None => engine
                .confirm(GROUP, ORIGIN, now)
                .expect("its end was read"),
        }
    }
}

fn engine(host: HostId, parents: &[u16], incarnation: u32) -> Engine {
    let mac = [2, 0, 0, 0, 0, host.0 as u8];
    let config = EngineConfig::new(host, mac, 1_500, 5, incarnation);
    let mut engine = Engine::new(config).expect("a valid configuration");
    let all = (0..=parents.len() as u16).map(HostId);
    let others = all.clone().filter(|other| *other != host);
    let routes: BTreeMap<HostId, Vec<u8>> = others.map(|to| (to, vec![to.0 as u8])).collect();
    engine.set_routes(routes, Instant::ZERO).expect("routes");
    let edges = parents.iter().enumerate().map(|(index, parent)| Edge {
        from: HostId(*parent),
        to: HostId(index as u16 + 1),
        class: BufferClass::One,
    });
    let plan = GroupPlan {
        id: GROUP,
        epoch: 1,
        choices: Choice::only(Replication::Hosts),
        members: all.collect(),
        mtu: None,
        structures: Arc::new(Tree {
            host,
            edges: edges.collect(),
        }),
        reports_begin: false,
        gathered: None,
    };
    engine.set_group(plan, Instant::ZERO).expect("a plan");
    engine
}

/// Where a frame arrives, by its one port byte, and as what.
fn arriving(frame: &[u8]) -> (HostId, Vec<u8>) {
    let worm = worm::decode(frame).expect("a worm");
    let to = HostId(worm.route[0].into());
    let mut bytes = vec![0; frame.len() - 1];
    let header = worm::Header {
        hops: 1,
        ..worm.header
    };
    let at = worm::encode(&mut bytes, [2; 6], &header, &[]);
    bytes[at..].copy_from_slice(worm.payload);
    (to, bytes)
}

fn expect_exact(net: &Net, lacks: &impl Fn(HostId, u8) -> Option<FailReason>) {
    for (message, (confirmed, failed)) in &net.outcomes {
        for member in net.members() {
            let lack = lacks(member, *message as u8);
            assert_eq!(
                failed.contains_key(&member),
                lack.is_some(),
                "{message} at {member}"
            );
            assert_eq!(
                confirmed.contains(&member),
                lack.is_none(),
                "{message} at {member}"
            );
        }
    }
}

/// A chain, one parent of all others, and two trees.
fn shapes(members: u16) -> [Vec<u16>; 4] {
    let chain: Vec<u16> = (0..members).collect();
    let one_serves_all: Vec<u16> = (0..members).map(|at| u16::from(at > 0)).collect();
    let binary = (0..members).map(|at| at / 2).collect();
    let wide = (0..members).map(|at| at / 7).collect();
    [chain, one_serves_all, binary, wide]
}

#[test]
fn nobody_has_what_nobody_takes() {
    for parents in shapes(30) {
        let mut net = Net::new(&parents);
        (0..60).for_each(|message| net.write(&[message], true));
        let nobody = |_, _| Some(FailReason::Cancelled);
        net.run(60, &nobody);
        expect_exact(&net, &nobody);
        let reasons = net
            .outcomes
            .values()
            .flat_map(|(_, failed)| failed.values());
        assert!(
            reasons
                .into_iter()
                .all(|reason| *reason == FailReason::Cancelled)
        );
    }
}

#[test]
fn of_each_message_those_are_named_that_lack_it() {
    let lacks = |host: HostId, message: u8| {
        let mix = Draws(u64::from(host.0) << 8 | u64::from(message)).next();
        // Of some messages nearly everybody lacks them, of others hardly anybody.
        let is_lacked = mix % 8 < u64::from(message % 9);
        let reasons = [
            FailReason::NoSpace,
            FailReason::Cancelled,
            FailReason::Storage,
        ];
        is_lacked.then_some(reasons[(mix >> 8) as usize % 3])
    };
    for parents in shapes(24) {
        let mut net = Net::new(&parents);
        (0..80).for_each(|message| net.write(&[message], true));
        net.run(80, &lacks);
        expect_exact(&net, &lacks);
        for (message, (_, failed)) in &net.outcomes {
            for (host, reason) in failed {
                assert_eq!(
                    Some(*reason),
                    lacks(*host, *message as u8),
                    "{message} at {host}"
                );
            }
        }
    }
}

/// What was read before is confirmed, and known to be.
#[test]
fn who_gives_up_in_the_middle_of_a_message_is_named() {
    for parents in shapes(9) {
        let mut net = Net::new(&parents);
        let none = |_, _| None;
        for message in 0..2 {
            net.write(&[message; 100_000], false);
            (0..1_000).for_each(|_| net.step(&none));
            let now = net.now;
            for host in [3, 4, 9].map(HostId) {
                let engine = net.engines.get_mut(&host).expect("a member");
                engine
                    .abort(GROUP, ORIGIN, FailReason::NoSpace, now)
                    .expect("being read");
            }
            net.write(&[message; 100_000], true);
            net.run(u64::from(message) + 1, &none);
        }
        let lacks = |host: HostId, _| [3, 4, 9].contains(&host.0).then_some(FailReason::NoSpace);
        expect_exact(&net, &lacks);
    }
}

/// Meanwhile the others have gone on, and all know of a part of the message that it is stable.
#[test]
fn who_gives_up_while_it_counts_as_dead_is_named() {
    // Of a chain: whose ACKs are lost, and who gives up.
    for (silent, lacking) in [(2, 2), (2, 3), (3, 3)] {
        let mut net = Net::new(&shapes(3)[0]);
        let (silent, lacking) = (HostId(silent), HostId(lacking));
        net.mute = Some((silent, HostId(silent.0 - 1)));
        net.rests = Some(lacking);
        net.write(&[0; 8_000], false);
        let none = |_, _| None;
        (0..100).for_each(|_| net.step(&none));
        let (now, engine) = (net.now, net.engines.get_mut(&lacking));
        let aborted = engine.map(|engine| engine.abort(GROUP, ORIGIN, FailReason::NoSpace, now));
        assert_eq!(aborted, Some(Ok(())));
        net.rests = None;
        (0..70_000).for_each(|_| net.step(&none));
        net.mute = None;
        (0..10_000).for_each(|_| net.step(&none));
        net.write(&[0; 8_000], true);
        net.write(&[1], true);
        net.run(2, &none);
        let lacks =
            |host, message| (host == lacking && message == 0).then_some(FailReason::NoSpace);
        expect_exact(&net, &lacks);
    }
}

/// They are more than an ACK looks at.
#[test]
fn messages_given_up_that_the_others_are_past_hold_up_nothing() {
    let mut net = Net::new(&shapes(2)[0]);
    let late = HostId(2);
    net.rests = Some(late);
    let none = |_, _| None;
    (0..30).for_each(|message| net.write(&[message], true));
    (0..1_000).for_each(|_| net.step(&none));
    net.mute = Some((late, HostId(1)));
    net.run(30, &none);
    (0..10_000).for_each(|_| net.step(&none));
    (net.mute, net.rests) = (None, None);
    let lacks = |host, message| (host == late && message < 30).then_some(FailReason::NoSpace);
    (0..10_000).for_each(|_| net.step(&lacks));
    net.write(&[30], true);
    net.run(31, &lacks);
    expect_exact(&net, &lacks);
}

#[test]
fn acks_that_are_lost_come_twice_or_late_hide_nobody() {
    for seed in 0..40 {
        let lacks = |host: HostId, message: u8| {
            let mix = Draws(seed << 16 | u64::from(host.0) << 8 | u64::from(message)).next();
            mix.is_multiple_of(3).then_some(FailReason::Cancelled)
        };
        let parents = &shapes(10)[seed as usize % 4];
        let mut net = Net::new(parents);
        net.draws = Draws(seed);
        (net.lost_of_thousand, net.delay_us) = (100, 30_000);
        for message in 0..60 {
            net.write(&[message], true);
            (0..net.draws.below(4)).for_each(|_| net.step(&lacks));
        }
        net.run(60, &lacks);
        expect_exact(&net, &lacks);
    }
}

#[test]
fn the_dead_are_named_though_they_are_many_and_nobody_else_is() {
    let parents = &shapes(30)[1];
    let mut net = Net::new(parents);
    let is_dead = |host: HostId| (4..28).contains(&host.0);
    net.dead = net.members().filter(|host| is_dead(*host)).collect();
    (0..3).for_each(|message| net.write(&[message], true));
    let none = |_, _| None;
    net.run(3, &none);
    expect_exact(&net, &|host, _| is_dead(host).then_some(FailReason::Silent));
    // They were silent, and are served again.
    net.dead.clear();
    (0..2_000).for_each(|_| net.step(&none));
    net.write(&[3], true);
    (0..2_000).for_each(|_| net.step(&none));
    assert_eq!(net.outcomes.len(), 4);
    assert!(net.outcomes[&3].1.is_empty(), "{:?}", net.outcomes[&3]);
}

#[test]
fn who_has_begun_a_message_learns_that_its_origin_has_forgotten_it() {
    for parents in shapes(6) {
        let mut net = Net::new(&parents);
        net.write(&[7; 4_000], false);
        let none = |_, _| None;
        (0..50).for_each(|_| net.step(&none));
        net.restart_origin();
        (0..3_000).for_each(|_| net.step(&none));
        let mut told: Vec<HostId> = net.lost.iter().map(|(host, _)| *host).collect();
        told.sort();
        assert_eq!(told, net.members().collect::<Vec<_>>());
        let reasons = net.lost.iter().map(|(_, reason)| *reason);
        assert!(
            reasons
                .into_iter()
                .all(|reason| reason == LossReason::OriginRestarted)
        );
        net.write(&[1], true);
        net.run(1, &none);
        expect_exact(&net, &none);
    }
}

/// The origin has not heard yet that it is no member, and counts on those of the plan before.
#[test]
fn a_member_for_which_the_origin_is_gone_does_not_answer_for_those_below() {
    let mut net = Net::new(&shapes(2)[0]);
    let lacks = |host: HostId, _| (host.0 == 1).then_some(FailReason::Cancelled);
    net.rests = Some(HostId(2));
    net.write(&[0], true);
    (0..100).for_each(|_| net.step(&lacks));
    let plan = GroupPlan {
        id: GROUP,
        epoch: 2,
        choices: Choice::only(Replication::Hosts),
        members: [HostId(1), HostId(2)].into(),
        mtu: None,
        structures: Arc::new(WithoutOrigin),
        reports_begin: false,
        gathered: None,
    };
    let (now, member) = (net.now, net.engines.get_mut(&HostId(1)));
    let applied = member.map(|engine| engine.set_group(plan, now));
    assert_eq!(applied, Some(Ok(())));
    (0..30_000).for_each(|_| net.step(&lacks));
    assert_eq!(net.outcomes, Outcomes::new());
}

/// Not even what it gave up, though not all know that; also of more messages than are remembered one by one.
#[test]
fn nothing_is_read_twice_when_an_earlier_life_of_its_origin_comes_late() {
    for given_up in [1, 30] {
        let mut net = Net::new(&shapes(2)[0]);
        let read = std::cell::RefCell::new(Vec::new());
        let last = given_up + 1;
        let lacks = |host: HostId, message: u8| {
            read.borrow_mut().push((host.0, message));
            (host.0 == 2 && message < given_up).then_some(FailReason::Cancelled)
        };
        net.kept = Some((HostId(2), Vec::new()));
        // So not all know.
        net.rests = Some(HostId(1));
        (0..last).for_each(|message| net.write(&[message], true));
        (0..100).for_each(|_| net.step(&lacks));
        let (_, early) = net.kept.take().expect("frames");
        net.rests = None;
        net.restart_origin();
        net.write(&[last], true);
        net.run(1, &lacks);
        let all: Vec<(u16, u8)> = (1..=2)
            .flat_map(|host| (0..=last).map(move |message| (host, message)))
            .collect();
        let sorted = || {
            let mut sorted = read.borrow().clone();
            sorted.sort_unstable();
            sorted
        };
        assert_eq!(sorted(), all);
        for step in 0..90_000 {
            let now = net.now;
            let engine = net.engines.get_mut(&HostId(2)).expect("a member");
            for frame in early.iter().filter(|_| step % 20 == 0) {
                let _ = engine.handle_frame(frame, now);
            }
            net.step(&lacks);
        }
        assert_eq!(sorted(), all);
    }
}

/// It is asked, but nobody takes its silence for the end.
#[test]
fn an_origin_that_rests_in_the_middle_of_a_message_goes_on() {
    let mut net = Net::new(&shapes(4)[2]);
    net.write(&[7; 4_000], false);
    let none = |_, _| None;
    (0..120_000).for_each(|_| net.step(&none));
    net.write(&[7], true);
    net.run(1, &none);
    expect_exact(&net, &none);
    assert_eq!(net.lost, []);
}
