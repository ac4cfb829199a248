//! Ports as those see them who watch interfaces: their state, since when, and their counts.

use tokio::sync::watch;

use super::changes::PortStatus;
use super::input::Source;
use super::port::PortState;
use super::snapshot::PortSnapshot;
use super::switch::Switch;
use wormcast_switch_ports::ChangedLinks;

/// A port that leads out of the switch, at one moment.
#[derive(Clone, Debug)]
pub struct InterfaceReport {
    /// Number, name, and whether it is up.
    pub status: PortStatus,
    /// Its interface is set up, whether it has a carrier or not.
    pub enabled: bool,
    pub present: bool,
    /// Largest payload of a frame of its interface, bytes.
    pub mtu: Option<usize>,
    /// When it last went up or down, or was added: microseconds since the start of 1970.
    pub changed_unix_us: u64,
    pub counts: PortSnapshot,
}

impl Switch {
    /// Counts the changes of ports, for whoever waits for the next one: ports that are added
    /// or removed, go up or down, or have another MTU.
    pub fn port_changes(&self) -> watch::Receiver<u64> {
        self.port_changes.subscribe()
    }

    /// Ports that lead out of the switch, by number, as they were last looked at.
    pub fn interface_reports(&mut self) -> Vec<InterfaceReport> {
        let statuses = self.port_statuses();
        let reports = statuses.into_iter().filter_map(|status| {
            let position = self.inputs.iter().position(|input| {
                input.number == status.number && !matches!(input.source, Source::Nothing)
            })?;
            let counts = self.port_snapshot(position);
            let port = &self.traffic.ports[position];
            let state = port.state();
            Some(InterfaceReport {
                status,
                enabled: state.enabled,
                present: state.present,
                mtu: state.mtu,
                changed_unix_us: port.changed_unix_us,
                counts,
            })
        });
        reports.collect()
    }

    /// Looks after the interfaces if one of its own is among those that have changed.
    pub(super) fn links_changed(&mut self, changed: &ChangedLinks) {
        let is_mine = |name: &String| changed.has(name);
        if self.interface_names().any(is_mine) {
            // Threads that share the switch wait for its sockets, which may be others now.
            self.inputs_changed |= self.maintain();
        }
    }

    /// Names of the interfaces that ports are attached to, whether they are there or not.
    pub(super) fn interface_names(&self) -> impl Iterator<Item = &String> {
        let inputs = self.inputs.iter().filter(|input| input.is_interface());
        inputs.map(|input| &input.name)
    }

    /// Tells those who watch ports if one has changed since the last notice.
    pub(super) fn note_port_changes(&mut self) {
        let unix_us = self.unix_us();
        let mut changed = false;
        for (input, port) in self.inputs.iter().zip(&mut self.traffic.ports) {
            let is_there = !matches!(input.source, Source::Nothing);
            let state = is_there.then(|| port.state());
            if port.told == state {
                continue;
            }
            let link = |state: PortState| (state.up, state.present);
            if port.told.map(link) != state.map(link) {
                port.changed_unix_us = unix_us;
            }
            port.told = state;
            changed = true;
        }
        if changed {
            self.port_changes.send_modify(|changes| *changes += 1);
        }
    }
}
