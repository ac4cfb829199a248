//! The body of an ACK (SPEC §5.3).

use crate::FailReason;
use crate::{DecodeError, put_u16, put_u32, u16_at, u32_at};
use crate::{HostId, Seq};

/// Most ranges of received packets in one ACK.
pub const RANGES_MAX: usize = 32;
/// Most failed members in one ACK.
pub const FAILED_MAX: usize = 16;
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
    /// The member.
    pub host: HostId,
    /// Why.
    pub reason: FailReason,
    /// A packet of the message: its first one, or for [`FailReason::Late`] the one
    /// before which the member has nothing.
    pub at: Seq,
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
    /// As values.
    Values(&'a [T]),
}

/// Body of an ACK.
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
    /// More members failed than are listed.
    pub failed_more: bool,
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

    pub(super) fn length(&self) -> usize {
        FIXED_LENGTH + RANGE_LENGTH * self.ranges().count() + FAILED_LENGTH * self.failed().count()
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
        for member in self.failed().take(FAILED_MAX) {
            put_u16(out, at, member.host.0);
            out[at + 2] = member.reason as u8;
            out[at + 3] = 0;
            put_u32(out, at + 4, member.at.0);
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
                    ack.failed_more,
                ),
            )
        };
        fields(self) == fields(other)
            && self.ranges().eq(other.ranges())
            && self.failed().eq(other.failed())
    }
}

impl Eq for Ack<'_> {}

pub(super) fn decode(flags: u8, body: &[u8]) -> Result<Ack<'_>, DecodeError> {
    if body.len() < FIXED_LENGTH {
        return Err(DecodeError::PduMalformed);
    }
    let (ranges, failed) = (usize::from(body[44]), usize::from(body[45]));
    let ranges_end = FIXED_LENGTH + RANGE_LENGTH * ranges;
    let end = ranges_end + FAILED_LENGTH * failed;
    if ranges > RANGES_MAX || failed > FAILED_MAX || body.len() != end {
        return Err(DecodeError::PduMalformed);
    }
    let field = |index: usize| u32_at(body, 4 * index);
    let echo = (flags & crate::pdu::flags::ECHO != 0).then(|| Echo {
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
        failed: List::Encoded(&body[ranges_end..end]),
        failed_more: flags & crate::pdu::flags::MORE != 0,
    })
}
