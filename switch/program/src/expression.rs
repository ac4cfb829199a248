//! Expressions of the JSON as typed trees.

use super::layout::{Layout, Slot};
use super::range::{Constant, Range};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BinaryKind {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

#[derive(Clone, Debug)]
pub(super) enum Data {
    Slot {
        slot: Slot,
        range: Range,
        /// Sign bit of a signed field, which is stored without extension.
        signed_bits: Option<u32>,
    },
    Constant(Constant),
    Binary {
        kind: BinaryKind,
        left: Box<Data>,
        right: Box<Data>,
    },
    Not(Box<Data>),
    Choose {
        condition: Box<Logic>,
        left: Box<Data>,
        right: Box<Data>,
    },
    FromLogic(Box<Logic>),
    SignedModulo {
        value: Box<Data>,
        bits: u32,
    },
    Clamp {
        value: Box<Data>,
        bits: u32,
        signed: bool,
    },
    StackField {
        stack: u32,
        index: Box<Data>,
        field: u32,
    },
    LastField {
        stack: u32,
        field: u32,
    },
    /// Of the stack with this fill.
    LastIndex(Slot),
    Fill(Slot),
    Register {
        register: u32,
        width: u32,
        index: Box<Data>,
    },
}

/// A truth value.
#[derive(Clone, Debug)]
pub(super) enum Logic {
    Constant(bool),
    Compare {
        kind: Comparison,
        left: Box<Data>,
        right: Box<Data>,
    },
    Same {
        equal: bool,
        left: Box<Logic>,
        right: Box<Logic>,
    },
    SameHeader {
        equal: bool,
        left: HeaderRef,
        right: HeaderRef,
    },
    SameVarbit {
        equal: bool,
        left: Slot,
        right: Slot,
    },
    And(Box<Logic>, Box<Logic>),
    Or(Box<Logic>, Box<Logic>),
    Not(Box<Logic>),
    NonZero(Box<Data>),
    Valid(HeaderRef),
    ValidUnion(u32),
    Choose {
        condition: Box<Logic>,
        left: Box<Logic>,
        right: Box<Logic>,
    },
}

#[derive(Clone, Debug)]
pub(super) enum HeaderRef {
    Fixed(u32),
    Element { stack: u32, index: Box<Data> },
}

impl HeaderRef {
    /// Index of the header's type.
    pub(super) fn kind(&self, layout: &Layout) -> u32 {
        match self {
            HeaderRef::Fixed(header) => layout.headers[*header as usize].kind,
            HeaderRef::Element { stack, .. } => layout.stacks[*stack as usize].kind,
        }
    }
}

/// The value of an expression or of a parameter of a primitive.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Data(Data),
    Logic(Logic),
    Header(HeaderRef),
    Stack(u32),
    Union(u32),
    UnionStack(u32),
    /// A variable field: its two words.
    Varbit(Slot),
}
