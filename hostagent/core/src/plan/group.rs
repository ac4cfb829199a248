//! A group of a plan, checked.

use super::fields::{MEMBERS_MAX, PlanRejected, list, parse_host, parse_hosts, rejected};
use super::left_out::{LeftOut, parse_left_out};
use super::structure::PlannedStructure;
use super::trees::{TreePaths, parse_number, parse_trees};
use crate::gather::parse_gathered;
use crate::mtu::parse_mtu;
use crate::order::Sequencer;
use crate::pacing::RATE_BITS;
use std::sync::Arc;
use wormcast_agent_proto as proto;
use wormcast_protocol::Gathered;
use wormcast_wire::{GroupId, HostId, pdu};

pub const GROUP_NAME_BYTES_MAX: usize = 255;

/// What a group's scheme is called in which each message takes the structure for its length.
pub const AUTO: &str = "auto";

#[derive(Clone, Debug)]
pub struct PlannedGroup {
    pub id: GroupId,
    /// Its name; may be empty.
    pub name: String,
    /// Members, ascending.
    pub members: Vec<HostId>,
    /// How messages reach them, for ascending lengths of messages; at least one.
    pub structures: Vec<PlannedStructure>,
    /// The number by which switches copy, if they know the group.
    pub number: Option<GroupId>,
    /// The ways to the other members along each of its own trees.
    pub trees: Vec<TreePaths>,
    /// Who orders the messages of all origins, in an ordered group.
    pub sequencer: Option<Sequencer>,
    /// Bytes of its frames after the Ethernet header at most; none: as the interface has it.
    pub mtu: Option<u16>,
    /// Whether this agent takes its messages where no receiver is open, and drops them.
    pub sink: bool,
    /// Bits of messages that this host may send to it a second; none: any.
    pub rate_bits: Option<u64>,
    /// Which of its ACKs switches gather.
    pub gathered: Option<Gathered>,
    /// Members of the operator's group that take no part, ascending; none is among `members`.
    pub left_out: Arc<[LeftOut]>,
    /// Equal at two hosts exactly if they have the same plan of the group (up to a
    /// collision in 32 bits); the epoch that the engine wants.
    pub fingerprint: u32,
}

impl PlannedGroup {
    pub(super) fn parse(message: &proto::Group, own: HostId) -> Result<Self, PlanRejected> {
        let id = match u16::try_from(message.id) {
            Ok(id) if GroupId(id) != GroupId::BROADCAST => GroupId(id),
            _ => {
                let id = message.id;
                return rejected(format!(
                    "group id {id}; it must be 0 to 65535, but not 255, which is broadcast"
                ));
            }
        };
        if message.name.len() > GROUP_NAME_BYTES_MAX {
            let length = message.name.len();
            return rejected(format!(
                "the name of group {id} has {length} bytes; at most {GROUP_NAME_BYTES_MAX}"
            ));
        }
        let members = parse_members(id, &message.members, own)?;
        let structures = parse_structures(id, &members, &message.structures)?;
        let mut group = Self {
            id,
            name: message.name.clone(),
            structures,
            number: parse_number(id, message.number)?,
            trees: Vec::new(),
            sequencer: None,
            mtu: parse_mtu(id, message.mtu)?,
            sink: message.sink,
            rate_bits: parse_rate(id, message.rate_bits)?,
            gathered: None,
            left_out: parse_left_out(id, &members, &message.left_out)?,
            members,
            fingerprint: 0,
        };
        group.sequencer = parse_sequencer(id, &group.members, message.sequencer.as_ref())?;
        group.gathered = parse_gathered(id, &group.members, message.gathered.as_ref())?;
        group.trees = parse_trees(id, own, &group.members, message)?;
        group.fingerprint = group.compute_fingerprint(message);
        Ok(group)
    }

    /// FNV-1a over all that shapes the group's structures, and what switches copy along. Name, MTU, rate, who gathers ACKs,
    /// who is left out, and for which messages a structure is do not: another one disturbs no transfer.
    fn compute_fingerprint(&self, message: &proto::Group) -> u32 {
        let mut hash = 0x811c_9dc5_u32;
        let mut mix = |value: u32| {
            for byte in value.to_be_bytes() {
                hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
            }
        };
        mix(u32::from(self.id.0));
        mix(self.members.len() as u32);
        self.members.iter().for_each(|host| mix(u32::from(host.0)));
        for structure in &self.structures {
            structure.mix_into(&mut mix);
        }
        if let Some(Sequencer { host, epoch }) = self.sequencer {
            mix(u32::from(host.0));
            mix((epoch >> 32) as u32);
            mix(epoch as u32);
        }
        mix(self.number.map_or(u32::MAX, |number| u32::from(number.0)));
        for proto::SharedTree { links } in &message.trees {
            mix(links.len() as u32);
            for link in links {
                let ends = [link.a, link.a_port, link.b, link.b_port];
                ends.into_iter().for_each(&mut mix);
            }
        }
        message.roots.iter().for_each(|root| mix(*root));
        for leaf in &message.leaves {
            [leaf.host, leaf.switch, leaf.port]
                .into_iter()
                .for_each(&mut mix);
        }
        hash
    }

    /// The name of its scheme; `auto` where each message takes one of several schemes.
    pub fn scheme_name(&self) -> &'static str {
        let scheme = self.structures[0].scheme;
        // Those that `auto` chose say what for.
        let is_plain = |one: &PlannedStructure| one.scheme == scheme && one.expected.is_empty();
        if self.structures.iter().all(is_plain) {
            scheme.name()
        } else {
            AUTO
        }
    }

    /// What the engine has to know of it.
    pub fn is_same(&self, other: &PlannedGroup) -> bool {
        let bounds = |group: &PlannedGroup| -> Vec<u64> {
            group.structures.iter().map(|one| one.bytes_most).collect()
        };
        (self.fingerprint, self.mtu, &self.gathered)
            == (other.fingerprint, other.mtu, &other.gathered)
            && bounds(self) == bounds(other)
    }

    /// Members but `host`.
    pub fn others(&self, host: HostId) -> Vec<HostId> {
        self.members
            .iter()
            .copied()
            .filter(|&member| member != host)
            .collect()
    }
}

fn parse_members(id: GroupId, values: &[u32], own: HostId) -> Result<Vec<HostId>, PlanRejected> {
    let members = parse_hosts(&format!("the members of group {id}"), values)?;
    if values.is_empty() {
        return rejected(format!(
            "group {id} has no members; it must have 1 to {MEMBERS_MAX}"
        ));
    }
    if let Some(pair) = members.windows(2).find(|pair| pair[0] >= pair[1]) {
        return rejected(format!(
            "the members of group {id} are not ascending: {} comes before {}",
            pair[0].0, pair[1].0
        ));
    }
    if !members.contains(&own) {
        return rejected(format!(
            "host {own} is not among the members of group {id}, which are {}",
            list(&members)
        ));
    }
    Ok(members)
}

fn parse_rate(id: GroupId, bits: u64) -> Result<Option<u64>, PlanRejected> {
    let (least, most) = (RATE_BITS.start(), RATE_BITS.end());
    if bits != 0 && !RATE_BITS.contains(&bits) {
        return rejected(format!(
            "group {id} has a rate of {bits} bits a second; it must be {least} to {most}, or 0 for any"
        ));
    }
    Ok(Some(bits).filter(|bits| *bits > 0))
}

fn parse_sequencer(
    id: GroupId,
    members: &[HostId],
    given: Option<&proto::Sequencer>,
) -> Result<Option<Sequencer>, PlanRejected> {
    let Some(&proto::Sequencer { host, epoch }) = given else {
        return Ok(None);
    };
    let host = parse_host(&format!("the sequencer of group {id}"), host)?;
    if members.binary_search(&host).is_err() {
        return rejected(format!(
            "host {host} is the sequencer of group {id}; it must be one of the members {}",
            list(members)
        ));
    }
    Ok(Some(Sequencer { host, epoch }))
}

fn parse_structures(
    id: GroupId,
    members: &[HostId],
    messages: &[proto::Structure],
) -> Result<Vec<PlannedStructure>, PlanRejected> {
    let count = messages.len();
    if !(1..=pdu::CHOICES_MAX).contains(&count) {
        let most = pdu::CHOICES_MAX;
        return rejected(format!(
            "group {id} has {count} structures; it must have 1 to {most}"
        ));
    }
    let mut parsed: Vec<PlannedStructure> = Vec::with_capacity(count);
    for message in messages {
        let before = parsed.last().map(|before| &before.order);
        parsed.push(PlannedStructure::parse(id, members, before, message)?);
    }
    let bounds: Vec<u64> = parsed.iter().map(|one| one.bytes_most).collect();
    if bounds.windows(2).any(|pair| pair[0] >= pair[1]) || bounds.last() != Some(&u64::MAX) {
        let given: Vec<String> = messages
            .iter()
            .map(|message| message.bytes_most.to_string())
            .collect();
        return rejected(format!(
            "the structures of group {id} are for messages of up to {} bytes; the bounds must ascend, and the last must be 0, for any",
            given.join(", ")
        ));
    }
    Ok(parsed)
}
