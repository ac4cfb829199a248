//! What the objects of a program are called in the event log.

use std::collections::BTreeMap;

use wormcast_switch_program::Stage;
use wormcast_switch_program::{NodeName, Program};

/// Ids of the objects of a program in its JSON, by their places here. An object without an
/// id, which p4c does not make, is -1.
#[derive(Debug)]
pub(super) struct EventIds {
    pub(super) parser: i32,
    pub(super) deparser: i32,
    pub(super) headers: Vec<i32>,
    pub(super) actions: Vec<i32>,
    pub(super) tables: Vec<i32>,
    pub(super) updated: Vec<i32>,
    ingress: Control,
    egress: Control,
}

/// A pipeline and its nodes.
#[derive(Debug)]
struct Control {
    id: i32,
    /// Of nodes that are conditions.
    conditions: Vec<i32>,
}

impl EventIds {
    pub(super) fn of(program: &Program) -> Self {
        let (ids, names) = (program.ids(), &program.names);
        let by_name =
            |list: &str, names: &mut dyn Iterator<Item = &str>| look_up(&ids.by_name(list), names);
        // Actions can have one name; they and headers have the order of their lists.
        let in_order = |list: &str| -> Vec<i32> {
            let ids = ids.in_order(list);
            ids.into_iter().map(bounded).collect()
        };
        let first = |list: &str| in_order(list).first().copied().unwrap_or(-1);
        let pipelines = ids.by_name("pipelines");
        let control = |name: &str, nodes: &[NodeName]| Control {
            id: pipelines.get(name).map_or(-1, |id| bounded(*id)),
            conditions: look_up(
                &ids.of_pipeline(name, "conditionals"),
                &mut nodes.iter().map(|node| node.name.as_str()),
            ),
        };
        Self {
            parser: first("parsers"),
            deparser: first("deparsers"),
            headers: in_order("headers"),
            actions: in_order("actions"),
            tables: by_name(
                "tables",
                &mut program.tables().iter().map(|table| table.name.as_str()),
            ),
            updated: by_name("checksums", &mut names.updated.iter().map(String::as_str)),
            ingress: control("ingress", &names.ingress),
            egress: control("egress", &names.egress),
        }
    }

    pub(super) fn pipeline(&self, stage: Stage) -> i32 {
        self.control(stage).id
    }

    pub(super) fn condition(&self, stage: Stage, node: u32) -> i32 {
        id(&self.control(stage).conditions, node)
    }

    fn control(&self, stage: Stage) -> &Control {
        match stage {
            Stage::Ingress => &self.ingress,
            Stage::Egress => &self.egress,
        }
    }
}

pub(super) fn id(ids: &[i32], place: u32) -> i32 {
    ids.get(place as usize).copied().unwrap_or(-1)
}

fn look_up(ids: &BTreeMap<String, i64>, names: &mut dyn Iterator<Item = &str>) -> Vec<i32> {
    names
        .map(|name| ids.get(name).map_or(-1, |id| bounded(*id)))
        .collect()
}

fn bounded(id: i64) -> i32 {
    i32::try_from(id).unwrap_or(-1)
}
