//! Instructions on stacks of header unions. Unlike the headers of a stack, those of its unions
//! do not lie one after another in the frame.

use super::machine::Machine;
use super::statistics::Event;
use wormcast_switch_program::code::Op;
use wormcast_switch_program::{Program, Slot};

impl Machine {
    /// Copies, pushes and pops.
    pub(super) fn run_unions_op(&mut self, program: &Program, op: Op) {
        match op {
            Op::CopyUnions { to, from } => {
                let stacks = &program.layout.union_stacks;
                let (to, from) = (&stacks[to as usize], &stacks[from as usize]);
                self.write(to.fill, self.word(from.fill));
                for (&to, &from) in to.unions.iter().zip(&from.unions) {
                    self.move_union(program, to, Some(from));
                }
            }
            Op::PushUnions { stack, count } => {
                let stack = &program.layout.union_stacks[stack as usize];
                let size = stack.unions.len();
                let count = usize::try_from(self.word(count)).map_or(size, |count| count.min(size));
                for index in (0..size).rev() {
                    let from = index.checked_sub(count).map(|from| stack.unions[from]);
                    self.move_union(program, stack.unions[index], from);
                }
                let fill = self.word(stack.fill) + count as u64;
                self.write(stack.fill, fill.min(size as u64));
            }
            Op::PopUnions { stack, count } => {
                let stack = &program.layout.union_stacks[stack as usize];
                let size = stack.unions.len();
                let count = usize::try_from(self.word(count)).map_or(size, |count| count.min(size));
                for index in 0..size {
                    let from = stack.unions.get(index + count).copied();
                    self.move_union(program, stack.unions[index], from);
                }
                let fill = self.word(stack.fill).saturating_sub(count as u64);
                self.write(stack.fill, fill);
            }
            other => unreachable!("{other:?} is not an instruction on stacks of unions"),
        }
    }

    /// Makes a union what another one of its type is, or invalid.
    fn move_union(&mut self, program: &Program, to: u32, from: Option<u32>) {
        let layout = &program.layout;
        let base = |header: u32| layout.headers[header as usize].base as usize;
        let headers = |union: u32| layout.unions[union as usize].headers.as_slice();
        let Some(from) = from else {
            for &header in headers(to) {
                self.words[base(header)] = 0;
            }
            return;
        };
        for (&to, &from) in headers(to).iter().zip(headers(from)) {
            let kind = layout.headers[from as usize].kind;
            let words = layout.types[kind as usize].words as usize;
            let from = base(from)..base(from) + words;
            self.words.copy_within(from, base(to));
        }
    }

    /// A field of the last union; 0, and counted, of an empty stack.
    pub(super) fn load_last_union(&mut self, program: &Program, to: Slot, access: u32) {
        let layout = &program.layout;
        let access = program.code.union_fields[access as usize];
        let stack = &layout.union_stacks[access.stack as usize];
        let last = self.word(stack.fill).wrapping_sub(1);
        let last = usize::try_from(last).ok();
        let (to, limbs) = (to as usize, access.limbs as usize);
        let Some(&union) = last.and_then(|last| stack.unions.get(last)) else {
            self.statistics.count_event(Event::StackIndexOutOfBounds);
            self.words[to..to + limbs].fill(0);
            return;
        };
        let header = layout.unions[union as usize].headers[access.member as usize];
        let first = (layout.headers[header as usize].base + access.offset) as usize;
        self.words.copy_within(first..first + limbs, to);
    }
}
