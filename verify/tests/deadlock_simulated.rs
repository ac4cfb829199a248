//! The deadlock check against small networks played through: every state that worms can
//! get into, and whether all of them can still arrive from there.

use crate::graphs;

use std::collections::{BTreeMap, BTreeSet};

use graphs::{minimal, wire};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use wormcast_routing::routes::{Algorithm, Route, Routes};
use wormcast_routing::topology::Topology;
use wormcast_verify::deadlock::{
    Branching, Buffers, ChannelGraph, Forward, Forwarding, Model, Verdict, Worm as Holder,
};
use wormcast_wire::tree_route::encode_tree;
use wormcast_wire::{BufferClass, HostId, SwitchId};

/// More states than these are not looked at.
const STATES_MAX: usize = 3_000;

/// What a worm takes: a channel by switch and port, or as in the other variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    Out(u16, u8),
    Injection(u16),
    Buffer(u16, Option<u8>),
    Turn,
}

#[derive(Clone, Debug)]
struct Need {
    thing: Thing,
    after: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unicast,
    /// Copied by switches.
    Tree,
    /// Passed on by hosts.
    Message,
}

#[derive(Clone, Debug)]
struct Worm {
    kind: Kind,
    needs: Vec<Need>,
}

impl Worm {
    fn add(&mut self, thing: Thing, after: Option<usize>) -> usize {
        let same = |need: &Need| need.thing == thing && need.after == after;
        if self.kind == Kind::Tree
            && let Some(place) = self.needs.iter().position(same)
        {
            return place;
        }
        self.needs.push(Need { thing, after });
        self.needs.len() - 1
    }

    fn children(&self, place: usize) -> impl Iterator<Item = usize> + '_ {
        (place + 1..self.needs.len()).filter(move |&at| self.needs[at].after == Some(place))
    }

    /// Leaves out the channels that no other worm wants: they are got and given back at
    /// once. Where a multicast begins and where it branches stays, for its branches wait for
    /// each other.
    fn without(&self, unshared: &dyn Fn(Thing) -> bool) -> Worm {
        let mut kept: Vec<Option<usize>> = Vec::new();
        let mut worm = Worm {
            kind: self.kind,
            needs: Vec::new(),
        };
        for (place, need) in self.needs.iter().enumerate() {
            let after = need.after.and_then(|after| kept[after]);
            let matters = match (self.kind, need.thing) {
                (_, Thing::Buffer(..) | Thing::Turn) => true,
                (Kind::Tree, _) if place == 0 || self.children(place).count() > 1 => true,
                (_, thing) => !unshared(thing),
            };
            kept.push(if matters {
                worm.needs.push(Need {
                    thing: need.thing,
                    after,
                });
                Some(worm.needs.len() - 1)
            } else {
                after
            });
        }
        worm
    }

    /// Whether `place` is `above` or behind it.
    fn is_behind(&self, mut place: usize, above: usize) -> bool {
        while place > above {
            match self.needs[place].after {
                Some(after) => place = after,
                None => return false,
            }
        }
        place == above
    }

    fn behind(&self, above: usize) -> Vec<usize> {
        (above..self.needs.len())
            .filter(|&place| self.is_behind(place, above))
            .collect()
    }
}

/// How far a worm is with a need.
const NOT_YET: u8 = 0;
const HELD: u8 = 1;
const DONE: u8 = 2;

type State = Vec<Vec<u8>>;

struct Play<'w> {
    worms: &'w [Worm],
    model: Model,
}

impl Play<'_> {
    fn holder(&self, state: &State, thing: Thing) -> Option<(usize, usize)> {
        state.iter().enumerate().find_map(|(worm, needs)| {
            let held = |&place: &usize| {
                needs[place] == HELD && self.worms[worm].needs[place].thing == thing
            };
            (0..needs.len()).find(held).map(|place| (worm, place))
        })
    }

    /// Every state that one step leads to.
    fn steps(&self, state: &State) -> Vec<State> {
        let mut next = Vec::new();
        for (number, worm) in self.worms.iter().enumerate() {
            for place in 0..worm.needs.len() {
                let mut change = |change: &dyn Fn(&mut Vec<u8>)| {
                    let mut to = state.clone();
                    change(&mut to[number]);
                    next.push(to);
                };
                let status = state[number][place];
                let wants = status == NOT_YET
                    && worm.needs[place]
                        .after
                        .is_none_or(|after| state[number][after] == HELD);
                if wants {
                    match self.holder(state, worm.needs[place].thing) {
                        None => change(&|needs| needs[place] = HELD),
                        Some(by) if self.gives_up(state, number, place, by) => {
                            let again = self.given_up(worm, place);
                            change(&|needs| again.iter().for_each(|&at| needs[at] = NOT_YET));
                        }
                        Some(_) => {}
                    }
                }
                if status == HELD && self.can_end(worm, &state[number], place) {
                    change(&|needs| needs[place] = DONE);
                }
                if status == HELD && self.is_cut(worm, &state[number], place) {
                    let fragment = worm.behind(place);
                    change(&|needs| fragment.iter().for_each(|&at| needs[at] = NOT_YET));
                }
            }
        }
        next
    }

    /// Whether a worm that is blocked here by another gives up what it has.
    fn gives_up(&self, state: &State, number: usize, place: usize, by: (usize, usize)) -> bool {
        let worm = &self.worms[number];
        let is_buffer = matches!(worm.needs[place].thing, Thing::Buffer(..));
        if is_buffer {
            // Refused by the host, and sent again from the buffer before.
            return self.model.forwarding == Forwarding::Store && worm.needs[place].after.is_some();
        }
        let (holder, at) = by;
        let (needs, tree) = (&state[holder], &self.worms[holder]);
        let passes = tree.behind(at).iter().all(|&at| needs[at] != NOT_YET);
        // The holder's port is idle: the way behind it is free, and it waits elsewhere.
        self.model.branching == Branching::Flushed
            && worm.kind != Kind::Tree
            && tree.kind == Kind::Tree
            && passes
            && needs.contains(&NOT_YET)
    }

    /// The channels of a unicast worm that it gives up; it keeps the buffer it came from.
    fn given_up(&self, worm: &Worm, place: usize) -> Vec<usize> {
        let mut again = Vec::new();
        let mut at = worm.needs[place].after;
        while let Some(before) = at {
            if matches!(worm.needs[before].thing, Thing::Buffer(..)) {
                break;
            }
            again.push(before);
            at = worm.needs[before].after;
        }
        again
    }

    /// Whether the end of a worm can pass.
    fn can_end(&self, worm: &Worm, needs: &[u8], place: usize) -> bool {
        let coupled = worm.kind == Kind::Tree && self.model.branching != Branching::Independent;
        if coupled
            && worm.needs[place]
                .after
                .is_some_and(|after| needs[after] != DONE)
        {
            return false;
        }
        match worm.needs[place].thing {
            // All has been sent from a buffer when the buffers it went to have all.
            Thing::Buffer(..) => worm.behind(place).iter().all(|&at| {
                let arrived = matches!(worm.needs[at].thing, Thing::Buffer(..));
                at == place
                    || !arrived
                    || self.buffer_before(worm, at) != place
                    || needs[at] != NOT_YET
            }),
            _ => worm.children(place).all(|child| needs[child] != NOT_YET),
        }
    }

    fn buffer_before(&self, worm: &Worm, place: usize) -> usize {
        let mut at = worm.needs[place].after.expect("it was sent here");
        while !matches!(worm.needs[at].thing, Thing::Buffer(..)) {
            at = worm.needs[at].after.expect("messages start in a buffer");
        }
        at
    }

    /// Scheme B: what is behind this channel is through, and the worm waits elsewhere.
    fn is_cut(&self, worm: &Worm, needs: &[u8], place: usize) -> bool {
        self.model.branching == Branching::Interrupted
            && worm.kind == Kind::Tree
            && worm.needs[place]
                .after
                .is_some_and(|after| needs[after] == HELD)
            && worm.behind(place).iter().all(|&at| needs[at] != NOT_YET)
            && (0..needs.len()).any(|at| needs[at] == NOT_YET && !worm.is_behind(place, at))
    }

    /// Whether worms can get to where not all of them can arrive any more; `None` if there
    /// are too many states.
    fn can_deadlock(&self) -> Option<bool> {
        let start: State = self
            .worms
            .iter()
            .map(|worm| vec![NOT_YET; worm.needs.len()])
            .collect();
        let mut numbers = BTreeMap::from([(start.clone(), 0usize)]);
        let mut states = vec![start];
        let mut before: Vec<Vec<usize>> = vec![Vec::new()];
        let mut at = 0;
        while let Some(state) = states.get(at) {
            for to in self.steps(&state.clone()) {
                let number = *numbers.entry(to.clone()).or_insert_with(|| {
                    states.push(to);
                    before.push(Vec::new());
                    states.len() - 1
                });
                before[number].push(at);
            }
            at += 1;
            if states.len() > STATES_MAX {
                return None;
            }
        }
        let arrived = |state: &State| state.iter().flatten().all(|&need| need == DONE);
        let mut good: Vec<usize> = (0..states.len())
            .filter(|&number| arrived(&states[number]))
            .collect();
        let mut is_good = vec![false; states.len()];
        while let Some(number) = good.pop() {
            if !std::mem::replace(&mut is_good[number], true) {
                good.extend(&before[number]);
            }
        }
        Some(is_good.contains(&false))
    }
}

/// A source of small numbers.
struct Dice(ChaCha8Rng);

impl Dice {
    fn below(&mut self, bound: usize) -> u16 {
        (self.0.next_u32() as usize % bound) as u16
    }

    fn hosts(&mut self, all: u16, count: usize, but: u16) -> Vec<u16> {
        let mut hosts = BTreeSet::new();
        while hosts.len() < count {
            let host = self.below(all.into());
            if host != but {
                hosts.insert(host);
            }
        }
        hosts.into_iter().collect()
    }

    fn topology(&mut self, switches: u16) -> Topology {
        loop {
            let pairs = (0..switches).flat_map(|a| (a + 1..switches).map(move |b| (a, b)));
            let links: Vec<(u16, u16)> = pairs.filter(|_| self.below(5) < 3).collect();
            if let Ok(topology) = Topology::new(wire(switches, 1, &links)) {
                return topology;
            }
        }
    }
}

fn follow(worm: &mut Worm, route: &Route, after: Option<usize>) -> usize {
    let mut at = worm.add(Thing::Injection(route.src.0), after);
    for (switch, port) in route.switches.iter().zip(&route.ports) {
        at = worm.add(Thing::Out(switch.0, *port), Some(at));
    }
    at
}

/// The multicast worm over these routes, with its turn at the root if there is one.
fn multicast(routes: &[Route], root: Option<SwitchId>) -> Worm {
    let mut worm = Worm {
        kind: Kind::Tree,
        needs: Vec::new(),
    };
    for route in routes {
        let mut at = worm.add(Thing::Injection(route.src.0), None);
        let mut turned = false;
        for (switch, port) in route.switches.iter().zip(&route.ports) {
            if root == Some(*switch) && !turned {
                at = worm.add(Thing::Turn, Some(at));
                turned = true;
            }
            at = worm.add(Thing::Out(switch.0, *port), Some(at));
        }
    }
    worm
}

/// How often verdict and play said what.
#[derive(Debug, Default)]
struct Tally {
    /// Free, and all arrive.
    free: usize,
    /// Can deadlock, and does.
    found: usize,
    /// Can deadlock, but with more worms than there are.
    beyond: usize,
    /// Too many states.
    skipped: usize,
}

impl Tally {
    fn compare(&mut self, verdict: &Verdict, worms: &[Worm], model: Model) {
        let wanted = |thing| {
            worms
                .iter()
                .flat_map(|worm| &worm.needs)
                .filter(|need| need.thing == thing)
                .count()
        };
        let shared: Vec<Worm> = worms
            .iter()
            .map(|worm| worm.without(&|thing| wanted(thing) == 1))
            .collect();
        let play = Play {
            worms: &shared,
            model,
        };
        match (verdict, play.can_deadlock()) {
            (_, None) => self.skipped += 1,
            (Verdict::DeadlockFree { .. }, Some(false)) => self.free += 1,
            (Verdict::DeadlockFree { .. }, Some(true)) => {
                panic!("said to be free under {model:?}: {worms:#?}")
            }
            (Verdict::Deadlock { .. }, Some(true)) => self.found += 1,
            (Verdict::Deadlock { cycle, proven, .. }, Some(false)) => {
                // Then several worms along the same way are needed, and there is one here.
                let several: BTreeSet<Holder> =
                    cycle.iter().map(|wait| whole(&wait.worm)).collect();
                assert!(
                    !proven || several.len() < cycle.len(),
                    "{cycle:#?} {shared:#?}"
                );
                self.beyond += 1;
            }
        }
    }
}

/// The message, wherever it is.
fn whole(worm: &Holder) -> Holder {
    match worm {
        &Holder::Forwarded { src, .. } => Holder::Unicast { src, dst: src },
        worm => worm.clone(),
    }
}

/// From the source over the root to a member, by the spanning tree.
fn over_root(routes: &Routes<'_>, root: SwitchId, src: u16, dst: u16) -> Route {
    let between = |from: u16, to: u16| routes.route(HostId(from), HostId(to)).unwrap();
    let at_root = root.0;
    let mut all = Route {
        src: HostId(src),
        dst: HostId(dst),
        switches: vec![],
        ports: vec![],
        in_transit: vec![],
    };
    if src != at_root {
        all = between(src, at_root);
        all.switches.pop();
        all.ports.pop();
    }
    if dst == at_root {
        all.switches.push(root);
        all.ports.push(0);
    } else {
        let down = between(at_root, dst);
        all.switches.extend(down.switches);
        all.ports.extend(down.ports);
    }
    all.dst = HostId(dst);
    all
}

fn play_multicasts(branching: Branching, cases: u64) -> Tally {
    let mut tally = Tally::default();
    for seed in 0..cases {
        let mut dice = Dice(ChaCha8Rng::seed_from_u64(seed));
        let switches = 4 + dice.below(2);
        let topology = dice.topology(switches);
        let root = SwitchId(dice.below(switches.into()));
        let routes = Routes::plan(&topology, Algorithm::TreeOnly, Some(root)).unwrap();
        let model = Model {
            root: Some(root),
            ..Model::from(branching)
        };
        let mut graph = ChannelGraph::new(&topology, model);
        let mut worms = Vec::new();
        let interrupted = branching == Branching::Interrupted;
        let on_tree = interrupted || dice.below(2) == 0;
        for _ in 0..1 + dice.below(2) {
            let src = dice.below(switches.into());
            let members = dice.hosts(switches, 2, src);
            let ways: Vec<Route> = members
                .iter()
                .map(|&dst| match (interrupted, on_tree) {
                    (true, _) => over_root(&routes, root, src, dst),
                    (_, true) => routes.route(HostId(src), HostId(dst)).unwrap(),
                    _ => minimal(&topology, src, dst),
                })
                .collect();
            let paths: Vec<_> = ways
                .iter()
                .map(|way| (way.dst, way.ports.clone()))
                .collect();
            let bytes = &encode_tree(&paths).unwrap()[0].bytes;
            graph.add_tree(HostId(src), bytes).unwrap();
            worms.push(multicast(&ways, interrupted.then_some(root)));
        }
        for _ in 0..1 + dice.below(2) {
            let src = dice.below(switches.into());
            let dst = dice.hosts(switches, 1, src)[0];
            let way = minimal(&topology, src, dst);
            graph.add_route(&way).unwrap();
            let mut worm = Worm {
                kind: Kind::Unicast,
                needs: Vec::new(),
            };
            follow(&mut worm, &way, None);
            worms.push(worm);
        }
        tally.compare(&graph.check(), &worms, model);
    }
    tally
}

#[test]
fn multicasts_that_are_said_to_be_free_always_arrive() {
    for branching in Branching::ALL {
        let tally = play_multicasts(branching, 240);
        assert!(tally.free > 150, "{branching:?}: {tally:?}");
        if matches!(branching, Branching::Coupled | Branching::Flushed) {
            assert!(tally.found > 4, "{branching:?}: {tally:?}");
        }
    }
}

fn play_messages(buffers: Buffers, forwarding: Forwarding, cases: u64) -> Tally {
    let mut tally = Tally::default();
    for seed in 0..cases {
        let mut dice = Dice(ChaCha8Rng::seed_from_u64(seed));
        let switches = 3;
        let topology = dice.topology(switches);
        let model = Model {
            buffers,
            forwarding,
            ..Model::default()
        };
        let mut graph = ChannelGraph::new(&topology, model);
        let mut worms = Vec::new();
        let thing = |host: u16, class: u8| {
            Thing::Buffer(host, (buffers == Buffers::Classes).then_some(class))
        };
        for _ in 0..2 {
            // A chain over two hosts, the class as it comes.
            let src = dice.below(3);
            let mut worm = Worm {
                kind: Kind::Message,
                needs: Vec::new(),
            };
            let mut sends = Vec::new();
            let mut from = src;
            let mut at = worm.add(thing(src, 1), None);
            for to in dice.hosts(switches, 2, src) {
                let class = 1 + dice.below(2) as u8;
                let route = minimal(&topology, from, to);
                at = follow(&mut worm, &route, Some(at));
                at = worm.add(thing(to, class), Some(at));
                let class = [BufferClass::One, BufferClass::Two][usize::from(class) - 1];
                sends.push(Forward { route, class });
                from = to;
            }
            graph.add_forwards(HostId(src), &sends).unwrap();
            worms.push(worm);
        }
        tally.compare(&graph.check(), &worms, model);
    }
    tally
}

#[test]
fn messages_whose_buffers_are_said_to_be_free_always_arrive() {
    for buffers in [Buffers::Classes, Buffers::Shared] {
        for forwarding in Forwarding::ALL {
            let tally = play_messages(buffers, forwarding, 90);
            let free = if buffers == Buffers::Classes { 5 } else { 0 };
            assert!(tally.free >= free, "{buffers:?} {forwarding:?}: {tally:?}");
            assert!(tally.found > 4, "{buffers:?} {forwarding:?}: {tally:?}");
        }
    }
}
