//! What every switch and every agent of a fabric must have, and the way there.
//!
//! [`Planner::plan`] makes a [`FabricState`] from topology, groups and hosts; it is called again
//! after each change and makes anew only what the change concerns. [`difference`] says which
//! updates lead a switch from the state it has to the state it must have, in an order that keeps
//! running transfers alive.
//!
//! Pure: no IO, no clock, no threads; the same input gives the same output.

mod agent_plan;
pub mod auto;
pub mod change;
pub mod cost;
mod difference;
mod gather;
mod guard;
mod model;
mod mtu;
mod order;
mod planner;
pub mod replay;
mod reuse;
mod switch_plan;
mod trace;
mod wormhole;
mod written;

pub use difference::read_back::{Part, Strayed, read_back};
pub use difference::stages::{difference, execute, mgid_of};
pub use difference::update::{Entity, MulticastGroup, Operation, PortRate, Stage, Update};
pub use gather::TABLE_GATHER;
pub use guard::{Guard, TABLE_GUARD, set_default};
pub use model::agent::{
    AgentGroup, AgentPlan, AgentStructure, AgentTrees, Gathered, Leaf, LeftOut, PlannedRoute,
    RouteTable, Sequencer,
};
pub use model::copies::{Copies, Replica};
pub use model::failure::{PlanFailure, Subject};
pub use model::groups::{Group, GroupScheme};
pub use model::hosts::{
    COPIES_ALONE, CUT_OFF, Capacity, Hosts, NOT_LIVE, NOT_LOCATED, PLAIN, Shortfall,
};
pub use model::ids::{
    GATHER_BRANCHES_MAX, GATHER_ENTRIES_MAX, GATHER_SLOTS, GATHER_SOURCE_FIRST, GATHER_SOURCE_LAST,
    GROUP_NUMBERS_MAX, INSTANCE_BRANCH, INSTANCE_NEIGHBOUR, INSTANCE_PLAIN, MGID_BROADCAST,
    MGID_GROUP_FIRST, MGID_GROUP_LAST, MGID_GROUPS_MAX, MGID_HOLD, MGID_INTERRUPT, MGID_PORT,
    MGID_TREE_ALL, MGID_TREE_SET, Mgid, PortSet, TREE_SET_PORTS,
};
pub use model::messages::digest_agents;
pub use model::state::{
    Action, EntryKey, KeyFields, MatchValue, Name, Place, SwitchState, TableDefault, TableEntry,
};
pub use mtu::MtuLimits;
pub use order::route_change::{Method, RouteChange};
pub use order::route_order::{RouteOrder, RouteOrderError};
pub use planner::{FabricState, NOT_PLANNED, Planner};
pub use switch_plan::class_d;
pub use switch_plan::class_d::{ClassDMode, ClassDNumbers};
pub use switch_plan::entries::{TABLE_GROUPS, class_d_entries};
pub use switch_plan::replication::{CapacityError, allocate_mgids};
pub use switch_plan::tables::TABLES_WITH_DEFAULT;
pub use wormhole::{
    GO_FRAMES, HELD_MAX, STOP_FRAMES, STOP_US, Switching, TRAIN_FRAMES, WormholeScheme,
};
pub use written::{ROUTES_WRITTEN_MAX, dependencies, routes_file};
