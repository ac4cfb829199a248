//! Programs as pipelines have them, with the machine code they were compiled to.

use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;

use wormcast_switch_program::{Program, ProgramError};

use super::abi::Entries;

/// The code of a program. Its memory is freed when it is dropped.
pub trait MachineCode: fmt::Debug + Send + Sync {
    /// Its functions, which may be called as long as this value lives.
    fn entries(&self) -> Entries;
}

/// What a compiler gives: code, or why there is none.
pub type Compilation = Result<Box<dyn MachineCode>, String>;

/// Makes machine code of programs.
#[derive(Clone, Copy, Debug)]
pub struct Compiler(fn(&Program) -> Compilation);

impl Compiler {
    /// A compiler.
    ///
    /// # Safety
    /// The code that `compile` gives is that of the program it was given, and keeps to
    /// [`abi`](super::abi): it touches nothing but what a [`Run`](super::abi::Run) for that
    /// program holds, and calls nothing but [`CALLS`](super::CALLS).
    pub const unsafe fn new(compile: fn(&Program) -> Compilation) -> Self {
        Self(compile)
    }
}

/// A program and, once a pipeline has asked for it, its machine code, which all pipelines share
/// that run the program.
#[derive(Debug)]
pub struct LoadedProgram {
    program: Program,
    code: OnceLock<Compilation>,
}

impl LoadedProgram {
    /// A program that has not been compiled.
    pub fn new(program: Program) -> Self {
        Self {
            program,
            code: OnceLock::new(),
        }
    }

    /// Reads a program, see [`Program::from_json`].
    ///
    /// # Errors
    /// The first thing that is not valid or not supported.
    pub fn from_json(text: &str) -> Result<Self, ProgramError> {
        Program::from_json(text).map(Self::new)
    }

    /// Its code, compiled the first time it is asked for.
    pub(super) fn entries(&self, compiler: Compiler) -> Result<Entries, &str> {
        let code = self.code.get_or_init(|| (compiler.0)(&self.program));
        code.as_ref()
            .map(|code| code.entries())
            .map_err(String::as_str)
    }
}

impl Deref for LoadedProgram {
    type Target = Program;

    #[inline]
    fn deref(&self) -> &Program {
        &self.program
    }
}
