//! The statements of a script.

/// What a key field is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyMatch {
    /// Name, or the end of it.
    pub(super) field: String,
    /// Value as it is written.
    pub(super) value: String,
}

/// What of a counter is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountKind {
    Packets,
    Bytes,
}

/// How a number is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// Whether `left` compares so to `right`.
    pub(super) fn holds<T: PartialOrd>(self, left: &T, right: &T) -> bool {
        match self {
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
        }
    }

    /// As it is written.
    pub(super) fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let all = [
            Self::Equal,
            Self::NotEqual,
            Self::Less,
            Self::LessOrEqual,
            Self::Greater,
            Self::GreaterOrEqual,
        ];
        let found = all.into_iter().find(|one| one.symbol() == text);
        found.ok_or_else(|| format!("`{text}` is no comparison: ==, !=, <, <=, > or >="))
    }
}

/// An action with its arguments by name.
pub(super) type Call = (String, Vec<(String, String)>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    /// `add TABLE [PRIORITY] FIELD:VALUE… ACTION(NAME:VALUE, …) [= $HANDLE]`
    Add {
        table: String,
        priority: Option<i32>,
        key: Vec<KeyMatch>,
        call: Call,
        handle: Option<String>,
    },
    /// `remove $HANDLE`, or `remove all`: without a handle.
    Remove { handle: Option<String> },
    /// `setdefault TABLE ACTION(…)`
    SetDefault { table: String, call: Call },
    /// `packet PORT HEX`
    Packet { port: u16, bytes: Vec<u8> },
    /// `expect PORT [PATTERN]`; without a pattern any packets will do.
    Expect { port: u16, pattern: Option<String> },
    /// `no_packet`: no packet has come out since the last one that was expected.
    NoPacket,
    /// `wait [MICROSECONDS]`
    Wait { us: u64 },
    /// `mirroring_add SESSION PORT`
    MirroringAdd { session: u16, port: u16 },
    /// `mirroring_add_mc SESSION GROUP`
    MirroringAddGroup { session: u16, group: u16 },
    /// `mirroring_delete SESSION`
    MirroringDelete { session: u16 },
    /// `mirroring_get SESSION`: it must be there.
    MirroringGet { session: u16 },
    /// `mc_mgrp_create GROUP`
    GroupCreate { group: u16 },
    /// `mc_node_create INSTANCE PORT…`; nodes are numbered from 0.
    NodeCreate { instance: u16, ports: Vec<u16> },
    /// `mc_node_update NODE PORT…`
    NodeUpdate { node: usize, ports: Vec<u16> },
    /// `mc_node_associate GROUP NODE`
    NodeAssociate { group: u16, node: usize },
    /// `register_write NAME INDEX VALUE`
    RegisterWrite {
        register: String,
        index: usize,
        value: String,
    },
    /// `register_read NAME INDEX [COMPARISON VALUE]`
    RegisterRead {
        register: String,
        index: usize,
        check: Option<(Comparison, String)>,
    },
    /// `register_reset NAME`
    RegisterReset { register: String },
    /// `counter_write NAME INDEX PACKETS BYTES`
    CounterWrite {
        counter: String,
        index: usize,
        packets: u64,
        bytes: u64,
    },
    /// `counter_read NAME INDEX`: it must be there.
    CounterRead { counter: String, index: usize },
    /// `check_counter NAME(INDEX or $HANDLE) [packets|bytes COMPARISON NUMBER]`
    CheckCounter {
        counter: String,
        cell: String,
        check: Option<(CountKind, Comparison, u64)>,
    },
    /// `meter_set_rates NAME INDEX RATE:BURST RATE:BURST`, or of all cells without an index:
    /// `meter_array_set_rates NAME …`. Rates are units a microsecond, as in BMv2.
    MeterSetRates {
        meter: String,
        index: Option<usize>,
        rates: [(u64, u64); 2],
    },
    /// `meter_get_rates NAME INDEX`: it must be there.
    MeterGetRates { meter: String, index: usize },
    /// `member PROFILE ID ACTION(…)`
    Member {
        profile: String,
        member: u32,
        call: Call,
    },
    /// `group PROFILE ID MEMBER…`
    Group {
        profile: String,
        group: u32,
        members: Vec<u32>,
    },
    /// `expect_digest NAME VALUE…`
    ExpectDigest { digest: String, values: Vec<String> },
    /// `check_drops CAUSE COMPARISON NUMBER`, since the start.
    CheckDrops {
        cause: String,
        comparison: Comparison,
        packets: u64,
    },
}

/// A statement and the number of its line, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) number: usize,
    pub(super) statement: Statement,
}
