//! Members hear in the end that all they have is stable, whatever is lost.

mod star;

use star::{Fabric, MEMBERS};
use wormcast_protocol::Event;
use wormcast_wire::Replication;

#[test]
fn a_member_whose_word_of_what_is_stable_was_lost_is_told_again() {
    for replication in [Replication::Hosts, Replication::Switches] {
        let mut fabric = Fabric::new(replication, None);
        fabric.write(b"all of it", true);
        let mut steps = 0;
        while !matches!(fabric.origin().poll_event(), Some(Event::Stable { .. })) {
            steps += 1;
            assert!(steps < 100, "{replication:?}");
            fabric.step();
            MEMBERS.iter().for_each(|member| _ = fabric.read(*member));
        }
        fabric.dead = Some(MEMBERS[0]);
        (0..10).for_each(|_| fabric.step());
        fabric.dead = None;
        let [lacks, has] = MEMBERS.map(|member| fabric.arrived(member));
        assert!(
            lacks.stable != lacks.next && has.stable == has.next,
            "{replication:?}"
        );
        (0..2_000).for_each(|_| fabric.step());
        let told = fabric.arrived(MEMBERS[0]);
        assert_eq!(told.stable, told.next, "{replication:?}");
    }
}
