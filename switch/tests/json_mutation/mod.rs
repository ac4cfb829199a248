//! Changes of JSON documents.

use serde_json::Value;

/// What is done to one value.
#[derive(Clone, Debug)]
pub enum Mutation {
    Replace(Value),
    Remove,
    Double,
    SwapWithNext,
}

/// Changes one value of a document, chosen by numbers that lead down from the root.
pub fn mutate(document: &mut Value, choices: &[u32], mutation: &Mutation) {
    let mut at = document;
    for (depth, &choice) in choices.iter().enumerate() {
        let last = depth + 1 == choices.len();
        let count = match at {
            Value::Array(items) => items.len(),
            Value::Object(members) => members.len(),
            _ => 0,
        };
        if count == 0 {
            break;
        }
        let index = choice as usize % count;
        if last {
            match (at, mutation) {
                (Value::Array(items), Mutation::Remove) => {
                    items.remove(index);
                }
                (Value::Array(items), Mutation::Double) => items.push(items[index].clone()),
                (Value::Array(items), Mutation::SwapWithNext) => {
                    items.swap(index, (index + 1) % count);
                }
                (Value::Object(members), Mutation::Remove) => {
                    let name = members.keys().nth(index).cloned().unwrap_or_default();
                    members.remove(&name);
                }
                (Value::Array(items), Mutation::Replace(value)) => items[index] = value.clone(),
                (Value::Object(members), Mutation::Replace(value)) => {
                    if let Some((_, old)) = members.iter_mut().nth(index) {
                        *old = value.clone();
                    }
                }
                _ => {}
            }
            return;
        }
        at = match at {
            Value::Array(items) => &mut items[index],
            Value::Object(members) => match members.iter_mut().nth(index) {
                Some((_, value)) => value,
                None => return,
            },
            _ => return,
        };
    }
    if let Mutation::Replace(value) = mutation {
        *at = value.clone();
    }
}
