//! The controller knows which receivers are open.

use crate::support;

use std::time::Duration;
use support::{Fabric, group, wait_until};
use wormcast_agent::directory::rpc::OpenReceiver;

const WAIT: Duration = Duration::from_secs(600);

fn wait_for(fabric: &Fabric, host: u32, expected: &[(u32, Option<u32>)]) {
    wait_until("receivers", WAIT, || {
        told(fabric, host) == Some(expected.to_vec())
    });
}

/// What the agent of a host has said on this stream or one before.
fn told(fabric: &Fabric, host: u32) -> Option<Vec<(u32, Option<u32>)>> {
    let known = fabric.controller.known.lock().unwrap();
    let open = known.receivers.get(&host)?;
    let pair = |one: &OpenReceiver| (one.group, one.origin);
    Some(open.receivers.iter().map(pair).collect())
}

#[test]
fn the_controller_is_told_of_receivers_whenever_they_change_and_on_each_stream() {
    let groups = [group(1, "repeat", &[0, 1]), group(2, "repeat", &[0, 1])];
    let Some(mut fabric) = Fabric::start(2, &groups, &[]) else {
        return;
    };
    wait_for(&fabric, 1, &[]);
    let mut all = fabric.client(1);
    let receiver = all.open_receiver(1_u16, None).unwrap();
    wait_for(&fabric, 1, &[(1, None)]);
    let mut one = fabric.client(1);
    one.open_receiver(2_u16, Some(0)).unwrap();
    wait_for(&fabric, 1, &[(1, None), (2, Some(0))]);

    // What changes while the controller is away it learns when it is back.
    fabric.controller.stop();
    wait_until("loss noticed", WAIT, || {
        fabric.agents[1].status()["controller"]["connected"] == false
    });
    all.close(receiver.handle).unwrap();
    fabric.controller.known.lock().unwrap().receivers.clear();
    fabric.controller.resume();
    wait_for(&fabric, 1, &[(2, Some(0))]);
    wait_for(&fabric, 0, &[]);

    drop(one);
    wait_for(&fabric, 1, &[]);
    let mut last = fabric.client(1);
    last.open_receiver(1_u16, None).unwrap();
    wait_for(&fabric, 1, &[(1, None)]);
    fabric.agents[1].restart();
    wait_for(&fabric, 1, &[]);
}

#[test]
fn what_a_plan_closes_is_told_before_the_plan_is_answered() {
    let Some(fabric) = Fabric::start(2, &[group(1, "repeat", &[0, 1])], &[]) else {
        return;
    };
    let mut client = fabric.client(1);
    for epoch in (2..20).step_by(2) {
        client.open_receiver(1_u16, None).unwrap();
        wait_for(&fabric, 1, &[(1, None)]);
        let mut plan = fabric.controller.plan(1);
        let groups = std::mem::take(&mut plan.groups);
        fabric.controller.set_plan(plan.clone());
        fabric
            .controller
            .set_plan(wormcast_agent::directory::rpc::Plan { groups, ..plan });
        let open = || {
            let known = fabric.controller.known.lock().unwrap();
            known.open_when_applied.get(&(1, epoch + 1)).copied()
        };
        wait_until("plan", WAIT, || open().is_some());
        assert_eq!(open(), Some(Some(0)), "plan {epoch} closed it");
    }
}
