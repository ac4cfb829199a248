//! Messages of one group that take different structures.

use crate::star;

use star::{Fabric, MEMBERS};
use wormcast_protocol::Choice;
use wormcast_wire::{FailReason, Replication};

/// A member that was given up is not waited for again because the next message takes another structure.
#[test]
fn a_member_given_up_stays_so_when_the_choice_changes() {
    let choice = |bytes_most| Choice {
        bytes_most,
        replication: Replication::Hosts,
    };
    let mut fabric = Fabric::with_choices(vec![choice(1_000), choice(u64::MAX)], None);
    fabric.write(&[7; 20_000], true);
    let (failed, _) = fabric.run(5_000);
    assert_eq!(failed, []);
    fabric.dead = Some(MEMBERS[1]);
    fabric.write(&[7; 20_000], true);
    let (failed, _) = fabric.run(120_000);
    assert_eq!(failed, [(MEMBERS[1], FailReason::Silent)]);
    for length in [20_000, 100, 20_000, 100] {
        fabric.write(&vec![7; length], true);
        let (failed, read) = fabric.run(2_000);
        assert_eq!(failed, [(MEMBERS[1], FailReason::Silent)]);
        assert_eq!(read[&MEMBERS[0]].len(), length);
    }
    // Back again, it gets what is written from then on.
    fabric.dead = None;
    fabric.run_quietly();
    fabric.write(&[7; 100], true);
    let (failed, read) = fabric.run(20_000);
    assert_eq!(failed, []);
    assert_eq!(read.len(), 2);
}
