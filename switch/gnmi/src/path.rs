//! What a path of a client selects: interfaces, and leaves of them.
//!
//! Since there is one list in the tree, every path, however many wildcards it has, selects a
//! set of leaves of one interface or of all.

use crate::limits::PATH_ELEMENTS_MAX;
use crate::path_text::{shortened, text_of};
use crate::proto::gnmi::{Path, PathElem};
use crate::refusal::Refusal;
use crate::schema::{KEY, LIST, LIST_AT, LeafSet, TOP};

/// Stands for one element, or for any value of a key.
const ONE: &str = "*";
/// Stands for any number of elements. ONOS writes it for any value of a key too.
const MANY: &str = "...";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    /// Name of the one interface; none: all.
    pub(crate) interface: Option<String>,
    /// At least one.
    pub(crate) leaves: LeafSet,
    /// Number of elements of the node that the path leads to; none where the path has `...`,
    /// which leads to nodes of several depths.
    pub(crate) depth: Option<usize>,
}

/// An element of a path, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Element {
    Named { name: String, has_key: bool },
    One { has_key: bool },
    Many,
}

/// Reads a path below a prefix.
pub(crate) fn resolve(prefix: Option<&Path>, path: &Path) -> Result<Selection, Refusal> {
    let bad = |problem: &str| Refusal::BadPath {
        path: text_of(prefix, Some(path)),
        problem: problem.to_owned(),
    };
    if !path.target.is_empty() {
        return Err(bad("a target belongs to the prefix"));
    }
    check_origin(prefix, path)?;
    let elements = prefix.into_iter().chain([path]);
    let elements: Vec<&PathElem> = elements.flat_map(|path| &path.elem).collect();
    if elements.len() > PATH_ELEMENTS_MAX {
        let count = elements.len();
        return Err(Refusal::LongPath { count });
    }
    let mut pattern = Vec::new();
    let mut interface = None;
    for element in elements {
        let key = key_of(element).map_err(|problem| bad(&problem))?;
        if key.is_some() && interface.is_some() {
            return Err(bad("there is one list, so one key"));
        }
        let has_key = key.is_some();
        interface = interface.or(key);
        match element.name.as_str() {
            "" => return Err(bad("an element without a name")),
            MANY if has_key => return Err(bad("`...` has no keys")),
            MANY if pattern.last() == Some(&Element::Many) => {}
            MANY => pattern.push(Element::Many),
            ONE => pattern.push(Element::One { has_key }),
            name => pattern.push(Element::Named {
                name: name.to_owned(),
                has_key,
            }),
        }
    }
    let leaves = selected(&pattern);
    if leaves.is_empty() {
        return Err(Refusal::NoPath {
            path: text_of(prefix, Some(path)),
            choices: choices(&pattern),
        });
    }
    Ok(Selection {
        interface: interface.flatten(),
        leaves,
        depth: (!pattern.contains(&Element::Many)).then_some(pattern.len()),
    })
}

/// The value of the list's key, if the element has it; inside, none stands for any value.
fn key_of(element: &PathElem) -> Result<Option<Option<String>>, String> {
    for key in element.key.keys() {
        if key != KEY {
            return Err(format!(
                "key `{}`: {LIST} has the key {KEY}",
                shortened(key)
            ));
        }
    }
    let Some(value) = element.key.get(KEY) else {
        return Ok(None);
    };
    if !matches!(element.name.as_str(), LIST | ONE | MANY) {
        return Err(format!("only {LIST} has a key, {KEY}"));
    }
    let is_any = matches!(value.as_str(), ONE | MANY);
    Ok(Some((!is_any).then(|| value.clone())))
}

fn check_origin(prefix: Option<&Path>, path: &Path) -> Result<(), Refusal> {
    let given = prefix.into_iter().chain([path]);
    for path in given {
        let old = old_elements(path);
        if !old.is_empty() {
            return Err(Refusal::BadPath {
                path: shortened(&old.join("/")),
                problem: "the field `element` is of old versions of gNMI: use `elem`".to_owned(),
            });
        }
        if !matches!(path.origin.as_str(), "" | "openconfig") {
            return Err(Refusal::Origin(shortened(&path.origin)));
        }
    }
    Ok(())
}

/// Elements as gNMI had them before 0.4.
#[allow(deprecated)]
fn old_elements(path: &Path) -> &[String] {
    &path.element
}

/// Leaves at or below the nodes that a pattern leads to.
fn selected(pattern: &[Element]) -> LeafSet {
    LeafSet::of(|leaf| {
        let nodes: Vec<&str> = leaf.elements().collect();
        leads_to(pattern, &nodes, 0)
    })
}

/// Whether a pattern leads to the node that these are the elements of, or to one above it.
/// `at`: elements before these.
fn leads_to(pattern: &[Element], nodes: &[&str], at: usize) -> bool {
    let Some((element, pattern)) = pattern.split_first() else {
        return true;
    };
    let below = |skipped: usize| leads_to(pattern, &nodes[skipped..], at + skipped);
    let (is_it, has_key) = match (element, nodes.first()) {
        (Element::Many, _) => return (0..=nodes.len()).any(below),
        (_, None) => return false,
        (Element::One { has_key }, Some(_)) => (true, *has_key),
        (Element::Named { name, has_key }, Some(node)) => (name == node, *has_key),
    };
    is_it && (!has_key || at == LIST_AT) && below(1)
}

/// What there is instead of what a pattern asks for.
fn choices(pattern: &[Element]) -> String {
    let longest = (0..pattern.len()).rev();
    let mut known = longest.map(|length| &pattern[..length]);
    let known = known.find(|known| !selected(known).is_empty());
    let known = known.unwrap_or_default();
    if known.contains(&Element::Many) {
        return format!("the paths there are begin with /{TOP}/{LIST}");
    }
    let mut names: Vec<&str> = Vec::new();
    for leaf in selected(known).iter() {
        let name = leaf.elements().nth(known.len());
        names.extend(name.filter(|name| !names.contains(name)));
    }
    if names.is_empty() {
        "nothing is below a leaf".to_owned()
    } else {
        format!("there are here: {}", names.join(", "))
    }
}

#[cfg(test)]
mod tests;
