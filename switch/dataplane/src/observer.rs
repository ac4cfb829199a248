//! Services that watch a switch beside its controllers.

use super::snapshot::Snapshot;
use super::traffic::DigestMessage;

/// A service that watches a switch beside its controllers.
pub trait Observer: Send + Sync {
    /// A digest has left the data plane, whether a controller wants it or not.
    fn learn(&self, digest: &DigestMessage) {
        let _ = digest;
    }

    fn complete(&self, snapshot: &mut Snapshot);
}
