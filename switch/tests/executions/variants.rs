//! Programs with other expressions: operators, signs and the inputs of calculations changed
//! at random. They mean nothing, but what loads must run the same in every way.

use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;
use serde_json::Value;

/// Operators that can stand for each other. None makes values much longer: the division of
/// long values takes its time.
const KINDS: [&[&str]; 4] = [
    &["+", "-", "&", "|", "^"],
    &["<<", ">>"],
    &["==", "!=", "<", "<=", ">", ">="],
    &["and", "or"],
];

fn one_in(generator: &mut ChaCha8Rng, chances: u32) -> bool {
    generator.next_u32().is_multiple_of(chances)
}

/// Changes the text of a program.
pub fn variant(text: &str, generator: &mut ChaCha8Rng) -> String {
    let mut document: Value = serde_json::from_str(text).expect("JSON");
    // A program that still does what it was made for forwards more.
    if one_in(generator, 2) {
        change_operators(&mut document, generator);
        change_signs(&mut document, generator);
    }
    change_inputs(&mut document, generator);
    document.to_string()
}

fn change_operators(value: &mut Value, generator: &mut ChaCha8Rng) {
    match value {
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| change_operators(item, generator)),
        Value::Object(members) => {
            let operator = members.get("op").and_then(Value::as_str);
            let kind = operator.and_then(|name| KINDS.iter().find(|kind| kind.contains(&name)));
            if let (Some(kind), true) = (kind, one_in(generator, 3)) {
                let other = kind[generator.next_u32() as usize % kind.len()];
                members.insert("op".to_owned(), Value::from(other));
            }
            members
                .iter_mut()
                .for_each(|(_, member)| change_operators(member, generator));
        }
        _ => {}
    }
}

/// Fields are triples of name, width and sign.
fn change_signs(document: &mut Value, generator: &mut ChaCha8Rng) {
    let types = document["header_types"].as_array_mut().expect("a list");
    for kind in types {
        let name = kind["name"].as_str().unwrap_or_default();
        if name.starts_with("standard_metadata") {
            continue;
        }
        for field in kind["fields"].as_array_mut().expect("a list") {
            if field[1].as_u64().is_some_and(|width| width > 1) && one_in(generator, 4) {
                field[2] = Value::from(true);
            }
        }
    }
}

/// One input in another order, or with a constant in it.
fn change_inputs(document: &mut Value, generator: &mut ChaCha8Rng) {
    let calculations = document["calculations"].as_array_mut().expect("a list");
    if calculations.is_empty() {
        return;
    }
    let chosen = generator.next_u32() as usize % calculations.len();
    let input = calculations[chosen]["input"]
        .as_array_mut()
        .expect("a list");
    if one_in(generator, 4) {
        // This mostly takes fields off their bytes: a case of its own.
        for index in 1..input.len() {
            input.swap(index, generator.next_u32() as usize % index);
        }
    } else {
        let bits = [8, 16, 24][generator.next_u32() as usize % 3];
        let constant = serde_json::json!({
            "type": "hexstr", "value": "0xa7", "bitwidth": bits
        });
        let at = generator.next_u32() as usize % (input.len() + 1);
        input.insert(at, constant);
    }
}
