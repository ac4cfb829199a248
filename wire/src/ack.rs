//! The body of an ACK (SPEC §5.3).

use crate::FailReason;
use crate::pdu_flags;
use crate::{DecodeError, put_u16, put_u32, u16_at, u32_at};
use crate::{HostId, Seq};

/// Most ranges of received packets in one ACK.
pub const RANGES_MAX: usize = 32;
/// Most failed members in one ACK, where they are listed one by one.
pub const FAILED_MAX: usize = 16;
/// Most sets of failed members in one ACK.
pub const SETS_MAX: usize = 8;
/// Bytes of a set at most: a bit for each of 1,024 members.
pub const SET_BYTES_MAX: usize = 128;
const FIXED_LENGTH: usize = 46;
const RANGE_LENGTH: usize = 8;
const FAILED_LENGTH: usize = 8;

/// What lets the parent measure this hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// `tx_time` of the packet that came last from the parent.
    pub tx_time: u32,
    /// Time that packet waited for this ACK, µs.
    pub delay_us: u32,
    /// Least (arrival by this host's clock − `tx_time`) modulo 2^32, µs, of the
    /// packets from the parent since the ACK before. Only differences mean
    /// something: the clocks have an unknown offset (RFC 6817 §3.4.1).
    pub forward_delay_us: u32,
}

/// A member that does not have a message, as reported up the structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedMember {
    pub host: HostId,
    pub reason: FailReason,
    /// A packet of the message: the first one that the member has not confirmed, or for [`FailReason::Late`] the one
    /// before which the member has nothing.
    pub at: Seq,
}

/// Members that do not have a message for one reason, where they are too many to be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedSet<'a> {
    pub reason: FailReason,
    /// As of a [`FailedMember`].
    pub at: Seq,
    /// Bit i of byte b: whether the member of index 8 b + i of the plan, in ascending order, is one of them.
    /// At most [`SET_BYTES_MAX`] bytes.
    pub members: &'a [u8],
}

/// A run of received packets above the cumulative point: `start..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeqRange {
    /// Its first packet.
    pub start: Seq,
    /// The packet after its last.
    pub end: Seq,
}

/// Either the bytes of a received list or the values of one to send.
#[derive(Clone, Copy, Debug)]
pub enum List<'a, T> {
    /// As on the wire.
    Encoded(&'a [u8]),
    Values(&'a [T]),
}

#[derive(Clone, Copy, Debug)]
pub struct Ack<'a> {
    /// Epoch of the plan by which `stable` was aggregated.
    pub epoch: u32,
    /// Which life of the acknowledging host.
    pub receiver: u32,
    /// It holds, or has delivered, everything before.
    pub cumulative: Seq,
    /// It and all below it have confirmed everything before.
    pub stable: Seq,
    /// Measurement of the hop; none if nothing came from the parent since the last.
    pub echo: Option<Echo>,
    /// Data packets received in this stream.
    pub packets: u32,
    /// Of these, packets it had already.
    pub duplicates: u32,
    /// Of these, packets that carried the CE flag.
    pub congestion: u32,
    /// Data packets sent again by this host and all below it.
    pub retransmissions: u32,
    /// Runs received above `cumulative`, at most [`RANGES_MAX`].
    pub ranges: List<'a, SeqRange>,
    /// Members that do not have a message, at most [`FAILED_MAX`].
    pub failed: List<'a, FailedMember>,
    /// In their place, where they are more: sets of members, at most [`SETS_MAX`].
    pub sets: List<'a, FailedSet<'a>>,
}

impl<'a> Ack<'a> {
    /// The runs received above `cumulative`.
    pub fn ranges(&self) -> impl Iterator<Item = SeqRange> + use<'a> {
        let (encoded, values) = match self.ranges {
            List::Encoded(bytes) => (bytes, &[][..]),
            List::Values(values) => (&[][..], values),
        };
        encoded
            .chunks_exact(RANGE_LENGTH)
            .map(|at| SeqRange {
                start: Seq(u32_at(at, 0)),
                end: Seq(u32_at(at, 4)),
            })
            .chain(values.iter().copied())
    }

    /// The members reported as failed. Entries with a reason this version does not
    /// know are taken as [`FailReason::Cancelled`].
    pub fn failed(&self) -> impl Iterator<Item = FailedMember> + use<'a> {
        let (encoded, values) = match self.failed {
            List::Encoded(bytes) => (bytes, &[][..]),
            List::Values(values) => (&[][..], values),
        };
        encoded
            .chunks_exact(FAILED_LENGTH)
            .map(|at| FailedMember {
                host: HostId(u16_at(at, 0)),
                reason: FailReason::from_code(at[2]).unwrap_or(FailReason::Cancelled),
                at: Seq(u32_at(at, 4)),
            })
            .chain(values.iter().copied())
    }

    /// The sets of members reported as failed. Reasons as of [`Ack::failed`].
    pub fn sets(&self) -> impl Iterator<Item = FailedSet<'a>> + use<'a> {
        let (encoded, values) = match self.sets {
            List::Encoded(bytes) => (bytes, &[][..]),
            List::Values(values) => (&[][..], values),
        };
        let mut rest = encoded;
        core::iter::from_fn(move || {
            let (set, after) = take_set(rest)?;
            rest = after;
            Some(set)
        })
        .chain(values.iter().copied())
    }

    pub(super) fn has_sets(&self) -> bool {
        self.sets().next().is_some()
    }

    pub(super) fn length(&self) -> usize {
        let sets = self.sets().map(|set| FAILED_LENGTH + set.members.len());
        let failed = if self.has_sets() {
            sets.sum()
        } else {
            FAILED_LENGTH * self.failed().count()
        };
        FIXED_LENGTH + RANGE_LENGTH * self.ranges().count() + failed
    }

    pub(super) fn encode(&self, out: &mut [u8]) -> usize {
        let echo = self.echo.unwrap_or(Echo {
            tx_time: 0,
            delay_us: 0,
            forward_delay_us: 0,
        });
        let fields = [
            self.epoch,
            self.receiver,
            self.cumulative.0,
            self.stable.0,
            echo.tx_time,
            echo.delay_us,
            echo.forward_delay_us,
            self.packets,
            self.duplicates,
            self.congestion,
            self.retransmissions,
        ];
        for (index, field) in fields.into_iter().enumerate() {
            put_u32(out, 4 * index, field);
        }
        let mut at = FIXED_LENGTH;
        let mut ranges = 0;
        for range in self.ranges().take(RANGES_MAX) {
            put_u32(out, at, range.start.0);
            put_u32(out, at + 4, range.end.0);
            at += RANGE_LENGTH;
            ranges += 1;
        }
        let mut failed = 0;
        for set in self.sets().take(SETS_MAX) {
            // Groups have no more members than this holds.
            let members = &set.members[..set.members.len().min(SET_BYTES_MAX)];
            put_failed(out, at, members.len() as u16, set.reason, set.at);
            at += FAILED_LENGTH;
            out[at..at + members.len()].copy_from_slice(members);
            at += members.len();
            failed += 1;
        }
        let listed = if failed == 0 { FAILED_MAX } else { 0 };
        for member in self.failed().take(listed) {
            put_failed(out, at, member.host.0, member.reason, member.at);
            at += FAILED_LENGTH;
            failed += 1;
        }
        out[44] = ranges;
        out[45] = failed;
        at
    }
}

impl PartialEq for Ack<'_> {
    fn eq(&self, other: &Self) -> bool {
        let fields = |ack: &Self| {
            (
                (
                    ack.epoch,
                    ack.receiver,
                    ack.cumulative,
                    ack.stable,
                    ack.echo,
                ),
                (
                    ack.packets,
                    ack.duplicates,
                    ack.congestion,
                    ack.retransmissions,
                ),
            )
        };
        fields(self) == fields(other)
            && self.ranges().eq(other.ranges())
            && self.failed().eq(other.failed())
            && self.sets().eq(other.sets())
    }
}

impl Eq for Ack<'_> {}

fn put_failed(out: &mut [u8], at: usize, first: u16, reason: FailReason, seq: Seq) {
    put_u16(out, at, first);
    out[at + 2] = reason as u8;
    out[at + 3] = 0;
    put_u32(out, at + 4, seq.0);
}

/// The set at the front and what stands behind it; none at the end, or if it is cut short.
fn take_set(bytes: &[u8]) -> Option<(FailedSet<'_>, &[u8])> {
    let (fixed, rest) = bytes.split_at_checked(FAILED_LENGTH)?;
    let (members, rest) = rest.split_at_checked(usize::from(u16_at(fixed, 0)))?;
    let set = FailedSet {
        reason: FailReason::from_code(fixed[2]).unwrap_or(FailReason::Cancelled),
        at: Seq(u32_at(fixed, 4)),
        members,
    };
    let is_one = (1..=SET_BYTES_MAX).contains(&members.len());
    is_one.then_some((set, rest))
}

/// Bytes of so many sets at the front; none if they are not there.
fn sets_length(bytes: &[u8], count: usize) -> Option<usize> {
    let mut rest = bytes;
    for _ in 0..count {
        rest = take_set(rest)?.1;
    }
    Some(bytes.len() - rest.len())
}

pub(super) fn decode(flags: u8, body: &[u8]) -> Result<Ack<'_>, DecodeError> {
    if body.len() < FIXED_LENGTH {
        return Err(DecodeError::PduMalformed);
    }
    let (ranges, failed) = (usize::from(body[44]), usize::from(body[45]));
    let ranges_end = FIXED_LENGTH + RANGE_LENGTH * ranges;
    let in_sets = flags & pdu_flags::SETS != 0;
    let most = if in_sets { SETS_MAX } else { FAILED_MAX };
    if ranges > RANGES_MAX || failed > most || body.len() < ranges_end {
        return Err(DecodeError::PduMalformed);
    }
    let reported = &body[ranges_end..];
    let length = if in_sets {
        sets_length(reported, failed).filter(|_| failed > 0)
    } else {
        Some(FAILED_LENGTH * failed)
    };
    if length != Some(reported.len()) {
        return Err(DecodeError::PduMalformed);
    }
    let (listed, sets) = if in_sets {
        (&[][..], reported)
    } else {
        (reported, &[][..])
    };
    let field = |index: usize| u32_at(body, 4 * index);
    let echo = (flags & pdu_flags::ECHO != 0).then(|| Echo {
        tx_time: field(4),
        delay_us: field(5),
        forward_delay_us: field(6),
    });
    Ok(Ack {
        epoch: field(0),
        receiver: field(1),
        cumulative: Seq(field(2)),
        stable: Seq(field(3)),
        echo,
        packets: field(7),
        duplicates: field(8),
        congestion: field(9),
        retransmissions: field(10),
        ranges: List::Encoded(&body[FIXED_LENGTH..ranges_end]),
        failed: List::Encoded(listed),
        sets: List::Encoded(sets),
    })
}
