//! Counters, for all of an engine and for each stream.

use crate::reject::Reject;

macro_rules! counters {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: u64,)*
        }

        impl $name {
            pub fn entries(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($field), self.$field),)*]
            }
        }
    };
}

counters! {
    /// Counters of one stream at one host, since the stream began there.
    SessionStatistics {
        /// DATA packets sent to a child, or as one TREE worm, for the first time.
        data_sent_packets,
        /// Payload bytes of these.
        data_sent_bytes,
        /// DATA packets sent again.
        retransmissions,
        /// Payload bytes of these.
        retransmitted_bytes,
        /// Retransmissions of this host and all below it, as far as reported.
        retransmissions_below,
        /// Packets this host took for lost on the way to a child.
        losses_detected,
        /// Probes sent to silent children.
        probes_sent,
        /// DATA packets received.
        data_received_packets,
        /// Payload bytes of packets received for the first time.
        data_received_bytes,
        /// DATA packets received that were here already.
        duplicates_received,
        /// At the origin of a circuit that returns: packets that came back other than they were sent.
        differences,
        /// DATA packets received with the CE flag.
        congestion_marks,
        /// Payload bytes handed to the application.
        delivered_bytes,
        /// Messages handed to the application and confirmed by it.
        delivered_messages,
        acks_sent,
        /// ACKs received from children.
        acks_received,
        /// ACKs sent for switches to gather.
        gathered_sent,
        /// At the origin: gathered ACKs received.
        gathered_received,
        /// NACKs sent: no buffer.
        nacks_sent,
        nacks_received,
        /// REPAIR requests sent to the origin.
        repairs_requested,
        /// Packets sent at another host's REPAIR request.
        repairs_sent,
        /// Packets given up before they were stable, to make room in a pool.
        evicted_packets,
        /// REPAIR requests dropped because the queue was full.
        repairs_dropped,
    }
}

/// Counters of an engine since its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Frames not taken, by reason, in the order of [`Reject::ALL`].
    pub rejects: Vec<u64>,
    /// Frames handed to the engine.
    pub received_frames: u64,
    /// Of these, copies that were for members of other groups, or of this host's own worms.
    pub filtered: u64,
    /// Frames the engine gave out.
    pub sent_frames: u64,
    /// Bytes of these, Ethernet headers included.
    pub sent_bytes: u64,
    /// PDUs not sent because there is no route to the host.
    pub no_route: u64,
    /// DATA not sent because the route leaves no room for it in a frame.
    pub route_too_long: u64,
    /// Events dropped because [`crate::Limits::events`] waited.
    pub events_dropped: u64,
    /// Streams given up to make room for others.
    pub sessions_reclaimed: u64,
    /// Reports of members without a receiver, or with a slow one, dropped because [`crate::UNREAD_MAX`] waited.
    pub unread_dropped: u64,
    /// Probes that came and were dropped because [`crate::OBSERVATIONS_MAX`] waited.
    pub observations_dropped: u64,
    /// Answers of switches that came and were dropped because [`crate::ANSWERS_MAX`] waited.
    pub answers_dropped: u64,
}

impl Default for Counters {
    fn default() -> Self {
        Counters {
            rejects: vec![0; Reject::ALL.len()],
            received_frames: 0,
            filtered: 0,
            sent_frames: 0,
            sent_bytes: 0,
            no_route: 0,
            route_too_long: 0,
            events_dropped: 0,
            sessions_reclaimed: 0,
            unread_dropped: 0,
            observations_dropped: 0,
            answers_dropped: 0,
        }
    }
}

impl Counters {
    pub(crate) fn count_reject(&mut self, reject: Reject) {
        self.rejects[reject as usize] += 1;
    }

    /// Frames not taken for this reason.
    pub fn rejected(&self, reject: Reject) -> u64 {
        self.rejects[reject as usize]
    }

    /// All counters by name; those of rejects start with `drops.`.
    pub fn entries(&self) -> Vec<(String, u64)> {
        let mut entries: Vec<(String, u64)> = [
            ("received_frames", self.received_frames),
            ("filtered", self.filtered),
            ("sent_frames", self.sent_frames),
            ("sent_bytes", self.sent_bytes),
            ("no_route", self.no_route),
            ("route_too_long", self.route_too_long),
            ("events_dropped", self.events_dropped),
            ("sessions_reclaimed", self.sessions_reclaimed),
            ("unread_dropped", self.unread_dropped),
            ("sightings_dropped", self.observations_dropped),
            ("answers_dropped", self.answers_dropped),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
        for reject in Reject::ALL {
            entries.push((format!("drops.{}", reject.name()), self.rejected(*reject)));
        }
        entries
    }
}
