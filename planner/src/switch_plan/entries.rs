//! Table entries of one switch, named as in p4src/CONTRACT.md.

use std::net::Ipv4Addr;
use std::sync::Arc;

use crate::model::copies::Neighbours;
use crate::model::ids::{
    MGID_PORT, MGID_TREE_SET, Mgid, NEIGHBOUR_NONE, PortSet, ROLE_HOST, ROLE_SWITCH, TREE_SET_PORTS,
};
use crate::model::state::{KeyFields, MatchValue, TableDefault, TableEntry, action, exact};
use crate::switch_plan::class_d::ClassDNumbers;
use wormcast_wire::{GroupId, PortId};

const TABLE_PORTS: &str = "ingress.ports";
pub(crate) const TABLE_PORT_ROLES: &str = "ingress.port_roles";
pub(crate) const TABLE_TREE_SETS: &str = "ingress.tree_sets";
/// Group numbers to replication groups.
pub const TABLE_GROUPS: &str = "ingress.groups";
const TABLE_CLASS_D: &str = "ingress.class_d";
const TABLE_EDGE_PORTS: &str = "egress.edge_ports";

/// What a switch knows of its ports: which exist, which neighbour or host they lead to, or led to when
/// last heard of.
pub(crate) fn port_entries(
    ports: u16,
    (links, led): (&Neighbours, &Neighbours),
    hosts: PortSet,
) -> Vec<TableEntry> {
    let backed = links.backed();
    let entry = |port: u16| {
        let is_backed = |port: &u8| PortId::new(*port).is_some_and(|port| backed.contains(port));
        let mgid = [("mgid", u128::from(MGID_PORT + port))];
        match u8::try_from(port).ok().filter(is_backed) {
            Some(_) => exact(TABLE_PORTS, "port", port, "ingress.port_backed", &mgid),
            None => exact(TABLE_PORTS, "port", port, "ingress.port_known", &[]),
        }
    };
    let mut entries: Vec<TableEntry> = (0..ports).map(entry).collect();
    let to_switches = led
        .numbers()
        .filter(|(port, _)| !hosts.contains(*port))
        .map(|(port, number)| (port, ROLE_SWITCH, number));
    let to_hosts = hosts.iter().map(|port| (port, ROLE_HOST, NEIGHBOUR_NONE));
    entries.extend(to_switches.chain(to_hosts).map(|(port, role, number)| {
        let ingress = "standard_metadata.ingress_port";
        let parameters = [("neighbour", number.into()), ("role", role)];
        let port = port.get().into();
        exact(TABLE_PORT_ROLES, ingress, port, "ingress.role", &parameters)
    }));
    entries.extend(hosts.iter().map(|port| {
        let egress = "standard_metadata.egress_port";
        exact(
            TABLE_EDGE_PORTS,
            egress,
            port.get().into(),
            "egress.to_host",
            &[],
        )
    }));
    entries
}

/// Maps each set of branch ports to its replication group, where the switch has few enough ports.
pub(crate) fn tree_set_entries(ports: u16) -> impl Iterator<Item = TableEntry> {
    tree_sets(ports).map(|set| {
        let mgid = [("mgid", (MGID_TREE_SET + set).into())];
        exact(TABLE_TREE_SETS, "port_set", set, "ingress.replicate", &mgid)
    })
}

/// Sets of ports that have a replication group of their own, as bits.
pub(crate) fn tree_sets(ports: u16) -> std::ops::Range<u16> {
    1..if ports > TREE_SET_PORTS {
        1
    } else {
        1 << ports
    }
}

/// Sets of ports without a replication group go to every port and are filtered at egress by those
/// there are.
pub(crate) fn tree_set_default(ports: u16) -> TableDefault {
    let ones = |bits: u16| {
        u128::MAX
            .checked_shr(128 - u32::from(bits.min(128)))
            .unwrap_or(0)
    };
    let parameters = [
        ("high", ones(ports.saturating_sub(128))),
        ("low", ones(ports)),
    ];
    TableDefault {
        table: TABLE_TREE_SETS.into(),
        action: action("ingress.replicate_filtered", &parameters),
    }
}

/// Group number to replication group.
pub(crate) fn group_entry(number: GroupId, mgid: Mgid) -> TableEntry {
    let mgid = [("mgid", mgid.0.into())];
    exact(TABLE_GROUPS, "group", number.0, "ingress.replicate", &mgid)
}

/// Class D addresses to group numbers; addresses that share low 8 bits may share an entry.
pub fn class_d_entries(
    addresses: impl IntoIterator<Item = Ipv4Addr>,
    numbers: &ClassDNumbers,
) -> impl Iterator<Item = TableEntry> {
    numbers
        .matches(addresses)
        .into_iter()
        .map(|found| TableEntry {
            key: Arc::new(KeyFields {
                table: TABLE_CLASS_D.into(),
                matches: vec![(
                    "hdr.ipv4.dst".into(),
                    MatchValue::Ternary(found.value.into(), found.mask.into()),
                )],
                priority: found.priority,
            }),
            action: action("ingress.enter_group", &[("group", found.number.0.into())]),
        })
}
