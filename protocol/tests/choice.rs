//! Messages of one group that take different structures.

use crate::star;

use star::{Fabric, GROUP, MEMBERS};
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

/// Messages that the origin has sent by each choice.
fn taken(fabric: &mut Fabric) -> [u64; 2] {
    let progress = fabric.origin().progress(GROUP).expect("it sends");
    [0, 1].map(|choice| progress.messages_by_choice[choice])
}

fn by_length() -> Fabric {
    let choice = |bytes_most| Choice {
        bytes_most,
        replication: Replication::Hosts,
    };
    Fabric::with_choices(vec![choice(1_000), choice(u64::MAX)], None)
}

/// A short message behind a long one goes its way. One that is too long waits until the short ones before it are stable.
#[test]
fn a_message_waits_only_for_a_choice_of_longer_ones() {
    let mut fabric = by_length();
    fabric.write(&[7; 20_000], true);
    fabric.write(&[7; 100], true);
    assert_eq!(taken(&mut fabric), [0, 2], "the short one follows at once");
    assert_eq!(fabric.run(5_000).0, []);
    assert_eq!(fabric.run(5_000).0, []);
    fabric.write(&[7; 100], true);
    fabric.write(&[7; 900], true);
    assert_eq!(taken(&mut fabric), [2, 2], "all before was stable");
    fabric.write(&[7; 2_000], true);
    assert_eq!(taken(&mut fabric), [2, 2], "it waits");
    for _ in 0..3 {
        assert_eq!(fabric.run(5_000).0, []);
    }
    assert_eq!(taken(&mut fabric), [2, 3]);
}

/// Short messages that come faster than they go are as good as a long one, until there are none.
#[test]
fn a_full_window_makes_short_messages_long() {
    let mut fabric = by_length();
    let mut written = 0;
    let now = fabric.now;
    while fabric.origin().write(GROUP, &[7; 100], true, now) == Ok(100) {
        written += 1;
    }
    assert_eq!(
        taken(&mut fabric),
        [written - 1, 0],
        "the last one waits for room"
    );
    for _ in 0..written {
        assert_eq!(fabric.run(5_000).0, []);
    }
    assert_eq!(taken(&mut fabric), [written - 1, 1]);
    fabric.write(&[7; 100], true);
    assert_eq!(taken(&mut fabric), [written, 1]);
    assert_eq!(fabric.run(5_000).0, []);
}
