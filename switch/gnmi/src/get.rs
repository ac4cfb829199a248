//! Answers to Get.

use crate::encoding::Encoding;
use crate::limits::{LEAVES_MAX, PATHS_MAX};
use crate::notify::{Style, path_above, path_of, update};
use crate::path::{Selection, resolve};
use crate::path_text::shortened;
use crate::proto::gnmi::get_request::DataType;
use crate::proto::gnmi::{GetRequest, GetResponse, Path, Update};
use crate::reading::Reading;
use crate::refusal::Refusal;
use crate::schema::{Class, LIST_AT, LeafSet};
use crate::subscription::models;
use crate::subtree;
use wormcast_switch_dataplane::list;

/// A request, checked: one selection for each path.
pub(crate) struct Get {
    style: Style,
    selections: Vec<Selection>,
}

impl Get {
    /// Reads a request. Without paths it is about what the prefix leads to.
    pub(crate) fn read(request: &GetRequest) -> Result<Self, Refusal> {
        let encoding = Encoding::read(request.encoding)?;
        let leaves = leaves_of_type(request.r#type)?.and(models(&request.use_models)?);
        let count = request.path.len();
        if count > PATHS_MAX {
            return Err(Refusal::ManyPaths { count });
        }
        let root = [Path::default()];
        let paths = match request.path.as_slice() {
            [] => &root,
            paths => paths,
        };
        let mut selections = Vec::with_capacity(paths.len());
        for path in paths {
            let mut selection = resolve(request.prefix.as_ref(), path)?;
            selection.leaves = selection.leaves.and(leaves);
            selections.push(selection);
        }
        Ok(Self {
            style: Style::new(encoding, request.prefix.as_ref()),
            selections,
        })
    }

    /// A notification for each path (§3.3.2).
    pub(crate) fn answer(&self, reading: &Reading) -> Result<GetResponse, Refusal> {
        let mut response = GetResponse::default();
        let mut leaves = 0;
        for selection in &self.selections {
            if let Some(name) = &selection.interface
                && !reading.interfaces.contains_key(name)
            {
                return Err(no_interface(name, reading));
            }
            let interfaces = match &selection.interface {
                Some(_) => 1,
                None => reading.interfaces.len(),
            };
            leaves += interfaces * selection.leaves.iter().count();
            if leaves > LEAVES_MAX {
                return Err(Refusal::ManyLeaves);
            }
            let updates = self.updates(selection, reading);
            let notification = self.style.notification(reading.unix_us, updates);
            response.notification.push(notification);
        }
        Ok(response)
    }

    /// What a path leads to: as JSON the node itself, else each leaf.
    fn updates(&self, selection: &Selection, reading: &Reading) -> Vec<Update> {
        let encoding = self.style.encoding;
        let leaves = selection.leaves;
        let depth = selection.depth.filter(|_| encoding != Encoding::Proto);
        if let Some(depth) = depth.filter(|depth| *depth <= LIST_AT) {
            let name = selection.interface.as_deref();
            let json = subtree::of_all(reading, name, leaves, depth, encoding);
            return vec![update(path_above(depth), encoding.json(&json))];
        }
        let name = selection.interface.as_ref();
        let wanted = reading.interfaces.iter();
        let wanted = wanted.filter(|(other, _)| name.is_none_or(|name| name == *other));
        let mut updates = Vec::new();
        for (name, interface) in wanted {
            // Paths with wildcards may lead to several nodes.
            let mut told: Vec<&[&str]> = Vec::new();
            for leaf in leaves.iter() {
                let below = depth.map(|depth| depth - LIST_AT - 1);
                match below.and_then(|below| leaf.below().get(..below)) {
                    Some(node) if node.len() < leaf.below().len() => {
                        if told.contains(&node) {
                            continue;
                        }
                        told.push(node);
                        let here = |other: crate::schema::Leaf| other.below().starts_with(node);
                        let here = leaves.and(LeafSet::of(here));
                        let depth = LIST_AT + 1 + node.len();
                        let json = subtree::of_one(interface, name, here, depth, encoding, true);
                        updates.push(update(path_of(name, node), encoding.json(&json)));
                    }
                    _ => {
                        let value = interface.value(name, leaf);
                        updates.extend(value.map(|value| self.style.leaf(name, leaf, &value)));
                    }
                }
            }
        }
        updates
    }
}

fn no_interface(name: &str, reading: &Reading) -> Refusal {
    let names = reading.interfaces.keys().cloned();
    Refusal::NoInterface {
        name: shortened(name),
        choices: match names.len() {
            0 => "the switch has none".to_owned(),
            _ => format!("there are {}", list(names)),
        },
    }
}

fn leaves_of_type(number: i32) -> Result<LeafSet, Refusal> {
    let class = match DataType::try_from(number) {
        Ok(DataType::All) => return Ok(LeafSet::all()),
        Ok(DataType::Config) => |class| class == Class::Config,
        Ok(DataType::State) => |class| class != Class::Config,
        Ok(DataType::Operational) => |class| class == Class::Operational,
        Err(_) => {
            return Err(Refusal::Enumeration {
                field: "type",
                value: number,
                choices: "ALL, CONFIG, STATE or OPERATIONAL",
            });
        }
    };
    Ok(LeafSet::of(|leaf| class(leaf.class())))
}

#[cfg(test)]
mod tests;
