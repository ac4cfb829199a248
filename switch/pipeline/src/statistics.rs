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
    /// The ingress port of the packet in work.
    port: u16,
    /// By ingress port, as far as packets of it have ended; the last one of all that are
    /// possible stands for the ports above.
    port_drops: Vec<[u64; DropCause::ALL.len()]>,
}

/// Ports whose drops are counted one by one: those of v1model's nine bits. Those above
/// share one more.
pub const PORTS_COUNTED: usize = 512;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableCounts {
    pub entries: usize,
    /// Packets that matched an entry, modulo 2^64.
    pub hits: u64,
    /// Packets that matched none, modulo 2^64.
    pub misses: u64,
}

impl Statistics {
    /// All 0, with room for every port: a packet that ends does not allocate.
    pub fn new() -> Self {
        Self {
            port_drops: Vec::with_capacity(PORTS_COUNTED + 1),
            ..Self::default()
        }
    }

    /// Packets that ended for this cause.
    pub fn dropped(&self, cause: DropCause) -> u64 {
        self.drops[cause as usize]
    }

    /// Every port and cause with packets that ended: ingress port, cause, packets. The port
    /// [`PORTS_COUNTED`] stands for all from there on.
    pub fn drops_by_port(&self) -> impl Iterator<Item = (u16, DropCause, u64)> {
        let ports = self.port_drops.iter().enumerate();
        ports.flat_map(|(port, counts)| {
            let causes = DropCause::ALL.iter().zip(counts);
            causes
                .filter(|(_, count)| **count != 0)
                .map(move |(cause, count)| (port as u16, *cause, *count))
        })
    }

    pub fn event(&self, event: Event) -> u64 {
        self.events[event as usize]
    }

    /// The drops that follow are of a packet that came in by this port.
    #[inline]
    pub fn begin(&mut self, port: u16) {
        self.port = port;
    }

    #[inline]
    pub fn count_drop(&mut self, cause: DropCause) {
        self.drops[cause as usize] = self.drops[cause as usize].wrapping_add(1);
        let port = usize::from(self.port).min(PORTS_COUNTED);
        if port >= self.port_drops.len() {
            self.port_drops.resize(port + 1, Default::default());
        }
        let counts = &mut self.port_drops[port];
        counts[cause as usize] = counts[cause as usize].wrapping_add(1);
    }

    #[inline]
    pub fn count_event(&mut self, event: Event) {
        self.events[event as usize] = self.events[event as usize].wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        EmitSink, EntryAction, LoadedProgram, Pipeline, PipelineConfig, PortId, Queued, TableEntry,
        TrafficSink,
    };
    use wormcast_switch_program::DigestId;
    use wormcast_switch_program::{ActionCall, Bits, FieldMatch};

    struct Full;

    impl TrafficSink for Full {
        fn enqueue(&mut self, packet: Queued) -> Result<(), Queued> {
            Err(packet)
        }

        fn digest(&mut self, _: DigestId, _: &[Bits]) {}
    }

    impl EmitSink for Full {
        fn transmit(&mut self, _: PortId, _: &[u8]) {}
    }

    #[test]
    fn lookups_and_drops_are_counted_where_they_happen() {
        let json = include_str!("../../tests/programs/objects.json");
        let program = Arc::new(LoadedProgram::from_json(json).unwrap());
        let mut pipeline = Pipeline::new(Arc::clone(&program), PipelineConfig::default());
        let table = program.table("ingress.addresses").unwrap();
        let action = program.table_action(table, "ingress.forward").unwrap();
        let entry = TableEntry {
            key: vec![FieldMatch::Exact(Bits::from_u64(0x0200_0000_0001))],
            priority: 0,
            action: EntryAction::Call(ActionCall {
                action,
                arguments: vec![Bits::from_u64(9)],
            }),
        };
        pipeline.insert_entry(table, &entry).unwrap();
        let mut frame = [0; 60];
        frame[0] = 2;
        for (last, port) in [(1, 3), (1, 600), (7, 3), (1, 601), (1, 3)] {
            frame[5] = last;
            pipeline.ingress(&frame, PortId(port), 0, &mut Full);
        }
        let counts = pipeline.table_counts().nth(table.index()).unwrap();
        let expected = TableCounts {
            entries: 1,
            hits: 4,
            misses: 1,
        };
        assert_eq!(counts, expected);
        let statistics = pipeline.statistics();
        let drops: Vec<_> = statistics.drops_by_port().collect();
        assert_eq!(
            drops,
            [
                (3, DropCause::IngressMarked, 1),
                (3, DropCause::QueueFull, 2),
                (PORTS_COUNTED as u16, DropCause::QueueFull, 2),
            ]
        );
        let by_port: u64 = drops.iter().map(|(.., packets)| packets).sum();
        let all = DropCause::ALL
            .iter()
            .map(|cause| statistics.dropped(*cause));
        assert_eq!(by_port, all.sum::<u64>());
    }
}
