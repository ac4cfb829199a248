//! Members hear in the end that all they have is stable, whatever is lost.

use crate::star;

use star::{Fabric, GROUP, MEMBERS, ORIGIN};
use wormcast_protocol::Event;
use wormcast_wire::{HostId, Replication, Seq};

/// Writes a message and runs until it is stable; the word of that is on its way.
fn settled(replication: Replication) -> Fabric {
    let mut fabric = Fabric::new(replication, None);
    fabric.write(b"all of it", true);
    let mut steps = 0;
    while !matches!(fabric.origin().poll_event(), Some(Event::Stable { .. })) {
        steps += 1;
        assert!(steps < 100, "{replication:?}");
        fabric.step();
        MEMBERS.iter().for_each(|member| _ = fabric.read(*member));
    }
    fabric
}

#[test]
fn a_member_whose_word_of_what_is_stable_was_lost_is_told_again() {
    for replication in [Replication::Hosts, Replication::Switches] {
        let mut fabric = settled(replication);
        fabric.dead = Some(MEMBERS[0]);
        (0..10).for_each(|_| fabric.step());
        fabric.dead = None;
        let [lacks, has] = MEMBERS.map(|member| fabric.arrived(member).expect("it has begun"));
        assert!(
            lacks.stable != lacks.next && has.stable == has.next,
            "{replication:?}"
        );
        (0..2_000).for_each(|_| fabric.step());
        let told = fabric.arrived(MEMBERS[0]).expect("it has begun");
        assert_eq!(told.stable, told.next, "{replication:?}");
    }
}

#[test]
fn those_that_keep_a_stream_back_are_named_with_what_they_lack() {
    for replication in [Replication::Hosts, Replication::Switches] {
        let mut fabric = settled(replication);
        let behind = |fabric: &mut Fabric| -> Vec<(HostId, usize, u64)> {
            let found = fabric.origin().behind(GROUP, ORIGIN);
            found.map(|one| (one.host, one.below, one.bytes)).collect()
        };
        assert_eq!(behind(&mut fabric), [], "{replication:?}");
        fabric.dead = Some(MEMBERS[1]);
        fabric.write(&[7; 20_000], true);
        assert_eq!(behind(&mut fabric), [], "{replication:?}: nothing is sent");
        for _ in 0..20 {
            fabric.step();
            fabric.read(MEMBERS[0]);
        }
        let lacks = [(MEMBERS[1], 0, 20_000)];
        assert_eq!(behind(&mut fabric), lacks, "{replication:?}");
        fabric.dead = None;
        fabric.run(2_000);
        assert_eq!(behind(&mut fabric), [], "{replication:?}");
    }
}

/// In an ordered group it would wait for ever for what came before it.
#[test]
fn a_member_that_joined_late_hears_from_the_origin_what_it_will_not_get() {
    for (of_before, later) in [(0, 0), (1, 0), (0, 1)] {
        let mut fabric = settled(Replication::Hosts);
        let held = fabric.arrived(MEMBERS[1]).expect("it has begun");
        (0..100).for_each(|_| fabric.step());
        fabric.join_anew(MEMBERS[0]);
        (0..100).for_each(|_| fabric.step());
        assert_eq!(
            fabric.arrived(MEMBERS[0]),
            None,
            "nobody has a reason to tell it"
        );
        let start = Seq(held.next.0.wrapping_sub(1 - later));
        fabric.ask(MEMBERS[0], held.stream - of_before, start);
        (0..100).for_each(|_| fabric.step());
        let told = fabric.arrived(MEMBERS[0]).map(|told| told.next);
        let next = fabric.arrived(MEMBERS[1]).map(|arrived| arrived.next);
        assert_eq!(told, next.filter(|_| later == 0), "{of_before}, {later}");
    }
}
