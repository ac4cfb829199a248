//! What a host sends by its rate, on virtual time.

use super::*;
use crate::transit::{NextFrame, Outgoing, Transit, TransitLimits};
use crate::wormhole::flow_control::FlowControl;
use crate::wormhole::trains::Trains;

const MTU: u64 = 1_500;

/// Sends frames of these lengths for a while, waking up to `late_us` late; gives when which bytes were sent.
fn send(rate: u64, late_us: u64, until_us: u64, bytes: impl Fn(u64) -> usize) -> Vec<(u64, usize)> {
    let mut pacing = Pacing::default();
    pacing.set_rate(Some(rate));
    let (mut now, mut sent, mut seed) = (Instant::from_micros(7_000_000), Vec::new(), 1u64);
    let end = now.plus_us(until_us);
    while now < end {
        while !pacing.holds(now) {
            let bytes = bytes(sent.len() as u64);
            pacing.note_sent(bytes, now);
            sent.push((now.as_micros(), bytes));
        }
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        now = pacing.open_at().plus_us((seed >> 33) % (late_us + 1));
    }
    sent
}

/// Most bytes beyond the rate in any time, as a switch that polices sees them: what its burst has to hold.
fn beyond(rate: u64, sent: &[(u64, usize)]) -> u64 {
    let (mut level, mut most, mut before) = (0u128, 0u128, sent[0].0);
    for &(at, bytes) in sent {
        level = level.saturating_sub(u128::from(at - before) * u128::from(rate));
        level += bytes as u128 * u128::from(US_PER_SECOND);
        (most, before) = (most.max(level), at);
    }
    most.div_ceil(US_PER_SECOND.into()) as u64
}

#[test]
fn a_host_sends_as_much_as_it_may_and_no_more() {
    for rate in [125_000, 1_250_000, 125_000_000, 5_000_000_000] {
        for late_us in [0, 300, 10_000] {
            let sent = send(rate, late_us, 4_000_000, |n| {
                60 + (n * 977 % 1_455) as usize
            });
            let bytes: u64 = sent.iter().map(|(_, bytes)| *bytes as u64).sum();
            let saved = (rate * SAVED_US / US_PER_SECOND).max(SAVED_BYTES_MIN);
            // And what makes a µs: time has no parts of one.
            let most = saved + MTU + 14 + rate / US_PER_SECOND + 1;
            assert!(beyond(rate, &sent) <= most, "{rate} {late_us}");
            assert!(
                bytes >= 4 * rate * 99 / 100,
                "{bytes} at {rate}, {late_us} late"
            );
            assert!(
                bytes <= 4 * rate + most,
                "{bytes} at {rate}, {late_us} late"
            );
        }
    }
}

#[test]
fn a_host_without_a_rate_never_waits_and_one_with_another_begins_anew() {
    let now = Instant::from_micros(5);
    let mut pacing = Pacing::default();
    (0..10_000).for_each(|_| pacing.note_sent(1_514, now));
    assert!(!pacing.holds(now) && pacing.waits() == 0);
    pacing.set_rate(Some(125_000));
    (0..100).for_each(|_| pacing.note_sent(1_514, now));
    assert!(pacing.holds(now) && pacing.waits() > 80);
    pacing.set_rate(Some(125_000));
    assert!(pacing.holds(now), "the same rate");
    pacing.set_rate(Some(250_000));
    assert!(!pacing.holds(now));
}

/// Worms of others do not wait for what this host may send of its own, and take nothing of it.
#[test]
fn worms_in_transit_do_not_wait() {
    let now = Instant::from_micros(50_000_000);
    let (mut transit, mut pacing) = (Transit::new(TransitLimits::default()), Pacing::default());
    pacing.set_rate(Some(125_000));
    pacing.note_sent(100_000, now);
    let open_at = pacing.open_at();
    (0..3).for_each(|_| transit.accept(&[0; 1_000], now));
    let mut outgoing = Outgoing {
        transit: &mut transit,
        flow: &mut FlowControl::default(),
        trains: &mut Trains::default(),
        pacing: &mut pacing,
        engine: None,
    };
    for _ in 0..3 {
        let sent = outgoing.poll_transmit(now, &mut []);
        assert!(matches!(sent, Some(NextFrame::InTransit(_))));
    }
    assert_eq!(outgoing.poll_transmit(now, &mut []), None);
    assert_eq!(pacing.open_at(), open_at);
}
