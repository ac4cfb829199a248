//! What clients may subscribe to, and how others are refused.

use tonic::{Code, Status};

use super::*;
use crate::notify::path_of;
use crate::proto::gnmi::{Encoding as Number, PathElem};
use crate::schema::Leaf;

const MILLISECOND: u64 = 1_000_000;

fn counters() -> One {
    One {
        path: Some(path_of("*", &["state", "counters"])),
        ..One::default()
    }
}

fn oper_status() -> One {
    One {
        path: Some(path_of("eth1", &["state", "oper-status"])),
        mode: SubscriptionMode::OnChange as i32,
        ..One::default()
    }
}

fn list(paths: Vec<One>) -> SubscriptionList {
    SubscriptionList {
        subscription: paths,
        ..SubscriptionList::default()
    }
}

fn read(paths: Vec<One>) -> Subscription {
    Subscription::read(&list(paths)).unwrap()
}

fn refuse(list: &SubscriptionList) -> (Code, String) {
    let status = Status::from(Subscription::read(list).unwrap_err());
    (status.code(), status.message().to_owned())
}

fn sample(interval_ns: u64) -> One {
    One {
        mode: SubscriptionMode::Sample as i32,
        sample_interval: interval_ns,
        ..counters()
    }
}

#[test]
fn paths_that_are_sent_alike_share_a_schedule() {
    let other = One {
        path: Some(path_of("eth2", &["state", "admin-status"])),
        ..oper_status()
    };
    let subscription = read(vec![
        oper_status(),
        other,
        sample(0),
        sample(10 * MILLISECOND),
    ]);
    assert_eq!(subscription.timings.len(), 2);
    let leaves = |leaf| LeafSet::of(|other| other == leaf);
    let on_change = &subscription.timings[0].1;
    assert_eq!(on_change.of("eth1"), leaves(Leaf::OperStatus));
    assert_eq!(on_change.of("eth2"), leaves(Leaf::AdminStatus));
    assert_eq!(on_change.of("eth3"), LeafSet::default());
    let trigger = Trigger::Sample {
        interval: SAMPLE_INTERVAL_MIN,
        suppress_redundant: false,
    };
    assert_eq!(
        subscription.timings[1].0.trigger, trigger,
        "0 is the shortest"
    );
}

#[test]
fn the_switch_samples_counters_and_tells_of_changes() {
    let whole = One {
        path: Some(path_of("*", &[])),
        ..One::default()
    };
    let subscription = read(vec![whole]);
    let timings = &subscription.timings;
    assert_eq!(timings[0].0.trigger, Trigger::Change);
    assert_eq!(timings[0].1.of("any"), LeafSet::of_kind(Kind::Event));
    assert_eq!(timings[1].1.of("any"), LeafSet::of_kind(Kind::Counter));
    assert_eq!(read(vec![counters()]).timings.len(), 1);
}

#[test]
fn on_change_leaves_counters_out_and_wants_something_else() {
    let with = |below: &[&str]| {
        let path = Some(path_of("*", below));
        list(vec![One {
            path,
            ..oper_status()
        }])
    };
    let state = Subscription::read(&with(&["state"])).unwrap();
    assert!(!state.timings[0].1.of("eth1").has(Leaf::InPkts));
    assert_eq!(
        refuse(&with(&["state", "counters"])),
        (
            Code::InvalidArgument,
            "/interfaces/interface[name=*]/state/counters has counters alone, which are not sent \
             on change: subscribe to it with SAMPLE or TARGET_DEFINED"
                .to_owned()
        )
    );
}

#[test]
fn intervals_have_bounds() {
    let path = "/interfaces/interface[name=*]/state/counters";
    let bounds = "10ms to 86400s, in nanoseconds, or 0 for";
    for (interval_ns, text) in [
        (9 * MILLISECOND, "9ms"),
        (86_401_000 * MILLISECOND, "86401s"),
    ] {
        let expected = format!("sample_interval of {text} for {path}: {bounds} the shortest");
        let refused = refuse(&list(vec![sample(interval_ns)]));
        assert_eq!(refused, (Code::InvalidArgument, expected));
    }
    let heartbeat = One {
        heartbeat_interval: 1,
        ..counters()
    };
    let expected = format!("heartbeat_interval of 1ns for {path}: {bounds} none");
    assert_eq!(refuse(&list(vec![heartbeat])).1, expected);
    let both = One {
        sample_interval: 1_000 * MILLISECOND,
        ..counters()
    };
    assert!(refuse(&list(vec![both])).1.contains("TARGET_DEFINED"));
}

#[test]
fn there_are_bounds_on_paths_and_schedules() {
    assert_eq!(
        refuse(&list(vec![])).1,
        "a subscription without paths: give 1 to 1024"
    );
    let many = refuse(&list(vec![counters(); PATHS_MAX + 1]));
    let expected = "1025 paths: a request has at most 1024".to_owned();
    assert_eq!(many, (Code::InvalidArgument, expected));
    let intervals = |count: u64| {
        (0..count)
            .map(|n| sample((100 + n) * MILLISECOND))
            .collect()
    };
    assert_eq!(
        read(intervals(SCHEDULES_MAX as u64)).timings.len(),
        SCHEDULES_MAX
    );
    let (code, message) = refuse(&list(intervals(SCHEDULES_MAX as u64 + 1)));
    assert_eq!(code, Code::ResourceExhausted);
    assert!(
        message.starts_with("17 different pairs of mode and intervals"),
        "{message}"
    );
}

#[test]
fn numbers_that_stand_for_nothing_are_refused() {
    let mut wrong = list(vec![counters()]);
    wrong.mode = 7;
    assert_eq!(
        refuse(&wrong).1,
        "mode 7 is not valid: STREAM, ONCE or POLL"
    );
    let wrong = list(vec![One {
        mode: 7,
        ..counters()
    }]);
    let expected = "mode of a path 7 is not valid: TARGET_DEFINED, ON_CHANGE or SAMPLE";
    assert_eq!(refuse(&wrong).1, expected);
    let mut wrong = list(vec![counters()]);
    wrong.encoding = 1;
    let (code, message) = refuse(&wrong);
    assert_eq!(code, Code::Unimplemented);
    assert_eq!(
        message,
        "encoding BYTES is not supported: JSON, JSON_IETF or PROTO"
    );
}

#[test]
fn a_path_outside_streams_has_no_mode() {
    let mut once = list(vec![One {
        sample_interval: 1,
        mode: 9,
        ..counters()
    }]);
    once.mode = ListMode::Once as i32;
    let once = Subscription::read(&once).unwrap();
    assert_eq!((once.mode, once.timings.len()), (Mode::Once, 0));
    assert_eq!(once.wanted.of("eth1"), LeafSet::of_kind(Kind::Counter));
}

/// finsy leaves the encoding out, which stands for JSON, and wants values of their own types.
#[test]
fn leaves_have_their_own_types_unless_json_ietf_is_asked_for() {
    let encoding = |encoding: Number| {
        let list = SubscriptionList {
            encoding: encoding as i32,
            ..list(vec![counters()])
        };
        Subscription::read(&list).unwrap().style.encoding
    };
    assert_eq!(encoding(Number::Json), Encoding::Proto);
    assert_eq!(encoding(Number::Proto), Encoding::Proto);
    assert_eq!(encoding(Number::JsonIetf), Encoding::JsonIetf);
}

#[test]
fn models_restrict_what_is_sent() {
    let model = |name: &str| ModelData {
        name: name.to_owned(),
        ..ModelData::default()
    };
    let leaves = models(&[model("openconfig-interfaces")]).unwrap();
    assert!(leaves.has(Leaf::OperStatus) && !leaves.has(Leaf::Id));
    let leaves = models(&[model("openconfig-p4rt")]).unwrap();
    assert_eq!(leaves.iter().collect::<Vec<_>>(), [Leaf::Id]);
    assert_eq!(
        models(&[model("openconfig-bgp")]).unwrap_err().to_string(),
        "model `openconfig-bgp` is not served: openconfig-interfaces or openconfig-p4rt"
    );
}

#[test]
fn the_prefix_belongs_to_every_path() {
    let mut request = list(vec![One {
        path: Some(Path {
            elem: vec![PathElem {
                name: "oper-status".to_owned(),
                ..PathElem::default()
            }],
            ..Path::default()
        }),
        ..oper_status()
    }]);
    request.prefix = Some(Path {
        target: "s1".to_owned(),
        ..path_of("eth1", &["state"])
    });
    let subscription = Subscription::read(&request).unwrap();
    assert!(subscription.wanted.of("eth1").has(Leaf::OperStatus));
    let prefix = subscription
        .style
        .notification(0, Vec::new())
        .prefix
        .unwrap();
    assert_eq!((prefix.target.as_str(), prefix.elem.len()), ("s1", 0));
}
