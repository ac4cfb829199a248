//! BMv2 JSON as p4c writes it for v1model, read into a program that is ready to run.
//!
//! [`Program::from_json`] resolves every reference to an index, checks every width, and
//! compiles expressions, actions and parser states to instructions on a frame of 64-bit
//! words. What this switch cannot run is refused here, with the place in the JSON, the
//! value found there and the values that are valid; nothing is left to fail at run time.
//!
//! Format: behavioral-model, `docs/JSON_format.md`, version 2. Semantics: those of
//! `simple_switch`.

mod arithmetic;
mod arrays;
mod assemble;
mod bits;
mod bounds;
mod calculation;
pub mod code;
mod control;
mod description;
mod effects;
mod entry;
mod error;
mod expression;
mod footprint;
mod header_primitives;
mod header_type;
mod json;
mod layout;
mod logic;
mod metadata;
mod named;
mod names;
mod object_ids;
mod objects;
mod p4_14;
mod parser;
mod primitive;
mod program;
mod range;
mod references;
mod scope;
mod table;
mod unique;
mod width;

pub use description::{
    ActionId, ActionInfo, ActionProfileId, ActionProfileInfo, CounterId, CounterInfo, DigestId,
    DigestInfo, HeaderTypeInfo, KeyField, MatchKind, MeterId, MeterInfo, MeterUnit, Parameter,
    RegisterId, RegisterInfo, TableId, TableInfo, ValueSetId, ValueSetInfo,
};
pub use error::{Problem, ProgramError};

pub use bits::Bits;
pub use calculation::{Algorithm, Calculation, Checksum, InputPart};
pub use code::Code;
pub use control::{Control, ControlNode, Selector, Stage};
pub use effects::effects;
pub use entry::{ActionCall, FieldMatch};
pub use header_type::{HeaderType, Piece};
pub use layout::{FieldRef, Layout, Slot};
pub use metadata::{CoreErrors, FieldList, Intrinsics};
pub use names::{Names, NodeName};
pub use parser::{Case, Parser};
pub use program::{Footprint, Ir, Program};
pub use references::Next;
pub use table::Table;
pub use width::ones;
