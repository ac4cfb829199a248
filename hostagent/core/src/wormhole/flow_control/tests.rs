//! STOP delays for as long as it says and no longer, whoever says it, and nothing of it is believed from afar.

use super::*;
use crate::pacing::Pacing;
use crate::transit::{NextFrame, Outgoing, Transit, TransitLimits};
use crate::wormhole::trains::Trains;
use proptest::prelude::*;
use wormcast_wire::worm::{self, Header, Kind};
use wormcast_wire::wormhole::signal::encode_signal;

const OWN: HostId = HostId(5);

fn control(signal: Signal, hops: u8) -> Vec<u8> {
    let header = Header {
        kind: Kind::Control,
        flags: worm::flags::HEAD | worm::flags::TAIL,
        hops,
        source: HostId(0),
        sequence: 0,
        next: signal::NEXT_CONTROL,
    };
    let mut frame = vec![0; 60];
    encode_signal(&mut frame, [2; 6], &header, signal);
    frame
}

fn at(us: u64) -> Instant {
    Instant::from_micros(us)
}

fn signal(flow: &mut FlowControl, signal: Signal, us: u64) {
    let _ = flow.take(&control(signal, 1), Some(OWN), at(us));
}

#[test]
fn a_stop_holds_for_as_long_as_it_says() {
    let mut flow = FlowControl::default();
    assert!(!flow.holds(at(0)));
    signal(&mut flow, Signal::Stop(500), 1_000);
    assert!(flow.holds(at(1_499)) && !flow.holds(at(1_500)));
    assert_eq!(flow.open_at(), at(1_500));
    assert_eq!(
        (flow.stopped_us(at(1_200)), flow.stopped_us(at(9_000))),
        (200, 500)
    );
    // Said again, it holds from then on.
    signal(&mut flow, Signal::Stop(500), 1_400);
    assert!(flow.holds(at(1_899)) && !flow.holds(at(1_900)));
    assert_eq!(flow.stopped_us(at(9_000)), 900);
    flow.note_sent(at(2_000));
    assert_eq!((flow.counters().stops, flow.counters().overdue), (2, 0));
}

#[test]
fn a_go_ends_it() {
    let mut flow = FlowControl::default();
    signal(&mut flow, Signal::Stop(500), 1_000);
    signal(&mut flow, Signal::Go, 1_100);
    assert!(!flow.holds(at(1_100)));
    assert_eq!(flow.stopped_us(at(1_100)), 100);
    // One that comes late gives no time back.
    signal(&mut flow, Signal::Go, 5_000);
    assert_eq!(flow.stopped_us(at(9_000)), 100);
    assert!(!flow.holds(at(9_000)));
}

#[test]
fn no_stop_holds_longer_than_the_bound() {
    let mut flow = FlowControl::default();
    signal(&mut flow, Signal::Stop(u32::MAX), 1_000);
    assert!(flow.holds(at(HOLD_US_MAX)));
    assert!(!flow.is_stopped(at(1_000 + HOLD_US_MAX)));
    assert!(!flow.holds(at(1_000 + HOLD_US_MAX)));
}

/// A switch that never says GO gets some frames in each second, and no more.
#[test]
fn stop_for_ever_lets_frames_pass_now_and_then() {
    let mut flow = FlowControl::default();
    let mut sent = Vec::new();
    for us in (0..10 * HOLD_US_MAX).step_by(1_000) {
        if us % 5_000 == 0 {
            signal(&mut flow, Signal::Stop(20_000), us);
        }
        if !flow.holds(at(us)) {
            flow.note_sent(at(us));
            sent.push(us);
        }
    }
    let most = OVERDUE_FRAMES_MAX as usize;
    for (turn, sent) in sent.chunks(most).enumerate() {
        // One each ms, the first when it has been held for long enough.
        let first = (turn as u64 + 1) * HOLD_US_MAX + turn as u64 * (most as u64 - 1) * 1_000;
        let expected = (0..most as u64).map(|frame| first + 1_000 * frame);
        assert_eq!(sent, expected.collect::<Vec<u64>>());
    }
    assert_eq!(sent.len(), 9 * most);
    assert_eq!(flow.counters().overdue, sent.len() as u64);
    assert_eq!(flow.counters().stops, 2_000);
}

#[test]
fn only_the_neighbour_stops_and_only_own_worms_are_reset() {
    let mut flow = FlowControl::default();
    for signal in [Signal::Stop(500), Signal::Go] {
        assert_eq!(flow.take(&control(signal, 2), Some(OWN), at(0)), None);
    }
    assert!(!flow.holds(at(1)));
    let reset = |source| control(Signal::Reset(source, 1), 3);
    assert_eq!(flow.take(&reset(HostId(6)), Some(OWN), at(0)), None);
    assert_eq!(flow.take(&reset(OWN), None, at(0)), None);
    let mut damaged = control(Signal::Stop(500), 1);
    damaged[35] ^= 1;
    assert_eq!(flow.take(&damaged, Some(OWN), at(0)), None);
    assert_eq!(flow.counters().refused, 5);
    assert_eq!(flow.take(&reset(OWN), Some(OWN), at(0)), Some(1));
    assert_eq!((flow.counters().refused, flow.counters().resets), (5, 1));
    assert_eq!(flow.counters().stops, 0);
}

#[test]
fn worms_in_transit_wait_too() {
    let mut flow = FlowControl::default();
    let mut transit = Transit::new(TransitLimits::default());
    let frames = [vec![1; 60], vec![2; 60]];
    frames
        .iter()
        .for_each(|frame| transit.accept(frame, at(1_000)));
    signal(&mut flow, Signal::Stop(500), 1_000);
    let mut next = |flow: &mut FlowControl, us| {
        let mut outgoing = Outgoing {
            transit: &mut transit,
            flow,
            trains: &mut Trains::default(),
            pacing: &mut Pacing::default(),
            engine: None,
        };
        outgoing.poll_transmit(at(us), &mut [])
    };
    assert_eq!(next(&mut flow, 1_499), None);
    for frame in frames {
        assert_eq!(next(&mut flow, 1_500), Some(NextFrame::InTransit(frame)));
    }
}

proptest! {
    /// Whatever is said, a host never waits longer than the bound, and the time that it counts never goes back.
    #[test]
    fn silence_is_bounded_whatever_is_said(said in proptest::collection::vec((0_u64..400_000, 0_u8..5, any::<u32>()), 0..200)) {
        let mut flow = FlowControl::default();
        let (mut us, mut counted) = (0, 0);
        for (after, what, number) in said {
            us += after;
            if !flow.holds(at(us)) {
                flow.note_sent(at(us));
            }
            match what {
                0 | 1 => signal(&mut flow, Signal::Stop(number), us),
                2 => signal(&mut flow, Signal::Go, us),
                3 => signal(&mut flow, Signal::Reset(OWN, number as u16), us),
                _ => drop(flow.take(&number.to_be_bytes(), Some(OWN), at(us))),
            }
            prop_assert!(flow.open_at() <= at(us + HOLD_US_MAX));
            prop_assert!(flow.stopped_us(at(us)) >= counted);
            counted = flow.stopped_us(at(us));
            prop_assert!(counted <= us);
        }
    }
}
