//! The interfaces of a switch at one moment, and the values of their leaves.

use std::collections::BTreeMap;

use crate::schema::Leaf;

/// Bytes of an Ethernet header, which OpenConfig counts into the MTU.
const HEADER_BYTES: u64 = 14;

/// All interfaces, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// When they were read, microseconds since the start of 1970.
    pub(crate) unix_us: u64,
    pub(crate) interfaces: BTreeMap<String, Interface>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    /// Its number, as P4Runtime has it.
    pub(crate) port: u16,
    pub(crate) enabled: bool,
    pub(crate) state: State,
    /// Largest payload of a frame, bytes.
    pub(crate) mtu: Option<u64>,
    /// When it last went up or down, microseconds since the start of 1970.
    pub(crate) changed_unix_us: u64,
    pub(crate) incoming: Counters,
    pub(crate) outgoing: Counters,
}

/// What frames can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Up,
    Down,
    /// The interface of the port has gone.
    NotPresent,
}

/// Counts of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) octets: u64,
    pub(crate) packets: u64,
    /// Frames dropped though nothing was wrong with them.
    pub(crate) discards: u64,
    /// Frames that could not be taken or sent.
    pub(crate) errors: u64,
}

/// What a leaf holds. YANG tells numbers of 64 bits from shorter ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    Short(u32),
    Long(u64),
}

impl Interface {
    pub(crate) fn value(&self, name: &str, leaf: Leaf) -> Option<Value> {
        let text = |text: &str| Some(Value::Text(text.to_owned()));
        let count = |count: u64| Some(Value::Long(count));
        match leaf {
            Leaf::Key | Leaf::ConfigName | Leaf::Name => text(name),
            // As Stratum has it, whose clients take it for the number of the port.
            Leaf::Ifindex => Some(Value::Short(self.port.into())),
            // 0 stands for none in openconfig-p4rt.
            Leaf::Id => (self.port > 0).then(|| Value::Short(self.port.into())),
            Leaf::AdminStatus => text(if self.enabled { "UP" } else { "DOWN" }),
            Leaf::OperStatus => text(match self.state {
                State::Up => "UP",
                State::Down => "DOWN",
                State::NotPresent => "NOT_PRESENT",
            }),
            Leaf::LastChange => count(self.changed_unix_us * 1_000),
            // The leaf has 16 bits.
            Leaf::Mtu => {
                // The leaf has 16 bits: its largest value stands for all that it has no room for.
                let mtu = u16::try_from(self.mtu? + HEADER_BYTES).unwrap_or(u16::MAX);
                Some(Value::Short(mtu.into()))
            }
            Leaf::InOctets => count(self.incoming.octets),
            Leaf::InPkts => count(self.incoming.packets),
            Leaf::InDiscards => count(self.incoming.discards),
            Leaf::InErrors => count(self.incoming.errors),
            Leaf::OutOctets => count(self.outgoing.octets),
            Leaf::OutPkts => count(self.outgoing.packets),
            Leaf::OutDiscards => count(self.outgoing.discards),
            Leaf::OutErrors => count(self.outgoing.errors),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An interface that is up.
    pub(crate) fn interface(port: u16) -> Interface {
        Interface {
            port,
            enabled: true,
            state: State::Up,
            mtu: Some(1_500),
            changed_unix_us: 5,
            incoming: Counters {
                octets: 600,
                packets: 6,
                ..Counters::default()
            },
            outgoing: Counters::default(),
        }
    }

    /// Interfaces `eth1` and so on, all up.
    pub(crate) fn reading(ports: &[u16]) -> Reading {
        let named = |port: &u16| (format!("eth{port}"), interface(*port));
        Reading {
            unix_us: 7,
            interfaces: ports.iter().map(named).collect(),
        }
    }

    #[test]
    fn values_of_leaves() {
        let mut one = interface(3);
        let text = |text: &str| Some(Value::Text(text.to_owned()));
        assert_eq!(one.value("eth3", Leaf::Name), text("eth3"));
        assert_eq!(one.value("eth3", Leaf::Id), Some(Value::Short(3)));
        assert_eq!(one.value("eth3", Leaf::OperStatus), text("UP"));
        assert_eq!(one.value("eth3", Leaf::Mtu), Some(Value::Short(1_514)));
        assert_eq!(
            one.value("eth3", Leaf::LastChange),
            Some(Value::Long(5_000))
        );
        assert_eq!(one.value("eth3", Leaf::InOctets), Some(Value::Long(600)));
        one.state = State::NotPresent;
        one.mtu = Some(65_536);
        assert_eq!(one.value("eth3", Leaf::OperStatus), text("NOT_PRESENT"));
        assert_eq!(one.value("eth3", Leaf::Mtu), Some(Value::Short(65_535)));
        one.mtu = None;
        assert_eq!(one.value("eth3", Leaf::Mtu), None);
        one.port = 0;
        assert_eq!(one.value("eth3", Leaf::Id), None, "0 is no id");
        assert_eq!(one.value("eth3", Leaf::Ifindex), Some(Value::Short(0)));
    }
}
