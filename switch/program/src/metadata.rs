//! Metadata that the switch itself reads and writes, and lists of fields.

use std::collections::BTreeMap;

use super::description::{DigestId, DigestInfo};
use super::error::{Problem, ProgramError};
use super::json::Node;
use super::layout::{FieldRef, Layout, Slot};

/// Largest id of a field list or digest, as BMv2 keeps them in 16 bits.
const LIST_ID_MAX: i64 = 0xffff;

/// Fields that survive a clone, resubmission or recirculation.
#[derive(Clone, Debug, Default)]
pub struct FieldList {
    /// First word and number of words.
    pub fields: Vec<(Slot, u32)>,
}

/// Metadata that the switch itself reads and writes.
#[derive(Clone, Copy, Debug)]
pub struct Intrinsics {
    pub ingress_port: FieldRef,
    pub packet_length: FieldRef,
    pub instance_type: FieldRef,
    pub egress_spec: FieldRef,
    pub egress_port: FieldRef,
    pub parser_error: Option<FieldRef>,
    pub checksum_error: Option<FieldRef>,
    pub ingress_global_timestamp: Option<FieldRef>,
    pub egress_global_timestamp: Option<FieldRef>,
    pub mcast_grp: Option<FieldRef>,
    pub egress_rid: Option<FieldRef>,
    pub priority: Option<FieldRef>,
    /// All four fields of the queueing metadata, as BMv2 wants them all or none.
    pub queueing: Option<Queueing>,
    pub qid: Option<FieldRef>,
}

/// What the traffic manager tells about the queue a packet went through.
#[derive(Clone, Copy, Debug)]
pub struct Queueing {
    pub enq_timestamp: FieldRef,
    pub enq_qdepth: FieldRef,
    pub deq_timedelta: FieldRef,
    pub deq_qdepth: FieldRef,
}

/// Numbers the program gives to the errors of the core library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreErrors {
    pub no_error: u64,
    pub packet_too_short: u64,
    pub stack_out_of_bounds: u64,
    pub header_too_short: u64,
    pub parser_invalid_argument: u64,
}

pub(super) type Digests = (Vec<DigestInfo>, BTreeMap<u64, (DigestId, Vec<FieldRef>)>);

pub(super) fn read_errors(root: &Node<'_>) -> Result<CoreErrors, ProgramError> {
    let mut by_name = BTreeMap::new();
    for node in root.list("errors")? {
        let [name, value] = node.tuple()?;
        let value = value.integer_in(0, i64::from(i32::MAX) - 1)? as u64;
        by_name.insert(name.string()?, value);
    }
    // Errors of the core library that the program leaves out get numbers of their own.
    let mut free = by_name.values().max().map_or(0, |&last| last + 1);
    let mut number = |name: &str| match by_name.get(name) {
        Some(&value) => value,
        None => {
            free += 1;
            free - 1
        }
    };
    Ok(CoreErrors {
        no_error: number("NoError"),
        packet_too_short: number("PacketTooShort"),
        stack_out_of_bounds: number("StackOutOfBounds"),
        header_too_short: number("HeaderTooShort"),
        parser_invalid_argument: number("ParserInvalidArgument"),
    })
}

pub(super) fn read_field_lists(
    root: &Node<'_>,
    layout: &Layout,
) -> Result<BTreeMap<u64, FieldList>, ProgramError> {
    let mut lists = BTreeMap::new();
    for node in root.list("field_lists")? {
        let id_node = node.member("id")?;
        let id = id_node.integer_in(0, LIST_ID_MAX)? as u64;
        let mut list = FieldList::default();
        for element in node.list("elements")? {
            match element.type_name()? {
                "field" => {
                    let field = layout.field(&element.member("value")?)?;
                    list.fields.push((field.slot, field.limbs));
                }
                // A constant copies nothing between packets.
                "hexstr" => {}
                name => {
                    return Err(element.member("type")?.unsupported(
                        format!("an element of type \"{name}\" in a field list"),
                        "field, hexstr",
                    ));
                }
            }
        }
        if lists.insert(id, list).is_some() {
            return Err(id_node.error(Problem::Duplicate {
                kind: "field list id",
                name: id.to_string(),
            }));
        }
    }
    Ok(lists)
}

pub(super) fn read_digests(root: &Node<'_>, layout: &Layout) -> Result<Digests, ProgramError> {
    let mut infos = Vec::new();
    let mut lists = BTreeMap::new();
    for node in root.list("learn_lists")? {
        let id_node = node.member("id")?;
        let id = id_node.integer_in(0, LIST_ID_MAX)? as u64;
        let mut fields = Vec::new();
        for element in node.member("elements")?.items()? {
            let kind = element.member("type")?;
            if kind.string()? != "field" {
                return Err(kind.unsupported("a digest of anything but fields", "field"));
            }
            let field = layout.field(&element.member("value")?)?;
            if field.varbit.is_some() {
                return Err(element.unsupported("a variable field in a digest", "fixed fields"));
            }
            fields.push(field);
        }
        let digest = DigestId::from_index(infos.len());
        infos.push(DigestInfo {
            name: node.member("name")?.string()?.to_string(),
            fields_bits: fields.iter().map(|field| field.width).collect(),
        });
        if lists.insert(id, (digest, fields)).is_some() {
            return Err(id_node.error(Problem::Duplicate {
                kind: "learn list id",
                name: id.to_string(),
            }));
        }
    }
    Ok((infos, lists))
}

pub(super) fn read_intrinsics(
    root: &Node<'_>,
    layout: &Layout,
) -> Result<Intrinsics, ProgramError> {
    let standard = |name: &str| layout.intrinsic("standard_metadata", name);
    let intrinsic = |name| layout.intrinsic("intrinsic_metadata", name);
    let queueing = |name| layout.intrinsic("queueing_metadata", name);
    let required = |name: &str| {
        standard(name).ok_or_else(|| {
            root.error(Problem::UnknownReference {
                kind: "field",
                name: format!("standard_metadata.{name}"),
                choices: "the metadata of v1model".to_string(),
            })
        })
    };
    let all = (
        queueing("enq_timestamp"),
        queueing("enq_qdepth"),
        queueing("deq_timedelta"),
        queueing("deq_qdepth"),
    );
    Ok(Intrinsics {
        ingress_port: required("ingress_port")?,
        packet_length: required("packet_length")?,
        instance_type: required("instance_type")?,
        egress_spec: required("egress_spec")?,
        egress_port: required("egress_port")?,
        parser_error: standard("parser_error"),
        checksum_error: standard("checksum_error"),
        ingress_global_timestamp: intrinsic("ingress_global_timestamp"),
        egress_global_timestamp: intrinsic("egress_global_timestamp"),
        mcast_grp: intrinsic("mcast_grp"),
        egress_rid: intrinsic("egress_rid"),
        priority: intrinsic("priority"),
        queueing: match all {
            (Some(enq_timestamp), Some(enq_qdepth), Some(deq_timedelta), Some(deq_qdepth)) => {
                Some(Queueing {
                    enq_timestamp,
                    enq_qdepth,
                    deq_timedelta,
                    deq_qdepth,
                })
            }
            _ => None,
        },
        qid: queueing("qid"),
    })
}
