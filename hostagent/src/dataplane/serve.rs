//! The data plane's slow half: commands in, and what the agent has to say out.

use super::{COMMANDS_PER_TURN_MAX, Command, DataPlane, FILES_LEAVE, NewPlan, Report};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wormcast_agent_core::agent::LogEvent;
use wormcast_agent_core::figures::Figures;
use wormcast_agent_core::plan::RefusedGroup;
use wormcast_protocol::Instant;
use wormcast_wire::HostId;

impl DataPlane {
    /// Takes the commands that wait.
    pub(super) fn take_commands(&mut self, now: Instant) {
        for _ in 0..COMMANDS_PER_TURN_MAX {
            let Ok(command) = self.commands.try_recv() else {
                return;
            };
            self.take_command(command, now);
        }
        self.more_waits = true;
    }

    fn take_command(&mut self, command: Command, now: Instant) {
        match command {
            Command::SetHost { host, prover } => {
                self.discovery.on_registered(prover, now);
                if let Err(error) = self.set_host(host) {
                    crate::log::error!(
                        "the protocol engine refuses to start as host {host}: {error}"
                    );
                }
            }
            Command::ApplyPlan { plan, done } => {
                let applied = self.apply_plan(plan, now);
                // Before the answer: by then nobody takes what it closed for open.
                self.tell_receivers();
                // The controller may be gone by now; the plan holds all the same.
                let _ = done.send(applied);
            }
            Command::Trace { request, done } => {
                let _ = done.send(self.agent.trace(&request));
            }
            Command::Lag {
                origin,
                question,
                done,
            } => {
                let _ = done.send(self.agent.report_lag(origin, question));
            }
            Command::Answer(answer) => self.agent.take_answer(&answer, now),
            Command::Connect {
                id,
                outbound,
                process,
            } => {
                self.clients.insert(id, outbound);
                self.agent.connect(id, process);
            }
            Command::Disconnect(id) => {
                self.agent.disconnect(id, now);
                self.speak();
                self.clients.remove(&id);
            }
            Command::Request {
                connection,
                request,
            } => self.agent.request(connection, request, now),
            Command::Data {
                connection,
                handle,
                bytes,
            } => self.agent.data(connection, handle, bytes, now),
            Command::Window {
                connection,
                handle,
                bytes,
            } => self.agent.window(connection, handle, bytes, now),
            Command::Figures {
                with_groups,
                answer,
            } => {
                // What has ended is reported before it is missing among what is under way.
                self.speak();
                let _ = answer.send(self.figures(with_groups, now));
            }
            Command::Stop => self.stopping = true,
        }
    }

    /// Starts the engine for `host`, or anew if it was another.
    pub(super) fn set_host(&mut self, host: HostId) -> Result<(), String> {
        if self.agent.host() == Some(host) {
            return Ok(());
        }
        let mac = self.link.interface.mac.0;
        let config = self
            .settings
            .agent
            .engine_config(host, mac, random_seed(), incarnation());
        self.agent.start(config).map_err(|error| error.to_string())
    }

    fn apply_plan(&mut self, plan: NewPlan, now: Instant) -> Result<Vec<RefusedGroup>, String> {
        let refused = match plan {
            NewPlan::Whole(plan) => {
                self.set_host(plan.host)?;
                self.agent.apply_plan(*plan, now)?
            }
            NewPlan::Change(change) => self.agent.change_plan(*change, now)?,
        };
        self.discovery.on_located();
        Ok(refused)
    }

    /// Passes on what the agent has for clients, the controller and the operator.
    pub(super) fn speak(&mut self) {
        while let Some((client, outbound)) = self.agent.poll_outbound() {
            if let Some(client) = self.clients.get(&client) {
                let is_taken = client.send(outbound);
                self.counters.answers_dropped += u64::from(!is_taken);
            }
        }
        while let Some(report) = self.agent.poll_report() {
            self.report(Report::Member(report));
        }
        while let Some(observation) = self.agent.poll_observation() {
            self.report(Report::Probe(observation));
        }
        while let Some(answer) = self.agent.poll_branch_answer() {
            self.report(Report::Branch(answer));
        }
        while let Some(report) = self.agent.poll_transfer() {
            let ended = SystemTime::now();
            self.report_if_room(Report::Transfer { ended, report });
        }
        while let Some(answer) = self.agent.poll_answer() {
            self.report_if_room(Report::Answer(answer));
        }
        self.tell_receivers();
        while let Some(event) = self.agent.poll_log_event() {
            match event {
                LogEvent::Warning(text) => crate::log::warning!("{text}"),
                LogEvent::Info(text) => crate::log::info!("{text}"),
            }
        }
    }

    fn tell_receivers(&mut self) {
        if let Some(open) = self.agent.changed_receivers() {
            self.receivers.send_replace(open);
        }
    }

    /// Files and answers leave room to others.
    fn report_if_room(&mut self, report: Report) {
        if self.reports.capacity() > FILES_LEAVE {
            self.report(report);
        } else {
            self.counters.reports_dropped += 1;
        }
    }

    fn report(&mut self, report: Report) {
        if self.reports.try_send(report).is_err() {
            self.counters.reports_dropped += 1;
        }
    }

    fn figures(&mut self, with_groups: bool, now: Instant) -> Figures {
        let mut figures = Figures {
            link_up: self.link.up,
            mac: self.link.interface.mac.to_string(),
            mtu_bytes: self.settings.agent.mtu_bytes,
            ..Figures::default()
        };
        self.push_link_figures(&mut figures);
        if !with_groups {
            figures.transfers = self.agent.list_transfers();
        }
        self.agent.fill(&mut figures, with_groups, now);
        figures
    }

    fn push_link_figures(&mut self, figures: &mut Figures) {
        let kernel_drops = self
            .link
            .socket
            .as_mut()
            .map_or(0, |socket| socket.kernel_drops());
        let (counters, sent) = (&self.counters, self.transmit.counters());
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
            ("loop.paused_ms", self.clock.lived.paused_us() / 1_000),
            ("drops.receive_queue_full", kernel_drops),
            ("drops.frame_too_long", counters.too_long + sent.too_long),
            ("drops.send_failed", sent.failed),
            ("drops.link_down", sent.link_down),
            ("drops.no_engine", self.agent.frames_without_engine()),
            ("drops.reports", counters.reports_dropped),
            ("drops.answers_waiting", counters.answers_dropped),
        ] {
            figures.push(name, value);
        }
    }
}

/// Greater than that of every life before, in milliseconds since 1970. Waits for the next one: a life
/// may end in the very millisecond in which it began, and the one after it must not have its number.
fn incarnation() -> u32 {
    let milliseconds = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_millis() as u32
    };
    let begun = milliseconds();
    loop {
        let now = milliseconds();
        if now != begun {
            return now;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
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

#[cfg(test)]
mod tests {
    use super::incarnation;
    use wormcast_wire::Seq;

    #[test]
    fn lives_that_follow_at_once_have_higher_numbers() {
        let lives: Vec<Seq> = (0..20).map(|_| Seq(incarnation())).collect();
        assert!(
            lives.windows(2).all(|pair| pair[1].is_after(pair[0])),
            "{lives:?}"
        );
    }
}
