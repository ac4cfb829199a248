//! Reads the objects of the JSON in the order their references need.

use std::collections::BTreeMap;

use super::assemble::Assembler;
use super::calculation::{self, Calculation, Checksum};
use super::control::{Controls, References};
use super::description::{
    ActionInfo, CounterInfo, DigestId, DigestInfo, HeaderTypeInfo, MeterInfo, MeterUnit, Parameter,
    RegisterInfo, TableId, ValueSetInfo,
};
use super::error::{Problem, ProgramError};
use super::expression::Scope;
use super::json::Node;
use super::layout::{FIELD_BITS_MAX, FieldRef, Layout, Slot};
use super::primitive::Objects;
use super::{Program, parser};

/// Most cells of a counter, meter or register array.
const CELLS_MAX: usize = 1 << 24;
/// Most words of all registers together.
const REGISTER_WORDS_MAX: usize = 1 << 26;
/// Largest id of a field list or digest, as BMv2 keeps them in 16 bits.
const LIST_ID_MAX: i64 = 0xffff;

/// Fields that survive a clone, resubmission or recirculation.
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldList {
    /// First word and number of words.
    pub(crate) fields: Vec<(Slot, u32)>,
}

/// Metadata that the switch itself reads and writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Intrinsics {
    pub(crate) ingress_port: FieldRef,
    pub(crate) packet_length: FieldRef,
    pub(crate) instance_type: FieldRef,
    pub(crate) egress_spec: FieldRef,
    pub(crate) egress_port: FieldRef,
    pub(crate) parser_error: Option<FieldRef>,
    pub(crate) checksum_error: Option<FieldRef>,
    pub(crate) ingress_global_timestamp: Option<FieldRef>,
    pub(crate) egress_global_timestamp: Option<FieldRef>,
    pub(crate) mcast_grp: Option<FieldRef>,
    pub(crate) egress_rid: Option<FieldRef>,
    pub(crate) priority: Option<FieldRef>,
    /// All four fields of the queueing metadata, as BMv2 wants them all or none.
    pub(crate) queueing: Option<Queueing>,
    pub(crate) qid: Option<FieldRef>,
}

/// What the traffic manager tells about the queue a packet went through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queueing {
    pub(crate) enq_timestamp: FieldRef,
    pub(crate) enq_qdepth: FieldRef,
    pub(crate) deq_timedelta: FieldRef,
    pub(crate) deq_qdepth: FieldRef,
}

/// Numbers the program gives to the errors of the core library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CoreErrors {
    pub(crate) no_error: u64,
    pub(crate) packet_too_short: u64,
    pub(crate) stack_out_of_bounds: u64,
    pub(crate) header_too_short: u64,
    pub(crate) parser_invalid_argument: u64,
}

/// Arrays of state.
#[derive(Default)]
struct Arrays {
    counters: Vec<CounterInfo>,
    counter_names: Vec<String>,
    counter_by_table: BTreeMap<String, u32>,
    registers: Vec<RegisterInfo>,
    meters: Vec<MeterInfo>,
    meter_names: Vec<String>,
    direct_meters: BTreeMap<String, (u32, Slot, u32)>,
}

impl Arrays {
    fn objects<'o>(
        &'o self,
        layout: &'o Layout,
        calculations: &'o [String],
        arguments: &'o [(Slot, u32)],
    ) -> Objects<'o> {
        Objects {
            scope: Scope {
                layout,
                arguments,
                registers: &self.registers,
            },
            counters: &self.counter_names,
            meters: &self.meter_names,
            calculations,
        }
    }
}

pub(super) fn read(text: &str) -> Result<Program, ProgramError> {
    let document: serde_json::Value =
        serde_json::from_str(text).map_err(|error| ProgramError {
            path: String::new(),
            problem: Problem::Syntax {
                line: error.line(),
                column: error.column(),
                message: error.to_string(),
            },
        })?;
    let root = Node::root(&document);
    check_version(&root)?;
    let layout = Layout::read(&root)?;
    if let Some(instance) = root.list("extern_instances")?.first() {
        return Err(instance.unsupported("an extern instance", "the externs of v1model"));
    }
    let arrays = read_arrays(&root, &layout)?;
    let value_sets = read_value_sets(&root)?;
    let errors = read_errors(&root)?;
    let field_lists = read_field_lists(&root, &layout)?;
    let (digests, digest_lists) = read_digests(&root, &layout)?;

    let action_nodes = root.list("actions")?;
    let actions = read_action_infos(&action_nodes)?;
    let argument_words = actions.iter().map(argument_words).max().unwrap_or(0);
    let mut assembler = Assembler::new(&layout, argument_words);

    let (mut calculations, calculation_names) = read_calculations(&root, &layout)?;
    let mut action_code = Vec::new();
    let mut action_arguments = Vec::new();
    for (node, info) in action_nodes.iter().zip(&actions) {
        let mut next = assembler.code.arguments;
        let mut arguments = Vec::new();
        for parameter in &info.parameters {
            arguments.push((next, parameter.width_bits));
            next += parameter.width_bits.div_ceil(64).max(1);
        }
        let objects = arrays.objects(&layout, &calculation_names, &arguments);
        action_code.push(objects.body(&mut assembler, &node.list("primitives")?)?);
        action_arguments.push(arguments);
    }

    let objects = arrays.objects(&layout, &calculation_names, &[]);
    let parser_node = named(&root, "parsers", "parser")?;
    let parser = parser::read(&parser_node, &objects, &mut assembler, &value_sets)?;

    let mut action_by_id = BTreeMap::new();
    for (index, node) in action_nodes.iter().enumerate() {
        let id = node.member("id")?;
        if action_by_id.insert(id.integer()?, index as u32).is_some() {
            return Err(id.error(Problem::Duplicate {
                kind: "action id",
                name: id.excerpt(),
            }));
        }
    }
    let references = References {
        layout: &layout,
        action_by_id: &action_by_id,
        actions: &actions,
        counter_by_table: &arrays.counter_by_table,
        meters: &arrays.direct_meters,
        registers: &arrays.registers,
    };
    let mut controls = Controls::default();
    let mut selector = |node: &Node<'_>| {
        let algorithm = calculation::read_algorithm(&node.member("algo")?)?;
        let input = calculation::read_input(&node.member("input")?.items()?, &layout)?;
        calculations.push(Calculation { algorithm, input });
        Ok(calculations.len() as u32 - 1)
    };
    let mut read_control = |name: &str, assembler: &mut Assembler<'_>| {
        let node = named(&root, "pipelines", name)?;
        controls.read(&node, &references, assembler, &mut selector)
    };
    let ingress = read_control("ingress", &mut assembler)?;
    let egress = read_control("egress", &mut assembler)?;

    let deparser_node = named(&root, "deparsers", "deparser")?;
    let mut deparser = Vec::new();
    for header in deparser_node.member("order")?.items()? {
        deparser.push(layout.header(&header)?);
    }
    let deparser_primitives = deparser_node.list("primitives")?;
    let deparser_code = if deparser_primitives.is_empty() {
        None
    } else {
        Some(objects.body(&mut assembler, &deparser_primitives)?)
    };
    let (verified, updated) = read_checksums(&root, &objects, &mut assembler)?;

    let code = assembler.code;
    let mut arrays = arrays;
    for counter in &mut arrays.counters {
        bind(&controls, &mut counter.table, &mut counter.size, |table| {
            table.direct_counter.is_some() && arrays.counter_by_table.get(&table.name).is_some_and(
                |&index| arrays.counter_names[index as usize] == counter.name,
            )
        });
    }
    for (index, meter) in arrays.meters.iter_mut().enumerate() {
        bind(&controls, &mut meter.table, &mut meter.size, |table| {
            table.direct_meter.is_some_and(|id| id.index() == index)
        });
    }
    let intrinsics = read_intrinsics(&root, &layout)?;
    let header_types = describe_types(&layout);
    let name = match root.optional("program")? {
        Some(name) => name.string()?.to_string(),
        None => String::new(),
    };
    Ok(Program {
        name,
        header_types,
        tables: controls.table_infos,
        actions,
        counters: arrays.counters,
        registers: arrays.registers,
        meters: arrays.meters,
        value_sets,
        digests,
        action_profiles: controls.profiles,
        code,
        parser,
        ingress,
        egress,
        table_plans: controls.tables,
        selectors: controls.selectors,
        action_code,
        action_arguments,
        calculations,
        verified,
        updated,
        deparser,
        deparser_code,
        field_lists,
        digest_lists,
        intrinsics,
        errors,
        layout,
    })
}

/// Fills in the table a direct object belongs to.
fn bind(
    controls: &Controls,
    table: &mut Option<TableId>,
    size: &mut usize,
    matches: impl Fn(&super::TableInfo) -> bool,
) {
    if let Some(index) = controls.table_infos.iter().position(matches) {
        *table = Some(TableId::from_index(index));
        *size = controls.table_infos[index].size;
    }
}

fn check_version(root: &Node<'_>) -> Result<(), ProgramError> {
    let Some(meta) = root.optional("__meta__")? else {
        return Ok(());
    };
    let Some(version) = meta.optional("version")? else {
        return Ok(());
    };
    let [major, _minor] = version.tuple()?;
    if major.integer()? != 2 {
        return Err(major.unsupported(format!("format version {}", major.excerpt()), "version 2"));
    }
    Ok(())
}

/// The object with a name in a list.
fn named<'a>(root: &Node<'a>, list: &str, name: &str) -> Result<Node<'a>, ProgramError> {
    let list = root.member(list)?;
    let mut names = Vec::new();
    for node in list.items()? {
        let candidate = node.member("name")?.string()?;
        if candidate == name {
            return Ok(node);
        }
        names.push(candidate);
    }
    Err(list.unknown("object", name, names.into_iter()))
}

fn describe_types(layout: &Layout) -> Vec<HeaderTypeInfo> {
    let types = layout.types.iter();
    types
        .map(|kind| HeaderTypeInfo {
            name: kind.name.clone(),
            fields: kind
                .fields
                .iter()
                .map(|field| Parameter {
                    name: field.name.clone(),
                    width_bits: field.width,
                })
                .collect(),
        })
        .collect()
}

fn argument_words(action: &ActionInfo) -> u32 {
    let parameters = action.parameters.iter();
    parameters
        .map(|parameter| parameter.width_bits.div_ceil(64).max(1))
        .sum()
}

fn unique_name(
    node: &Node<'_>,
    kind: &'static str,
    names: &[String],
) -> Result<String, ProgramError> {
    let name = node.member("name")?.string()?.to_string();
    if names.contains(&name) {
        return Err(node.error(Problem::Duplicate { kind, name }));
    }
    Ok(name)
}

fn read_arrays(root: &Node<'_>, layout: &Layout) -> Result<Arrays, ProgramError> {
    let mut arrays = Arrays::default();
    for node in root.list("counter_arrays")? {
        let name = unique_name(&node, "counter array", &arrays.counter_names)?;
        let direct = node.flag("is_direct", false)?;
        if direct {
            let table = node.member("binding")?.string()?.to_string();
            let index = arrays.counters.len() as u32;
            arrays.counter_by_table.insert(table, index);
        }
        arrays.counters.push(CounterInfo {
            name: name.clone(),
            size: if direct {
                0
            } else {
                node.member("size")?.count(CELLS_MAX)?
            },
            table: None,
        });
        arrays.counter_names.push(name);
    }
    for node in root.list("meter_arrays")? {
        let name = unique_name(&node, "meter array", &arrays.meter_names)?;
        let unit_node = node.member("type")?;
        let unit = match unit_node.string()? {
            "packets" => MeterUnit::Packets,
            "bytes" => MeterUnit::Bytes,
            _ => return Err(unit_node.invalid("\"packets\" or \"bytes\"")),
        };
        node.member("rate_count")?.integer_in(2, 2)?;
        let direct = node.flag("is_direct", false)?;
        if direct {
            let field = layout.field(&node.member("result_target")?)?;
            if field.limbs != 1 {
                return Err(node.member("result_target")?.invalid("a field of at most 64 bits"));
            }
            let index = arrays.meters.len() as u32;
            arrays
                .direct_meters
                .insert(name.clone(), (index, field.slot, field.width));
        }
        arrays.meters.push(MeterInfo {
            name: name.clone(),
            size: if direct {
                0
            } else {
                node.member("size")?.count(CELLS_MAX)?
            },
            unit,
            table: None,
        });
        arrays.meter_names.push(name);
    }
    let mut names = Vec::new();
    let mut words = 0;
    for node in root.list("register_arrays")? {
        let name = unique_name(&node, "register array", &names)?;
        names.push(name.clone());
        let size_node = node.member("size")?;
        let register = RegisterInfo {
            name,
            size: size_node.count(CELLS_MAX)?,
            width_bits: node.member("bitwidth")?.integer_in(1, FIELD_BITS_MAX as i64)? as u32,
        };
        words += register.size * register.width_bits.div_ceil(64) as usize;
        if words > REGISTER_WORDS_MAX {
            return Err(size_node.error(Problem::LimitExceeded {
                what: "words of registers",
                value: words,
                limit: REGISTER_WORDS_MAX,
            }));
        }
        arrays.registers.push(register);
    }
    Ok(arrays)
}

fn read_value_sets(root: &Node<'_>) -> Result<Vec<ValueSetInfo>, ProgramError> {
    let mut names = Vec::new();
    let mut sets = Vec::new();
    for node in root.list("parse_vsets")? {
        let name = unique_name(&node, "parser value set", &names)?;
        names.push(name.clone());
        sets.push(ValueSetInfo {
            name,
            width_bits: node.member("compressed_bitwidth")?.count(FIELD_BITS_MAX)? as u32,
        });
    }
    Ok(sets)
}

fn read_errors(root: &Node<'_>) -> Result<CoreErrors, ProgramError> {
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

fn read_field_lists(
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

type Digests = (
    Vec<DigestInfo>,
    BTreeMap<u64, (DigestId, Vec<FieldRef>)>,
);

fn read_digests(root: &Node<'_>, layout: &Layout) -> Result<Digests, ProgramError> {
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

fn read_action_infos(nodes: &[Node<'_>]) -> Result<Vec<ActionInfo>, ProgramError> {
    let mut actions = Vec::new();
    for node in nodes {
        let mut parameters = Vec::new();
        for parameter in node.list("runtime_data")? {
            parameters.push(Parameter {
                name: parameter.member("name")?.string()?.to_string(),
                width_bits: parameter
                    .member("bitwidth")?
                    .integer_in(1, FIELD_BITS_MAX as i64)? as u32,
            });
        }
        actions.push(ActionInfo {
            name: node.member("name")?.string()?.to_string(),
            parameters,
        });
    }
    Ok(actions)
}

fn read_calculations(
    root: &Node<'_>,
    layout: &Layout,
) -> Result<(Vec<Calculation>, Vec<String>), ProgramError> {
    let mut calculations = Vec::new();
    let mut names = Vec::new();
    for node in root.list("calculations")? {
        let name = unique_name(&node, "calculation", &names)?;
        names.push(name);
        calculations.push(Calculation {
            algorithm: calculation::read_algorithm(&node.member("algo")?)?,
            input: calculation::read_input(&node.member("input")?.items()?, layout)?,
        });
    }
    Ok((calculations, names))
}

fn read_checksums(
    root: &Node<'_>,
    objects: &Objects<'_>,
    assembler: &mut Assembler<'_>,
) -> Result<(Vec<Checksum>, Vec<Checksum>), ProgramError> {
    let layout = objects.scope.layout;
    let mut verified = Vec::new();
    let mut updated = Vec::new();
    for node in root.list("checksums")? {
        let kind = node.member("type")?;
        if kind.string()? != "generic" {
            return Err(kind.unsupported(format!("a checksum of type {}", kind.excerpt()), "generic"));
        }
        let name_node = node.member("calculation")?;
        let name = name_node.string()?;
        let calculation = objects.calculations.iter().position(|other| other == name);
        let Some(calculation) = calculation else {
            let names = objects.calculations.iter().map(String::as_str);
            return Err(name_node.unknown("calculation", name, names));
        };
        let target = layout.field(&node.member("target")?)?;
        if target.limbs != 1 {
            return Err(node.member("target")?.invalid("a field of at most 64 bits"));
        }
        let condition = match node.optional("if_cond")? {
            None => None,
            Some(condition) => {
                let code = assembler.here();
                assembler.release();
                let result = assembler.logic(&objects.scope.logic(&condition)?, &condition)?;
                assembler.emit(super::code::Op::End);
                Some((code, result))
            }
        };
        let checksum = Checksum {
            calculation: calculation as u32,
            target: target.slot,
            target_width: target.width,
            target_valid: layout.headers[target.header as usize].base,
            condition,
        };
        if node.flag("verify", true)? {
            verified.push(checksum.clone());
        }
        if node.flag("update", true)? {
            updated.push(checksum);
        }
    }
    Ok((verified, updated))
}

fn read_intrinsics(root: &Node<'_>, layout: &Layout) -> Result<Intrinsics, ProgramError> {
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
