//! Names and values of what events refer to.

use super::event::TraceRecord;
use wormcast_switch_program::NodeName;
use wormcast_switch_program::code::LogArgument;
use wormcast_switch_program::{ActionCall, Bits, FieldMatch};

use wormcast_switch_program::Stage;

/// A value as it is written everywhere: hexadecimal.
pub(super) fn value(limbs: &[u64]) -> String {
    Bits::from_limbs(limbs).to_string()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl TraceRecord {
    pub(super) fn state_name(&self, state: u32) -> &str {
        name(&self.program.names.states, state)
    }

    pub(super) fn header_name(&self, header: u32) -> &str {
        &self.program.layout.headers[header as usize].name
    }

    /// `header.field`, or `header.$valid$`.
    pub(super) fn field_name(&self, header: u32, field: Option<u32>) -> String {
        let layout = &self.program.layout;
        let instance = &layout.headers[header as usize];
        let field = field.map_or("$valid$", |field| {
            &layout.types[instance.kind as usize].fields[field as usize].name
        });
        format!("{}.{field}", instance.name)
    }

    /// Name and value of each field of an extracted header.
    pub(super) fn header_fields(
        &self,
        header: u32,
        words: &[u64],
        varbit: &[u8],
    ) -> Vec<(String, String)> {
        let layout = &self.program.layout;
        let kind = &layout.types[layout.headers[header as usize].kind as usize];
        let fields = kind.fields.iter().map(|field| {
            let first = field.offset as usize;
            let value = if field.varbit {
                format!("0x{}", hex(varbit))
            } else {
                value(&words[first..first + field.limbs as usize])
            };
            (field.name.clone(), value)
        });
        fields.collect()
    }

    /// The parts of a select key.
    pub(super) fn select_key(&self, state: u32, key: &[u64]) -> Vec<String> {
        let parts = &self.program.parser.states[state as usize].key;
        let mut rest = key;
        let parts = parts.iter().map(|part| {
            let (words, after) = rest.split_at(part.width.div_ceil(64).max(1) as usize);
            rest = after;
            value(words)
        });
        parts.collect()
    }

    pub(super) fn error_name(&self, error: u64) -> String {
        match self.program.names.errors.get(&error) {
            Some(name) => name.clone(),
            None => format!("error {error}"),
        }
    }

    /// Name and value of each field of a table key.
    pub(super) fn table_key(&self, table: u32, key: &[u64]) -> Vec<(String, String)> {
        let info = &self.program.tables()[table as usize];
        let plan = &self.program.table_plans[table as usize];
        let mut rest = key;
        let fields = info.key.iter().zip(&plan.sources).map(|(field, source)| {
            let (words, after) = rest.split_at(source.limbs as usize);
            rest = after;
            (field.name.clone(), value(words))
        });
        fields.collect()
    }

    pub(super) fn action_name(&self, action: u32) -> &str {
        &self.program.actions()[action as usize].name
    }

    /// Name and value of each argument of an action, from its words.
    pub(super) fn action_words(&self, action: u32, words: &[u64]) -> Vec<(String, String)> {
        let info = &self.program.actions()[action as usize];
        let mut rest = words;
        let arguments = info.parameters.iter().map(|parameter| {
            let (words, after) = rest.split_at(parameter.width_bits.div_ceil(64).max(1) as usize);
            rest = after;
            (parameter.name.clone(), value(words))
        });
        arguments.collect()
    }

    /// Name and value of each argument of an action call.
    pub(super) fn call_arguments(&self, call: &ActionCall) -> Vec<(String, String)> {
        let info = &self.program.actions()[call.action.index()];
        let arguments = info.parameters.iter().zip(&call.arguments);
        arguments
            .map(|(parameter, value)| (parameter.name.clone(), value.to_string()))
            .collect()
    }

    /// Name and source of a condition.
    pub(super) fn node(&self, stage: Stage, node: u32) -> NodeName {
        let names = &self.program.names;
        let nodes = match stage {
            Stage::Ingress => &names.ingress,
            Stage::Egress => &names.egress,
        };
        nodes.get(node as usize).cloned().unwrap_or_default()
    }

    pub(super) fn checksum_name(&self, checksum: u32, verified: bool) -> &str {
        let names = &self.program.names;
        let names = if verified {
            &names.verified
        } else {
            &names.updated
        };
        name(names, checksum)
    }

    /// What `log_msg` says: each `{…}` stands for the next argument, `\{` for a brace. A
    /// brace without an argument or an end stays as it is; BMv2 ends there.
    pub(super) fn message(&self, message: u32, arguments: &[Box<[u64]>]) -> String {
        let message = &self.program.code.log_messages[message as usize];
        let values = message.arguments.iter().zip(arguments);
        let values: Vec<String> = values
            .map(|(argument, words)| decimal(argument, words))
            .collect();
        fill(&message.format, &values)
    }
}

fn name(names: &[String], index: u32) -> &str {
    names.get(index as usize).map_or("", String::as_str)
}

fn fill(format: &str, values: &[String]) -> String {
    let mut values = values.iter();
    let mut text = String::new();
    let mut rest = format;
    while let Some(open) = rest.find(['{', '\\']) {
        text.push_str(&rest[..open]);
        rest = &rest[open..];
        if let Some(after) = rest
            .strip_prefix("\\{")
            .or_else(|| rest.strip_prefix("\\}"))
        {
            text.push_str(&rest[1..2]);
            rest = after;
            continue;
        }
        let argument = match (rest.starts_with('{'), rest.find('}')) {
            (true, Some(close)) => values.next().map(|value| (value, close)),
            _ => None,
        };
        match argument {
            Some((value, close)) => {
                text.push_str(value);
                rest = &rest[close + 1..];
            }
            None => {
                text.push_str(&rest[..1]);
                rest = &rest[1..];
            }
        }
    }
    text + rest
}

/// An argument of a message as BMv2 writes it: decimal, where it fits into 128 bits.
fn decimal(argument: &LogArgument, words: &[u64]) -> String {
    let mut words = words.to_vec();
    let high = words.last().copied().unwrap_or(0);
    let negative = argument.signed && (high as i64) < 0;
    if words.len() > 2 {
        return value(&words);
    }
    words.resize(2, if negative { u64::MAX } else { 0 });
    let number = u128::from(words[1]) << 64 | u128::from(words[0]);
    if negative {
        (number as i128).to_string()
    } else {
        number.to_string()
    }
}

/// A match as people write it.
pub(super) fn match_text(matched: &FieldMatch) -> String {
    match matched {
        FieldMatch::Any => "*".to_owned(),
        FieldMatch::Exact(value) => value.to_string(),
        FieldMatch::Lpm { value, prefix_len } => format!("{value}/{prefix_len}"),
        FieldMatch::Ternary { value, mask } => format!("{value} &&& {mask}"),
        FieldMatch::Range { low, high } => format!("{low}..{high}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_filled_in() {
        let values = ["1", "22"].map(str::to_owned);
        for (format, expected) in [
            ("plain", "plain"),
            ("a {} b {}", "a 1 b 22"),
            ("{0}:{1}:{}", "1:22:{}"),
            ("\\{} {}", "{} 1"),
            ("{} and {", "1 and {"),
            ("\\", "\\"),
        ] {
            assert_eq!(fill(format, &values), expected, "{format}");
        }
    }

    #[test]
    fn arguments_are_decimal() {
        let argument = |signed| LogArgument {
            slot: 0,
            limbs: 1,
            signed,
        };
        assert_eq!(
            decimal(&argument(false), &[u64::MAX]),
            "18446744073709551615"
        );
        assert_eq!(decimal(&argument(true), &[u64::MAX - 1]), "-2");
        assert_eq!(decimal(&argument(false), &[0, 1]), "18446744073709551616");
        assert_eq!(
            decimal(&argument(false), &[0, 0, 1]),
            "0x100000000000000000000000000000000"
        );
    }
}
