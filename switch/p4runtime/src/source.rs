//! What reads look at, and what they give.

use super::cookies::Cookies;
use super::digests::Digests;
use super::proto::p4::v1::{Entity, entity};
use super::schema::Schema;
use wormcast_switch_pipeline::Pipeline;

/// What a read looks at.
pub struct Source<'a> {
    /// The P4Info, bound to the program of the pipeline.
    pub schema: &'a Schema,
    pub pipeline: &'a mut Pipeline,
    /// What controllers attached.
    pub cookies: &'a Cookies,
    /// Digests that controllers want.
    pub digests: &'a Digests,
}

pub fn of(entity: entity::Entity) -> Entity {
    Entity {
        entity: Some(entity),
    }
}
