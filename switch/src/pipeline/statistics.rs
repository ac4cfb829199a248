//! Counts of what happened to packets, by name.

macro_rules! counted_enum {
    (
        $(#[$doc:meta])*
        $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// Every variant, in the order of the counters.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// Name for logs and metrics, in snake case.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
    };
}

counted_enum!(
    /// Why a packet ended in the pipeline without being sent.
    DropCause {
        /// `egress_spec` was the drop port at the end of ingress.
        IngressMarked = "ingress_marked",
        /// `egress_spec` was the drop port at the end of egress.
        EgressMarked = "egress_marked",
        /// `mcast_grp` names a group that does not exist or has no replicas.
        MulticastGroupEmpty = "multicast_group_empty",
        /// `priority` is not below the number of queues.
        PriorityOutOfRange = "priority_out_of_range",
        /// The traffic manager gave the packet back.
        QueueFull = "queue_full",
        /// The packet passed through ingress too often.
        PassLimit = "pass_limit",
        /// The parser visited too many states.
        ParserLoop = "parser_loop",
        /// Loops in actions went round too often.
        ActionLoop = "action_loop",
        /// Longer than the longest packet, on arrival or after the deparser.
        TooLong = "too_long",
        /// An `assert` or `assume` did not hold; BMv2 aborts there.
        AssertionFailed = "assertion_failed",
    }
);

counted_enum!(
    /// Things that happened to a packet without ending it.
    Event {
        /// The parser stopped with an error; the packet went on to ingress.
        ParserError = "parser_error",
        /// A checksum did not verify.
        ChecksumError = "checksum_error",
        /// A header stack was indexed outside its bounds: a read gives 0, a write nothing.
        StackIndexOutOfBounds = "stack_index_out_of_bounds",
        /// A counter, register or meter was indexed outside its size: nothing happens.
        CellIndexOutOfBounds = "cell_index_out_of_bounds",
        /// Division or modulo by zero: the result is 0.
        DivisionByZero = "division_by_zero",
        /// `log_msg` was called.
        LogMessage = "log_message",
        /// A digest was handed to the sink.
        Digest = "digest",
        /// A copy was to be cloned too often: it goes on without a clone.
        CloneDepthLimit = "clone_depth_limit",
        /// A clone session does not exist: the packet goes on without a clone.
        CloneSessionUnknown = "clone_session_unknown",
        /// An entry names an action profile group without members: its default applies.
        EmptyGroup = "empty_group",
    }
);

/// Counts since the pipeline was made. All are packets, modulo 2^64.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets handed to ingress from outside.
    pub received: u64,
    /// Packets handed to the sink for transmission.
    pub transmitted: u64,
    /// Packets handed to the traffic manager (each copy once).
    pub enqueued: u64,
    /// Copies made by the multicast groups.
    pub replicated: u64,
    /// Copies made from ingress to egress.
    pub cloned_ingress: u64,
    /// Copies made from egress to egress.
    pub cloned_egress: u64,
    /// Packets sent through ingress again before egress.
    pub resubmitted: u64,
    /// Packets sent through ingress again after egress.
    pub recirculated: u64,
    drops: [u64; DropCause::ALL.len()],
    events: [u64; Event::ALL.len()],
}

impl Statistics {
    /// Packets that ended for this cause.
    pub fn dropped(&self, cause: DropCause) -> u64 {
        self.drops[cause as usize]
    }

    /// Packets that ended without being sent, all causes.
    pub fn dropped_total(&self) -> u64 {
        self.drops.iter().sum()
    }

    /// How often this happened.
    pub fn event(&self, event: Event) -> u64 {
        self.events[event as usize]
    }

    #[inline]
    pub(crate) fn count_drop(&mut self, cause: DropCause) {
        self.drops[cause as usize] = self.drops[cause as usize].wrapping_add(1);
    }

    #[inline]
    pub(crate) fn count_event(&mut self, event: Event) {
        self.events[event as usize] = self.events[event as usize].wrapping_add(1);
    }
}
