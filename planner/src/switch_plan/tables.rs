//! Tables of the P4 program, for whoever reads switches back.

use crate::guard::TABLE_GUARD;
use crate::switch_plan::entries::TABLE_TREE_SETS;
use crate::trace::TABLE_TRACE;
use crate::wormhole::TABLE_WORMHOLE;

/// Tables whose default action the controller sets.
pub const TABLES_WITH_DEFAULT: [&str; 4] =
    [TABLE_TREE_SETS, TABLE_TRACE, TABLE_GUARD, TABLE_WORMHOLE];
