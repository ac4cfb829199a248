//! What every switch and every agent of a fabric must have, and the way there.
//!
//! [`Planner::plan`] makes a [`FabricState`] from topology, groups and hosts; it is called again
//! after each change and makes anew only what the change concerns. [`difference`] says which
//! updates lead a switch from the state it has to the state it must have, in an order that keeps
//! running transfers alive.
//!
//! Pure: no IO, no clock, no threads; the same input gives the same output.

mod agents;
pub mod auto;
mod bridge;
pub mod change;
pub mod class_d;
mod copies;
pub mod cost;
mod difference;
mod difference_guard;
mod entries;
mod failure;
mod gather;
mod gather_tree;
mod groups;
mod guard;
mod guard_groups;
mod guard_trees;
mod hosts;
mod ids;
mod left_out;
mod messages;
mod narrow;
mod order;
mod parts;
mod planner;
mod rates;
mod read_back;
pub mod replay;
mod replication;
mod reuse;
mod route_change;
mod route_order;
mod shapes;
mod state;
mod switches;
mod table_numbers;
mod trees;
mod turning;
mod wiring;
mod wormhole;
mod written;

pub use class_d::{ClassDMode, ClassDNumbers};
pub use copies::{Copies, Replica};
pub use difference::{
    Entity, MulticastGroup, Operation, PortRate, Stage, Update, difference, execute, mgid_of,
};
pub use entries::{TABLE_GROUPS, TABLES_WITH_DEFAULT, class_d_entries};
pub use failure::{PlanFailure, Subject};
pub use gather::TABLE_GATHER;
pub use groups::{Group, GroupScheme};
pub use guard::{Guard, TABLE_GUARD};
pub use hosts::{COPIES_ALONE, CUT_OFF, Capacity, Hosts, NOT_LIVE, NOT_LOCATED, PLAIN, Shortfall};
pub use ids::{
    GATHER_BRANCHES_MAX, GATHER_ENTRIES_MAX, GATHER_SLOTS, GATHER_SOURCE_FIRST, GATHER_SOURCE_LAST,
    GROUP_NUMBERS_MAX, INSTANCE_BRANCH, INSTANCE_NEIGHBOUR, INSTANCE_PLAIN, MGID_BROADCAST,
    MGID_GROUP_FIRST, MGID_GROUP_LAST, MGID_GROUPS_MAX, MGID_HOLD, MGID_INTERRUPT, MGID_PORT,
    MGID_TREE_ALL, MGID_TREE_SET, Mgid, PortSet, TREE_SET_PORTS,
};
pub use narrow::NarrowLinks;
pub use planner::{FabricState, NOT_PLANNED, Planner};
pub use read_back::{Part, Strayed, read_back};
pub use replication::{CapacityError, allocate_mgids};
pub use route_change::{Method, RouteChange};
pub use route_order::{RouteOrder, RouteOrderError};
pub use shapes::BULK_PACKETS;
pub use state::{
    Action, AgentGroup, AgentPlan, AgentStructure, AgentTrees, EntryKey, Gathered, KeyFields, Leaf,
    LeftOut, MatchValue, Name, Place, PlannedRoute, RouteTable, Sequencer, SwitchState,
    TableDefault, TableEntry, digest_agents,
};
pub use wormhole::{
    GO_FRAMES, HELD_MAX, STOP_FRAMES, STOP_US, Switching, TRAIN_FRAMES, WormholeScheme,
};
pub use written::{ROUTES_WRITTEN_MAX, dependencies, routes_file};
