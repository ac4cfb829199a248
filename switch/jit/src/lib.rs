//! Programs compiled to machine code, with Cranelift.
//!
//! The parser, both controls, the checksums and the deparser of a program become one
//! function each. They work on the same frame of words as the interpreter, and leave what
//! is rare or long to it, an instruction at a time (see [`ops::is_interpreted`]); so
//! whatever the interpreter runs, compiled code runs, with the same results, events and
//! drops. Tables stay data: compiled code builds a key, calls the lookup, and branches to
//! the code of the action that the entry names.

mod checksum;
mod control;
mod deparser;
mod headers;
mod interpreted;
mod lower;
mod ops;
mod parser;
mod wide;

use std::fmt;
use std::sync::Mutex;

use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{AbiParam, InstBuilder, Signature};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, default_libcall_names};

use lower::{Exits, Lower};
use wormcast_switch_pipeline::abi::{Calls, Entries, Entry, Numbers, status};
use wormcast_switch_pipeline::{CALLS, Compilation, Compiler, Execution, MachineCode, NUMBERS};
use wormcast_switch_program::Program;

/// Most instructions of a program, those of an action counted for each table that calls it;
/// longer programs are interpreted, so that loading one always takes a bounded time.
const OPS_MAX: usize = 100_000;

/// Why there is no code, as Cranelift says it.
fn refusal(error: impl fmt::Display) -> String {
    error.to_string()
}

/// The code of a program. Its memory is freed when it is dropped.
struct Compiled {
    /// Kept for its memory alone; behind a lock, since it cannot be shared as it is.
    module: Mutex<Option<JITModule>>,
    entries: Entries,
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled").finish_non_exhaustive()
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        let module = self.module.get_mut();
        if let Some(module) = module.ok().and_then(Option::take) {
            // SAFETY: a pipeline that has the entries keeps the program alive that owns this
            // value, so none of them runs now, and none is reachable from here on.
            unsafe { module.free_memory() };
        }
    }
}

/// One of the functions a program becomes.
#[derive(Clone, Copy)]
enum Function {
    Parser,
    Verify,
    Ingress,
    Egress,
    Deparser,
}

impl MachineCode for Compiled {
    fn entries(&self) -> Entries {
        self.entries
    }
}

// SAFETY: each function is lowered from the program that is given, with CALLS and NUMBERS.
/// Compiles programs for this machine.
pub const COMPILER: Compiler = unsafe { Compiler::new(compile) };

/// What that execution needs: [`COMPILER`], or none.
pub fn compiler_of(execution: Execution) -> Option<Compiler> {
    match execution {
        Execution::Compiled => Some(COMPILER),
        Execution::Interpreted => None,
    }
}

fn compile(program: &Program) -> Compilation {
    if cfg!(target_endian = "big") {
        return Err("code is made for little-endian machines".to_owned());
    }
    let count = ops_count(program);
    if count > OPS_MAX {
        return Err(format!(
            "the program has {count} instructions, more than {OPS_MAX}"
        ));
    }
    let mut flags = settings::builder();
    for (name, value) in [
        ("opt_level", "speed"),
        ("is_pic", "false"),
        ("use_colocated_libcalls", "false"),
        ("enable_probestack", "false"),
        ("unwind_info", "false"),
        (
            "enable_verifier",
            if cfg!(debug_assertions) {
                "true"
            } else {
                "false"
            },
        ),
    ] {
        flags.set(name, value).map_err(refusal)?;
    }
    let backend = cranelift_native::builder().map_err(refusal)?;
    let isa = backend
        .finish(settings::Flags::new(flags))
        .map_err(refusal)?;
    let mut module = JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()));
    let register_limbs: Vec<u32> = program
        .registers()
        .iter()
        .map(|register| register.width_bits.div_ceil(64))
        .collect();
    let mut define = |name: &str, function| -> Result<FuncId, String> {
        define(
            &mut module,
            name,
            function,
            program,
            &register_limbs,
            CALLS,
            NUMBERS,
        )
    };
    let parser = define("parser", Function::Parser)?;
    let verify = if program.verified.is_empty() {
        None
    } else {
        Some(define("verify", Function::Verify)?)
    };
    let ingress = define("ingress", Function::Ingress)?;
    let egress = define("egress", Function::Egress)?;
    let deparser = define("deparser", Function::Deparser)?;
    module.finalize_definitions().map_err(refusal)?;
    let entry = |id: FuncId| {
        let code = module.get_finalized_function(id);
        // SAFETY: the code was made from a function with this signature and convention.
        unsafe { std::mem::transmute::<*const u8, Entry>(code) }
    };
    let entries = Entries {
        parser: entry(parser),
        verify: verify.map(entry),
        ingress: entry(ingress),
        egress: entry(egress),
        deparser: entry(deparser),
    };
    Ok(Box::new(Compiled {
        entries,
        module: Mutex::new(Some(module)),
    }))
}

/// Instructions of a program as it will be compiled.
fn ops_count(program: &Program) -> usize {
    let action = |action: usize| {
        let start = program.action_code[action];
        ops::piece(&program.code.ops, start).len()
    };
    let actions = program.tables().iter().flat_map(|table| &table.actions);
    let in_tables: usize = actions.map(|id| action(id.index())).sum();
    in_tables + program.code.ops.len()
}

fn define(
    module: &mut JITModule,
    name: &str,
    function: Function,
    program: &Program,
    register_limbs: &[u32],
    calls: Calls,
    numbers: Numbers,
) -> Result<FuncId, String> {
    let convention = module.isa().default_call_conv();
    let mut signature = Signature::new(convention);
    signature.params.push(AbiParam::new(I64));
    signature.returns.push(AbiParam::new(I64));
    let id = module
        .declare_function(name, Linkage::Export, &signature)
        .map_err(refusal)?;
    let mut context = module.make_context();
    context.func.signature = signature;
    let mut builder_context = FunctionBuilderContext::new();
    let builder = FunctionBuilder::new(&mut context.func, &mut builder_context);
    let mut lower = Lower::new(builder, program, register_limbs, calls, numbers, convention);
    lower_function(&mut lower, function);
    lower.builder.seal_all_blocks();
    lower.builder.finalize();
    module.define_function(id, &mut context).map_err(refusal)?;
    Ok(id)
}

fn lower_function(lower: &mut Lower<'_, '_>, function: Function) {
    let done = lower.builder.create_block();
    let stop = lower.builder.create_block();
    lower.builder.append_block_param(stop, I64);
    lower.builder.set_cold_block(stop);
    let exits = Exits { stop };
    let program = lower.program;
    match function {
        Function::Parser => lower.lower_parser(done, exits),
        Function::Verify => {
            lower.lower_verify(exits);
            lower.builder.ins().jump(done, &[]);
        }
        Function::Ingress => lower.lower_control(&program.ingress, done, exits),
        Function::Egress => lower.lower_control(&program.egress, done, exits),
        Function::Deparser => {
            lower.lower_updates();
            lower.lower_deparser();
            lower.builder.ins().jump(done, &[]);
        }
    }
    lower.builder.switch_to_block(done);
    let result = lower.constant(status::DONE);
    lower.builder.ins().return_(&[result]);
    lower.builder.switch_to_block(stop);
    let result = lower.builder.block_params(stop)[0];
    lower.builder.ins().return_(&[result]);
}
