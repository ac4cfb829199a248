//! Class D addresses to group numbers (WORM §8.1; SPEC.md §4).
//!
//! Narrow: the number is the low 8 bits of the address, as in the paper; 255 is broadcast.
//! Addresses that share their low 8 bits share a number.
//!
//! Wide: an address has a 16-bit number of its own, that of the first group that carries it, for
//! as long as a group carries it. A switch knows an address of its own by one entry of
//! `ingress.class_d`; when [`OWN_MAX`] are taken, a further address is hashed, by its low 8 bits
//! because a ternary entry can match those, to one of 256 numbers kept for that. It stays there
//! until no group carries it.
//!
//! Whoever shares a number gets the union; the receiving host filters by full address.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use crate::model::groups::Group;
use crate::model::ids::CLASS_D_SIZE;
use wormcast_wire::GroupId;

const HASHES: u16 = 256;
/// First of the numbers of hashed addresses in wide mode; no group made in that mode has such an
/// id.
pub const HASHED_FIRST: u16 = 0xff00;
/// Addresses with a number of their own in wide mode: the entries of `ingress.class_d` but those
/// of hashes.
pub const OWN_MAX: usize = CLASS_D_SIZE - HASHES as usize;

const CLASS_D_PREFIX: u32 = 0xe000_0000;
const PREFIX_MASK: u32 = 0xf000_0000;
const OWN_PRIORITY: i32 = 20;
const SHARED_PRIORITY: i32 = 10;

/// How class D addresses get their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClassDMode {
    /// The low 8 bits of the address.
    #[default]
    Narrow,
    /// A number of its own for each address.
    Wide,
}

impl ClassDMode {
    pub const ALL: [ClassDMode; 2] = [ClassDMode::Narrow, ClassDMode::Wide];

    /// As REST, CLI and the state file write it.
    pub const fn name(self) -> &'static str {
        match self {
            ClassDMode::Narrow => "narrow",
            ClassDMode::Wide => "wide",
        }
    }
}

/// Addresses that a switch takes for one number: those with `address & mask == value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClassDMatch {
    /// What the address is compared with.
    pub value: u32,
    pub mask: u32,
    pub number: GroupId,
    /// The greater wins.
    pub priority: i32,
}

/// The number of every address that a group carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassDNumbers {
    pub mode: ClassDMode,
    /// Wide mode: the numbers of addresses, hashed ones too.
    pub assigned: Arc<BTreeMap<Ipv4Addr, GroupId>>,
}

impl ClassDNumbers {
    /// The number of an address; one that no group carries has that of its low 8 bits.
    pub fn number(&self, address: Ipv4Addr) -> GroupId {
        match self.mode {
            ClassDMode::Narrow => low_bits(address),
            ClassDMode::Wide => self
                .assigned
                .get(&address)
                .copied()
                .unwrap_or(hashed(address)),
        }
    }

    /// What a switch must know for these addresses, in as many matches as its table has room for.
    pub fn matches(&self, addresses: impl IntoIterator<Item = Ipv4Addr>) -> BTreeSet<ClassDMatch> {
        let one = |address: Ipv4Addr| {
            let number = self.number(address);
            if self.mode == ClassDMode::Narrow || number == hashed(address) {
                ClassDMatch {
                    value: CLASS_D_PREFIX | u32::from(low_bits(address).0),
                    mask: PREFIX_MASK | u32::from(HASHES - 1),
                    number,
                    priority: SHARED_PRIORITY,
                }
            } else {
                let value = address.to_bits();
                ClassDMatch {
                    value,
                    mask: u32::MAX,
                    number,
                    priority: OWN_PRIORITY,
                }
            }
        };
        addresses.into_iter().map(one).collect()
    }

    /// Numbers for the addresses of these groups; addresses keep the number they had `before`,
    /// and at most `own_max` ([`OWN_MAX`]) get one of their own.
    ///
    /// A new address gets the id of the first of its groups if that is free, else the highest
    /// number that nobody has, else a hash. The same groups and numbers give the same answer.
    pub fn assign(
        mode: ClassDMode,
        groups: &[Arc<Group>],
        before: &ClassDNumbers,
        own_max: usize,
    ) -> ClassDNumbers {
        if mode == ClassDMode::Narrow {
            return ClassDNumbers::default();
        }
        let by_id: BTreeMap<GroupId, &Group> = groups.iter().map(|g| (g.id, &**g)).collect();
        let carried: BTreeSet<Ipv4Addr> = by_id.values().filter_map(|g| g.class_d).collect();
        let mut assigned = BTreeMap::new();
        if before.mode == mode {
            assigned.extend(before.assigned.iter().filter(|(a, _)| carried.contains(a)));
        }
        let is_own = |(address, number): &(&Ipv4Addr, &GroupId)| **number != hashed(**address);
        let mut own: BTreeSet<GroupId> = assigned.iter().filter(is_own).map(|(_, n)| *n).collect();
        for (&id, group) in &by_id {
            let Some(address) = group.class_d.filter(|a| !assigned.contains_key(a)) else {
                continue;
            };
            let has_room = own.len() < own_max;
            let number = new_number(
                id,
                address,
                has_room,
                |n| by_id.contains_key(&n),
                |n| own.contains(&n),
            );
            if number != hashed(address) {
                own.insert(number);
            }
            assigned.insert(address, number);
        }
        ClassDNumbers {
            mode,
            assigned: Arc::new(assigned),
        }
    }
}

/// Wide mode: the number of the address of group `id`, which has none yet. `has_room` says whether
/// it may get one of its own, `is_id` and `is_own` whether a group has a number for its id or an
/// address for its own.
pub fn new_number(
    id: GroupId,
    address: Ipv4Addr,
    has_room: bool,
    is_id: impl Fn(GroupId) -> bool,
    is_own: impl Fn(GroupId) -> bool,
) -> GroupId {
    if !has_room {
        return hashed(address);
    }
    if id.0 < HASHED_FIRST && !is_own(id) {
        return id;
    }
    let mut free = (0..HASHED_FIRST).rev().map(GroupId);
    free.find(|&n| n != GroupId::BROADCAST && !is_id(n) && !is_own(n))
        .unwrap_or(hashed(address))
}

/// The low 8 bits of an address, its number in narrow mode (WORM §8.1).
pub fn low_bits(address: Ipv4Addr) -> GroupId {
    GroupId(u16::from(address.octets()[3]))
}

/// The number in wide mode of an address without one of its own.
pub fn hashed(address: Ipv4Addr) -> GroupId {
    GroupId(HASHED_FIRST + low_bits(address).0)
}
