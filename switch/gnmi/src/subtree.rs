//! Parts of the tree as JSON: what is below a container, or the list.

use serde_json::{Map, Value as Json};

use crate::encoding::Encoding;
use crate::reading::{Interface, Reading};
use crate::schema::{LIST, Leaf, LeafSet, Model, TOP};

/// What is below the node at `depth`, 0 or 1: the root, or the container of the list.
pub(crate) fn of_all(
    reading: &Reading,
    name: Option<&str>,
    leaves: LeafSet,
    depth: usize,
    encoding: Encoding,
) -> Json {
    let wanted = |(other, _): &(&String, &Interface)| name.is_none_or(|name| name == *other);
    let wanted = reading.interfaces.iter().filter(wanted);
    // Entries of a list have their key, whatever else is wanted.
    let leaves = leaves.or(LeafSet::of(|leaf| leaf == Leaf::Key));
    let list = wanted.map(|(name, interface)| of_one(interface, name, leaves, 2, encoding, false));
    let list = Json::Array(list.collect());
    let (list_name, top_name) = match encoding {
        Encoding::JsonIetf if depth == 0 => (LIST.to_owned(), qualified(Model::Interfaces, TOP)),
        Encoding::JsonIetf => (qualified(Model::Interfaces, LIST), String::new()),
        Encoding::Json | Encoding::Proto => (LIST.to_owned(), TOP.to_owned()),
    };
    let list = object(list_name, list);
    match depth {
        0 => object(top_name, list),
        _ => list,
    }
}

/// What is below the node at `depth` of one interface, from 2 for its entry in the list on.
/// `is_top`: members are at the top of a value, where RFC 7951 wants their modules.
pub(crate) fn of_one(
    interface: &Interface,
    name: &str,
    leaves: LeafSet,
    depth: usize,
    encoding: Encoding,
    is_top: bool,
) -> Json {
    let mut top = Map::new();
    for leaf in leaves.iter() {
        let Some(value) = interface.value(name, leaf) else {
            continue;
        };
        let elements: Vec<&str> = leaf.elements().skip(depth).collect();
        let names = elements.iter().enumerate().map(|(at, element)| {
            let is_leaf = at + 1 == elements.len();
            let model = if is_leaf {
                leaf.model()
            } else {
                Model::Interfaces
            };
            member(element, model, is_top && at == 0, encoding)
        });
        let names: Vec<String> = names.collect();
        put(&mut top, &names, encoding.json_of(&value));
    }
    Json::Object(top)
}

/// Puts a leaf into containers, which are made as they are needed.
fn put(map: &mut Map<String, Json>, names: &[String], value: Json) {
    match names {
        [] => {}
        [leaf] => {
            map.insert(leaf.clone(), value);
        }
        [container, below @ ..] => {
            let entry = map.entry(container.clone());
            let entry = entry.or_insert_with(|| Json::Object(Map::new()));
            if let Json::Object(inner) = entry {
                put(inner, below, value);
            }
        }
    }
}

/// Name of a member: with its module at the top, and where that is another than around it.
fn member(name: &str, model: Model, is_first: bool, encoding: Encoding) -> String {
    let is_foreign = model != Model::Interfaces;
    match encoding {
        Encoding::JsonIetf if is_first || is_foreign => qualified(model, name),
        _ => name.to_owned(),
    }
}

fn qualified(model: Model, name: &str) -> String {
    format!("{}:{name}", model.name())
}

fn object(name: String, value: Json) -> Json {
    Json::Object(Map::from_iter([(name, value)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::tests::{interface, reading};

    fn some() -> LeafSet {
        LeafSet::of(|leaf| matches!(leaf, Leaf::Key | Leaf::Id | Leaf::OperStatus | Leaf::InPkts))
    }

    #[test]
    fn an_entry_of_the_list() {
        let one = |encoding, is_top| {
            of_one(&interface(3), "eth3", some(), 2, encoding, is_top).to_string()
        };
        assert_eq!(
            one(Encoding::Json, true),
            r#"{"name":"eth3","state":{"id":3,"oper-status":"UP","counters":{"in-pkts":6}}}"#
        );
        assert_eq!(
            one(Encoding::JsonIetf, true),
            r#"{"openconfig-interfaces:name":"eth3","openconfig-interfaces:state":{"openconfig-p4rt:id":3,"oper-status":"UP","counters":{"in-pkts":"6"}}}"#
        );
    }

    #[test]
    fn a_container_of_an_interface() {
        let leaves = LeafSet::of(|leaf| leaf == Leaf::InPkts);
        let json = of_one(&interface(3), "eth3", leaves, 3, Encoding::JsonIetf, true);
        assert_eq!(
            json.to_string(),
            r#"{"openconfig-interfaces:counters":{"in-pkts":"6"}}"#
        );
    }

    #[test]
    fn the_whole_tree() {
        let leaves = LeafSet::of(|leaf| leaf == Leaf::Name);
        let all = |depth, encoding| {
            let reading = reading(&[1, 2]);
            of_all(&reading, None, leaves, depth, encoding).to_string()
        };
        let list =
            r#"[{"name":"eth1","state":{"name":"eth1"}},{"name":"eth2","state":{"name":"eth2"}}]"#;
        assert_eq!(
            all(0, Encoding::Json),
            format!(r#"{{"interfaces":{{"interface":{list}}}}}"#)
        );
        assert_eq!(
            all(0, Encoding::JsonIetf),
            format!(r#"{{"openconfig-interfaces:interfaces":{{"interface":{list}}}}}"#)
        );
        assert_eq!(
            all(1, Encoding::JsonIetf),
            format!(r#"{{"openconfig-interfaces:interface":{list}}}"#)
        );
        let one = of_all(&reading(&[1, 2]), Some("eth2"), leaves, 1, Encoding::Json);
        assert_eq!(
            one.to_string(),
            r#"{"interface":[{"name":"eth2","state":{"name":"eth2"}}]}"#
        );
    }
}
