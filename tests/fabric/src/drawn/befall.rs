//! What befalls a scenario: links, hosts, switches, members, routes, and the controller itself.

use super::{Run, SECOND_US, setting};
use crate::program::ReaderPolicy;
use std::collections::BTreeSet;
use wormcast_planner::{Switching, WormholeScheme};
use wormcast_wire::HostId;

const INTERRUPT: Switching = Switching::Wormhole(WormholeScheme::Interrupt);

impl Run {
    /// A host that writes nothing, if there is one that runs.
    fn bystander(&mut self) -> Option<u16> {
        let writing: BTreeSet<u16> = self.origins.values().flatten().copied().collect();
        let free = |host: &u16| !writing.contains(host) && !self.stopped.contains(host);
        let hosts: Vec<u16> = self
            .scenario
            .fabric
            .hosts
            .keys()
            .copied()
            .filter(free)
            .collect();
        if hosts.is_empty() {
            return None;
        }
        Some(hosts[self.random.below(hosts.len() as u64) as usize])
    }

    fn any_host(&mut self) -> u16 {
        let hosts: Vec<u16> = self.scenario.fabric.hosts.keys().copied().collect();
        hosts[self.random.below(hosts.len() as u64) as usize]
    }

    /// A switch forgets what it has gathered, what its counters say, and perhaps its entries, until the controller
    /// has reached it again.
    fn restart_switch(&mut self) {
        let is_empty = self.restarts.below(2) == 0;
        if is_empty {
            // All that was planned is written, and nothing is revoked: that would be written to an empty switch.
            let now_us = self.scenario.fabric.now_us();
            let until_us = self.planned_until_us.saturating_sub(now_us);
            self.scenario.run_for(until_us);
            self.scenario.fabric.begin_plan();
        }
        let switches = &mut self.scenario.fabric.switches;
        let number = self.restarts.below(switches.len() as u64) as usize;
        let (id, switch) = switches.iter_mut().nth(number).expect("a switch");
        let refused = switch.refused();
        assert!(refused.is_empty(), "switch {id} refused {refused:?}");
        let seed = self.restarts.below(1 << 32);
        if !is_empty {
            switch.restart(seed);
            let line = format!("switch {id} starts anew");
            return self.note(&line);
        }
        switch.start_empty(seed);
        let line = format!("switch {id} starts anew, and is empty");
        self.note(&line);
        let blind_us = self.restarts.below(2 * SECOND_US);
        self.scenario.run_for(blind_us);
        self.replan();
    }

    /// The controller is away for a while; what it comes back with is in the state file.
    fn restart_controller(&mut self) {
        self.note("the controller ends");
        let away_us = self.restarts.below(3 * SECOND_US);
        self.scenario.run_for(away_us);
        self.scenario.controller.restart();
        self.note("the controller starts");
        self.replan();
    }

    /// One thing happens.
    pub(super) fn befall(&mut self) {
        match self.restarts.below(8) {
            0 | 1 => self.restart_switch(),
            2 => self.restart_controller(),
            _ => {}
        }
        match self.random.below(10) {
            0 => self.cut_or_mend(),
            8 => self.reroute(),
            9 => self.opt_out_or_in(),
            1 => {
                let (host, us) = (self.any_host(), 1_000 + self.random.below(8 * SECOND_US));
                if !self.stopped.contains(&host) {
                    self.note(&format!("host {host} is frozen for {} ms", us / 1_000));
                    self.scenario.fabric.freeze(host, us);
                    // Its group of origins waits for it; nobody is lost.
                    let until = self.random.below(us + SECOND_US);
                    self.scenario.run_for(us + until);
                }
            }
            2 => {
                let host = self.any_host();
                let now_us = self.scenario.fabric.now_us();
                let policy = match self.random.below(3) {
                    0 => ReaderPolicy {
                        asleep_until_us: now_us + self.random.below(5 * SECOND_US),
                        ..ReaderPolicy::default()
                    },
                    1 => ReaderPolicy {
                        bytes_per_ms: Some(50 + self.random.below(1_000)),
                        ..ReaderPolicy::default()
                    },
                    _ => ReaderPolicy::default(),
                };
                self.note(&format!("host {host} reads by {policy:?}"));
                self.scenario.fabric.host(host).program.policy = policy;
                self.scenario.fabric.run_host(host);
            }
            3 | 4 => {
                if let Some(host) = self.bystander() {
                    self.join_or_leave(host);
                }
            }
            5 => self.stop_or_start(),
            _ => self.replan(),
        }
    }

    fn join_or_leave(&mut self, host: u16) {
        let count = self.scenario.controller.groups.len() as u64;
        let index = self.random.below(count) as usize;
        let group = &mut self.scenario.controller.groups[index];
        let is_member = group.members.contains(&HostId(host));
        if is_member {
            group.members.retain(|member| member.0 != host);
        } else {
            group.members.push(HostId(host));
            group.members.sort_unstable();
        }
        let (id, verb) = (group.id, if is_member { "leaves" } else { "joins" });
        self.note(&format!("host {host} {verb} group {id}"));
        self.wavering.insert(host);
        self.replan();
    }

    /// The operator wants other routes.
    fn reroute(&mut self) {
        let setting = setting(&mut self.random, &self.scenario.fabric.topology);
        self.note(&format!("routes by {setting:?}"));
        self.scenario.controller.setting = setting;
        self.replan();
    }

    /// No worms of others are to go through a host any more, or they may again.
    fn opt_out_or_in(&mut self) {
        let host = self.any_host();
        let away = &mut self.scenario.controller.no_transit;
        let verb = if away.remove(&host) || !away.insert(host) {
            "re-injects again"
        } else {
            "re-injects no more"
        };
        self.note(&format!("host {host} {verb}"));
        self.replan();
    }

    pub(super) fn stop_or_start(&mut self) {
        if let Some(host) = self.stopped.pop_first() {
            self.note(&format!("agent {host} starts"));
            self.scenario.fabric.start_agent(host);
            self.scenario.controller.no_transit.remove(&host);
            self.replan();
        } else if let Some(host) = self.bystander() {
            self.note(&format!("agent {host} stops"));
            self.scenario.fabric.stop_agent(host);
            self.wavering.insert(host);
            self.stopped.insert(host);
            // The controller hears of it after a while.
            let blind_us = self.random.below(2 * SECOND_US);
            self.scenario.run_for(blind_us);
            self.scenario.controller.no_transit.insert(host);
            self.replan();
        }
    }

    /// The controller hears of a cut after a while, if the network stays in one piece; else the link
    /// comes back before anybody is given up.
    pub(super) fn cut_or_mend(&mut self) {
        if let Some((switch, port)) = self.cut.take() {
            self.note(&format!("link {switch}:{port} is mended"));
            self.scenario.fabric.set_link_down(switch, port, false);
            self.scenario.controller.damage.links.clear();
            return self.replan();
        }
        let links = self.scenario.fabric.topology.links();
        if links.is_empty() {
            return;
        }
        let link = links[self.random.below(links.len() as u64) as usize];
        let (switch, port) = (link.a.0, link.a_port.get());
        self.note(&format!("link {switch}:{port} is cut"));
        self.scenario.fabric.set_link_down(switch, port, true);
        let mut damage = self.scenario.controller.damage.clone();
        damage.links.insert((link.a, link.a_port));
        let left = self.scenario.fabric.topology.without(&damage);
        let blind_us = self.random.below(2 * SECOND_US);
        self.scenario.run_for(blind_us);
        if left.is_ok_and(|left| left.components() == 1) {
            self.cut = Some((switch, port));
            self.scenario.controller.damage = damage;
            self.replan();
        } else {
            self.note(&format!("link {switch}:{port} is mended"));
            self.scenario.fabric.set_link_down(switch, port, false);
        }
    }

    /// The mode that is asked for, and trains: agents send them after all switches are in wormhole mode, and switches
    /// leave it after all agents have stopped. Each is a plan of its own.
    fn switch_over(&mut self) {
        let Some(random) = &mut self.switching else {
            return;
        };
        let controller = &mut self.scenario.controller;
        let is_wormhole = controller.switching != Switching::Packet;
        let another = Switching::Wormhole(*random.pick(self.schemes));
        let (switching, trains) = match (is_wormhole, controller.trains, random.below(4)) {
            (false, ..) => (another, false),
            (true, false, 0) => (Switching::Packet, false),
            (true, true, 0) => (controller.switching, false),
            (true, true, 1) => (another, true),
            (true, ..) => (controller.switching, true),
        };
        (controller.switching, controller.trains) = (switching, trains);
        self.note(&format!("{switching:?}, trains: {trains}"));
    }

    pub(super) fn replan(&mut self) {
        // One plan after another, as the controller carries them out.
        let now_us = self.scenario.fabric.now_us();
        self.scenario
            .run_for(self.planned_until_us.saturating_sub(now_us));
        let stage_us = 1 + self.random.below(200_000);
        if let Some(guard) = &mut self.guard
            && guard.below(8) == 0
        {
            let on = &mut self.scenario.controller.guard.on;
            *on = !*on;
            let line = format!("the guard is {}", if *on { "on" } else { "off" });
            self.note(&line);
        }
        if self.stops_soon && self.scenario.controller.switching == INTERRUPT {
            let switches = self.scenario.fabric.switches.values_mut();
            switches.for_each(|switch| switch.set_stop_frames(2, 1));
        }
        self.switch_over();
        let took_us = self.scenario.replan_in_stages(&mut self.random, stage_us);
        self.planned_until_us = self.scenario.fabric.now_us() + took_us;
        self.note_sequencers();
        let epoch = self.scenario.controller.epoch;
        self.note(&format!("plan {epoch}, stages of {} ms", stage_us / 1_000));
    }
}
