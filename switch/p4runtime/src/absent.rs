//! What a P4Info names and its program has not. p4c writes the P4Info before it optimises: what
//! no packet can reach is in the one and not in the other.

use std::collections::BTreeMap;
use std::fmt;

use super::fit::{Bound, Object, SchemaError};
use super::rejection::Rejection;

/// Objects that the summary names; more are only counted.
const NAMED_MAX: usize = 8;

/// Objects that cannot be used, because only the P4Info has them.
#[derive(Debug, Default)]
pub struct Absent {
    names: BTreeMap<(Object, u32), String>,
    /// All of them in words, in the order of the P4Info.
    notes: Vec<String>,
}

impl Absent {
    /// Keeps what is bound; remembers what the program does not have.
    ///
    /// # Errors
    /// Any other misfit.
    pub(super) fn sift<T>(&mut self, bound: Bound<T>) -> Bound<Option<T>> {
        match bound {
            Ok(bound) => Ok(Some(bound)),
            Err(SchemaError::Absent(object, id, name)) => {
                self.note(format!("{object} `{name}`"));
                self.names.insert((object, id), name);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Remembers a part of an object that the program does not have.
    pub(super) fn note(&mut self, what: String) {
        self.notes.push(what);
    }

    /// Whether an object is in the P4Info alone.
    pub(super) fn has(&self, object: Object, id: u32) -> bool {
        self.names.contains_key(&(object, id))
    }

    /// Why there is no object with an id.
    pub(super) fn rejection(&self, object: Object, id: u32) -> Rejection {
        Rejection::not_found(match self.names.get(&(object, id)) {
            Some(name) => left_out(format_args!("{object} `{name}` (id {id})")),
            None => format!("there is no {object} with the id {id}"),
        })
    }

    /// What to tell whoever sets the config, if there is something.
    pub fn summary(&self) -> Option<String> {
        let count = self.notes.len();
        let mut named = self.notes[..count.min(NAMED_MAX)].join(", ");
        match count.checked_sub(NAMED_MAX) {
            Some(rest) if rest > 0 => named += &format!(" and {rest} more"),
            _ if count == 0 => return None,
            _ => {}
        }
        Some(format!(
            "the P4Info has what the program has not, and what cannot be used therefore: {named}"
        ))
    }
}

/// Says of something in the P4Info that the program has it not.
pub(super) fn left_out(what: impl fmt::Display) -> String {
    format!(
        "{what} is in the P4Info, but not in the program: the compiler has left it out, as it \
         does with what no packet can reach"
    )
}

#[cfg(test)]
mod tests {
    use super::super::fit::{absent, misfit};
    use super::*;

    #[test]
    fn what_is_absent_is_remembered_and_other_misfits_are_not() {
        let mut all = Absent::default();
        assert_eq!(all.summary(), None);
        assert_eq!(all.sift(Ok(5)), Ok(Some(5)));
        assert!(all.sift::<()>(misfit("wrong".to_owned())).is_err());
        assert_eq!(all.sift::<()>(absent(Object::Table, 7, "gone")), Ok(None));
        assert!(all.has(Object::Table, 7) && !all.has(Object::Counter, 7));
        assert_eq!(
            all.rejection(Object::Table, 7).message,
            "table `gone` (id 7) is in the P4Info, but not in the program: the compiler has left \
             it out, as it does with what no packet can reach"
        );
        assert_eq!(
            all.rejection(Object::Table, 8).message,
            "there is no table with the id 8"
        );
        let start = "the P4Info has what the program has not, and what cannot be used therefore: ";
        assert_eq!(all.summary(), Some(format!("{start}table `gone`")));
        for number in 1..10 {
            all.note(format!("action `a{number}`"));
        }
        let summary = all.summary().unwrap();
        assert!(summary.ends_with("action `a7` and 2 more"), "{summary}");
    }
}
