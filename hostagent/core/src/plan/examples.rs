//! Messages of plans, for tests.

use wormcast_agent_proto as proto;

pub(crate) fn plan_message(host: u32) -> proto::Plan {
    proto::Plan {
        epoch: 5,
        host_id: host,
        ..proto::Plan::default()
    }
}

/// A group that is right; a tree is a chain, k is 2 where that can be, rings hold two members.
pub(crate) fn group_message(id: u32, scheme: &str, members: &[u32]) -> proto::Group {
    proto::Group {
        id,
        name: format!("g{id}"),
        members: members.to_vec(),
        structures: vec![structure_message(scheme, members)],
        ..proto::Group::default()
    }
}

pub(crate) fn structure_message(scheme: &str, members: &[u32]) -> proto::Structure {
    proto::Structure {
        bytes_most: 0,
        scheme: scheme.to_owned(),
        order: members.to_vec(),
        variant: String::new(),
        k: members.len().min(2) as u32,
        lambda: 2,
        r: 3,
        rings: members.chunks(2).map(|ring| ring.len() as u32).collect(),
        tree_edges: members
            .windows(2)
            .map(|pair| edge((pair[0], pair[1])))
            .collect(),
        expected: vec![expected(64, 500.0)],
    }
}

pub(crate) fn edge((parent, child): (u32, u32)) -> proto::TreeEdge {
    proto::TreeEdge { parent, child }
}

pub(crate) fn expected(bytes: u64, microseconds: f64) -> proto::Expected {
    proto::Expected {
        bytes,
        microseconds,
    }
}

pub(crate) fn shared(links: &[(u32, u32, u32, u32)]) -> proto::SharedTree {
    let link = |&(a, a_port, b, b_port): &_| proto::TreeLink {
        a,
        a_port,
        b,
        b_port,
    };
    proto::SharedTree {
        links: links.iter().map(link).collect(),
    }
}

pub(crate) fn leaf(&(host, switch, port): &(u32, u32, u32)) -> proto::Leaf {
    proto::Leaf { host, switch, port }
}

pub(crate) fn leaves(leaves: &[(u32, u32, u32)]) -> Vec<proto::Leaf> {
    leaves.iter().map(leaf).collect()
}

pub(crate) fn sequencer(host: u32, epoch: u64) -> Option<proto::Sequencer> {
    Some(proto::Sequencer { host, epoch })
}

pub(crate) fn gathered(epoch: u32, origins: &[(u32, u32)]) -> Option<proto::Gathered> {
    let origin = |&(host, source): &_| proto::GatheredOrigin { host, source };
    Some(proto::Gathered {
        epoch,
        origins: origins.iter().map(origin).collect(),
    })
}

pub(crate) fn left_out(host: u32, reason: &str) -> proto::LeftOut {
    proto::LeftOut {
        host,
        reason: reason.to_owned(),
    }
}

pub(crate) fn route(host: u32, ports: &[u8]) -> proto::Route {
    proto::Route {
        host,
        ports: ports.to_vec(),
        share: 0,
    }
}
