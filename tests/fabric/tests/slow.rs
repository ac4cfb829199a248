//! A receiver that takes a message slower than it comes: its sender learns it within a second, and where the receiver may
//! lag by so many bytes only, it loses the message and the others do not wait.

use wormcast_fabric_tests::controller::schemes;
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::program::ReaderPolicy;
use wormcast_fabric_tests::scenario::{GROUP, Scenario};
use wormcast_wire::FailReason;

const SECOND_US: u64 = 1_000_000;
const BYTES: u64 = 8_000_000;
const SLOW: u16 = 6;
/// Of the slow receiver: 200 KB/s.
const BYTES_PER_MS: u64 = 200;
const LAG_BYTES: u64 = 1 << 20;

fn run(scheme: impl Into<wormcast_planner::GroupScheme>, policy: ReaderPolicy) -> (Scenario, u64) {
    let mut scenario = Scenario::new("testbed", scheme, Damage::default(), 5);
    scenario.fabric.host(SLOW).program.policy = policy;
    scenario.write(0, &[BYTES]);
    let took_us = scenario.finish(0, 120 * SECOND_US);
    (scenario, took_us)
}

#[test]
fn others_do_not_wait_for_who_lags_by_more_than_the_sender_allows() {
    for scheme in schemes() {
        let (_, alone_us) = run(scheme, ReaderPolicy::default());
        let (mut scenario, took_us) = run(
            scheme,
            ReaderPolicy {
                bytes_per_ms: Some(BYTES_PER_MS),
                lag_bytes: Some(LAG_BYTES),
                ..ReaderPolicy::default()
            },
        );
        // It is given up at the latest one look after the bound, while its own buffers still have room.
        assert!(
            took_us * 95 <= alone_us * 100,
            "{scheme:?}: {took_us} µs, and {alone_us} µs without a slow one"
        );
        let failed = vec![(SLOW, FailReason::TooSlow.to_string())];
        assert_eq!(scenario.outcomes(0), [(0, failed)], "{scheme:?}");
        scenario.check_delivered(0, 1, &[SLOW]);
        // The next message is for it too.
        scenario.fabric.host(SLOW).program.policy = ReaderPolicy::default();
        scenario.write(0, &[50_000]);
        scenario.finish(0, 60 * SECOND_US);
        assert_eq!(scenario.delivered(SLOW, 0), [1], "{scheme:?}");
    }
}

#[test]
fn who_is_slow_is_named_within_a_second_and_has_all_where_others_wait() {
    for scheme in schemes() {
        let policy = ReaderPolicy {
            bytes_per_ms: Some(BYTES_PER_MS),
            ..ReaderPolicy::default()
        };
        let (mut scenario, _) = run(scheme, policy);
        let slow = &scenario.fabric.host(0).program.writers[&GROUP].slow;
        let named: Vec<u16> = slow.keys().copied().collect();
        assert_eq!(named, [SLOW], "{scheme:?}");
        assert!(slow[&SLOW] <= SECOND_US, "{scheme:?}: {slow:?}");
        scenario.check_delivered(0, 1, &[]);
    }
}

#[test]
fn nobody_is_named_who_keeps_up() {
    for scheme in schemes() {
        for damage in [Damage::default(), Damage::rough()] {
            let mut scenario = Scenario::new("testbed", scheme, damage, 9);
            scenario.write(0, &[BYTES / 2]);
            scenario.finish(0, 120 * SECOND_US);
            let slow = &scenario.fabric.host(0).program.writers[&GROUP].slow;
            assert!(slow.is_empty(), "{scheme:?}: {slow:?}");
        }
    }
}
