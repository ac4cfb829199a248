//! Frames of a group are as long as its plan says, also when that changes while a message is under way.

use crate::star;

use star::{Fabric, GROUP, MEMBERS, NARROW, WIDE};
use wormcast_wire::{FailReason, Replication};

const BOTH: [Replication; 2] = [Replication::Hosts, Replication::Switches];

#[test]
fn packets_are_cut_to_what_the_plan_says() {
    for replication in BOTH {
        for (mtu, most) in [
            (None, WIDE),
            (Some(NARROW), NARROW.into()),
            (Some(65_535), WIDE),
            (Some(1), 576),
        ] {
            let mut fabric = Fabric::new(replication, mtu);
            fabric.mtu_limited = most;
            let message = vec![7; 40_000];
            fabric.write(&message, true);
            let (failed, read) = fabric.run(5_000);
            assert_eq!(failed, []);
            assert!(
                read.values().eq([&message, &message]),
                "every member has it whole"
            );
            assert!(fabric.longest <= most, "{} of {most}", fabric.longest);
            assert!(
                fabric.longest > most * 9 / 10,
                "{} of {most}",
                fabric.longest
            );
            assert_eq!(fabric.lost, 0);
        }
    }
}

#[test]
fn what_is_cut_later_keeps_to_the_new_plan() {
    for replication in BOTH {
        let mut fabric = Fabric::new(replication, None);
        fabric.write(&vec![7; 40_000], false);
        fabric.run_quietly();
        assert!(fabric.longest > 8_000);
        fabric.plan_mtu(Some(NARROW));
        (fabric.mtu_limited, fabric.longest) = (NARROW.into(), 0);
        fabric.write(&vec![7; 40_000], true);
        let (failed, read) = fabric.run(5_000);
        assert_eq!(failed, []);
        assert_eq!(read.len(), 2);
        // The draft that the larger MTU left is cut anew.
        assert!(fabric.longest <= NARROW.into(), "{}", fabric.longest);
        assert_eq!(fabric.lost, 0);
    }
}

/// The member behind the link whose MTU shrank is given up; the others have the message.
#[test]
fn packets_cut_before_hold_nobody_up_for_ever() {
    for replication in BOTH {
        let mut fabric = Fabric::new(replication, None);
        fabric.write(&[7; 100], false);
        let now = fabric.now;
        fabric.origin().flush(GROUP, now).expect("a member");
        fabric.run_quietly();
        fabric.mtu_limited = NARROW.into();
        let message = vec![7; 40_000];
        fabric.write(&message, true);
        fabric.step();
        fabric.plan_mtu(Some(NARROW));
        let (failed, _) = fabric.run(120_000);
        assert!(fabric.lost > 0);
        assert_eq!(failed, [(MEMBERS[1], FailReason::NoRoute)]);
        // The next message is for all again.
        fabric.run_quietly();
        fabric.write(&message, true);
        let (failed, _) = fabric.run(120_000);
        assert_eq!(failed, []);
    }
}

/// Where the link carries them again in time, nothing is missed.
#[test]
fn packets_cut_before_arrive_when_the_link_is_wide_again() {
    let mut fabric = Fabric::new(Replication::Hosts, None);
    fabric.write(&[7; 100], false);
    let now = fabric.now;
    fabric.origin().flush(GROUP, now).expect("a member");
    fabric.run_quietly();
    fabric.mtu_limited = NARROW.into();
    fabric.write(&vec![7; 40_000], true);
    fabric.plan_mtu(Some(NARROW));
    (0..20_000).for_each(|_| fabric.step());
    fabric.mtu_limited = WIDE;
    fabric.plan_mtu(None);
    let (failed, _) = fabric.run(20_000);
    assert_eq!(failed, []);
}
