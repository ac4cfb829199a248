//! Compiles the primitives of actions.

use super::assemble::{Assembler, Operand};
use super::code::{LogArgument, LogMessage, Op};
use super::error::{Problem, ProgramError};
use super::expression::Value;
use super::json::Node;
use super::named::Objects;
use super::p4_14;
use super::range::Range;

/// Most primitives of an action.
const PRIMITIVES_MAX: usize = 1 << 16;

const SUPPORTED: &str = "assign, modify_field, add_to_field, subtract_from_field, add, subtract, bit_and, \
     bit_or, bit_xor, shift_left, shift_right, assign_VL, assign_header, copy_header, assign_union, \
     assign_header_stack, assign_union_stack, add_header, add_header_fast, remove_header, push, pop, \
     mark_to_drop, drop, \
     clone_ingress_pkt_to_egress, clone_egress_pkt_to_egress, resubmit, recirculate, truncate, \
     generate_digest, count, execute_meter, register_read, register_write, \
     modify_field_with_hash_based_offset, modify_field_rng_uniform, exit, assert, assume, log_msg, \
     no_op, _jump, _jump_if_zero";

impl Objects<'_> {
    /// Compiles a list of primitives; the code ends with [`Op::End`]. Gives its start.
    pub(super) fn body(
        &self,
        assembler: &mut Assembler<'_>,
        primitives: &[Node<'_>],
    ) -> Result<u32, ProgramError> {
        if let (Some(first), true) = (primitives.first(), primitives.len() > PRIMITIVES_MAX) {
            return Err(first.error(Problem::LimitExceeded {
                what: "primitives",
                value: primitives.len(),
                limit: PRIMITIVES_MAX,
            }));
        }
        let start = assembler.here();
        let mut starts = Vec::with_capacity(primitives.len() + 1);
        let mut jumps = Vec::new();
        for (index, node) in primitives.iter().enumerate() {
            starts.push(assembler.here());
            assembler.release();
            let name = node.member("op")?.string()?;
            let parameters = node.list("parameters")?;
            match (name, parameters.as_slice()) {
                ("_jump", [offset]) => {
                    let to = jump_offset(offset, primitives.len())?;
                    jumps.push((assembler.here(), to));
                    assembler.emit(if to <= index {
                        Op::Loop { target: 0 }
                    } else {
                        Op::Jump { target: 0 }
                    });
                }
                ("_jump_if_zero", [condition, offset]) => {
                    let to = jump_offset(offset, primitives.len())?;
                    if to <= index {
                        return Err(offset.unsupported(
                            "a conditional jump backwards",
                            "conditional jumps forwards",
                        ));
                    }
                    let condition_value = self.scope.logic(condition)?;
                    let condition = assembler.logic(&condition_value, condition)?;
                    jumps.push((assembler.here(), to));
                    assembler.emit(Op::JumpIfZero {
                        condition,
                        target: 0,
                    });
                }
                _ => self.primitive(assembler, node, name, &parameters)?,
            }
        }
        starts.push(assembler.here());
        assembler.emit(Op::End);
        for (at, to) in jumps {
            assembler.set_jump(at, starts[to]);
        }
        Ok(start)
    }

    pub(super) fn primitive(
        &self,
        assembler: &mut Assembler<'_>,
        node: &Node<'_>,
        name: &str,
        parameters: &[Node<'_>],
    ) -> Result<(), ProgramError> {
        let scope = &self.scope;
        if let Some(operation) = p4_14::operation(name, parameters) {
            return self.compute(assembler, operation);
        }
        match (name, parameters) {
            ("assign" | "modify_field", [to, from]) => self.assign(assembler, to, from),
            ("assign_VL", [to, from]) => {
                let varbits = (scope.value(to)?, scope.value(from)?);
                let (Value::Varbit(to), Value::Varbit(from)) = varbits else {
                    return Err(node.invalid("two variable fields"));
                };
                assembler.move_words(to, from, 2);
                Ok(())
            }
            ("assign_header" | "copy_header", [to, from]) => {
                self.assign_header(assembler, to, from)
            }
            ("assign_union", [to_node, from_node]) => {
                self.assign_union(assembler, to_node, from_node)
            }
            ("assign_header_stack" | "assign_union_stack", [to, from]) => {
                self.assign_stack(assembler, to, from)
            }
            ("add_header", [header]) => self.set_validity(assembler, header, true),
            ("add_header_fast", [header]) => self.set_valid_alone(assembler, header),
            ("remove_header", [header]) => self.set_validity(assembler, header, false),
            ("push" | "pop", [stack, count]) => self.shift(assembler, name == "push", stack, count),
            ("mark_to_drop", [header]) => {
                let header = header.member("value")?;
                scope.layout.header(&header)?;
                self.mark_to_drop(assembler, node, header.string()?)
            }
            ("drop", []) => self.mark_to_drop(assembler, node, "standard_metadata"),
            ("clone_ingress_pkt_to_egress" | "clone_egress_pkt_to_egress", [session, list]) => {
                let session = assembler.word(&scope.data(session)?, session)?;
                let list = assembler.word(&scope.data(list)?, list)?;
                assembler.emit(Op::Clone { session, list });
                Ok(())
            }
            ("resubmit", [list]) => {
                let list = assembler.word(&scope.data(list)?, list)?;
                assembler.emit(Op::Resubmit { list });
                Ok(())
            }
            ("recirculate", [list]) => {
                let list = assembler.word(&scope.data(list)?, list)?;
                assembler.emit(Op::Recirculate { list });
                Ok(())
            }
            ("truncate", [length]) => {
                let bytes = assembler.word(&scope.data(length)?, length)?;
                assembler.emit(Op::Truncate { bytes });
                Ok(())
            }
            ("generate_digest", [_, list]) => {
                let list = assembler.word(&scope.data(list)?, list)?;
                assembler.emit(Op::Digest { list });
                Ok(())
            }
            ("count", [counter, index]) => {
                let counter = object(counter, "counter_array", "counter array", self.counters)?;
                let index = assembler.word(&scope.data(index)?, index)?;
                assembler.emit(Op::Count { counter, index });
                Ok(())
            }
            ("execute_meter", [meter, index, to]) => {
                let meter = object(meter, "meter_array", "meter array", self.meters)?;
                let index = assembler.word(&scope.data(index)?, index)?;
                self.update(assembler, to, 1, |slot| Op::ExecuteMeter {
                    to: slot,
                    meter,
                    index,
                })
            }
            ("register_read", [to, register, index]) => {
                let (register, width) = self.register(register)?;
                let index = assembler.word(&scope.data(index)?, index)?;
                let limbs = width.div_ceil(64).max(1);
                self.update(assembler, to, limbs, |slot| Op::ReadRegister {
                    to: slot,
                    register,
                    index,
                })
            }
            ("register_write", [register, index, from]) => {
                let (register, width) = self.register(register)?;
                let index = assembler.word(&scope.data(index)?, index)?;
                let value = assembler.data(&scope.data(from)?, Some(width), from)?;
                let slot = assembler.temporary(width.div_ceil(64).max(1), from)?;
                assembler.store_words(slot, width, value, from)?;
                assembler.emit(Op::WriteRegister {
                    from: slot,
                    register,
                    index,
                });
                Ok(())
            }
            ("modify_field_with_hash_based_offset", [to, base, calculation, size]) => {
                self.hash(assembler, to, base, calculation, size)
            }
            ("modify_field_rng_uniform", [to, low, high]) => self.random(assembler, to, low, high),
            ("exit", []) => {
                assembler.emit(Op::Exit);
                Ok(())
            }
            ("assert" | "assume", [condition]) => {
                let value = scope.logic(condition)?;
                let condition = assembler.logic(&value, condition)?;
                assembler.emit(Op::Assert { condition });
                Ok(())
            }
            ("log_msg", [format, arguments]) => self.log_message(assembler, format, arguments),
            ("no_op", []) => Ok(()),
            _ => Err(node.unsupported(
                format!("primitive \"{name}\" with {} parameters", parameters.len()),
                SUPPORTED,
            )),
        }
    }

    fn log_message(
        &self,
        assembler: &mut Assembler<'_>,
        format: &Node<'_>,
        values: &Node<'_>,
    ) -> Result<(), ProgramError> {
        let mut arguments = Vec::new();
        let values = values.member("value")?;
        // p4c writes an empty object where a message has no values.
        let none = values.member_names().is_ok_and(|names| names.is_empty());
        let values = if none { Vec::new() } else { values.items()? };
        for node in values {
            arguments.push(match self.scope.value(&node)? {
                Value::Logic(logic) => LogArgument {
                    slot: assembler.logic(&logic, &node)?,
                    limbs: 1,
                    signed: false,
                },
                _ => {
                    let operand = assembler.data(&self.scope.data(&node)?, None, &node)?;
                    LogArgument {
                        slot: operand.slot,
                        limbs: operand.limbs,
                        signed: operand.range.may_be_negative(),
                    }
                }
            });
        }
        let message = assembler.code.log_messages.len() as u32;
        assembler.code.log_messages.push(LogMessage {
            format: format.member("value")?.string()?.to_owned(),
            arguments,
        });
        assembler.emit(Op::Log { message });
        Ok(())
    }

    fn register(&self, node: &Node<'_>) -> Result<(u32, u32), ProgramError> {
        let names: Vec<String> = self
            .scope
            .registers
            .iter()
            .map(|register| register.name.clone())
            .collect();
        let register = object(node, "register_array", "register array", &names)?;
        Ok((register, self.scope.registers[register as usize].width_bits))
    }

    fn assign(
        &self,
        assembler: &mut Assembler<'_>,
        to: &Node<'_>,
        from: &Node<'_>,
    ) -> Result<(), ProgramError> {
        match self.scope.value(to)? {
            Value::Data(target) => {
                let target = assembler.target(&target, to)?;
                let value = self.scope.data(from)?;
                assembler.assign(&target, &value, from)
            }
            Value::Varbit(to) => match self.scope.value(from)? {
                Value::Varbit(from) => {
                    assembler.move_words(to, from, 2);
                    Ok(())
                }
                _ => Err(from.invalid("a variable field")),
            },
            // p4c converts a bool field on the left side too.
            Value::Logic(super::expression::Logic::NonZero(target)) => {
                let target = assembler.target(&target, to)?;
                let value = self.scope.data(from)?;
                assembler.assign(&target, &value, from)
            }
            _ => Err(to.invalid("a field to assign to")),
        }
    }

    /// Runs an instruction that writes a value into words, or leaves them alone, and
    /// stores the words.
    fn update(
        &self,
        assembler: &mut Assembler<'_>,
        to: &Node<'_>,
        limbs: u32,
        op: impl Fn(u32) -> Op,
    ) -> Result<(), ProgramError> {
        let data = self.scope.data(to)?;
        let target = assembler.target(&data, to)?;
        let slot = assembler.temporary(limbs, to)?;
        let old_slot = assembler.temporary(limbs, to)?;
        let old = assembler.data(&data, Some(limbs * 64), to)?;
        assembler.store_words(old_slot, limbs * 64, old, to)?;
        assembler.move_words(slot, old_slot, limbs);
        assembler.emit(op(slot));
        let value = Operand {
            slot,
            limbs,
            range: Range::unsigned(limbs * 64),
        };
        assembler.store(&target, value, to)
    }

    fn hash(
        &self,
        assembler: &mut Assembler<'_>,
        to: &Node<'_>,
        base: &Node<'_>,
        calculation: &Node<'_>,
        size: &Node<'_>,
    ) -> Result<(), ProgramError> {
        let data = self.scope.data(to)?;
        let target = assembler.target(&data, to)?;
        let calculation = object(calculation, "calculation", "calculation", self.calculations)?;
        // BMv2 takes base and size modulo 2^64.
        let a = assembler
            .data(&self.scope.data(base)?, Some(64), base)?
            .slot;
        let b = assembler
            .data(&self.scope.data(size)?, Some(64), size)?
            .slot;
        let slot = assembler.temporary(1, to)?;
        assembler.emit(Op::Hash {
            to: slot,
            calculation,
        });
        assembler.emit(Op::Fold {
            to: slot,
            a: slot,
            b,
        });
        assembler.emit(Op::Add {
            to: slot,
            a: slot,
            b: a,
        });
        let value = Operand {
            slot,
            limbs: 1,
            range: Range::unsigned(64),
        };
        assembler.store(&target, value, to)
    }

    /// `random`: the target is not written when `low` is above `high`, as in BMv2.
    fn random(
        &self,
        assembler: &mut Assembler<'_>,
        to: &Node<'_>,
        low: &Node<'_>,
        high: &Node<'_>,
    ) -> Result<(), ProgramError> {
        let data = self.scope.data(to)?;
        let target = assembler.target(&data, to)?;
        let low = assembler.data(&self.scope.data(low)?, Some(64), low)?.slot;
        let high = assembler
            .data(&self.scope.data(high)?, Some(64), high)?
            .slot;
        let slot = assembler.temporary(1, to)?;
        assembler.emit(Op::Less {
            to: slot,
            a: high,
            b: low,
        });
        let skip = assembler.here();
        assembler.emit(Op::JumpIfNonZero {
            condition: slot,
            target: 0,
        });
        assembler.emit(Op::Random {
            to: slot,
            low,
            high,
        });
        let value = Operand {
            slot,
            limbs: 1,
            range: Range::unsigned(64),
        };
        assembler.store(&target, value, to)?;
        let end = assembler.here();
        assembler.set_jump(skip, end);
        Ok(())
    }
}

fn jump_offset(node: &Node<'_>, primitives: usize) -> Result<usize, ProgramError> {
    let value = node.member("value")?;
    let (bytes, negative) = value.signed_hex()?;
    let offset = bytes
        .iter()
        .try_fold(0usize, |sum, &byte| {
            Some(sum.checked_mul(256)? + usize::from(byte))
        })
        .filter(|&offset| offset <= primitives && !negative);
    offset.ok_or_else(|| value.invalid(format!("the index of a primitive, 0x0 to {primitives:#x}")))
}

/// The index of a named object given as a parameter of one type.
pub(super) fn object(
    node: &Node<'_>,
    type_name: &str,
    kind: &'static str,
    names: &[String],
) -> Result<u32, ProgramError> {
    let type_node = node.member("type")?;
    if type_node.string()? != type_name {
        return Err(type_node.invalid(format!("\"{type_name}\"")));
    }
    let value = node.member("value")?;
    let name = value.string()?;
    names
        .iter()
        .position(|candidate| candidate == name)
        .map(|index| index as u32)
        .ok_or_else(|| value.unknown(kind, name, names.iter().map(String::as_str)))
}
