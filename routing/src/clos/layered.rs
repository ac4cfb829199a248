//! A tree route for Clos networks, written by layers.
//!
//! Bytes, in the order in which switches take them off; a copy carries only what is below it:
//!
//! ```text
//! route   = host set of the source's leaf, pod section of the source's pod, core section
//! core    = number of pods, then for each: pod port (1), length of its section (1), section
//! section = form (1): 0 TABLE    nothing; the spine looks the group up, its leaves too
//!                     1 LIST     number of leaves (1), then for each: leaf port (1), host set
//!                     2 BITMAP   ⌈leaves/8⌉ bytes, then a host set for each leaf in it
//! host set = first byte: two high bits say how, six low bits say what
//!            00 one host: its port     01 so many ports follow, one byte each
//!            10 ⌈hosts/8⌉ bytes of a bitmap follow     11 TABLE: the leaf looks the group up
//! ```
//!
//! A host set of no host is `0100 0000`. The length of a section counts its bytes without the
//! length byte; a section of 255 bytes or more does not fit and is put into tables. Looking up
//! needs the group number, which the worm header has beside the route; it is counted as
//! [`GROUP_BYTES`] where a table is used. One host on a leaf costs one byte beside its place in a
//! bitmap, two in a list; Elmo's rules cost six bytes of bitmap and the switch's id each, shared
//! where switches have equal bitmaps.

use super::{Branches, Clos, ClosGroup};

/// Bytes of a group number.
pub const GROUP_BYTES: usize = 2;
/// Most bytes of a pod's section.
pub const SECTION_BYTES_MAX: usize = 254;

const SECTION_TABLE: u8 = 0;
const SECTION_LIST: u8 = 1;
const SECTION_BITMAP: u8 = 2;
const SET_ONE: u8 = 0 << 6;
const SET_LIST: u8 = 1 << 6;
const SET_BITMAP: u8 = 2 << 6;
const SET_TABLE: u8 = 3 << 6;
const LOW: u8 = 0x3F;

/// Which switches keep an entry for a group instead of finding it in the header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// Pods whose spine has an entry, and so all their leaves with members.
    pub pods: Vec<u32>,
    /// Leaves of other pods.
    pub leaves: Vec<u32>,
}

/// What a route reaches, as [`walk`] finds it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Hosts by the header, ascending within a leaf.
    pub hosts: Vec<u32>,
    /// Leaves that look the group up.
    pub leaves: Vec<u32>,
    /// Pods whose spine looks the group up.
    pub pods: Vec<u32>,
    /// Header bytes carried over all links, that of the source's host included.
    pub carried: u64,
}

/// Why a route does not parse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotARoute {
    /// Bytes that were read before.
    pub at: usize,
}

/// Writes the route of a group. `tables` must be ascending.
///
/// # Panics
/// If a pod's section has more than [`SECTION_BYTES_MAX`] bytes; [`section_bytes`] says.
pub fn encode(clos: Clos, group: &ClosGroup, tables: &Tables) -> Vec<u8> {
    let branches = Branches::new(clos, &group.members);
    let source_leaf = clos.leaf_of(group.source);
    let source_pod = clos.pod_of(source_leaf);
    let mut route = Vec::with_capacity(64);
    let own = branches
        .leaves
        .iter()
        .find(|(leaf, _)| *leaf == source_leaf);
    write_set(
        clos,
        source_leaf,
        own.map_or(&[], |own| own.1),
        tables,
        &mut route,
    );
    let mut section = Vec::with_capacity(64);
    let own_pod = branches.pods.iter().find(|(pod, _)| *pod == source_pod);
    let own_leaves: Vec<_> = own_pod
        .map_or(&[][..], |(_, range)| &branches.leaves[range.clone()])
        .iter()
        .copied()
        .filter(|(leaf, _)| *leaf != source_leaf)
        .collect();
    write_section(clos, source_pod, &own_leaves, tables, &mut route);
    let others = branches.pods.iter().filter(|(pod, _)| *pod != source_pod);
    route.push(others.clone().count() as u8);
    for (pod, range) in others {
        section.clear();
        write_section(
            clos,
            *pod,
            &branches.leaves[range.clone()],
            tables,
            &mut section,
        );
        assert!(section.len() <= SECTION_BYTES_MAX, "a section too long");
        route.push(*pod as u8);
        route.push(section.len() as u8);
        route.extend(&section);
    }
    route
}

/// Bytes of a pod's section with nothing in tables.
pub(crate) fn section_bytes(clos: Clos, leaves: &[(u32, &[u32])]) -> usize {
    let sets: usize = leaves
        .iter()
        .map(|(_, hosts)| set_bytes(clos, hosts.len()))
        .sum();
    1 + sets + bitmap_bytes(clos.leaves_of_pod()).min(1 + leaves.len())
}

/// Bytes of a host set that is in the header.
pub(crate) fn set_bytes(clos: Clos, hosts: usize) -> usize {
    match hosts {
        1 => 1,
        _ => 1 + hosts.min(bitmap_bytes(clos.hosts_of_leaf())),
    }
}

fn bitmap_bytes(bits: u32) -> usize {
    bits.div_ceil(8) as usize
}

fn write_section(
    clos: Clos,
    pod: u32,
    leaves: &[(u32, &[u32])],
    tables: &Tables,
    route: &mut Vec<u8>,
) {
    if tables.pods.binary_search(&pod).is_ok() {
        route.push(SECTION_TABLE);
    } else if bitmap_bytes(clos.leaves_of_pod()) < 1 + leaves.len() {
        route.push(SECTION_BITMAP);
        let ports = leaves.iter().map(|(leaf, _)| clos.leaf_port(*leaf));
        write_bitmap(clos.leaves_of_pod(), ports, route);
        for (leaf, hosts) in leaves {
            write_set(clos, *leaf, hosts, tables, route);
        }
    } else {
        route.push(SECTION_LIST);
        route.push(leaves.len() as u8);
        for (leaf, hosts) in leaves {
            route.push(clos.leaf_port(*leaf));
            write_set(clos, *leaf, hosts, tables, route);
        }
    }
}

fn write_set(clos: Clos, leaf: u32, hosts: &[u32], tables: &Tables, route: &mut Vec<u8>) {
    if tables.leaves.binary_search(&leaf).is_ok() {
        route.push(SET_TABLE);
    } else if let [host] = hosts {
        route.push(SET_ONE | clos.port_of(*host));
    } else if hosts.len() > bitmap_bytes(clos.hosts_of_leaf()) {
        route.push(SET_BITMAP);
        let ports = hosts.iter().map(|host| clos.port_of(*host));
        write_bitmap(clos.hosts_of_leaf(), ports, route);
    } else {
        route.push(SET_LIST | hosts.len() as u8);
        route.extend(hosts.iter().map(|host| clos.port_of(*host)));
    }
}

fn write_bitmap(bits: u32, set: impl Iterator<Item = u8>, route: &mut Vec<u8>) {
    let first = route.len();
    route.resize(first + bitmap_bytes(bits), 0);
    for bit in set {
        route[first + usize::from(bit / 8)] |= 1 << (bit % 8);
    }
}

/// Follows a route as the switches would, layer by layer.
///
/// # Errors
/// [`NotARoute`] for bytes that no group gives.
pub fn walk(clos: Clos, source: u32, route: &[u8]) -> Result<Reached, NotARoute> {
    let mut reached = Reached {
        carried: route.len() as u64,
        ..Reached::default()
    };
    let source_leaf = clos.leaf_of(source);
    let source_pod = clos.pod_of(source_leaf);
    let mut reader = Reader { route, at: 0 };
    reader.set(clos, source_leaf, &mut reached)?;
    // What is left after the source's leaf goes up to the spine, if anybody is elsewhere.
    let at_spine = route.len() - reader.at;
    let leaves_before = reached.clone();
    reader.section(clos, source_pod, &mut reached)?;
    let at_core = route.len() - reader.at;
    let pods = reader.byte()?;
    let elsewhere = pods > 0 || reached != leaves_before;
    reached.carried += if elsewhere { at_spine as u64 } else { 0 };
    reached.carried += if pods > 0 { at_core as u64 } else { 0 };
    for _ in 0..pods {
        let pod = u32::from(reader.byte()?);
        let length = usize::from(reader.byte()?);
        let end = reader.at + length;
        if pod >= clos.pods() || pod == source_pod || end > route.len() {
            return Err(reader.refuse());
        }
        reached.carried += length as u64;
        let mut section = Reader {
            route: &route[..end],
            at: reader.at,
        };
        section.section(clos, pod, &mut reached)?;
        if section.at != end {
            return Err(section.refuse());
        }
        reader.at = end;
    }
    match reader.at == route.len() {
        true => Ok(reached),
        false => Err(reader.refuse()),
    }
}

struct Reader<'r> {
    route: &'r [u8],
    at: usize,
}

impl Reader<'_> {
    fn refuse(&self) -> NotARoute {
        NotARoute { at: self.at }
    }

    fn byte(&mut self) -> Result<u8, NotARoute> {
        let byte = self.route.get(self.at).copied().ok_or(self.refuse())?;
        self.at += 1;
        Ok(byte)
    }

    fn port(&mut self, below: u32) -> Result<u32, NotARoute> {
        match u32::from(self.byte()?) {
            port if port < below => Ok(port),
            _ => Err(self.refuse()),
        }
    }

    fn bitmap(&mut self, bits: u32) -> Result<Vec<u32>, NotARoute> {
        let mut set = Vec::new();
        for byte in 0..bitmap_bytes(bits) as u32 {
            let found = self.byte()?;
            set.extend(
                (0..8)
                    .filter(|bit| found >> bit & 1 == 1)
                    .map(|bit| byte * 8 + bit),
            );
        }
        match set.last().is_some_and(|last| *last >= bits) {
            true => Err(self.refuse()),
            false => Ok(set),
        }
    }

    fn section(&mut self, clos: Clos, pod: u32, reached: &mut Reached) -> Result<(), NotARoute> {
        let first = pod * clos.leaves_of_pod();
        match self.byte()? {
            SECTION_TABLE => reached.pods.push(pod),
            SECTION_LIST => {
                for _ in 0..self.byte()? {
                    let leaf = first + self.port(clos.leaves_of_pod())?;
                    self.leaf(clos, leaf, reached)?;
                }
            }
            SECTION_BITMAP => {
                for leaf in self.bitmap(clos.leaves_of_pod())? {
                    self.leaf(clos, first + leaf, reached)?;
                }
            }
            _ => return Err(self.refuse()),
        }
        Ok(())
    }

    /// A leaf's copy carries its host set.
    fn leaf(&mut self, clos: Clos, leaf: u32, reached: &mut Reached) -> Result<(), NotARoute> {
        let before = self.at;
        self.set(clos, leaf, reached)?;
        reached.carried += (self.at - before) as u64;
        Ok(())
    }

    fn set(&mut self, clos: Clos, leaf: u32, reached: &mut Reached) -> Result<(), NotARoute> {
        let first = leaf * clos.hosts_of_leaf();
        let head = self.byte()?;
        match head & !LOW {
            SET_ONE if u32::from(head & LOW) < clos.hosts_of_leaf() => {
                reached.hosts.push(first + u32::from(head & LOW));
            }
            SET_LIST => {
                for _ in 0..head & LOW {
                    let port = self.port(clos.hosts_of_leaf())?;
                    reached.hosts.push(first + port);
                }
            }
            SET_BITMAP => {
                let ports = self.bitmap(clos.hosts_of_leaf())?;
                reached.hosts.extend(ports.iter().map(|port| first + port));
            }
            SET_TABLE => reached.leaves.push(leaf),
            _ => return Err(self.refuse()),
        }
        Ok(())
    }
}
