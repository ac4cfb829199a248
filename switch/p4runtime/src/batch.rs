//! The updates of one `Write`, applied as their atomicity asks (§"Batch Atomicity").

use std::ops::Range;

use tonic::Code;

use super::proto::p4::v1::{Entity, Update, write_request};
use super::rejection::{Rejection, code_name};
use super::roles::Access;
use super::target::Target;
use super::write;

/// What became of each update, in order.
pub type Results = Vec<Result<(), Rejection>>;

/// What to do with the other updates when one fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomicity {
    /// Each is tried. Packets may be forwarded between two of them.
    ContinueOnError,
    /// All or none, and no packet sees a state in between: one operation of the data plane
    /// does it all. It serves ROLLBACK_ON_ERROR and DATAPLANE_ATOMIC, which asks for more.
    AllOrNone,
}

impl Atomicity {
    /// Reads the field of a `WriteRequest`.
    pub fn parse(number: i32) -> Result<Self, Rejection> {
        use write_request::Atomicity as Wanted;
        match Wanted::try_from(number) {
            Ok(Wanted::ContinueOnError) => Ok(Self::ContinueOnError),
            Ok(Wanted::RollbackOnError | Wanted::DataplaneAtomic) => Ok(Self::AllOrNone),
            Err(_) => Err(Rejection::invalid(format!(
                "atomicity {number} is not valid: CONTINUE_ON_ERROR, ROLLBACK_ON_ERROR or \
                 DATAPLANE_ATOMIC"
            ))),
        }
    }
}

/// Updates of one controller.
pub struct Batch {
    /// In the order of the request.
    pub updates: Vec<Update>,
    /// What happens when one fails.
    pub atomicity: Atomicity,
    /// What the controller may write.
    pub access: Access,
}

impl Batch {
    /// Updates that everybody may make, each for itself.
    pub fn unlimited(updates: Vec<Update>) -> Self {
        Self {
            updates,
            atomicity: Atomicity::ContinueOnError,
            access: Access::Full,
        }
    }

    /// Applies some of the updates; all of them if it is all or none.
    pub fn apply(&self, target: &mut Target<'_>, part: Range<usize>) -> Results {
        let updates = &self.updates[part];
        match self.atomicity {
            Atomicity::ContinueOnError => updates
                .iter()
                .map(|update| self.apply_one(target, update))
                .collect(),
            Atomicity::AllOrNone => self.apply_all(target, updates),
        }
    }

    fn apply_all(&self, target: &mut Target<'_>, updates: &[Update]) -> Results {
        target.begin();
        for (position, update) in updates.iter().enumerate() {
            if let Err(rejection) = self.apply_one(target, update) {
                target.rollback();
                return aborted(updates.len(), position, &rejection);
            }
        }
        target.commit();
        vec![Ok(()); updates.len()]
    }

    fn apply_one(&self, target: &mut Target<'_>, update: &Update) -> Result<(), Rejection> {
        if let Some(Entity {
            entity: Some(entity),
        }) = &update.entity
        {
            self.access.check_write(entity)?;
        }
        write::apply(target, update)
    }
}

fn aborted(count: usize, failed: usize, rejection: &Rejection) -> Results {
    let because = format!(
        "because updates[{failed}] of the request failed: {}",
        code_name(rejection.code)
    );
    let result = |position: usize| {
        let what = match position.cmp(&failed) {
            std::cmp::Ordering::Less => "taken back",
            std::cmp::Ordering::Equal => return Err(rejection.clone()),
            std::cmp::Ordering::Greater => "not tried",
        };
        Err(Rejection::new(Code::Aborted, format!("{what} {because}")))
    };
    (0..count).map(result).collect()
}
