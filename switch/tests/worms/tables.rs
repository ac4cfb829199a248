//! Tables of a data plane that forwards worms.

use std::sync::Arc;

use wormcast_switch_pipeline::{EntryAction, Pipeline, PortId, Replica, TableEntry};
use wormcast_switch_program::{ActionCall, Bits, FieldMatch};

/// Inserts an entry with one exact key.
pub fn insert(pipeline: &mut Pipeline, table: &str, action: &str, key: u64, arguments: &[u64]) {
    let program = Arc::clone(pipeline.program());
    let table = program.table(table).expect("a table of the data plane");
    let action = program
        .table_action(table, action)
        .expect("an action of the table");
    let entry = TableEntry {
        key: vec![FieldMatch::Exact(Bits::from_u64(key))],
        priority: 0,
        action: EntryAction::Call(ActionCall {
            action,
            arguments: arguments
                .iter()
                .map(|&value| Bits::from_u64(value))
                .collect(),
        }),
    };
    pipeline.insert_entry(table, &entry).expect("a valid entry");
}

/// Ports 0 to 7, and a group for each set of them, as a controller sets them up.
pub fn set_up(pipeline: &mut Pipeline) {
    for port in 0..8u16 {
        insert(
            pipeline,
            "ingress.ports",
            "ingress.port_known",
            u64::from(port),
            &[],
        );
    }
    for set in 1..256u16 {
        let replicas: Vec<Replica> = (0..8)
            .filter(|port| set >> port & 1 == 1)
            .map(|port| Replica {
                port: PortId(port),
                instance: 1,
            })
            .collect();
        pipeline
            .insert_multicast_group(0x100 + u32::from(set), &replicas)
            .expect("a valid group");
        let group = u64::from(0x100 + set);
        insert(
            pipeline,
            "ingress.tree_sets",
            "ingress.replicate",
            u64::from(set),
            &[group],
        );
    }
}
