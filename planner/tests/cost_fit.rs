//! Costs from times: those that made the times come back, with noise about as exactly as it allows.

use wormcast_planner::cost::{
    CostError, CostModel, Costs, Fit, Message, Timed, Traffic, estimate, fit,
};
use wormcast_routing::generate::from_spec;
use wormcast_routing::group::{GroupRequest, Scheme, SwitchParameters, plan_group};
use wormcast_routing::routes::{Algorithm, Routes};
use wormcast_routing::structure::CircuitVariant;
use wormcast_wire::HostId;

const LENGTHS: [u64; 8] = [
    64, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304,
];

fn on<T>(spec: &str, work: impl FnOnce(&Routes<'_>) -> T) -> T {
    let topology = from_spec(spec).unwrap();
    work(&Routes::plan(&topology, Algorithm::Osud, None).unwrap())
}

fn schemes() -> [Scheme; 3] {
    [
        Scheme::Repeat,
        Scheme::Circuit(CircuitVariant::OmitLast),
        Scheme::Switch(SwitchParameters::default()),
    ]
}

/// What messages of a scheme take by the estimate, times what `noise` says of each.
fn times(
    routes: &Routes<'_>,
    costs: &Costs,
    schemes: &[Scheme],
    sizes: &[u16],
    lengths: &[u64],
    mut noise: impl FnMut() -> f64,
) -> Vec<Timed> {
    let model = CostModel::new(routes, costs.clone()).unwrap();
    let mut timed = Vec::new();
    for &size in sizes {
        for &scheme in schemes {
            let members: Vec<HostId> = (0..size).map(HostId).collect();
            let request = GroupRequest::new(scheme, members[0], members);
            let traffic = Traffic::new(&model, &plan_group(routes, &request).unwrap()).unwrap();
            for &bytes in lengths {
                let packets = costs.packets(bytes);
                let found = estimate(&model, &traffic, Message { bytes, packets });
                timed.push(Timed {
                    request: request.clone(),
                    bytes,
                    ns: found.completion_ns * noise(),
                    error: 0.02,
                });
            }
        }
    }
    timed
}

/// A fabric on one machine whose links have token buckets.
fn slow() -> Costs {
    Costs {
        message_send_ns: 260_000.0,
        message_receive_ns: 260_000.0,
        message_confirm_ns: 80_000.0,
        forward_packet_ns: 95_000.0,
        packet_send_ns: 14_000.0,
        packet_receive_ns: 14_000.0,
        acknowledgement_ns: 3_458.8,
        link_burst_bytes: 20_000,
        shared_crossing_ns: 4_000.0,
        link_bits_per_s: 40_000_000,
        host_link_bits_per_s: 40_000_000,
        ..Costs::default()
    }
}

fn value(fit: &Fit, name: &str) -> f64 {
    let found = fit.found.iter().find(|one| one.names[0] == name).unwrap();
    assert!(found.determined, "{found:?}");
    found.after
}

fn assert_close(fit: &Fit, within: f64) {
    let wanted = [
        ("message_send_ns", 520_000.0),
        ("message_confirm_ns", 80_000.0),
        ("forward_packet_ns", 95_000.0),
        ("packet_send_ns", 28_000.0),
        ("shared_crossing_ns", 4_000.0),
        ("link_burst_bytes", 20_000.0),
        ("link_bits_per_s", 40e6),
    ];
    for (name, wanted) in wanted {
        let found = value(fit, name);
        assert!(
            (found / wanted - 1.0).abs() < within,
            "{name}: {found} instead of {wanted}"
        );
    }
}

#[test]
fn the_costs_that_made_the_times_come_back() {
    on("testbed", |routes| {
        let timed = times(routes, &slow(), &schemes(), &[2, 5, 8], &LENGTHS, || 1.0);
        let fit = fit(routes, &Costs::default(), &timed).unwrap();
        assert_close(&fit, 0.03);
        for (timed, (_, after)) in timed.iter().zip(&fit.estimates) {
            assert!((after / timed.ns - 1.0).abs() < 0.02, "{timed:?}: {after}");
        }
        // What is not looked for stays.
        assert_eq!(fit.costs.switch_hop_ns, Costs::default().switch_hop_ns);
        assert_eq!(
            fit.costs.packet_header_bytes,
            Costs::default().packet_header_bytes
        );
    });
}

#[test]
fn noise_and_a_few_times_that_are_far_off_do_little() {
    on("torus:4", |routes| {
        for seed in 1..=5u64 {
            let mut state = seed;
            let mut drawn = 0;
            let noise = || {
                let mut sum = 0.0;
                for _ in 0..4 {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(99);
                    sum += (state >> 33) as f64 / f64::from(1u32 << 31) - 0.5;
                }
                drawn += 1;
                // Four percent either way, and every twentieth three times too long.
                (1.0 + 0.07 * sum) * if drawn % 20 == 7 { 3.0 } else { 1.0 }
            };
            let timed = times(routes, &slow(), &schemes(), &[2, 9, 16], &LENGTHS, noise);
            let fit = fit(routes, &Costs::default(), &timed).unwrap();
            for (name, wanted, within) in [
                ("message_send_ns", 520_000.0, 0.15),
                ("message_confirm_ns", 80_000.0, 0.2),
                ("forward_packet_ns", 95_000.0, 0.35),
                ("shared_crossing_ns", 4_000.0, 0.25),
                ("link_bits_per_s", 40e6, 0.1),
            ] {
                let found = value(&fit, name);
                assert!(
                    (found / wanted - 1.0).abs() < within,
                    "seed {seed}, {name}: {found} instead of {wanted}"
                );
            }
        }
    });
}

#[test]
fn what_the_times_do_not_tell_stays_and_is_named() {
    on("testbed", |routes| {
        // One short message to one member: nothing but the sum of all that it takes.
        let timed = times(routes, &slow(), &[Scheme::Repeat], &[2], &[64], || 1.0);
        let fit = fit(routes, &Costs::default(), &timed).unwrap();
        let determined: Vec<&str> = fit
            .found
            .iter()
            .filter(|one| one.determined)
            .map(|one| one.names[0])
            .collect();
        assert!(determined.len() <= 1, "{determined:?}");
        for one in fit.found.iter().filter(|one| !one.determined) {
            assert!(
                (one.after / one.before - 1.0).abs() < 1e-9 || one.after == one.before,
                "{one:?}"
            );
        }
        let kept = Costs::default();
        assert_eq!(fit.costs.link_bits_per_s, kept.link_bits_per_s);
        assert_eq!(fit.costs.forward_packet_ns, kept.forward_packet_ns);
    });
}

#[test]
fn links_that_are_too_fast_to_be_told_are_not_taken_for_slow_ones() {
    on("testbed", |routes| {
        let costs = Costs {
            link_bits_per_s: 1_000_000_000_000,
            host_link_bits_per_s: 1_000_000_000_000,
            link_burst_bytes: 0,
            ..slow()
        };
        let timed = times(routes, &costs, &schemes(), &[2, 5, 8], &LENGTHS, || 1.0);
        let fit = fit(routes, &Costs::default(), &timed).unwrap();
        // The hosts send no more than some 700 Mb/s.
        assert!(value(&fit, "link_bits_per_s") > 5e8, "{:?}", fit.found);
        for (timed, (_, after)) in timed.iter().zip(&fit.estimates) {
            assert!((after / timed.ns - 1.0).abs() < 0.1, "{timed:?}: {after}");
        }
    });
}

#[test]
fn costs_that_are_right_already_stay() {
    on("testbed", |routes| {
        let costs = slow();
        let timed = times(routes, &costs, &schemes(), &[2, 8], &LENGTHS, || 1.0);
        let fit = fit(routes, &costs, &timed).unwrap();
        assert_close(&fit, 1e-3);
    });
}

#[test]
fn times_that_are_none_are_refused() {
    on("testbed", |routes| {
        let good = times(routes, &slow(), &[Scheme::Repeat], &[2], &[64], || 1.0);
        let refused = |timed: &[Timed], words: &[&str]| {
            let error = fit(routes, &Costs::default(), timed)
                .unwrap_err()
                .to_string();
            for word in words {
                assert!(error.contains(word), "{error}");
            }
        };
        refused(&[], &["at least 1"]);
        for ns in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let mut timed = good.clone();
            timed[0].ns = ns;
            refused(&timed, &["timed[0].ns", "above 0"]);
        }
        let mut timed = good.clone();
        timed[0].error = -0.1;
        refused(&timed, &["timed[0].error", "-0.1"]);
        let mut timed = good;
        timed[0].request.members = vec![HostId(0), HostId(99)];
        refused(&timed, &["99"]);
        let list = r#"[{"request":{"scheme":"repeat","source":0,"members":[0,1]},"bytes":64,"ns":"long"}]"#;
        let error = Timed::list_from_json(list).unwrap_err();
        assert!(
            matches!(error, CostError::Value { ref at, .. } if at == "timed[0].ns"),
            "{error}"
        );
    });
}
