//! Instructions that expressions, actions and parser states are compiled to.
//!
//! All operands are words of the frame (see [`layout`](super::layout)). An instruction has
//! at most three of them and fits in 16 bytes; what needs more lives in a side table.

use super::layout::Slot;

/// What a dynamic header reference holds when it refers to nothing.
pub(crate) const NO_HEADER: u64 = u64::MAX;

/// Operations on two words or two wide values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WideKind {
    Extend,
    ExtendSigned,
    Add,
    Subtract,
    Multiply,
    And,
    Or,
    Xor,
    Not,
    ShiftLeft,
    ShiftRight,
    ShiftRightSigned,
    Divide,
    Modulo,
    Equal,
    Less,
    LessSigned,
    SignExtend,
    ClampUnsigned,
    ClampSigned,
    Mask,
}

/// An operation on values of more than one word. The result and both operands have
/// `limbs` words, except where said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WideOp {
    pub(crate) kind: WideKind,
    pub(crate) to: Slot,
    pub(crate) a: Slot,
    pub(crate) b: Slot,
    /// Words of the result (of the operands for a comparison).
    pub(crate) limbs: u32,
    /// Words of `a` where they differ from `limbs` (extension, clamps), words of the shift
    /// amount, or a width in bits (sign extension, mask).
    pub(crate) extra: u32,
    /// Width in bits of a clamp.
    pub(crate) bits: u32,
    /// The operand of a clamp may be negative.
    pub(crate) signed: bool,
}

/// Access to a field of a stack element chosen at run time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StackField {
    pub(crate) stack: u32,
    /// Words from the base of the header.
    pub(crate) offset: u32,
    pub(crate) limbs: u32,
}

/// Bits of the packet ahead of the parser.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lookahead {
    pub(crate) offset: u32,
    pub(crate) width: u32,
}

/// A `log_msg` of the program.
#[derive(Clone, Debug)]
pub(crate) struct LogMessage {
    /// Text with `{}` for each argument.
    pub(crate) format: String,
    pub(crate) arguments: Vec<LogArgument>,
}

/// Words that hold an argument of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogArgument {
    pub(crate) slot: Slot,
    pub(crate) limbs: u32,
    /// In two's complement.
    pub(crate) signed: bool,
}

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// The end of a piece of code.
    End,
    Jump {
        target: u32,
    },
    /// A jump backwards, counted against a limit.
    Loop {
        target: u32,
    },
    JumpIfZero {
        condition: Slot,
        target: u32,
    },
    JumpIfNonZero {
        condition: Slot,
        target: u32,
    },

    Move {
        to: Slot,
        from: Slot,
    },
    Add {
        to: Slot,
        a: Slot,
        b: Slot,
    },
    Subtract {
        to: Slot,
        a: Slot,
        b: Slot,
    },
    Multiply {
        to: Slot,
        a: Slot,
        b: Slot,
    },
    And {
        to: Slot,
        a: Slot,
        b: Slot,
    },
    Or {
        to: Slot,
        a: Slot,
        b: Slot,
    },
    Xor {
        to: Slot,
        a: Slot,
        b: Slot,
    },
    Not {
        to: Slot,
        a: Slot,
    },
    ShiftLeft {
        to: Slot,
        a: Slot,
        b: Slot,
    },
    ShiftRight {
        to: Slot,
        a: Slot,
        b: Slot,
    },
    ShiftRightSigned {
        to: Slot,
        a: Slot,
        b: Slot,
    },
    Divide {
        to: Slot,
        a: Slot,
        b: Slot,
    },
    Modulo {
        to: Slot,
        a: Slot,
        b: Slot,
    },
    Equal {
        to: Slot,
        a: Slot,
        b: Slot,
    },
    NotEqual {
        to: Slot,
        a: Slot,
        b: Slot,
    },
    Less {
        to: Slot,
        a: Slot,
        b: Slot,
    },
    LessEqual {
        to: Slot,
        a: Slot,
        b: Slot,
    },
    LessSigned {
        to: Slot,
        a: Slot,
        b: Slot,
    },
    LessEqualSigned {
        to: Slot,
        a: Slot,
        b: Slot,
    },
    /// 1 if the word is 0, else 0.
    LogicalNot {
        to: Slot,
        a: Slot,
    },
    /// Copies bit `bits - 1` into all higher bits.
    SignExtend {
        to: Slot,
        a: Slot,
        bits: u32,
    },
    /// An operation of the side table.
    Wide {
        index: u32,
    },
    /// Copies consecutive words.
    MoveWords {
        to: Slot,
        from: Slot,
        count: u32,
    },

    LoadStack {
        to: Slot,
        access: u32,
        index: Slot,
    },
    StoreStack {
        from: Slot,
        access: u32,
        index: Slot,
    },
    LoadLast {
        to: Slot,
        access: u32,
    },
    StoreLast {
        from: Slot,
        access: u32,
    },
    /// Index of the last element, in two's complement.
    LastIndex {
        to: Slot,
        stack: u32,
    },
    /// The header number of a stack element, or [`NO_HEADER`].
    FindHeader {
        to: Slot,
        stack: u32,
        index: Slot,
    },

    MakeValid {
        header: u32,
    },
    MakeInvalid {
        header: u32,
    },
    CopyHeader {
        to: u32,
        from: u32,
    },
    MakeValidAt {
        header: Slot,
    },
    MakeInvalidAt {
        header: Slot,
    },
    CopyHeaderAt {
        to: Slot,
        from: Slot,
    },
    ValidAt {
        to: Slot,
        header: Slot,
    },
    EqualHeaders {
        to: Slot,
        a: Slot,
        b: Slot,
    },
    /// Same length and bytes of two variable fields.
    EqualVarbits {
        to: Slot,
        a: Slot,
        b: Slot,
    },
    ValidUnion {
        to: Slot,
        union: u32,
    },
    CopyStack {
        to: u32,
        from: u32,
    },
    Push {
        stack: u32,
        count: Slot,
    },
    Pop {
        stack: u32,
        count: Slot,
    },

    Count {
        counter: u32,
        index: Slot,
    },
    ReadRegister {
        to: Slot,
        register: u32,
        index: Slot,
    },
    WriteRegister {
        from: Slot,
        register: u32,
        index: Slot,
    },
    /// Leaves the target alone when the index is out of bounds: jumps to the next but one.
    ExecuteMeter {
        to: Slot,
        meter: u32,
        index: Slot,
    },
    Hash {
        to: Slot,
        calculation: u32,
    },
    /// `a` modulo `b`, where 0 counts as 1.
    Fold {
        to: Slot,
        a: Slot,
        b: Slot,
    },
    Random {
        to: Slot,
        low: Slot,
        high: Slot,
    },
    Clone {
        session: Slot,
        list: Slot,
    },
    Resubmit {
        list: Slot,
    },
    Recirculate {
        list: Slot,
    },
    Digest {
        list: Slot,
    },
    Truncate {
        bytes: Slot,
    },
    Exit,
    Assert {
        condition: Slot,
    },
    /// Says a message of the side table; for whoever traces the packet.
    Log {
        message: u32,
    },

    Extract {
        header: u32,
    },
    ExtractNext {
        stack: u32,
    },
    /// Into a member of the next union of a stack.
    ExtractUnionNext {
        stack: u32,
        member: u32,
    },
    ExtractVarbit {
        header: u32,
        bits: Slot,
    },
    ExtractVarbitNext {
        stack: u32,
        bits: Slot,
    },
    ExtractVarbitUnionNext {
        stack: u32,
        member: u32,
        bits: Slot,
    },
    Advance {
        bits: Slot,
    },
    Lookahead {
        to: Slot,
        index: u32,
    },
    /// Ends parsing with the error in the word.
    Raise {
        error: Slot,
    },
}

/// Instructions and their side tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    pub(crate) ops: Vec<Op>,
    pub(crate) wide: Vec<WideOp>,
    pub(crate) stack_fields: Vec<StackField>,
    pub(crate) lookaheads: Vec<Lookahead>,
    pub(crate) log_messages: Vec<LogMessage>,
    /// Initial content of the constants.
    pub(crate) constants: Vec<u64>,
    /// First constant.
    pub(crate) constants_base: Slot,
    /// A word that is always 0.
    pub(crate) zero: Slot,
    /// The word with the drop port.
    pub(crate) drop_port: Slot,
    /// First argument word.
    pub(crate) arguments: Slot,
}
