//! Control blocks: the graph of tables, conditions and direct action calls.

use std::collections::BTreeMap;

use super::assemble::Assembler;
use super::description::{ActionProfileInfo, TableInfo};
use super::error::{Problem, ProgramError};
use super::json::Node;
use super::layout::Slot;
use super::references::{Next, References, TABLE_SIZE_MAX, next_node};
use super::scope::Scope;
use super::table::{Table, TableReader, find_action};

/// Which half of the pipeline a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// From arrival to the egress queues.
    Ingress,
    /// From an egress queue to the port; a recirculated packet's next pass too.
    Egress,
}

impl Stage {
    /// Name in traces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        }
    }
}

/// A step of a control block.
#[derive(Clone, Debug)]
pub enum ControlNode {
    Table(u32),
    /// Runs code and branches on a word.
    Condition {
        code: u32,
        result: Slot,
        if_true: Next,
        if_false: Next,
    },
    /// Runs an action that has no parameters.
    Call {
        action: u32,
        /// The table that can do nothing else, if it is one.
        table: Option<u32>,
        next: Next,
    },
}

/// How an action profile chooses a member of a group.
#[derive(Clone, Debug)]
pub struct Selector {
    /// The calculation that hashes the packet.
    pub calculation: u32,
}

#[derive(Clone, Debug)]
pub struct Control {
    pub nodes: Vec<ControlNode>,
    pub start: Next,
}

impl Control {
    /// Nodes that may come right after a node.
    pub fn successors(&self, node: u32, tables: &[Table]) -> Vec<u32> {
        match &self.nodes[node as usize] {
            ControlNode::Condition {
                if_true, if_false, ..
            } => [*if_true, *if_false].into_iter().flatten().collect(),
            ControlNode::Call { next, .. } => next.iter().copied().collect(),
            ControlNode::Table(table) => {
                let plan = &tables[*table as usize];
                let after = plan.after_action.iter().copied();
                after
                    .chain([plan.after_none])
                    .chain(plan.on_hit)
                    .chain(plan.on_miss)
                    .flatten()
                    .collect()
            }
        }
    }
}

/// Tables and profiles of all controls, and the graph of each.
#[derive(Default)]
pub(super) struct Controls {
    pub(super) tables: Vec<Table>,
    pub(super) table_infos: Vec<TableInfo>,
    pub(super) profiles: Vec<ActionProfileInfo>,
    pub(super) selectors: Vec<Option<Selector>>,
}

impl Controls {
    /// Reads one control. `selector` makes a calculation of a selector's hash.
    pub(super) fn read(
        &mut self,
        node: &Node<'_>,
        references: &References<'_>,
        assembler: &mut Assembler<'_>,
        selector: &mut dyn FnMut(&Node<'_>) -> Result<u32, ProgramError>,
    ) -> Result<Control, ProgramError> {
        let table_nodes = node.list("tables")?;
        let condition_nodes = node.list("conditionals")?;
        let call_nodes = node.list("action_calls")?;
        let mut names = BTreeMap::new();
        let all = table_nodes
            .iter()
            .chain(&condition_nodes)
            .chain(&call_nodes);
        for (index, item) in all.enumerate() {
            let name = item.member("name")?.string()?;
            if names.insert(name, index as u32).is_some() {
                return Err(item.error(Problem::Duplicate {
                    kind: "table or condition",
                    name: name.to_string(),
                }));
            }
        }
        for profile in node.list("action_profiles")? {
            let size = profile.member("max_size")?.count(TABLE_SIZE_MAX)?;
            self.read_profile(&profile, "name", size, selector)?;
        }
        for table in &table_nodes {
            // As p4c-bm wrote it: each table with a profile of its own, of no size.
            if table.optional("action_profile")?.is_none()
                && table.optional("act_prof_name")?.is_some()
            {
                self.read_profile(table, "act_prof_name", TABLE_SIZE_MAX, selector)?;
            }
        }
        let mut nodes = Vec::new();
        for table in &table_nodes {
            let reader = TableReader {
                names: &names,
                references,
                profiles: &self.profiles,
            };
            let (info, table_state) = reader.read(table)?;
            if self.table_infos.iter().any(|other| other.name == info.name) {
                return Err(table.error(Problem::Duplicate {
                    kind: "table",
                    name: info.name,
                }));
            }
            let number = self.tables.len() as u32;
            nodes.push(match direct_call(&info, &table_state) {
                Some((action, next)) => ControlNode::Call {
                    action,
                    table: Some(number),
                    next,
                },
                None => ControlNode::Table(number),
            });
            self.tables.push(table_state);
            self.table_infos.push(info);
        }
        for condition in &condition_nodes {
            let scope = Scope {
                layout: references.layout,
                arguments: &[],
                registers: references.registers,
            };
            let expression = condition.member("expression")?;
            let code = assembler.here();
            assembler.release();
            let result = assembler.logic(&scope.logic(&expression)?, &expression)?;
            assembler.emit(super::code::Op::End);
            nodes.push(ControlNode::Condition {
                code,
                result,
                if_true: next_node(condition, "true_next", &names)?,
                if_false: next_node(condition, "false_next", &names)?,
            });
        }
        for call in &call_nodes {
            let action = find_action(&call.member("action_id")?, references)?;
            if !references.actions[action as usize].parameters.is_empty() {
                return Err(call
                    .member("action_id")?
                    .invalid("an action without parameters"));
            }
            nodes.push(ControlNode::Call {
                action,
                table: None,
                next: next_node(call, "next_node", &names)?,
            });
        }
        let control = Control {
            start: next_node(node, "init_table", &names)?,
            nodes,
        };
        self.refuse_cycles(node, &control, &names)?;
        Ok(control)
    }

    fn read_profile(
        &mut self,
        node: &Node<'_>,
        name: &str,
        size: usize,
        selector: &mut dyn FnMut(&Node<'_>) -> Result<u32, ProgramError>,
    ) -> Result<(), ProgramError> {
        let name = node.member(name)?.string()?.to_string();
        if self.profiles.iter().any(|profile| profile.name == name) {
            return Err(node.error(Problem::Duplicate {
                kind: "action profile",
                name,
            }));
        }
        let choice = match node.optional("selector")? {
            Some(node) => Some(Selector {
                calculation: selector(&node)?,
            }),
            None => None,
        };
        self.profiles.push(ActionProfileInfo {
            name,
            size,
            has_selector: choice.is_some(),
        });
        self.selectors.push(choice);
        Ok(())
    }

    /// A packet must leave a control after a bounded number of steps.
    fn refuse_cycles(
        &self,
        node: &Node<'_>,
        control: &Control,
        names: &BTreeMap<&str, u32>,
    ) -> Result<(), ProgramError> {
        let mut state = vec![0u8; control.nodes.len()];
        // (node, successors left to visit), depth first.
        for root in 0..control.nodes.len() as u32 {
            if state[root as usize] != 0 {
                continue;
            }
            state[root as usize] = 1;
            let mut path = vec![(root, control.successors(root, &self.tables))];
            while let Some((current, successors)) = path.last_mut() {
                match successors.pop() {
                    None => {
                        state[*current as usize] = 2;
                        path.pop();
                    }
                    Some(next) => match state[next as usize] {
                        0 => {
                            state[next as usize] = 1;
                            path.push((next, control.successors(next, &self.tables)));
                        }
                        1 => {
                            let name = names.iter().find(|(_, index)| **index == next);
                            return Err(node.error(Problem::Cycle {
                                node: name.map_or(String::new(), |(name, _)| name.to_string()),
                            }));
                        }
                        _ => {}
                    },
                }
            }
        }
        Ok(())
    }
}

/// The action of a table that can do nothing else, and the node after it. p4c wraps every
/// call from a control into such a table.
fn direct_call(info: &TableInfo, table: &Table) -> Option<(u32, Next)> {
    let call = table.default.as_ref()?;
    if !info.key.is_empty() || !info.const_default || !call.arguments.is_empty() {
        return None;
    }
    let position = info.actions.iter().position(|&id| id == call.action)?;
    let next = table.on_miss.unwrap_or(table.after_action[position]);
    Some((call.action.index() as u32, next))
}
