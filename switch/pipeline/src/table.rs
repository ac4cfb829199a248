//! Tables: entries, default actions, and what the data plane needs of them.

use std::borrow::Cow;
use std::collections::BTreeSet;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Place;

use super::entry::{CounterValue, EntryAction, TableEntry};
use super::error::ControlError;
use super::identity::hash_identity;
use super::index::{Index, Pattern};
use super::meter::Meter;
use super::timer::Timer;
use wormcast_switch_program::Bits;
use wormcast_switch_program::{ActionCall, FieldMatch};
use wormcast_switch_program::{ActionId, KeyField, MatchKind, Next, Program};

/// An action ready to run.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    /// Start of its code.
    pub(super) code: u32,
    /// Position of the action in the list of the table.
    pub(super) position: u32,
    pub(super) arguments: Vec<u64>,
    pub(super) next: Next,
}

/// What an entry leads to.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    Call(Bound),
    Member(u32),
    Group(u32),
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) entry: TableEntry,
    pattern: Pattern,
    pub(super) outcome: Outcome,
    pub(super) counter: CounterValue,
    pub(super) meter: Meter,
    /// When a packet last found it, or else when it was inserted; kept up in tables whose
    /// entries can age.
    pub(super) last_hit_us: u64,
    pub(super) timer: Timer,
}

#[derive(Debug)]
pub(super) struct TableState {
    pub(super) index: Index,
    pub(super) entries: Vec<Option<Entry>>,
    /// How often each number was freed, modulo 256: with it an old number is told from a
    /// new one.
    pub(super) generations: Vec<u8>,
    /// Numbers without an entry; the lowest is taken first.
    free: BTreeSet<u32>,
    /// Numbers by priority and key.
    by_key: HashTable<u32>,
    /// When to look at entries that can age: time and number.
    pub(super) deadlines: BTreeSet<(u64, u32)>,
    pub(super) default: Option<Bound>,
    pub(super) default_call: Option<ActionCall>,
    pub(super) const_entries: bool,
    /// Most entries.
    pub(super) size: usize,
    /// Packets that hit no entry.
    pub(super) default_counter: CounterValue,
    pub(super) default_meter: Meter,
    /// Packets that matched an entry, modulo 2^64.
    pub(super) hits: u64,
    /// Packets that matched none, modulo 2^64.
    pub(super) misses: u64,
    id: usize,
}

impl TableState {
    /// The table with what the program puts into it.
    pub(super) fn new(program: &Program, id: usize) -> Self {
        let info = &program.tables()[id];
        let plan = &program.table_plans[id];
        let mut table = Self {
            index: Index::new(&info.key, info.has_priority),
            entries: Vec::new(),
            generations: Vec::new(),
            free: BTreeSet::new(),
            by_key: HashTable::new(),
            deadlines: BTreeSet::new(),
            default: None,
            default_call: None,
            const_entries: info.const_entries,
            size: info.size,
            default_counter: CounterValue::default(),
            default_meter: Meter::default(),
            hits: 0,
            misses: 0,
            id,
        };
        table.put_default(program, plan.default.clone());
        for entry in &plan.entries {
            let entry = TableEntry {
                key: entry.key.clone(),
                priority: entry.priority,
                action: EntryAction::Call(entry.action.clone()),
            };
            // The loader has checked each entry; of two with one key the first one counts.
            let outcome = match &entry.action {
                EntryAction::Call(call) => Outcome::Call(table.bind(program, call, true)),
                _ => continue,
            };
            let _ = table.add(program, entry, outcome, 0);
        }
        table
    }

    /// An action with its arguments as words and the node that follows.
    pub(super) fn bind(&self, program: &Program, call: &ActionCall, hit: bool) -> Bound {
        let plan = &program.table_plans[self.id];
        let action = call.action.index();
        let whatever = if hit { plan.on_hit } else { plan.on_miss };
        Bound {
            code: program.action_code[action],
            position: action_position(program, self.id, call.action),
            arguments: argument_words(program, call),
            next: whatever.unwrap_or_else(|| next_after(program, self.id, call.action)),
        }
    }

    pub(super) fn put_default(&mut self, program: &Program, call: Option<ActionCall>) {
        self.default = call.as_ref().map(|call| self.bind(program, call, false));
        self.default_call = call;
    }

    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(super) fn find(&self, priority: i32, key: &[FieldMatch]) -> Option<u32> {
        let hash = hash_identity(priority, key);
        let found = self.by_key.find(hash, |&number| {
            is_identity(&self.entries, number, priority, key)
        });
        found.copied()
    }

    /// Adds an entry whose key is canonical and gives its number; `None` when the key is
    /// there already.
    pub(super) fn add(
        &mut self,
        program: &Program,
        entry: TableEntry,
        outcome: Outcome,
        now_us: u64,
    ) -> Option<u32> {
        let pattern = pattern(&program.tables()[self.id].key, &entry.key);
        let stored = Entry {
            entry,
            pattern,
            outcome,
            counter: CounterValue::default(),
            meter: Meter::default(),
            last_hit_us: now_us,
            timer: Timer::default(),
        };
        let number = match self.free.first() {
            Some(&number) => number,
            None => {
                self.entries.push(None);
                self.generations.push(0);
                self.entries.len() as u32 - 1
            }
        };
        let added = self.put(number, stored);
        if !added {
            self.free.insert(number);
        }
        added.then_some(number)
    }

    /// Puts an entry where [`remove`](Self::remove) took it away.
    pub(super) fn put_back(&mut self, number: u32, stored: Entry) {
        let generation = &mut self.generations[number as usize];
        *generation = generation.wrapping_sub(1);
        self.put(number, stored);
    }

    /// Puts an entry at a number that has none; false when its key is there already.
    fn put(&mut self, number: u32, stored: Entry) -> bool {
        let (priority, key) = (stored.entry.priority, &stored.entry.key);
        let entries = &self.entries;
        let place = self.by_key.entry(
            hash_identity(priority, key),
            |&other| is_identity(entries, other, priority, key),
            |&other| hash_number(entries, other),
        );
        let Place::Vacant(place) = place else {
            return false;
        };
        place.insert(number);
        self.index.insert(&stored.pattern, priority, number);
        if let Some(deadline_us) = stored.timer.deadline_us() {
            self.deadlines.insert((deadline_us, number));
        }
        self.entries[number as usize] = Some(stored);
        self.free.remove(&number);
        true
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<Entry> {
        let stored = self.entries[number as usize].as_ref()?;
        let hash = hash_identity(stored.entry.priority, &stored.entry.key);
        if let Ok(place) = self.by_key.find_entry(hash, |&other| other == number) {
            place.remove();
        }
        let stored = self.entries[number as usize].take()?;
        self.index.remove(&stored.pattern, number);
        if let Some(deadline_us) = stored.timer.deadline_us() {
            self.deadlines.remove(&(deadline_us, number));
        }
        let generation = &mut self.generations[number as usize];
        *generation = generation.wrapping_add(1);
        self.free.insert(number);
        Some(stored)
    }

    /// Begins to count how often numbers were used, unless there are entries.
    pub(super) fn restart_generations(&mut self) {
        if self.by_key.is_empty() {
            self.generations.fill(0);
        }
    }

    /// Entries in the order of priority and key.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        let mut all: Vec<&Entry> = self.entries.iter().flatten().collect();
        all.sort_unstable_by(|a, b| {
            (a.entry.priority, &a.entry.key).cmp(&(b.entry.priority, &b.entry.key))
        });
        all.into_iter()
    }

    /// Entries in the order of their numbers.
    pub(super) fn unordered(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().flatten()
    }

    pub(super) fn entry_mut(&mut self, number: u32) -> Option<&mut Entry> {
        self.entries.get_mut(number as usize)?.as_mut()
    }
}

fn is_identity(entries: &[Option<Entry>], number: u32, priority: i32, key: &[FieldMatch]) -> bool {
    entries[number as usize]
        .as_ref()
        .is_some_and(|stored| stored.entry.priority == priority && stored.entry.key == key)
}

fn hash_number(entries: &[Option<Entry>], number: u32) -> u64 {
    entries[number as usize].as_ref().map_or(0, |stored| {
        hash_identity(stored.entry.priority, &stored.entry.key)
    })
}

/// Where an action stands in the list of a table; past its end if it does not.
pub(super) fn action_position(program: &Program, table: usize, action: ActionId) -> u32 {
    let actions = &program.tables()[table].actions;
    let position = actions.iter().position(|&candidate| candidate == action);
    position.unwrap_or(actions.len()) as u32
}

/// The node after an action of a table.
pub(super) fn next_after(program: &Program, table: usize, action: ActionId) -> Next {
    let actions = &program.tables()[table].actions;
    let position = actions.iter().position(|&candidate| candidate == action);
    position.and_then(|position| program.table_plans[table].after_action[position])
}

/// Words of an action's arguments.
pub(super) fn argument_words(program: &Program, call: &ActionCall) -> Vec<u64> {
    let mut words = Vec::new();
    let parameters = &program.action_arguments[call.action.index()];
    for (argument, &(_, width)) in call.arguments.iter().zip(parameters) {
        let first = words.len();
        words.resize(first + width.div_ceil(64).max(1) as usize, 0);
        argument.write_limbs(&mut words[first..]);
    }
    words
}

/// A canonical key as words.
fn pattern(fields: &[KeyField], key: &[FieldMatch]) -> Pattern {
    let mut pattern = Pattern {
        first: Vec::new(),
        second: Vec::new(),
        prefix_len: 0,
    };
    for (field, matched) in fields.iter().zip(key) {
        let width = field.width_bits;
        let limbs = width.div_ceil(64).max(1) as usize;
        let at = pattern.first.len();
        pattern.first.resize(at + limbs, 0);
        pattern.second.resize(at + limbs, 0);
        let (first, second) = match matched {
            FieldMatch::Any if field.kind == MatchKind::Range => {
                (Bits::default(), Bits::ones(width))
            }
            FieldMatch::Any => (Bits::default(), Bits::default()),
            FieldMatch::Exact(value) => (value.clone(), Bits::ones(width)),
            FieldMatch::Lpm { value, prefix_len } => {
                pattern.prefix_len = *prefix_len;
                (value.clone(), Bits::prefix_mask(width, *prefix_len))
            }
            FieldMatch::Ternary { value, mask } => (value.clone(), mask.clone()),
            FieldMatch::Range { low, high } => (low.clone(), high.clone()),
        };
        first.write_limbs(&mut pattern.first[at..]);
        second.write_limbs(&mut pattern.second[at..]);
    }
    pattern
}

fn check_width(
    what: impl FnOnce() -> String,
    value: &Bits,
    width: u32,
) -> Result<(), ControlError> {
    if value.width_bits() <= width {
        return Ok(());
    }
    Err(ControlError::InvalidArgument {
        what: what(),
        value: value.to_string(),
        bound: format!("values of at most {width} bits"),
    })
}

/// Checks a key against the table and brings it to the one form that equal keys share.
pub(super) fn canonical_key<'a>(
    table: &str,
    fields: &[KeyField],
    key: impl Into<Cow<'a, [FieldMatch]>>,
) -> Result<Cow<'a, [FieldMatch]>, ControlError> {
    let mut key = key.into();
    if fields.len() != key.len() {
        return Err(ControlError::InvalidArgument {
            what: format!("number of match fields of table {table}"),
            value: key.len().to_string(),
            bound: fields.len().to_string(),
        });
    }
    for (position, field) in fields.iter().enumerate() {
        if let Some(canonical) = canonical_field(table, field, &key[position])? {
            key.to_mut()[position] = canonical;
        }
    }
    Ok(key)
}

/// The canonical form of a match where it is another one.
fn canonical_field(
    table: &str,
    field: &KeyField,
    matched: &FieldMatch,
) -> Result<Option<FieldMatch>, ControlError> {
    let width = field.width_bits;
    let what = || format!("match field {} of table {table}", field.name);
    let outside = |value: String, bound: &str| ControlError::InvalidArgument {
        what: what(),
        value,
        bound: bound.to_string(),
    };
    match (field.kind, matched) {
        (MatchKind::Exact | MatchKind::Valid | MatchKind::Optional, FieldMatch::Exact(value)) => {
            check_width(what, value, width)?;
        }
        (
            MatchKind::Lpm | MatchKind::Ternary | MatchKind::Range | MatchKind::Optional,
            FieldMatch::Any,
        ) => {}
        // p4c compiles optional fields to ternary ones; the P4Info still says optional.
        (MatchKind::Ternary, FieldMatch::Exact(value)) => {
            check_width(what, value, width)?;
            return Ok(Some(FieldMatch::Ternary {
                value: value.clone(),
                mask: Bits::ones(width),
            }));
        }
        (MatchKind::Lpm, FieldMatch::Lpm { value, prefix_len }) => {
            check_width(what, value, width)?;
            if *prefix_len > width {
                let bound = format!("prefixes of at most {width} bits");
                return Err(outside(format!("a prefix of {prefix_len} bits"), &bound));
            }
            if value.and(&Bits::prefix_mask(width, *prefix_len)) != *value {
                return Err(outside(
                    format!("{value}/{prefix_len}"),
                    "values whose bits past the prefix are 0",
                ));
            }
            if *prefix_len == 0 {
                return Ok(Some(FieldMatch::Any));
            }
        }
        (MatchKind::Ternary, FieldMatch::Ternary { value, mask }) => {
            check_width(what, value, width)?;
            check_width(|| format!("mask of {}", what()), mask, width)?;
            if value.and(mask) != *value {
                return Err(outside(
                    format!("{value} &&& {mask}"),
                    "values whose bits outside the mask are 0",
                ));
            }
            if *mask == Bits::default() {
                return Ok(Some(FieldMatch::Any));
            }
        }
        (MatchKind::Range, FieldMatch::Range { low, high }) => {
            check_width(what, low, width)?;
            check_width(what, high, width)?;
            if low.to_padded_bytes(width) > high.to_padded_bytes(width) {
                return Err(outside(
                    format!("{low}..{high}"),
                    "ranges whose low end is not above the high end",
                ));
            }
            if *low == Bits::default() && *high == Bits::ones(width) {
                return Ok(Some(FieldMatch::Any));
            }
        }
        (kind, other) => {
            return Err(outside(
                format!("{other:?}"),
                &format!("a match of kind {kind}"),
            ));
        }
    }
    Ok(None)
}

/// Checks an action call against the actions it may be.
pub(super) fn check_call(
    program: &Program,
    table: usize,
    call: &ActionCall,
) -> Result<(), ControlError> {
    let info = &program.tables()[table];
    if !info.actions.contains(&call.action) {
        let name = program
            .actions()
            .get(call.action.index())
            .map_or("an unknown action", |action| action.name.as_str());
        let choices = info.actions.iter();
        let choices: Vec<&str> = choices
            .map(|action| program.actions()[action.index()].name.as_str())
            .collect();
        return Err(ControlError::InvalidArgument {
            what: format!("action of table {}", info.name),
            value: name.to_string(),
            bound: choices.join(", "),
        });
    }
    check_arguments(program, call)
}

pub(super) fn check_arguments(program: &Program, call: &ActionCall) -> Result<(), ControlError> {
    let action = &program.actions()[call.action.index()];
    if action.parameters.len() != call.arguments.len() {
        return Err(ControlError::InvalidArgument {
            what: format!("number of arguments of action {}", action.name),
            value: call.arguments.len().to_string(),
            bound: action.parameters.len().to_string(),
        });
    }
    for (parameter, argument) in action.parameters.iter().zip(&call.arguments) {
        let what = || format!("argument {} of action {}", parameter.name, action.name);
        check_width(what, argument, parameter.width_bits)?;
    }
    Ok(())
}
