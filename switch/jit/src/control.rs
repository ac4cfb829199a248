//! Controls to machine code: conditions, tables and the actions that entries call.

use std::collections::BTreeMap;

use cranelift_codegen::ir::{Block, InstBuilder};
use cranelift_frontend::Switch;

use super::lower::{Exits, Known, Lower, Register, common};
use super::ops::piece;
use wormcast_switch_pipeline::abi::NO_ACTION;
use wormcast_switch_program::code::Op;
use wormcast_switch_program::{Control, ControlNode, Next};

/// The nodes of a control that can be reached, each before those that follow it.
fn in_order(control: &Control, successors: &dyn Fn(u32) -> Vec<u32>) -> Vec<u32> {
    let mut seen = vec![false; control.nodes.len()];
    let mut order = Vec::new();
    let mut path: Vec<(u32, Vec<u32>)> = Vec::new();
    if let Some(start) = control.start {
        seen[start as usize] = true;
        path.push((start, successors(start)));
    }
    while let Some((node, left)) = path.last_mut() {
        match left.pop() {
            None => {
                order.push(*node);
                path.pop();
            }
            Some(next) if !seen[next as usize] => {
                seen[next as usize] = true;
                path.push((next, successors(next)));
            }
            Some(_) => {}
        }
    }
    order.reverse();
    order
}

/// Blocks of the nodes of a control, and what is known where each begins.
struct Blocks {
    of_node: BTreeMap<u32, Block>,
    known: BTreeMap<u32, Known>,
    done: Block,
}

impl Lower<'_, '_> {
    /// A control from its first node to its end, which is a jump to `done`.
    pub(super) fn lower_control(&mut self, control: &Control, done: Block, exits: Exits) {
        let program = self.program;
        let ends_early = contains_exit(&program.code.ops);
        let order = in_order(control, &|node| {
            control.successors(node, &program.table_plans)
        });
        let of_node = order
            .iter()
            .map(|&node| (node, self.builder.create_block()));
        let mut nodes = Blocks {
            of_node: of_node.collect(),
            known: BTreeMap::new(),
            done,
        };
        let first = self.block_of(&mut nodes, control.start);
        self.builder.ins().jump(first, &[]);
        for node in order {
            let known = nodes.known.remove(&node).unwrap_or_default();
            self.start_with(nodes.of_node[&node], known);
            match &control.nodes[node as usize] {
                ControlNode::Condition {
                    code,
                    result,
                    if_true,
                    if_false,
                } => {
                    self.lower_piece(*code, exits);
                    let result = self.read(*result);
                    let if_true = self.block_of(&mut nodes, *if_true);
                    let if_false = self.block_of(&mut nodes, *if_false);
                    self.leave_if_exited(ends_early, done);
                    self.builder.ins().brif(result, if_true, &[], if_false, &[]);
                }
                ControlNode::Call { action, next, .. } => {
                    self.lower_piece(program.action_code[*action as usize], exits);
                    self.leave_if_exited(ends_early, done);
                    let next = self.block_of(&mut nodes, *next);
                    self.builder.ins().jump(next, &[]);
                }
                ControlNode::Table(table) => {
                    self.lower_table(*table, &mut nodes, ends_early, exits);
                }
            }
        }
    }

    /// The block of a node that follows the code here.
    fn block_of(&mut self, nodes: &mut Blocks, next: Next) -> Block {
        let Some(node) = next else {
            return nodes.done;
        };
        let known = match nodes.known.get(&node) {
            None => self.known.clone(),
            Some(known) => common(known, &self.known),
        };
        nodes.known.insert(node, known);
        nodes.of_node[&node]
    }

    /// `exit` ends the control behind the node that called it.
    fn leave_if_exited(&mut self, ends_early: bool, done: Block) {
        if ends_early {
            let exited = self.register(Register::Exit);
            let on = self.builder.create_block();
            self.builder.ins().brif(exited, done, &[], on, &[]);
            self.continue_in(on);
        }
    }

    fn lower_table(&mut self, table: u32, nodes: &mut Blocks, ends_early: bool, exits: Exits) {
        let program = self.program;
        let plan = &program.table_plans[table as usize];
        self.lower_key(table);
        let number = self.constant(u64::from(table));
        let function = self.calls.look_up as *const u8;
        let action = self
            .call(function, &[number], true)
            .expect("a function that gives a value");
        if let Some((slot, _)) = plan.meter_target {
            self.known.remove(&slot);
        }
        let before = self.known.clone();
        let none = self.builder.create_block();
        let actions = &program.tables()[table as usize].actions;
        let mut switch = Switch::new();
        let mut blocks = Vec::new();
        for (position, action) in actions.iter().enumerate() {
            if actions[..position].contains(action) {
                continue;
            }
            let block = self.builder.create_block();
            switch.set_entry(position as u128, block);
            blocks.push((position, action.index(), block));
        }
        switch.emit(&mut self.builder, action, none);
        for (position, action, block) in blocks {
            self.start_with(block, before.clone());
            let start = program.action_code[action];
            let ops = piece(&program.code.ops, start);
            self.settle(ops);
            self.take_arguments(ops, &program.action_arguments[action]);
            self.lower_ops(ops, start, exits);
            self.leave_if_exited(ends_early, nodes.done);
            let after = plan.after_action[position];
            let on_hit = plan.on_hit.unwrap_or(after);
            let on_miss = plan.on_miss.unwrap_or(after);
            self.leave_by_hit(nodes, on_hit, on_miss);
        }
        // A hit without an action is one of a member that is gone.
        self.start_with(none, before);
        self.leave_if_exited(ends_early, nodes.done);
        let on_miss = plan.on_miss.unwrap_or(plan.after_none);
        self.leave_by_hit(nodes, plan.after_none, on_miss);
    }

    fn leave_by_hit(&mut self, nodes: &mut Blocks, on_hit: Next, on_miss: Next) {
        let hit_block = self.block_of(nodes, on_hit);
        if on_hit == on_miss {
            self.builder.ins().jump(hit_block, &[]);
            return;
        }
        let miss_block = self.block_of(nodes, on_miss);
        let hit = self.register(Register::Hit);
        self.builder
            .ins()
            .brif(hit, hit_block, &[], miss_block, &[]);
    }

    /// Words of the key; fields of headers that are not valid count as 0.
    fn lower_key(&mut self, table: u32) {
        let plan = &self.program.table_plans[table as usize];
        let mut position = 0;
        for (source, mask) in plan.sources.iter().zip(&plan.masks) {
            for limb in 0..source.limbs {
                let mut value = self.read(source.slot + limb);
                if let Some(valid) = source.valid {
                    let valid = self.read(valid);
                    let zero = self.constant(0);
                    value = self.builder.ins().select(valid, value, zero);
                }
                if let Some(mask) = mask {
                    value = self.mask(value, mask[limb as usize]);
                }
                self.write_key(position, value);
                position += 1;
            }
        }
    }
}

fn contains_exit(ops: &[Op]) -> bool {
    ops.iter().any(|op| matches!(op, Op::Exit))
}

const _: () = assert!(NO_ACTION == u64::MAX, "past every position");
