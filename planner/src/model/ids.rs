//! Replication groups and sets of ports; the data plane's constants (p4src/shared).

use wormcast_wire::PortId;

/// A group of a switch's replication engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mgid(pub u16);

/// BROADCAST worms: down the spanning tree.
pub const MGID_BROADCAST: Mgid = Mgid(1);
/// TREE worms at a switch with many ports: every port in use.
pub const MGID_TREE_ALL: Mgid = Mgid(2);
/// Wormhole mode with interrupted multicasts: the same, and the port by which frames go round.
pub const MGID_INTERRUPT: Mgid = Mgid(3);
/// With a set of ports added: TREE worms at a switch with few ports.
pub const MGID_TREE_SET: u16 = 0x0100;
/// With a port added: UNICAST worms over one of parallel links.
pub const MGID_PORT: u16 = 0x0200;
/// With a port added: wormhole mode, STOP and GO by that port.
pub const MGID_HOLD: u16 = 0x0300;
/// First of the replication groups of group numbers.
pub const MGID_GROUP_FIRST: u16 = 0x4000;
pub const MGID_GROUP_LAST: u16 = 0x7fff;
/// Group numbers that a switch has room for.
pub const MGID_GROUPS_MAX: u16 = MGID_GROUP_LAST - MGID_GROUP_FIRST + 1;
/// Those of them that groups can have: broadcast has one.
pub const GROUP_NUMBERS_MAX: u16 = MGID_GROUPS_MAX - 1;
/// Of replicas that the program knows by the port they leave by.
pub const INSTANCE_PLAIN: u16 = 1;
/// With a port added: of replicas that take the branch of that port, though they may leave by another.
pub const INSTANCE_BRANCH: u16 = 0x0100;
/// With the id of a switch added: of replicas that go to that neighbour.
pub const INSTANCE_NEIGHBOUR: u16 = 2;
/// A port that leads to no switch, or to one that has no number.
pub(crate) const NEIGHBOUR_NONE: u16 = 0;
/// Switches with at most this many ports get one replication group for each set of ports.
pub const TREE_SET_PORTS: u16 = 8;
/// What a port leads to: a switch.
pub(crate) const ROLE_SWITCH: u128 = 1;
/// What a port leads to: a host.
pub(crate) const ROLE_HOST: u128 = 2;
/// Entries of the table of class D addresses.
pub(crate) const CLASS_D_SIZE: usize = 4096;
/// Entries of the table of hosts whose worms may be in transit.
pub(crate) const SOURCES_SIZE: usize = 4096;
/// Entries of the table of who may send to closed groups.
pub(crate) const GROUP_SENDERS_SIZE: usize = 65536;

/// Entries of the table of gathered ACKs.
pub(crate) const GATHER_SIZE: usize = 16384;
/// Those of them that plans use. The others are room for entries that a switch does not give up.
pub const GATHER_ENTRIES_MAX: usize = GATHER_SIZE - GATHER_SIZE / 16;
/// Trees of which a switch gathers ACKs: one for each group and origin.
pub const GATHER_SLOTS: u16 = 1024;
/// Branches of such a tree at one switch.
pub const GATHER_BRANCHES_MAX: usize = 16;
/// The number by which switch 0 names itself in gathered ACKs; the others follow by their ids.
pub const GATHER_SOURCE_FIRST: u16 = 0xF000;
pub const GATHER_SOURCE_LAST: u16 = 0xFFFE;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortSet([u64; 4]);

impl PortSet {
    pub fn insert(&mut self, port: PortId) {
        self.0[usize::from(port.get() / 64)] |= 1 << (port.get() % 64);
    }

    /// Whether the port is one of them.
    pub fn contains(&self, port: PortId) -> bool {
        self.0[usize::from(port.get() / 64)] >> (port.get() % 64) & 1 == 1
    }

    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// Whether all of them are in the other set.
    pub fn is_subset(&self, other: &PortSet) -> bool {
        self.0
            .iter()
            .zip(other.0)
            .all(|(own, other)| own & !other == 0)
    }

    /// All, ascending.
    pub fn iter(&self) -> impl Iterator<Item = PortId> + '_ {
        (0..=u8::MAX)
            .filter_map(PortId::new)
            .filter(|&port| self.contains(port))
    }
}

impl FromIterator<PortId> for PortSet {
    fn from_iter<I: IntoIterator<Item = PortId>>(ports: I) -> PortSet {
        let mut set = PortSet::default();
        ports.into_iter().for_each(|port| set.insert(port));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wormcast_wire::SWITCHES_CROSSED_MAX;

    /// The constants that the P4 program repeats, from its sources.
    #[test]
    fn constants_are_those_of_the_data_plane() {
        let sources = [
            include_str!("../../../p4src/shared/ids.p4"),
            include_str!("../../../p4src/shared/sizes.p4"),
        ];
        for (name, ours) in [
            ("MGID_BROADCAST", u32::from(MGID_BROADCAST.0)),
            ("MGID_TREE_ALL", u32::from(MGID_TREE_ALL.0)),
            ("MGID_INTERRUPT", u32::from(MGID_INTERRUPT.0)),
            ("MGID_TREE_SET", u32::from(MGID_TREE_SET)),
            ("MGID_GROUP_FIRST", u32::from(MGID_GROUP_FIRST)),
            ("MGID_GROUP_LAST", u32::from(MGID_GROUP_LAST)),
            ("MGID_PORT", u32::from(MGID_PORT)),
            ("MGID_HOLD", u32::from(MGID_HOLD)),
            ("INSTANCE_PLAIN", u32::from(INSTANCE_PLAIN)),
            ("INSTANCE_BRANCH", u32::from(INSTANCE_BRANCH)),
            ("INSTANCE_NEIGHBOUR", u32::from(INSTANCE_NEIGHBOUR)),
            ("NEIGHBOUR_NONE", u32::from(NEIGHBOUR_NONE)),
            ("CLASS_D_SIZE", CLASS_D_SIZE as u32),
            ("SOURCES_SIZE", SOURCES_SIZE as u32),
            ("GROUP_SENDERS_SIZE", GROUP_SENDERS_SIZE as u32),
            ("OPEN_GROUPS_SIZE", MGID_GROUPS_MAX.into()),
            ("GATHER_SIZE", GATHER_SIZE as u32),
            ("GATHER_SLOTS", GATHER_SLOTS.into()),
            ("MAX_BRANCHES", GATHER_BRANCHES_MAX as u32),
            ("MAX_HOPS", SWITCHES_CROSSED_MAX as u32),
        ] {
            let mut lines = sources.iter().flat_map(|text| text.lines());
            let value = lines
                .find_map(|line| line.split_once(&format!(" {name} = "))?.1.split_once(';'))
                .unwrap_or_else(|| panic!("{name} is not in the data plane"));
            let theirs = match value.0.strip_prefix("0x") {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => value.0.parse(),
            };
            assert_eq!(theirs, Ok(ours), "{name}");
        }
    }
}
