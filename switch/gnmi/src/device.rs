//! Switches by the names that clients give them, and what is read of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use crate::path_text::shortened;
use crate::proto::gnmi::Path;
use crate::reading::{Counters, Interface, Reading, State};
use crate::refusal::Refusal;
use wormcast_switch_dataplane::{DataplaneHandle, InterfaceReport, Stopped, list};

#[derive(Clone, Debug)]
pub struct Device {
    /// Device id, as P4Runtime has it.
    pub id: u64,
    pub name: Option<String>,
    pub dataplane: DataplaneHandle,
}

impl Device {
    /// Counts its changes from now on.
    pub(crate) async fn changes(&self) -> Result<watch::Receiver<u64>, Stopped> {
        self.dataplane.run(|switch| switch.port_changes()).await
    }

    /// Its interfaces, as they were last looked at.
    pub(crate) async fn read(&self) -> Result<Reading, Stopped> {
        let read = self
            .dataplane
            .run(|switch| (switch.unix_us(), switch.interface_reports()));
        read.await.map(reading)
    }

    /// Its interfaces, after a look at each.
    pub(crate) async fn look(&self) -> Result<Reading, Stopped> {
        let read = self.dataplane.run(|switch| {
            switch.look_at_ports();
            (switch.unix_us(), switch.interface_reports())
        });
        read.await.map(reading)
    }
}

/// Switches of one address.
#[derive(Clone, Debug)]
pub struct Targets {
    devices: Arc<Vec<Device>>,
}

impl Targets {
    /// At least one.
    pub fn new(devices: Vec<Device>) -> Self {
        Self {
            devices: Arc::new(devices),
        }
    }

    /// The switch that a prefix names; without a name that which is alone.
    pub(crate) fn of(&self, prefix: Option<&Path>) -> Result<&Device, Refusal> {
        self.find(prefix.map_or("", |prefix| prefix.target.as_str()))
    }

    /// The switch of a name or device id; of an empty one, that which is alone.
    pub(crate) fn find(&self, target: &str) -> Result<&Device, Refusal> {
        if target.is_empty() {
            return match self.devices.as_slice() {
                [only] => Ok(only),
                _ => Err(Refusal::TargetNeeded {
                    known: self.known(),
                }),
            };
        }
        let mut devices = self.devices.iter();
        let by_name = devices.find(|device| device.name.as_deref() == Some(target));
        let by_id = || {
            let mut devices = self.devices.iter();
            devices.find(|device| device.id.to_string() == target)
        };
        by_name.or_else(by_id).ok_or_else(|| Refusal::NoTarget {
            name: shortened(target),
            known: self.known(),
        })
    }

    fn known(&self) -> String {
        let text = |device: &Device| match &device.name {
            Some(name) => format!("{name} ({})", device.id),
            None => device.id.to_string(),
        };
        list(self.devices.iter().map(text))
    }
}

fn reading((unix_us, reports): (u64, Vec<InterfaceReport>)) -> Reading {
    let mut interfaces = BTreeMap::new();
    for report in reports {
        let (number, mut name) = (report.status.number.0, report.status.interface.clone());
        if interfaces.contains_key(&name) {
            // One interface may serve two ports.
            name = format!("{name}@{number}");
        }
        interfaces.insert(name, interface(&report));
    }
    Reading {
        unix_us,
        interfaces,
    }
}

fn interface(report: &InterfaceReport) -> Interface {
    let counts = &report.counts;
    let state = match (report.status.up, report.present) {
        (true, _) => State::Up,
        (false, true) => State::Down,
        (false, false) => State::NotPresent,
    };
    Interface {
        port: report.status.number.0,
        enabled: report.enabled,
        state,
        mtu: report.mtu.map(|mtu| mtu as u64),
        changed_unix_us: report.changed_unix_us,
        incoming: Counters {
            octets: counts.received_bytes,
            packets: counts.received_frames,
            discards: counts.receive_ring_full,
            errors: counts.receive_too_long,
        },
        outgoing: Counters {
            octets: counts.sent_bytes,
            packets: counts.sent_frames,
            discards: counts.queue_tail_drops + counts.send_interface_down + counts.no_link,
            errors: counts.send_bad_length + counts.send_failed,
        },
    }
}
