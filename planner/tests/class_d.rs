//! Class D addresses to group numbers: unions, numbers of their own, exhaustion.

use crate::lab;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

use lab::model::{Got, Walker, parameter};
use lab::{Random, SWITCH, all_live, fabric_members, random_groups, random_topology};
use proptest::prelude::*;
use wormcast_planner::class_d::{HASHED_FIRST, OWN_MAX, hashed};
use wormcast_planner::{
    ClassDMode, ClassDNumbers, Group, MatchValue, Planner, TableEntry, class_d_entries,
};
use wormcast_routing::group::{Guard, Scheme, SwitchMode, SwitchParameters};
use wormcast_routing::routes::{Algorithm, Setting};
use wormcast_wire::{GroupId, HostId};

fn ip(text: &str) -> Ipv4Addr {
    text.parse().expect("an address")
}

fn group(number: u16, address: Option<&str>, members: &[u16]) -> Arc<Group> {
    let members: Vec<HostId> = members.iter().copied().map(HostId).collect();
    let class_d = address.map(ip);
    Arc::new(Group {
        class_d,
        ..lab::group(number, SWITCH, &members)
    })
}

/// A group that switches know by its id.
fn table(number: u16, members: &[u16]) -> Arc<Group> {
    let parameters = SwitchParameters::new(SwitchMode::Table, Guard::A);
    Arc::new(Group {
        scheme: Scheme::Switch(parameters).into(),
        ..(*group(number, None, members)).clone()
    })
}

fn wide(groups: &[Arc<Group>], before: &ClassDNumbers, own_max: usize) -> ClassDNumbers {
    ClassDNumbers::assign(ClassDMode::Wide, groups, before, own_max)
}

fn wide_anew(groups: &[Arc<Group>]) -> ClassDNumbers {
    wide(groups, &ClassDNumbers::default(), OWN_MAX)
}

fn entries(groups: &[Arc<Group>], numbers: &ClassDNumbers) -> Vec<TableEntry> {
    class_d_entries(groups.iter().filter_map(|group| group.class_d), numbers).collect()
}

/// What a switch's ternary table makes of an address.
fn looked_up(address: Ipv4Addr, groups: &[Arc<Group>], numbers: &ClassDNumbers) -> Option<u16> {
    let address = u128::from(address.to_bits());
    let entries = entries(groups, numbers).into_iter();
    let hits = entries.filter(|entry| match entry.key.matches[..] {
        [(_, MatchValue::Ternary(value, mask))] => address & mask == value,
        _ => panic!("{entry:?} is not ternary"),
    });
    let best = hits.max_by_key(|entry| entry.key.priority)?;
    Some(parameter(&best.action, "group") as u16)
}

fn hosts(numbers: &[u16]) -> BTreeSet<HostId> {
    numbers.iter().copied().map(HostId).collect()
}

#[test]
fn narrow_numbers_are_the_low_eight_bits() {
    let narrow = ClassDNumbers::default();
    for low in 0..=255 {
        for address in [[239, 77, 3, low], [224, 1, 0, low]] {
            assert_eq!(narrow.number(address.into()).0, u16::from(low));
        }
    }
    let groups = [
        group(1000, Some("239.1.1.7"), &[1, 2]),
        group(1001, Some("238.9.9.7"), &[2, 3]),
        table(7, &[4]),
    ];
    let members = fabric_members(&groups, &narrow);
    assert_eq!(
        members[&GroupId(7)],
        hosts(&[1, 2, 3, 4]),
        "the union of all that share it"
    );
    assert_eq!(members.len(), 1, "an id alone is no number");
    assert_eq!(entries(&groups, &narrow).len(), 1);
    for address in ["239.1.1.7", "238.9.9.7"] {
        assert_eq!(looked_up(ip(address), &groups, &narrow), Some(7));
    }
}

#[test]
fn narrow_255_is_broadcast() {
    let groups = [group(1, Some("239.1.1.255"), &[1, 2])];
    let narrow = ClassDNumbers::default();
    assert_eq!(
        looked_up(ip("239.1.1.255"), &groups, &narrow),
        Some(GroupId::BROADCAST.0)
    );
    assert!(
        !fabric_members(&groups, &narrow).contains_key(&GroupId::BROADCAST),
        "those are all"
    );
}

#[test]
fn wide_addresses_share_nothing() {
    let addresses = ["239.1.1.7", "238.9.9.7", "239.1.1.255", "225.0.0.7"];
    let groups: Vec<_> = (0..)
        .zip(addresses)
        .map(|(n, address)| group(n, Some(address), &[n]))
        .collect();
    let numbers = wide_anew(&groups);
    for one in &groups {
        let address = one.class_d.unwrap();
        assert_eq!(looked_up(address, &groups, &numbers), Some(one.id.0));
        assert_eq!(numbers.number(address), one.id);
        assert_eq!(
            fabric_members(&groups, &numbers)[&one.id],
            one.members.iter().copied().collect()
        );
    }
    assert_eq!(
        looked_up(ip("239.2.2.7"), &groups, &numbers),
        None,
        "no group carries it"
    );
}

#[test]
fn wide_groups_with_one_address_share_its_number_for_as_long_as_one_is_there() {
    let address = Some("239.1.1.7");
    let (first, second) = (group(3, address, &[1]), group(9, address, &[2]));
    let both = [second.clone(), first];
    let numbers = wide_anew(&both);
    assert_eq!(numbers.number(ip("239.1.1.7")), GroupId(3));
    assert_eq!(fabric_members(&both, &numbers)[&GroupId(3)], hosts(&[1, 2]));
    let one = [second];
    let left = wide(&one, &numbers, OWN_MAX);
    assert_eq!(
        left.number(ip("239.1.1.7")),
        GroupId(3),
        "it keeps its number"
    );
    let members = fabric_members(&one, &left);
    assert_eq!(members.keys().copied().collect::<Vec<_>>(), [GroupId(3)]);
    assert!(members.values().all(|members| *members == hosts(&[2])));
    assert!(wide(&[], &left, OWN_MAX).assigned.is_empty());
}

#[test]
fn wide_numbers_never_meet_the_id_of_another_group() {
    // Number 3 stays with the address though group 3 has gone; a new group 3 needs another.
    let address = Some("239.1.1.7");
    let kept = wide_anew(&[group(3, address, &[0]), group(9, address, &[0])]);
    let groups = [
        group(9, address, &[0]),
        group(3, Some("239.1.1.8"), &[0]),
        group(HASHED_FIRST - 1, None, &[0]),
    ];
    let numbers = wide(&groups, &kept, OWN_MAX);
    assert_eq!(numbers.number(ip("239.1.1.7")), GroupId(3));
    assert_eq!(numbers.number(ip("239.1.1.8")), GroupId(HASHED_FIRST - 2));
    // Of an id among the numbers of hashes the same holds.
    let numbers = wide_anew(&[group(0xff07, address, &[0])]);
    assert_eq!(numbers.number(ip("239.1.1.7")), GroupId(HASHED_FIRST - 1));
}

#[test]
fn all_room_taken_means_hashes_that_stay() {
    let one = |n: u16| group(n, Some(&format!("239.{n}.0.{}", n % 2)), &[n]);
    let mut groups: Vec<_> = (0..7).map(one).collect();
    let numbers = wide(&groups, &ClassDNumbers::default(), 3);
    let number = |numbers: &ClassDNumbers, group: &Group| numbers.number(group.class_d.unwrap()).0;
    let got: Vec<u16> = groups.iter().map(|group| number(&numbers, group)).collect();
    assert_eq!(got, [0, 1, 2, 0xff01, 0xff00, 0xff01, 0xff00]);
    let members = fabric_members(&groups, &numbers);
    assert_eq!(members[&GroupId(0xff00)], hosts(&[4, 6]));
    assert_eq!(members[&GroupId(0xff01)], hosts(&[3, 5]));
    for (group, number) in groups.iter().zip(&got) {
        assert_eq!(
            looked_up(group.class_d.unwrap(), &groups, &numbers),
            Some(*number)
        );
    }
    // Room that comes free is for new addresses; who is there keeps its number.
    groups[0] = group(0, Some("239.200.0.1"), &[0]);
    let later = wide(&groups, &numbers, 3);
    let kept: Vec<u16> = groups[1..]
        .iter()
        .map(|group| number(&later, group))
        .collect();
    assert_eq!(kept, got[1..]);
    assert_eq!(later.number(ip("239.200.0.1")), GroupId(0));
}

#[test]
fn the_table_of_a_switch_holds_the_fullest_mapping() {
    let all = (0..OWN_MAX as u16 + 600).filter(|&n| n != 255);
    let address = |n: u16| format!("239.{}.{}.{}", n >> 8, n & 0xff, (u32::from(n) * 7) & 0xff);
    let groups: Vec<_> = all.map(|n| group(n, Some(&address(n)), &[0])).collect();
    let numbers = wide_anew(&groups);
    for (numbers, most) in [(&ClassDNumbers::default(), 256), (&numbers, 4096)] {
        let entries = entries(&groups, numbers);
        let matches: BTreeSet<_> = entries.iter().map(|entry| &entry.key.matches).collect();
        assert_eq!((matches.len(), entries.len()), (most, most));
    }
    let own = numbers
        .assigned
        .iter()
        .filter(|(address, number)| **number != hashed(**address));
    let own: Vec<_> = own.map(|(_, number)| *number).collect();
    assert_eq!(own.len(), OWN_MAX);
    assert_eq!(own.iter().collect::<BTreeSet<_>>().len(), OWN_MAX);
}

proptest! {
    #[test]
    fn packets_reach_those_who_share_the_number(seed: u64, crowded: bool) {
        let mut random = Random::new(seed);
        let network = random_topology(&mut random);
        let groups = random_groups(&mut random, &network, 4);
        let room = if crowded { 2 } else { OWN_MAX };
        let numbers = wide(&groups, &ClassDNumbers::default(), room);
        let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
        let state = planner.plan(&network, &network, &groups, &all_live(&network), &numbers);
        let mut walker = Walker::new(&network, state.switches);
        let carrying: Vec<_> = groups.iter().filter_map(|g| Some((g, g.class_d?))).collect();
        for part in network.split() {
            for &(_, address) in &carrying {
                let shares = |other: Ipv4Addr| numbers.number(other) == numbers.number(address);
                let sharing = carrying.iter().filter(|(_, other)| shares(*other));
                if !crowded {
                    prop_assert!(sharing.clone().all(|(_, other)| *other == address));
                }
                let members = sharing.flat_map(|(group, _)| &group.members);
                let wanted: Got = members
                    .filter(|&&host| part.host(host).is_ok()).map(|&host| (host, 1)).collect();
                for sender in part.hosts() {
                    let mut wanted = wanted.clone();
                    wanted.remove(&sender.id);
                    prop_assert_eq!(walker.send_class_d(sender, address), wanted);
                }
            }
        }
    }
}
