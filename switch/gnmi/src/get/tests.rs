//! What Get answers.

use tonic::{Code, Status};

use super::*;
use crate::proto::gnmi::typed_value::Value as Typed;
use crate::proto::gnmi::{Encoding as Number, PathElem};
use crate::reading::tests::reading;

fn element(name: &str) -> PathElem {
    PathElem {
        name: name.to_owned(),
        ..PathElem::default()
    }
}

fn request(path: Path, encoding: Number) -> GetRequest {
    GetRequest {
        path: vec![path],
        encoding: encoding as i32,
        ..GetRequest::default()
    }
}

/// Updates as text: their paths and values.
fn answer(request: &GetRequest) -> Vec<(String, String)> {
    let response = Get::read(request)
        .unwrap()
        .answer(&reading(&[1, 2]))
        .unwrap();
    let notifications = response.notification.into_iter();
    let updates = notifications.flat_map(|notification| notification.update);
    let text = |update: Update| {
        let path = crate::path_text::text_of(None, update.path.as_ref());
        let value = match update.val.unwrap().value.unwrap() {
            Typed::StringVal(text) => text,
            Typed::UintVal(number) => number.to_string(),
            Typed::JsonVal(json) | Typed::JsonIetfVal(json) => String::from_utf8(json).unwrap(),
            other => panic!("{other:?}"),
        };
        (path, value)
    };
    updates.map(text).collect()
}

fn refuse(request: &GetRequest) -> (Code, String) {
    let answer = Get::read(request).and_then(|get| get.answer(&reading(&[1, 2])));
    let status = Status::from(answer.unwrap_err());
    (status.code(), status.message().to_owned())
}

fn pair(path: &str, value: &str) -> (String, String) {
    (path.to_owned(), value.to_owned())
}

#[test]
fn leaves_of_all_interfaces() {
    for encoding in [Number::Proto, Number::Json] {
        let quote = if encoding == Number::Json { "\"" } else { "" };
        let up = format!("{quote}UP{quote}");
        let all = request(path_of("*", &["state", "oper-status"]), encoding);
        assert_eq!(
            answer(&all),
            [
                pair("/interfaces/interface[name=eth1]/state/oper-status", &up),
                pair("/interfaces/interface[name=eth2]/state/oper-status", &up),
            ]
        );
    }
}

#[test]
fn a_container_is_its_leaves_or_an_object() {
    let state = path_of("eth2", &["state"]);
    let leaves = answer(&request(state.clone(), Number::Proto));
    assert!(leaves.contains(&pair("/interfaces/interface[name=eth2]/state/ifindex", "2")));
    assert_eq!(leaves.len(), 15);
    let object = answer(&request(state, Number::JsonIetf));
    assert_eq!(object.len(), 1);
    let (path, json) = &object[0];
    assert_eq!(path, "/interfaces/interface[name=eth2]/state");
    assert!(
        json.starts_with(r#"{"openconfig-interfaces:name":"eth2""#),
        "{json}"
    );
    assert!(json.contains(r#""openconfig-p4rt:id":2"#), "{json}");
}

#[test]
fn wildcards_lead_to_several_nodes() {
    let below = answer(&request(path_of("eth1", &["*"]), Number::Json));
    let paths: Vec<&str> = below.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "/interfaces/interface[name=eth1]/name",
            "/interfaces/interface[name=eth1]/config",
            "/interfaces/interface[name=eth1]/state",
        ]
    );
    let path = Path {
        elem: vec![element("..."), element("in-pkts")],
        ..Path::default()
    };
    let expected = [
        pair(
            "/interfaces/interface[name=eth1]/state/counters/in-pkts",
            "\"6\"",
        ),
        pair(
            "/interfaces/interface[name=eth2]/state/counters/in-pkts",
            "\"6\"",
        ),
    ];
    assert_eq!(answer(&request(path, Number::JsonIetf)), expected);
}

#[test]
fn the_whole_tree_is_one_object() {
    let whole = answer(&request(Path::default(), Number::Json));
    assert_eq!(whole.len(), 1);
    assert_eq!(whole[0].0, "/");
    assert!(
        whole[0]
            .1
            .starts_with(r#"{"interfaces":{"interface":[{"name":"eth1","#)
    );
    let no_path = GetRequest::default();
    assert_eq!(answer(&no_path), whole, "without paths it is the prefix");
}

#[test]
fn types_choose_leaves() {
    let of_type = |r#type: DataType| {
        let request = GetRequest {
            r#type: r#type as i32,
            ..request(path_of("eth1", &[]), Number::Proto)
        };
        answer(&request).len()
    };
    assert_eq!(of_type(DataType::All), 17);
    assert_eq!(of_type(DataType::Config), 2);
    assert_eq!(of_type(DataType::State), 15);
    assert_eq!(of_type(DataType::Operational), 12);
}

#[test]
fn an_interface_that_is_not_there_is_named_with_those_that_are() {
    let refused = refuse(&request(path_of("eth9", &["state"]), Number::Proto));
    let expected = "there is no interface `eth9`; there are eth1, eth2".to_owned();
    assert_eq!(refused, (Code::NotFound, expected));
}

#[test]
fn an_answer_has_a_bound() {
    let whole = GetRequest {
        path: vec![path_of("*", &[]); PATHS_MAX],
        ..GetRequest::default()
    };
    assert!(Get::read(&whole).unwrap().answer(&reading(&[1, 2])).is_ok());
    let ports: Vec<u16> = (1..100).collect();
    let refused = Get::read(&whole).unwrap().answer(&reading(&ports));
    assert_eq!(refused, Err(Refusal::ManyLeaves));
}

#[test]
fn wrong_types_are_refused() {
    let wrong = GetRequest {
        r#type: 5,
        ..GetRequest::default()
    };
    let expected = "type 5 is not valid: ALL, CONFIG, STATE or OPERATIONAL".to_owned();
    assert_eq!(refuse(&wrong), (Code::InvalidArgument, expected));
}
