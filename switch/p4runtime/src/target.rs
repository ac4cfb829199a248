//! What an update is made on.

use super::cookies::Cookies;
use super::digests::Digests;
use super::schema::Schema;
use wormcast_switch_pipeline::Pipeline;

/// What an update is made on.
pub struct Target<'a> {
    /// The P4Info, bound to the program of the pipeline.
    pub schema: &'a Schema,
    pub pipeline: &'a mut Pipeline,
    /// What controllers attached.
    pub cookies: &'a mut Cookies,
    /// Digests that controllers want.
    pub digests: &'a mut Digests,
}

impl Target<'_> {
    /// From now on, [`rollback`](Self::rollback) brings back the present state.
    pub fn begin(&mut self) {
        self.pipeline.begin();
        self.cookies.begin();
        self.digests.begin();
    }

    /// Keeps what was changed since [`begin`](Self::begin).
    pub fn commit(&mut self) {
        self.pipeline.commit();
        self.cookies.commit();
        self.digests.commit();
    }

    /// Takes back what was changed since [`begin`](Self::begin).
    pub fn rollback(&mut self) {
        self.pipeline.rollback();
        self.cookies.rollback();
        self.digests.rollback();
    }
}
