//! Instructions that expressions, actions and parser states are compiled to.
//!
//! All operands are words of the frame (see [`layout`](super::layout)). An instruction has
//! at most three of them and fits in 16 bytes; what needs more lives in a side table.

use super::layout::Slot;

/// What a dynamic header reference holds when it refers to nothing.
pub const NO_HEADER: u64 = u64::MAX;

/// Operations on two words or two wide values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WideKind {
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
pub struct WideOp {
    pub kind: WideKind,
    pub to: Slot,
    pub a: Slot,
    pub b: Slot,
    /// Words of the result (of the operands for a comparison).
    pub limbs: u32,
    /// Words of `a` where they differ from `limbs` (extension, clamps), words of the shift
    /// amount, or a width in bits (sign extension, mask).
    pub extra: u32,
    /// Width in bits of a clamp.
    pub bits: u32,
    /// The operand of a clamp may be negative.
    pub signed: bool,
}

/// Access to a field of a stack element chosen at run time.
#[derive(Clone, Copy, Debug)]
pub struct StackField {
    pub stack: u32,
    /// Words from the base of the header.
    pub offset: u32,
    pub limbs: u32,
}

/// Access to a field of the last union of a stack.
#[derive(Clone, Copy, Debug)]
pub struct UnionField {
    pub stack: u32,
    /// Position of the header among those of a union.
    pub member: u32,
    /// Words from the base of the header.
    pub offset: u32,
    pub limbs: u32,
}

/// Bits of the packet ahead of the parser.
#[derive(Clone, Copy, Debug)]
pub struct Lookahead {
    pub offset: u32,
    pub width: u32,
}

/// A `log_msg` of the program.
#[derive(Clone, Debug)]
pub struct LogMessage {
    /// Text with `{}` for each argument.
    pub format: String,
    pub arguments: Vec<LogArgument>,
}

/// Words that hold an argument of a message.
#[derive(Clone, Copy, Debug)]
pub struct LogArgument {
    pub slot: Slot,
    pub limbs: u32,
    /// In two's complement.
    pub signed: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Op {
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
        fill: Slot,
    },
    /// A field of the last union of a stack.
    LoadLastUnion {
        to: Slot,
        access: u32,
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
    /// The same of stacks of header unions.
    CopyUnions {
        to: u32,
        from: u32,
    },
    PushUnions {
        stack: u32,
        count: Slot,
    },
    PopUnions {
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
pub struct Code {
    pub ops: Vec<Op>,
    pub wide: Vec<WideOp>,
    pub stack_fields: Vec<StackField>,
    pub union_fields: Vec<UnionField>,
    pub lookaheads: Vec<Lookahead>,
    pub log_messages: Vec<LogMessage>,
    /// Initial content of the constants.
    pub constants: Vec<u64>,
    /// First constant.
    pub constants_base: Slot,
    /// A word that is always 0.
    pub zero: Slot,
    /// The word with the drop port.
    pub drop_port: Slot,
    /// First argument word.
    pub arguments: Slot,
}
