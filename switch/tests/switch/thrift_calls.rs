//! What the Thrift server withstands: bytes that are no message, connections without end,
//! calls with any arguments.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::thrift::{MAC, add_address, start};
use super::thrift_client::{
    Client, bytes, connect, exact, int, lpm, serve, structure, ternary, text,
};
use wormcast_switch_bmv2::thrift::{CONNECTIONS_MAX, METHODS, Type, Value};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_are_no_message_end_their_connection_alone() {
    let (rig, _controller, mut client) = start().await;
    let port = serve(&rig.dataplane);
    for garbage in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0x80, 1, 0, 1, 0xff, 0xff, 0xff, 0xff],
        &[0xff; 64],
    ] {
        let mut connection = connect(port);
        connection.send(garbage).unwrap();
        assert!(connection.hear().is_err(), "{garbage:?}");
    }
    let mut connections: Vec<Client> = (0..CONNECTIONS_MAX).map(|_| connect(port)).collect();
    for connection in &mut connections {
        assert!(
            connection
                .call("standard:bm_get_config", Vec::new())
                .is_ok()
        );
    }
    let mut beyond = connect(port);
    assert!(beyond.hear().is_err(), "one connection too many is closed");
    drop(connections);
    assert_eq!(add_address(&mut client, MAC, 1), Ok(0));
}

/// Arguments of the right types, with values and names that mean something now and then.
fn arguments(kinds: &'static [Type]) -> impl Strategy<Value = Vec<Value>> {
    let name = prop_oneof![
        Just("ingress.addresses"),
        Just("ingress.types"),
        Just("ingress.spread"),
        Just("ingress.choice"),
        Just("ingress.marks"),
        Just("ingress.rates"),
        Just("ingress.received"),
        Just("ingress.forward"),
        Just("ingress.forward_on"),
        Just("0110"),
        Just("?"),
    ];
    let key = prop_oneof![
        Just(exact(&MAC)),
        Just(exact(&[8, 0])),
        Just(lpm(&MAC, 70)),
        Just(ternary(&[8, 0], &[0xff, 0])),
        Just(structure(Vec::new())),
        proptest::collection::vec(any::<u8>(), 0..4).prop_map(|value| bytes(&value)),
    ];
    let number = prop_oneof![-2..4i64, any::<i64>()];
    let values = kinds.iter().map(|kind| match kind {
        Type::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        Type::I16 => number.clone().prop_map(|n| Value::I16(n as i16)).boxed(),
        Type::I32 => number.clone().prop_map(|n| Value::I32(n as i32)).boxed(),
        Type::I64 => number.clone().prop_map(Value::I64).boxed(),
        Type::Binary => name.clone().prop_map(text).boxed(),
        Type::List => (key.clone(), 0..4usize)
            .prop_map(|(item, count)| Value::List(item.kind(), vec![item; count]))
            .boxed(),
        _ => number
            .clone()
            .prop_map(|n| structure(vec![(1, int(n as i32)), (2, int(n as i32))]))
            .boxed(),
    });
    values.collect::<Vec<_>>()
}

/// Whatever is called with whatever arguments, there is an answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_is_answered() {
    let (_rig, _controller, mut client) = start().await;
    let calls = (0..METHODS.len()).prop_flat_map(|number| {
        let method = &METHODS[number];
        (Just(method), arguments(method.arguments))
    });
    let config = Config {
        cases: 3_000,
        failure_persistence: None,
        ..Config::default()
    };
    let seeded = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, seeded);
    let client = std::cell::RefCell::new(&mut client);
    runner
        .run(&calls, |(method, arguments)| {
            let name = format!("{}:{}", method.service, method.name);
            let _ = client.borrow_mut().call(&name, arguments);
            Ok(())
        })
        .unwrap();
}
