//! Reads the objects of the JSON in the order their references need.

use std::collections::BTreeMap;

use super::assemble::Assembler;
use super::calculation::{self, Calculation, Checksum};
use super::control::Controls;
use super::description::{ActionInfo, HeaderTypeInfo, Parameter, TableId, ValueSetInfo};
use super::error::{Problem, ProgramError};
use super::json::Node;
use super::layout::Layout;
use super::named::Objects;
use super::program::{Footprint, Ir, Program};
use super::references::References;
use super::unique::unique_name;
use super::width::FIELD_BITS_MAX;
use super::{arrays, metadata, names, parser};

impl Program {
    /// Reads a program.
    ///
    /// # Errors
    /// The first thing that is not valid or not supported, see [`ProgramError`]. Never
    /// panics, whatever the text.
    pub fn from_json(text: &str) -> Result<Program, ProgramError> {
        read(text)
    }
}

fn read(text: &str) -> Result<Program, ProgramError> {
    let document: serde_json::Value = serde_json::from_str(text).map_err(|error| ProgramError {
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
    let arrays = arrays::read(&root, &layout)?;
    let mut value_sets = read_value_sets(&root)?;
    let errors = metadata::read_errors(&root)?;
    let field_lists = metadata::read_field_lists(&root, &layout)?;
    let (digests, digest_lists) = metadata::read_digests(&root, &layout)?;

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
    for state in &parser.states {
        for (case, _) in &state.cases {
            if let parser::Case::Set { set, .. } = case {
                let widths = state.key.iter().map(|part| part.width);
                value_sets[*set as usize].fields_bits = widths.collect();
            }
        }
    }

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
    for node in deparser_node.member("order")?.items()? {
        let header = layout.header(&node)?;
        if layout.headers[header as usize].metadata {
            return Err(node.invalid("a header that is not metadata"));
        }
        deparser.push(header);
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
            table.direct_counter.is_some()
                && arrays
                    .counter_by_table
                    .get(&table.name)
                    .is_some_and(|&index| arrays.counter_names[index as usize] == counter.name)
        });
    }
    for (index, meter) in arrays.meters.iter_mut().enumerate() {
        bind(&controls, &mut meter.table, &mut meter.size, |table| {
            table.direct_meter.is_some_and(|id| id.index() == index)
        });
    }
    let intrinsics = metadata::read_intrinsics(&root, &layout)?;
    let header_types = describe_types(&layout);
    let name = match root.optional("program")? {
        Some(name) => name.string()?.to_string(),
        None => String::new(),
    };
    let mut program = Program {
        text: text.to_owned(),
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
        ir: Ir {
            code,
            parser,
            ingress,
            egress,
            table_plans: controls.tables,
            selectors: controls.selectors,
            action_code,
            action_arguments,
            calculations,
            calculation_names,
            verified,
            updated,
            deparser,
            deparser_code,
            field_lists,
            digest_lists,
            intrinsics,
            errors,
            names: names::read(&root)?,
            layout,
            footprint: Footprint::default(),
        },
    };
    program.ir.footprint = Footprint::of(&program);
    Ok(program)
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

fn read_value_sets(root: &Node<'_>) -> Result<Vec<ValueSetInfo>, ProgramError> {
    let mut names = Vec::new();
    let mut sets = Vec::new();
    for node in root.list("parse_vsets")? {
        let name = unique_name(&node, "parser value set", &names)?;
        names.push(name.clone());
        let width_bits = node.member("compressed_bitwidth")?.count(FIELD_BITS_MAX)? as u32;
        sets.push(ValueSetInfo {
            name,
            width_bits,
            fields_bits: vec![width_bits],
        });
    }
    Ok(sets)
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
            return Err(
                kind.unsupported(format!("a checksum of type {}", kind.excerpt()), "generic")
            );
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
