//! Tables: keys, actions, constant entries.

use std::collections::BTreeMap;

use super::description::{
    ActionId, ActionProfileId, ActionProfileInfo, CounterId, KeyField, MatchKind, MeterId,
    TableInfo,
};
use super::error::{Problem, ProgramError};
use super::json::Node;
use super::layout::Slot;
use super::references::{Next, References, TABLE_SIZE_MAX, next_node};
use crate::{ActionCall, Bits, FieldMatch};

/// Most fields of a table key.
const KEY_FIELDS_MAX: usize = 256;

/// Where the words of a key field come from.
#[derive(Clone, Copy, Debug)]
pub struct KeySource {
    pub slot: Slot,
    pub limbs: u32,
    /// Validity of the header; the field counts as 0 when it is not valid.
    pub valid: Option<Slot>,
}

/// An entry the program itself has.
#[derive(Clone, Debug)]
pub struct ConstEntry {
    pub key: Vec<FieldMatch>,
    /// Higher wins.
    pub priority: i32,
    pub action: ActionCall,
}

/// A table: what the data plane needs beside its description.
#[derive(Clone, Debug)]
pub struct Table {
    pub sources: Vec<KeySource>,
    /// A mask over each key field, where the program has one.
    pub masks: Vec<Option<Vec<u64>>>,
    pub key_words: u32,
    /// After a hit, whatever the action.
    pub on_hit: Option<Next>,
    /// After a miss, whatever the action.
    pub on_miss: Option<Next>,
    /// After each action of the table, in the order of its list.
    pub after_action: Vec<Next>,
    /// After a miss without a default action.
    pub after_none: Next,
    pub default: Option<ActionCall>,
    pub entries: Vec<ConstEntry>,
    /// Where the colour of a direct meter goes.
    pub meter_target: Option<(Slot, u32)>,
}

pub(super) fn find_action(
    node: &Node<'_>,
    references: &References<'_>,
) -> Result<u32, ProgramError> {
    let id = node.integer()?;
    match references.action_by_id.get(&id) {
        Some(&index) => Ok(index),
        None => Err(node.error(Problem::UnknownReference {
            kind: "action id",
            name: id.to_string(),
            choices: format!("ids of the {} actions", references.actions.len()),
        })),
    }
}

pub(super) struct TableReader<'r> {
    pub(super) names: &'r BTreeMap<&'r str, u32>,
    pub(super) references: &'r References<'r>,
    pub(super) profiles: &'r [ActionProfileInfo],
}

impl TableReader<'_> {
    pub(super) fn read(&self, node: &Node<'_>) -> Result<(TableInfo, Table), ProgramError> {
        let name = node.member("name")?.string()?.to_string();
        let action_profile = self.profile(node)?;
        let mut info = TableInfo {
            direct_counter: self
                .references
                .counter_by_table
                .get(&name)
                .map(|&index| CounterId(index)),
            direct_meter: None,
            name,
            key: Vec::new(),
            actions: Vec::new(),
            size: 0,
            const_entries: false,
            const_default: false,
            has_priority: false,
            action_profile,
            supports_timeout: node.flag("support_timeout", false)?,
        };
        let mut table = Table {
            sources: Vec::new(),
            masks: Vec::new(),
            key_words: 0,
            on_hit: None,
            on_miss: None,
            after_action: Vec::new(),
            after_none: next_node(node, "base_default_next", self.names)?,
            default: None,
            entries: Vec::new(),
            meter_target: None,
        };
        self.read_key(node, &mut info, &mut table)?;
        self.read_actions(node, &mut info, &mut table)?;
        if let Some(meter) = node.optional("direct_meters")? {
            let name = meter.string()?;
            let Some(&(index, slot, width)) = self.references.meters.get(name) else {
                let names = self.references.meters.keys().map(String::as_str);
                return Err(meter.unknown("direct meter array", name, names));
            };
            info.direct_meter = Some(MeterId(index));
            table.meter_target = Some((slot, width));
        }
        if let Some(entry) = node.optional("default_entry")? {
            table.default = Some(self.action_entry(&entry, &info)?);
            info.const_default =
                entry.flag("action_const", false)? || entry.flag("action_entry_const", false)?;
        }
        let entries = node.optional("entries")?;
        info.size = match (&entries, node.optional("max_size")?) {
            (Some(entries), _) => entries.items()?.len(),
            (None, Some(size)) => size.count(TABLE_SIZE_MAX)?,
            (None, None) => {
                return Err(node.error(Problem::Missing {
                    member: "max_size".to_string(),
                }));
            }
        };
        if let Some(entries) = entries {
            if info.action_profile.is_some() {
                return Err(entries.invalid("a table without an action profile"));
            }
            info.const_entries = true;
            for entry in entries.items()? {
                let entry = self.const_entry(&entry, &info)?;
                table.entries.push(entry);
            }
        }
        Ok((info, table))
    }

    fn profile(&self, node: &Node<'_>) -> Result<Option<ActionProfileId>, ProgramError> {
        let kind = node.member("type")?;
        match kind.string()? {
            "simple" => Ok(None),
            "indirect" | "indirect_ws" => {
                let profile = match node.optional("act_prof_name")? {
                    Some(old) if node.optional("action_profile")?.is_none() => old,
                    _ => node.member("action_profile")?,
                };
                let name = profile.string()?;
                let names = || self.profiles.iter().map(|profile| profile.name.as_str());
                match names().position(|candidate| candidate == name) {
                    Some(index) => Ok(Some(ActionProfileId(index as u32))),
                    None => Err(profile.unknown("action profile", name, names())),
                }
            }
            _ => Err(kind.invalid("\"simple\", \"indirect\" or \"indirect_ws\"")),
        }
    }

    fn read_key(
        &self,
        node: &Node<'_>,
        info: &mut TableInfo,
        table: &mut Table,
    ) -> Result<(), ProgramError> {
        let fields = node.member("key")?.items()?;
        if fields.len() > KEY_FIELDS_MAX {
            return Err(node.error(Problem::LimitExceeded {
                what: "key fields",
                value: fields.len(),
                limit: KEY_FIELDS_MAX,
            }));
        }
        let layout = self.references.layout;
        let mut prefixes = 0;
        for field in &fields {
            let kind_node = field.member("match_type")?;
            let kind = match_kind(&kind_node)?;
            let target = field.member("target")?;
            let (source, width, default_name) = if kind == MatchKind::Valid {
                let header = layout.header(&target)?;
                let source = KeySource {
                    slot: layout.headers[header as usize].base,
                    limbs: 1,
                    valid: None,
                };
                (source, 1, target.string()?.to_string())
            } else {
                let reference = layout.field(&target)?;
                if reference.varbit.is_some() {
                    return Err(target
                        .unsupported("a variable field in a table key", "fields of fixed width"));
                }
                let header = &layout.headers[reference.header as usize];
                let source = KeySource {
                    slot: reference.slot,
                    limbs: reference.limbs,
                    valid: (!header.metadata && !reference.hidden).then_some(header.base),
                };
                let [_, field_name] = target.tuple()?;
                let name = format!("{}.{}", header.name, field_name.string()?);
                (source, reference.width, name)
            };
            prefixes += usize::from(kind == MatchKind::Lpm);
            let name = match field.optional("name")? {
                Some(name) => name.string()?.to_string(),
                None => default_name,
            };
            let mask = match field.optional("mask")? {
                None => None,
                Some(mask) => Some(Bits::from_bytes(&mask.hex_bytes()?)),
            };
            table.masks.push(mask.as_ref().map(|bits| {
                let mut words = vec![0; source.limbs as usize];
                bits.write_limbs(&mut words);
                words
            }));
            table.key_words += source.limbs;
            table.sources.push(source);
            info.key.push(KeyField {
                name,
                kind,
                width_bits: width,
                mask,
            });
        }
        let kind_node = node.member("match_type")?;
        let declared = match_kind(&kind_node)?;
        let ternary = info.key.iter().any(|field| {
            matches!(
                field.kind,
                MatchKind::Ternary | MatchKind::Range | MatchKind::Optional
            )
        });
        info.has_priority = ternary || matches!(declared, MatchKind::Ternary | MatchKind::Range);
        if prefixes > 1 {
            return Err(kind_node.invalid("at most one lpm field in a key"));
        }
        let fits = match declared {
            MatchKind::Exact | MatchKind::Valid => !ternary && prefixes == 0,
            MatchKind::Lpm => !ternary,
            _ => true,
        };
        if !fits {
            return Err(kind_node.invalid("the match type its key fields call for"));
        }
        Ok(())
    }

    fn read_actions(
        &self,
        node: &Node<'_>,
        info: &mut TableInfo,
        table: &mut Table,
    ) -> Result<(), ProgramError> {
        let next_tables = node.member("next_tables")?;
        let names = next_tables.member_names()?;
        let hit_miss = names.contains(&"__HIT__") || names.contains(&"__MISS__");
        if hit_miss {
            table.on_hit = Some(next_node(&next_tables, "__HIT__", self.names)?);
            table.on_miss = Some(next_node(&next_tables, "__MISS__", self.names)?);
        }
        let ids = node.optional("action_ids")?;
        let actions = match &ids {
            Some(ids) => ids.items()?,
            None => node.member("actions")?.items()?,
        };
        for action in &actions {
            let index = if ids.is_some() {
                find_action(action, self.references)?
            } else {
                let name = action.string()?;
                let names = || {
                    self.references
                        .actions
                        .iter()
                        .map(|action| action.name.as_str())
                };
                match names().position(|candidate| candidate == name) {
                    Some(index) => index as u32,
                    None => return Err(action.unknown("action", name, names())),
                }
            };
            let name = &self.references.actions[index as usize].name;
            let next = if hit_miss {
                None
            } else {
                // Absent is an error, null is the end.
                next_tables.member(name)?;
                next_node(&next_tables, name, self.names)?
            };
            info.actions.push(ActionId(index));
            table.after_action.push(next);
        }
        Ok(())
    }

    fn action_entry(&self, node: &Node<'_>, info: &TableInfo) -> Result<ActionCall, ProgramError> {
        let id = node.member("action_id")?;
        let action = find_action(&id, self.references)?;
        if !info.actions.contains(&ActionId(action)) {
            return Err(id.invalid("the id of one of the actions of the table"));
        }
        let parameters = &self.references.actions[action as usize].parameters;
        let data = node.member("action_data")?;
        let values = data.items()?;
        if values.len() != parameters.len() {
            return Err(data.invalid(format!(
                "{} values, one for each parameter",
                parameters.len()
            )));
        }
        let mut arguments = Vec::new();
        for (value, parameter) in values.iter().zip(parameters) {
            arguments.push(bits_within(value, parameter.width_bits)?);
        }
        Ok(ActionCall {
            action: ActionId(action),
            arguments,
        })
    }

    fn const_entry(&self, node: &Node<'_>, info: &TableInfo) -> Result<ConstEntry, ProgramError> {
        let key_node = node.member("match_key")?;
        let fields = key_node.items()?;
        if fields.len() != info.key.len() {
            return Err(key_node.invalid(format!("{} match fields", info.key.len())));
        }
        let mut key = Vec::new();
        for (field, description) in fields.iter().zip(&info.key) {
            key.push(const_match(field, description)?);
        }
        // BMv2: the lowest number wins, and numbers start at 1.
        let priority = match node.optional("priority")? {
            Some(priority) if info.has_priority => {
                i32::MAX - priority.integer_in(0, i64::from(i32::MAX) - 1)? as i32
            }
            _ if info.has_priority => {
                return Err(node.error(Problem::Missing {
                    member: "priority".to_string(),
                }));
            }
            _ => 0,
        };
        Ok(ConstEntry {
            key,
            priority,
            action: self.action_entry(&node.member("action_entry")?, info)?,
        })
    }
}

fn match_kind(node: &Node<'_>) -> Result<MatchKind, ProgramError> {
    Ok(match node.string()? {
        "exact" => MatchKind::Exact,
        "lpm" => MatchKind::Lpm,
        "ternary" => MatchKind::Ternary,
        "range" => MatchKind::Range,
        "optional" => MatchKind::Optional,
        "valid" => MatchKind::Valid,
        name => {
            return Err(node.unsupported(
                format!("match type \"{name}\""),
                "exact, lpm, ternary, range, optional, valid",
            ));
        }
    })
}

fn bits_within(node: &Node<'_>, width: u32) -> Result<Bits, ProgramError> {
    let (magnitude, negative) = node.signed_hex()?;
    let bits = Bits::from_bytes(&magnitude);
    if negative {
        // Two's complement at the width of the parameter.
        let mut limbs = vec![0; width.div_ceil(64).max(1) as usize];
        bits.write_limbs(&mut limbs);
        let mut carry = true;
        for limb in &mut limbs {
            let (value, overflow) = (!*limb).overflowing_add(u64::from(carry));
            *limb = value;
            carry = overflow;
        }
        return Ok(Bits::from_limbs(&limbs).and(&Bits::ones(width)));
    }
    if bits.width_bits() > width {
        return Err(node.invalid(format!("a value of at most {width} bits")));
    }
    Ok(bits)
}

fn const_match(node: &Node<'_>, field: &KeyField) -> Result<FieldMatch, ProgramError> {
    let kind_node = node.member("match_type")?;
    let kind = match_kind(&kind_node)?;
    // BMv2 JSON knows no optional entries: p4c writes ternary ones.
    if kind != field.kind && !(kind == MatchKind::Ternary && field.kind == MatchKind::Optional) {
        return Err(kind_node.invalid(format!("\"{}\", the match type of the field", field.kind)));
    }
    let width = field.width_bits;
    let value = |name: &str| bits_within(&node.member(name)?, width);
    Ok(match kind {
        MatchKind::Exact | MatchKind::Optional => FieldMatch::Exact(value("key")?),
        MatchKind::Valid => {
            FieldMatch::Exact(Bits::from_u64(u64::from(node.member("key")?.boolean()?)))
        }
        MatchKind::Lpm => {
            let prefix_len = node.member("prefix_length")?.count(width as usize)? as u32;
            let value = value("key")?.and(&Bits::prefix_mask(width, prefix_len));
            match prefix_len {
                0 => FieldMatch::Any,
                _ => FieldMatch::Lpm { value, prefix_len },
            }
        }
        MatchKind::Ternary => {
            // BMv2 pads masks with ones to whole bytes; the bits past the width are none.
            let mask = Bits::from_bytes(&node.member("mask")?.hex_bytes()?).and(&Bits::ones(width));
            let value = value("key")?.and(&mask);
            if mask == Bits::default() {
                FieldMatch::Any
            } else {
                FieldMatch::Ternary { value, mask }
            }
        }
        MatchKind::Range => {
            let low = value("start")?;
            let high = value("end")?;
            if low.width_bits() > high.width_bits()
                || (low.to_padded_bytes(width) > high.to_padded_bytes(width))
            {
                return Err(node.invalid("a range whose start is not above its end"));
            }
            if low == Bits::default() && high == Bits::ones(width) {
                FieldMatch::Any
            } else {
                FieldMatch::Range { low, high }
            }
        }
    })
}
