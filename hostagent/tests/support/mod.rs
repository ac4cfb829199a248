//! A small fabric for tests: real agents on veth pairs, joined by a forwarder that does
//! what a switch does, and told what to do by a real gRPC controller.
//!
//! All of it lives in a network namespace of the calling thread, which goes with it.
#![allow(dead_code)]

pub mod agent;
pub mod controller;
pub mod network;
pub mod switch;

use agent::TestAgent;
use controller::TestController;
use network::Namespace;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use switch::TestSwitch;
use wormcast_agent::client::Client;
use wormcast_agent::directory::rpc;

/// One switch with an agent at each of its ports 0 to n-1; host h is at port h.
pub struct Fabric {
    pub agents: Vec<TestAgent>,
    pub controller: TestController,
    pub switch: TestSwitch,
    pub directory: tempfile::TempDir,
    _namespace: Namespace,
}

impl Fabric {
    /// `None`, with a word about it, where namespaces cannot be made.
    pub fn start(hosts: u16, groups: &[rpc::Group], options: &[&str]) -> Option<Self> {
        let namespace = Namespace::enter()?;
        let directory = tempfile::tempdir().unwrap();
        for host in 0..hosts {
            network::add_link(&format!("h{host}"), &format!("s{host}"));
        }
        let switch = TestSwitch::start((0..hosts).map(|port| format!("s{port}")).collect());
        let controller = TestController::start(&directory.path().join("controller.sock"));
        controller.set_plans(hosts, groups);
        let agents: Vec<TestAgent> = (0..hosts)
            .map(|host| TestAgent::start(directory.path(), host, &controller.address(), options))
            .collect();
        for agent in &agents {
            agent.wait_for_plan();
        }
        Some(Self {
            agents,
            controller,
            switch,
            directory,
            _namespace: namespace,
        })
    }

    pub fn client(&self, host: u16) -> Client {
        self.agents[usize::from(host)].client()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// A group of all these members; a tree is a chain, k is 1, λ is 2, chains have 4 members.
pub fn group(id: u32, scheme: &str, members: &[u32]) -> rpc::Group {
    let edges = members.windows(2).map(|pair| rpc::TreeEdge {
        parent: pair[0],
        child: pair[1],
    });
    let structure = rpc::Structure {
        scheme: scheme.to_owned(),
        k: 1,
        lambda: 2,
        r: 4,
        rings: vec![members.len() as u32],
        tree_edges: edges.collect(),
        ..rpc::Structure::default()
    };
    rpc::Group {
        id,
        name: format!("group{id}"),
        members: members.to_vec(),
        structures: vec![structure],
        ..rpc::Group::default()
    }
}

/// Waits for `what` to become true.
pub fn wait_until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}: not within {limit:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Bytes that are not the same anywhere.
pub fn pattern(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    (0..length)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .collect()
}
