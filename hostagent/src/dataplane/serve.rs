//! The slow half of the data plane: commands, plans, events, figures.

use super::{COMMANDS_PER_TURN_MAX, EVENTS_PER_TURN_MAX};
use super::{Command, DataPlane, FAILED_MEMBERS_MAX, FailedMember, Figures};
use crate::applications::Serving;
use crate::plan::{AgentPlan, GROUPS_MAX, RefusedGroup};
use crate::rpc;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use wormcast_protocol::{Engine, EngineConfig, Event, Instant};
use wormcast_wire::{BufferClass, FailReason, GroupId, HostId};

impl DataPlane {
    /// Takes the commands that wait. Applications are served at the next chance.
    pub(super) fn take_commands(&mut self, now: Instant) {
        for _ in 0..COMMANDS_PER_TURN_MAX {
            let Ok(command) = self.commands.try_recv() else {
                return;
            };
            self.applications_due = Some(now);
            self.take_command(command, now);
        }
        self.more_waits = true;
    }

    fn take_command(&mut self, command: Command, now: Instant) {
        match command {
            Command::SetHost(host) => {
                if let Err(error) = self.set_host(host) {
                    crate::error!("the protocol engine refuses to start as host {host}: {error}");
                }
            }
            Command::ApplyPlan { plan, done } => {
                // The controller may be gone by now; the plan holds all the same.
                let _ = done.send(self.apply_plan(*plan, now));
                self.take_events(now);
            }
            Command::Connect {
                id,
                outbound,
                process,
            } => self.applications.connect(id, outbound, process),
            Command::Figures {
                with_groups,
                answer,
            } => {
                let _ = answer.send(self.figures(with_groups, now));
            }
            Command::Stop => self.stopping = true,
            Command::Disconnect(_)
            | Command::Request { .. }
            | Command::Data { .. }
            | Command::Window { .. } => {
                self.take_application_command(command, now);
            }
        }
    }

    fn take_application_command(&mut self, command: Command, now: Instant) {
        let mut serving = Serving {
            engine: self.engine.as_mut(),
            host: self.host,
            groups: self.plan.as_ref().map(|plan| &plan.groups),
            now,
        };
        let (connection, result) = match command {
            Command::Disconnect(id) => {
                self.applications.disconnect(id, &mut serving);
                return;
            }
            Command::Request {
                connection,
                request,
            } => {
                self.applications.request(connection, request, &mut serving);
                return;
            }
            Command::Data {
                connection,
                handle,
                bytes,
            } => (
                connection,
                self.applications.data(connection, handle, bytes),
            ),
            Command::Window {
                connection,
                handle,
                bytes,
            } => (
                connection,
                self.applications.window(connection, handle, bytes, now),
            ),
            _ => return,
        };
        if let Err(error) = result {
            self.applications.expel(connection, &error, &mut serving);
        }
    }

    /// Starts the engine for `host`, or anew if it was another.
    pub(super) fn set_host(&mut self, host: HostId) -> Result<(), String> {
        if self.host == Some(host) {
            return Ok(());
        }
        let mac = self.link.interface.mac.0;
        let mtu = self.settings.mtu_bytes as usize;
        let mut config = EngineConfig::new(host, mac, mtu, random_seed(), incarnation());
        config.limits.groups = GROUPS_MAX;
        config.limits.pool_class1_bytes = self.settings.buffer_bytes / 2;
        config.limits.pool_class2_bytes = self.settings.buffer_bytes / 2;
        let engine = Engine::new(config).map_err(|error| error.to_string())?;
        if let Some(before) = self.host {
            crate::warning!(
                "this host was host {before} and is host {host} now; what was open is closed"
            );
            self.drop_groups(&format!(
                "this host was host {before} and is host {host} now"
            ));
        }
        self.transmit = super::TransmitBatch::new(engine.frame_length_max());
        self.engine = Some(engine);
        self.host = Some(host);
        self.plan = None;
        Ok(())
    }

    fn drop_groups(&mut self, reason: &str) {
        let groups: Vec<GroupId> = self
            .plan
            .iter()
            .flat_map(|plan| plan.groups.keys().copied())
            .collect();
        for group in groups {
            self.applications.remove_group(group, reason);
        }
    }

    /// The plan has been checked whole; what fails here is a limit of the engine.
    fn apply_plan(
        &mut self,
        mut plan: AgentPlan,
        now: Instant,
    ) -> Result<Vec<RefusedGroup>, String> {
        self.set_host(plan.host)?;
        let Some(engine) = &mut self.engine else {
            return Err("no engine".to_owned());
        };
        engine
            .set_all_routes(plan.routes.clone(), plan.tree_routes.clone(), now)
            .map_err(|error| error.to_string())?;
        let none = BTreeMap::new();
        let before = self.plan.as_ref().map_or(&none, |plan| &plan.groups);
        // A group that is refused stays as it was.
        for refused in &plan.refused {
            let old = u16::try_from(refused.group).ok().map(GroupId);
            if let Some((id, group)) = old.and_then(|id| before.get_key_value(&id)) {
                plan.groups.entry(*id).or_insert_with(|| Arc::clone(group));
            }
        }
        let gone: Vec<GroupId> = before
            .keys()
            .copied()
            .filter(|group| !plan.groups.contains_key(group))
            .collect();
        for group in &gone {
            engine.remove_group(*group, now);
        }
        let mut refused = std::mem::take(&mut plan.refused);
        plan.groups.retain(|id, group| {
            let old = before.get(id);
            if old.is_some_and(|old| old.fingerprint == group.fingerprint) {
                return true;
            }
            match engine.set_group(group.engine_plan(plan.host), now) {
                Ok(()) => true,
                Err(error) => {
                    refused.push(RefusedGroup::new(id.0.into(), &error.to_string()));
                    // The engine keeps what it had of it.
                    old.is_some_and(|old| {
                        *group = Arc::clone(old);
                        true
                    })
                }
            }
        });
        for group in gone {
            let reason = format!("group {group} was removed, or this host left it");
            self.applications.remove_group(group, &reason);
        }
        let count = plan.groups.len();
        let (epoch, routes) = (plan.epoch, plan.routes.len());
        if self.plan.as_ref().is_none_or(|old| old.epoch != epoch) {
            crate::info!(
                "plan {epoch} as host {}: {routes} routes, {count} groups",
                plan.host
            );
        }
        self.plan = Some(plan);
        self.discovery.on_located();
        Ok(refused)
    }

    /// Passes events on. True if there were any.
    pub(super) fn take_events(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some(unclaimed) = self.engine.as_mut().and_then(Engine::poll_unclaimed) {
            self.applications.on_unclaimed(&unclaimed);
            any = true;
        }
        for _ in 0..EVENTS_PER_TURN_MAX {
            let Some(event) = self.engine.as_mut().and_then(Engine::poll_event) else {
                return any;
            };
            any = true;
            self.report(&event, now);
            let serving = Serving {
                engine: None,
                host: self.host,
                groups: self.plan.as_ref().map(|plan| &plan.groups),
                now,
            };
            self.applications.on_event(&event, &serving);
        }
        self.more_waits = true;
        any
    }

    /// Tells the controller, and status, of members that fail.
    fn report(&mut self, event: &Event, now: Instant) {
        let (group, origin, host, reason, text) = match event {
            Event::MemberSilent {
                group,
                origin,
                host,
                silent_ms,
            } => {
                let text = format!("silent for {}", seconds(*silent_ms));
                crate::info!(
                    "group {group}, stream of host {origin}: host {host} is {text}; it stays a member"
                );
                self.report_member(*group, *origin, *host, text, true);
                return;
            }
            Event::MemberFailed {
                group,
                origin,
                host,
                reason,
                silent_ms,
            } => {
                let text = match reason {
                    FailReason::Silent => {
                        format!("{reason} for {}, given up", seconds(*silent_ms))
                    }
                    _ => reason.to_string(),
                };
                (*group, *origin, *host, *reason, text)
            }
            Event::MemberAborted {
                group,
                host,
                reason,
                ..
            } => {
                let Some(origin) = self.host else { return };
                (*group, origin, *host, *reason, reason.to_string())
            }
            Event::StructureRejected {
                group,
                origin,
                children,
                limit,
            } => {
                crate::warning!(
                    "the structure of group {group} from host {origin} gives this host {children} children; at most {limit}"
                );
                return;
            }
            _ => return,
        };
        crate::info!("group {group}, stream of host {origin}: host {host} failed: {text}");
        let host_dead = reason.is_host_dead();
        self.report_member(group, origin, host, text.clone(), host_dead);
        if self.failed.len() == FAILED_MEMBERS_MAX {
            self.failed.pop_front();
        }
        self.failed.push_back(FailedMember {
            group: group.0,
            origin: origin.0,
            host: host.0,
            reason: text,
            host_dead,
            at_us: now.as_micros(),
        });
    }

    fn report_member(
        &mut self,
        group: GroupId,
        origin: HostId,
        host: HostId,
        reason: String,
        host_dead: bool,
    ) {
        let message = rpc::MemberReport {
            group: group.0.into(),
            origin: origin.0.into(),
            host: host.0.into(),
            reason,
            host_dead,
        };
        if self.reports.try_send(message).is_err() {
            self.counters.reports_dropped += 1;
        }
    }

    /// Moves bytes between applications and the engine.
    pub(super) fn serve_applications(&mut self, now: Instant) {
        let mut serving = Serving {
            engine: self.engine.as_mut(),
            host: self.host,
            groups: self.plan.as_ref().map(|plan| &plan.groups),
            now,
        };
        self.applications_due = self.applications.pump(&mut serving);
    }

    fn figures(&mut self, with_groups: bool, now: Instant) -> Figures {
        let mut figures = Figures {
            host: self.host.map(|host| host.0),
            plan_epoch: self.plan.as_ref().map_or(0, |plan| plan.epoch),
            link_up: self.link.up,
            mac: self.link.interface.mac.to_string(),
            mtu_bytes: self.settings.mtu_bytes,
            uptime_us: now.as_micros(),
            failed: self.failed.iter().cloned().collect(),
            ..Figures::default()
        };
        self.push_link_figures(&mut figures);
        for (name, value) in self.applications.counters() {
            figures.push(name, value);
        }
        if let Some(engine) = &self.engine {
            for (name, value) in engine.counters().entries() {
                figures.push(name, value);
            }
            figures.push(
                "pool_class1_bytes",
                engine.pool_bytes(BufferClass::One) as u64,
            );
            figures.push(
                "pool_class2_bytes",
                engine.pool_bytes(BufferClass::Two) as u64,
            );
            for (group, origin, statistics) in engine.statistics() {
                for (name, value) in statistics.entries() {
                    figures.push_stream(name, group.0, origin.0, value);
                }
            }
        }
        if with_groups {
            let serving = Serving {
                engine: None,
                host: self.host,
                groups: self.plan.as_ref().map(|plan| &plan.groups),
                now,
            };
            (figures.groups, figures.groups_left_out) = self
                .applications
                .describe_groups(&serving, None)
                .unwrap_or_default();
        }
        figures
    }

    fn push_link_figures(&mut self, figures: &mut Figures) {
        let kernel_drops = self
            .link
            .socket
            .as_mut()
            .map_or(0, |socket| socket.kernel_drops());
        let (counters, sent) = (&self.counters, &self.transmit.counters);
        for (name, value) in [
            ("link.received_frames", counters.received_frames),
            ("link.received_bytes", counters.received_bytes),
            ("link.receive_batches", counters.receive_batches),
            ("link.receive_errors", counters.receive_errors),
            ("link.sent_frames", sent.frames),
            ("link.sent_bytes", sent.bytes),
            ("link.send_batches", sent.batches),
            ("link.socket_full", sent.socket_full),
            ("link.queue_full", sent.queue_full),
            ("link.losses", self.link.losses),
            ("link.discovery_frames", self.discovery.sent),
            ("loop.turns", counters.turns),
            ("loop.paused_ms", self.clock.paused_us / 1_000),
            ("drops.receive_queue_full", kernel_drops),
            ("drops.frame_too_long", counters.too_long + sent.too_long),
            ("drops.send_failed", sent.failed),
            ("drops.link_down", sent.link_down),
            ("drops.no_engine", counters.no_engine),
            ("drops.reports", counters.reports_dropped),
        ] {
            figures.push(name, value);
        }
    }
}

fn seconds(ms: u64) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}

/// Tells this start of the agent from earlier and later ones.
fn incarnation() -> u32 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    (since.as_millis() / 100) as u32
}

fn random_seed() -> u64 {
    use std::io::Read;
    let mut bytes = [0; 8];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    match read {
        Ok(()) => u64::from_ne_bytes(bytes),
        // Without a device directory (a bare chroot) the clock has to do.
        Err(_) => SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_nanos() as u64,
    }
}
