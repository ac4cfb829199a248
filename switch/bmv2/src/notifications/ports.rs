//! Which changes of ports are published: pure.

use std::collections::BTreeMap;

use super::message::Notification;

/// What the ports were like at the last look.
#[derive(Debug, Default)]
pub struct PortWatch {
    up: BTreeMap<u16, bool>,
}

impl PortWatch {
    /// Takes the ports there are, by number, and whether they are up; gives what to tell.
    /// A port is down before it is seen first, and one that was removed is forgotten
    /// without a word (`PortMonitorActive` of BMv2's `port_monitor.cpp`).
    pub fn look(&mut self, ports: impl IntoIterator<Item = (u16, bool)>) -> Option<Notification> {
        let before = std::mem::take(&mut self.up);
        let mut changes = Vec::new();
        for (number, is_up) in ports {
            if before.get(&number).copied().unwrap_or(false) != is_up {
                changes.push((number, is_up));
            }
            self.up.insert(number, is_up);
        }
        changes.sort_unstable();
        (!changes.is_empty()).then_some(Notification::Ports(changes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_told_together() {
        let mut watch = PortWatch::default();
        let told = |changes: &[(u16, bool)]| Some(Notification::Ports(changes.to_vec()));
        let mut look = |ports: &[(u16, bool)]| watch.look(ports.iter().copied());
        assert_eq!(look(&[(1, false)]), None);
        let up = [(1, true), (2, true)];
        assert_eq!(look(&[(2, true), (1, true)]), told(&up));
        assert_eq!(look(&up), None);
        assert_eq!(
            look(&[(1, false), (3, true)]),
            told(&[(1, false), (3, true)])
        );
        assert_eq!(
            look(&[(1, false), (2, true)]),
            told(&[(2, true)]),
            "port 2 is back"
        );
    }
}
