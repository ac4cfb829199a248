//! How a call fails: the exceptions of the interface, and calls that are not understood.
//!
//! Numbers are those of BMv2's `standard.thrift`, `simple_pre.thrift`,
//! `simple_pre_lag.thrift` and `simple_switch.thrift`.

use wormcast_switch_pipeline::ControlError;

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The exception that the method declares, which carries only a number.
    Declared {
        code: i32,
        /// Why, in words, for the log.
        why: String,
    },
    /// The call was not understood, or cannot be carried out at all.
    Application { kind: Application, why: String },
}

/// Kinds of `TApplicationException`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Application {
    /// No such service or method.
    UnknownMethod = 1,
    /// A reply where a call should be.
    InvalidMessageType = 2,
    /// The switch cannot do it.
    Internal = 6,
    /// Arguments of other types than the method's.
    Protocol = 7,
}

/// What a method gives: nothing for `void`.
pub type Outcome = Result<Option<super::wire::Value>, Failure>;

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$code_doc:meta])* $code:ident = $number:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$code_doc])* $code = $number,)* }

        impl $name {
            pub fn because(self, why: impl Into<String>) -> Failure {
                Failure::Declared { code: self as i32, why: why.into() }
            }
        }
    };
}

codes! {
    /// `InvalidTableOperation`.
    TableError {
        /// No room for another entry, member or group.
        Full = 1,
        /// No entry ever had this handle.
        InvalidHandle = 2,
        /// The entry with this handle is gone.
        ExpiredHandle = 3,
        /// The table has no direct counter.
        CountersDisabled = 4,
        /// The table has no direct meter.
        MetersDisabled = 5,
        /// Entries of the table do not age.
        AgeingDisabled = 6,
        InvalidTableName = 7,
        /// No such action, or not one of this table.
        InvalidActionName = 8,
        /// A method for tables with an action profile, or for those without one.
        WrongTableType = 9,
        InvalidMemberHandle = 10,
        /// A group or an entry refers to the member.
        MemberStillUsed = 11,
        MemberAlreadyInGroup = 12,
        MemberNotInGroup = 13,
        InvalidGroupHandle = 14,
        /// An entry refers to the group.
        GroupStillUsed = 15,
        /// The group has no members.
        EmptyGroup = 16,
        /// An entry with this key is there.
        DuplicateEntry = 17,
        /// A key that is not one of this table, or that no entry has.
        BadMatchKey = 18,
        /// Rates that cannot be.
        InvalidMeterOperation = 19,
        /// The program fixes the default entry.
        DefaultEntryIsConst = 21,
        InvalidActionProfileName = 23,
        /// The action profile has no selector, so no groups.
        NoActionProfileSelection = 24,
        /// The program fixes the entries.
        ImmutableTableEntries = 25,
        /// Not the arguments of the action.
        BadActionData = 26,
        /// The table has no key, so no entries but the default one.
        NoTableKey = 27,
        Error = 100,
    }
}

codes! {
    /// `InvalidCounterOperation`.
    CounterError {
        InvalidName = 1,
        /// Past its size.
        InvalidIndex = 2,
    }
}

codes! {
    /// `InvalidMeterOperation`.
    MeterError {
        InvalidName = 1,
        /// Past its size.
        InvalidIndex = 2,
        /// Not two rates.
        BadRatesList = 3,
        /// A rate below 0, or below the one before it.
        InvalidRate = 4,
        InvalidBurst = 5,
    }
}

codes! {
    /// `InvalidRegisterOperation`.
    RegisterError {
        InvalidName = 1,
        /// Past its size.
        InvalidIndex = 2,
    }
}

codes! {
    /// `InvalidSwapOperation`.
    SwapError {
        /// The switch was started so that programs cannot be swapped.
        Disabled = 1,
        /// A program waits for its swap already.
        Ongoing = 2,
        /// No program waits.
        NoneOngoing = 3,
    }
}

codes! {
    /// `InvalidParseVSetOperation`.
    ValueSetError {
        /// No such parser value set.
        InvalidName = 1,
        Error = 2,
    }
}

codes! {
    /// `InvalidLearnOperation`.
    LearnError {
        InvalidList = 1,
    }
}

codes! {
    /// `InvalidDevMgrOperation`.
    PortError {
        Error = 1,
    }
}

codes! {
    /// `InvalidCrcOperation`, and `InvalidToeplitzHashOperation`.
    CrcError {
        InvalidName = 1,
        /// The program gives it another algorithm.
        WrongType = 2,
    }
}

codes! {
    /// `InvalidIdLookup`.
    LookupError {
        /// No such kind of object.
        InvalidType = 0,
        InvalidName = 1,
    }
}

codes! {
    /// `InvalidMcOperation`.
    MulticastError {
        /// No room for another group or node.
        Full = 1,
        /// A group number that cannot be.
        InvalidGroup = 2,
        InvalidGroupHandle = 3,
        InvalidNodeHandle = 4,
        Error = 5,
    }
}

codes! {
    /// `InvalidMirroringOperation`.
    MirrorError {
        NotFound = 1,
    }
}

impl Failure {
    /// The switch cannot do it.
    pub fn internal(why: impl Into<String>) -> Self {
        Failure::Application {
            kind: Application::Internal,
            why: why.into(),
        }
    }
}

/// What a refusal of the pipeline is where entries, members or groups are concerned.
impl From<ControlError> for Failure {
    fn from(error: ControlError) -> Self {
        let code = match &error {
            ControlError::AlreadyExists { .. } => TableError::DuplicateEntry,
            ControlError::NotFound { .. } => TableError::InvalidHandle,
            ControlError::InvalidArgument { .. } => TableError::Error,
            ControlError::ResourceExhausted { .. } => TableError::Full,
            ControlError::InUse { .. } => TableError::Error,
            ControlError::Immutable { .. } => TableError::ImmutableTableEntries,
        };
        code.because(error.to_string())
    }
}
