//! What befalls a run.

use super::draw::habits;
use super::{MS_US, Run, SECOND_US};
use crate::crowd::Deed;
use crate::link::Damage;
use wormcast_wire::HostId;

impl Run {
    fn any_host(&mut self) -> u16 {
        let hosts = self.hosts();
        *self.random.pick(&hosts)
    }

    fn any_group(&mut self) -> u16 {
        let groups: Vec<u16> = self.members.keys().copied().collect();
        *self.random.pick(&groups)
    }

    /// For how long a host is not there: mostly for less than it takes to be given up.
    fn absence_us(&mut self) -> u64 {
        let exclude_us = self.exclude_us;
        match self.random.below(8) {
            0 => exclude_us / 2 + self.random.below(exclude_us),
            1 => self.random.below(exclude_us / 4),
            _ => self.random.below(exclude_us.min(6 * SECOND_US) / 6),
        }
    }

    /// Time for which a host was not there counts.
    fn count_absence(&mut self, us: u64) {
        self.away_us += us;
    }

    /// The host has not been a member all the time.
    fn bar(&mut self, host: u16, group: Option<u16>) {
        let now_us = self.scenario.fabric.now_us();
        let readers = &mut self.scenario.fabric.host(host).crowd.readers;
        for (of, reader) in readers {
            if group.is_none_or(|group| group == *of) {
                reader.bar(now_us);
            }
        }
    }

    /// One thing happens.
    pub(super) fn befall(&mut self) {
        match self.random.below(16) {
            0 | 1 => self.freeze(),
            2 => self.restart_agent(),
            3 => self.stop_or_start(),
            4 | 5 => self.join_or_leave(),
            6 => self.restructure(),
            7 => self.replan(),
            8 | 9 => self.meddle_with_receiver(),
            10 => self.darken(),
            11 => self.damage_links(),
            12 => {
                self.note("the controller starts anew");
                self.scenario.controller.restart();
                self.replan();
            }
            13 => self.restart_switch(),
            _ => {
                let count = 1 + self.random.below(12);
                self.write_some(count, 8_000);
            }
        }
    }

    fn freeze(&mut self) {
        let (host, us) = (self.any_host(), self.absence_us());
        if self.stopped.contains(&host) {
            return;
        }
        self.note(&format!("host {host} stands still for {} ms", us / 1_000));
        self.count_absence(us);
        self.scenario.fabric.freeze(host, us);
        // Nothing else befalls it meanwhile.
        let more_us = self.random.below(100 * MS_US);
        self.scenario.run_for(us + more_us);
    }

    fn restart_agent(&mut self) {
        let host = self.any_host();
        if !self.stopped.contains(&host) {
            self.note(&format!("agent {host} starts anew"));
            self.killed.insert(host);
            self.scenario.fabric.start_agent(host);
        }
    }

    fn stop_or_start(&mut self) {
        if !self.stopped.is_empty() {
            return self.start_one();
        }
        let (host, us) = (self.any_host(), self.absence_us());
        self.note(&format!("agent {host} ends"));
        self.killed.insert(host);
        self.scenario.fabric.stop_agent(host);
        self.bar(host, None);
        self.stopped.insert(host);
        self.count_absence(us);
        self.scenario.run_for(us);
        if self.random.below(2) == 0 {
            // The controller has noticed.
            self.scenario.controller.damage.hosts.insert(HostId(host));
            self.left_out.insert(host);
            self.replan();
        } else {
            self.start_one();
        }
    }

    /// An agent that is not running starts.
    pub(super) fn start_one(&mut self) {
        let Some(host) = self.stopped.pop_first() else {
            return;
        };
        self.note(&format!("agent {host} starts"));
        self.scenario.fabric.start_agent(host);
        let gone = &mut self.scenario.controller.damage.hosts;
        if gone.remove(&HostId(host)) {
            self.replan();
        } else {
            // It was a member all the time, and its program is there from now on.
            let now_us = self.scenario.fabric.now_us();
            let rest_us = self.rest_us();
            let fabric = &mut self.scenario.fabric;
            for (group, reader) in &mut fabric.host(host).crowd.readers {
                let was_member = !self.left.contains(&(*group, host));
                if was_member && reader.habits.takes_all(rest_us) {
                    reader.unbar(now_us);
                }
            }
        }
    }

    fn join_or_leave(&mut self) {
        let (group, host) = (self.any_group(), self.any_host());
        let groups = &mut self.scenario.controller.groups;
        let group = groups.iter_mut().find(|one| one.id.0 == group);
        let group = group.expect("one of them");
        let is_member = group.members.contains(&HostId(host));
        if is_member && group.members.len() <= 2 {
            return;
        }
        if is_member {
            group.members.retain(|member| member.0 != host);
        } else {
            group.members.push(HostId(host));
            group.members.sort_unstable();
        }
        let (id, verb) = (group.id.0, if is_member { "leaves" } else { "joins" });
        self.note(&format!("host {host} {verb} group {id}"));
        self.left.insert((id, host));
        self.bar(host, Some(id));
        self.replan();
        let now_us = self.scenario.fabric.now_us();
        let crowd = &mut self.scenario.fabric.host(host).crowd;
        if !is_member && !crowd.readers.contains_key(&id) && self.random.below(2) == 0 {
            let mut reader = crate::crowd::Reader::new(id, crate::crowd::Habits::default());
            reader.bar(now_us);
            crowd.readers.insert(id, reader);
            self.scenario.fabric.run_host(host);
        }
    }

    fn restructure(&mut self) {
        let (group, scheme) = (self.any_group(), self.any_scheme());
        self.note(&format!("group {group} goes by {scheme:?}"));
        let groups = &mut self.scenario.controller.groups;
        for one in groups.iter_mut().filter(|one| one.id.0 == group) {
            one.scheme = scheme;
        }
        self.replan();
    }

    fn meddle_with_receiver(&mut self) {
        let (group, now_us) = (self.any_group(), self.scenario.fabric.now_us());
        let members = self.members[&group].clone();
        let host = *self.random.pick(&members);
        let drawn = habits(&mut self.random, &members, &self.patience);
        let away_us = self.random.below(2 * self.patience.receiver_wait_us);
        let rest_us = self.rest_us();
        let fabric = &mut self.scenario.fabric;
        let Some(reader) = fabric.host(host).crowd.readers.get_mut(&group) else {
            return;
        };
        match self.random.below(4) {
            0 => {
                reader.habits = drawn;
                if !drawn.takes_all(rest_us) {
                    reader.bar(now_us);
                }
            }
            1 => reader.wanted = true,
            way => {
                reader.not_before_us = now_us + away_us;
                let deed = if way == 2 {
                    Deed::Closes
                } else {
                    Deed::BreaksOff
                };
                let line = format!("receiver of group {group} on host {host}: {deed:?}");
                fabric.host(host).at_reader(group, deed, now_us);
                self.note(&line);
            }
        }
        self.scenario.fabric.run_host(host);
    }

    /// A link carries nothing for a while.
    fn darken(&mut self) {
        let topology = &self.scenario.fabric.topology;
        let of_hosts = topology.hosts().iter();
        let of_hosts = of_hosts.map(|host| (host.switch.0, host.port.get()));
        let between = topology.links().iter();
        let between = between.map(|link| (link.a.0, link.a_port.get()));
        let all: Vec<(u16, u8)> = of_hosts.chain(between).collect();
        let (switch, port) = *self.random.pick(&all);
        let us = self.absence_us();
        self.note(&format!(
            "link {switch}:{port} is dark for {} ms",
            us / 1_000
        ));
        self.count_absence(us);
        self.scenario.fabric.set_link_down(switch, port, true);
        self.dark.insert((switch, port));
        self.scenario.run_for(us);
        self.brighten();
    }

    /// All links carry frames again, as well as they should.
    pub(super) fn brighten(&mut self) {
        for (switch, port) in std::mem::take(&mut self.dark) {
            self.scenario.fabric.set_link_down(switch, port, false);
        }
    }

    fn damage_links(&mut self) {
        let damage = Damage {
            loss: self.random.below(200) as f64 / 1_000.0,
            corruption: 0.0,
            duplication: self.random.below(100) as f64 / 1_000.0,
            reordering: self.random.below(200) as f64 / 1_000.0,
            reorder_ns: 1_000_000 + self.random.below(60_000_000),
        };
        let us = self.random.below(SECOND_US);
        self.note(&format!("{damage:?} for {} ms", us / 1_000));
        let links = &mut self.scenario.fabric.links;
        let before: Vec<Damage> = links.values().map(|link| link.config.damage).collect();
        for link in links.values_mut() {
            link.config.damage = damage;
        }
        self.scenario.run_for(us);
        let links = &mut self.scenario.fabric.links;
        for (link, damage) in links.values_mut().zip(before) {
            link.config.damage = damage;
        }
    }

    fn restart_switch(&mut self) {
        let now_us = self.scenario.fabric.now_us();
        // What is planned is written, and not to a switch that has forgotten what came before.
        let rest_us = self.planned_until_us.saturating_sub(now_us);
        self.scenario.run_for(rest_us);
        let switches = &mut self.scenario.fabric.switches;
        let number = self.random.below(switches.len() as u64) as usize;
        let (id, switch) = switches.iter_mut().nth(number).expect("a switch");
        switch.restart(self.random.below(1 << 32));
        let line = format!("switch {id} starts anew");
        self.note(&line);
    }
}
