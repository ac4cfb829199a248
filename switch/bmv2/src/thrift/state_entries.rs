//! Keys, actions and values in a saved state.

use serde_json::{Map, Value as Json, json};

use super::failure::Failure;
use wormcast_switch_pipeline::{EntryAction, MeterRates, PortId, Replica};
use wormcast_switch_program::{ActionCall, Bits, FieldMatch};
use wormcast_switch_program::{ActionId, ActionProfileId, Program, TableId};

/// A value as hexadecimal text.
pub fn bits_json(bits: &Bits) -> Json {
    let digits = bits.to_canonical_bytes();
    let digits: String = digits.iter().map(|byte| format!("{byte:02x}")).collect();
    Json::String(digits)
}

pub fn key_json(key: &[FieldMatch]) -> Json {
    let field = |matched: &FieldMatch| match matched {
        FieldMatch::Any => Json::Null,
        FieldMatch::Exact(value) => json!({ "exact": bits_json(value) }),
        FieldMatch::Lpm { value, prefix_len } => {
            json!({ "lpm": bits_json(value), "prefix": prefix_len })
        }
        FieldMatch::Ternary { value, mask } => {
            json!({ "ternary": bits_json(value), "mask": bits_json(mask) })
        }
        FieldMatch::Range { low, high } => {
            json!({ "low": bits_json(low), "high": bits_json(high) })
        }
    };
    key.iter().map(field).collect()
}

/// The name and the arguments of a call.
pub fn action_json(program: &Program, call: &ActionCall) -> Json {
    let name = &program.actions()[call.action.index()].name;
    let arguments: Vec<Json> = call.arguments.iter().map(bits_json).collect();
    json!({ "name": name, "arguments": arguments })
}

/// Reads a state for a program.
pub struct Reading<'a> {
    pub program: &'a Program,
}

fn unexpected(found: &Json, expected: &str) -> Failure {
    let found: String = found.to_string().chars().take(60).collect();
    Failure::internal(format!("{found} in the state; expected {expected}"))
}

impl Reading<'_> {
    pub fn object<'j>(&self, json: &'j Json) -> Result<&'j Map<String, Json>, Failure> {
        json.as_object()
            .ok_or_else(|| unexpected(json, "an object"))
    }

    pub fn list<'j>(&self, json: &'j Json) -> Result<&'j [Json], Failure> {
        let list = json.as_array().map(Vec::as_slice);
        list.ok_or_else(|| unexpected(json, "a list"))
    }

    pub fn number<T: TryFrom<i64>>(&self, json: &Json) -> Result<T, Failure> {
        let number = json.as_i64().and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| unexpected(json, "a number that fits"))
    }

    /// A number that may be missing.
    pub fn option<T: TryFrom<i64>>(&self, json: &Json) -> Result<Option<T>, Failure> {
        if json.is_null() {
            return Ok(None);
        }
        self.number(json).map(Some)
    }

    pub fn bits(&self, json: &Json) -> Result<Bits, Failure> {
        let refuse = || unexpected(json, "an even number of hexadecimal digits");
        let digits = json.as_str().ok_or_else(refuse)?.as_bytes();
        if !digits.len().is_multiple_of(2) {
            return Err(refuse());
        }
        let byte = |pair: &[u8]| {
            let pair = std::str::from_utf8(pair).ok()?;
            u8::from_str_radix(pair, 16).ok()
        };
        let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
        Ok(Bits::from_bytes(&bytes.ok_or_else(refuse)?))
    }

    /// Unsigned counts; none for what is missing.
    pub fn counts(&self, json: &Json) -> Result<Vec<u64>, Failure> {
        if json.is_null() {
            return Ok(Vec::new());
        }
        let counts = self.list(json)?.iter();
        let counts: Option<Vec<u64>> = counts.map(Json::as_u64).collect();
        counts.ok_or_else(|| unexpected(json, "counts"))
    }

    /// The rates of a meter; `None` for what is missing.
    pub fn rates(&self, json: &Json) -> Result<Option<MeterRates>, Failure> {
        if json.is_null() {
            return Ok(None);
        }
        let [numbers @ .., excess] = self.list(json)? else {
            return Err(unexpected(json, "rates"));
        };
        let numbers: Option<Vec<u64>> = numbers.iter().map(Json::as_u64).collect();
        let Some([committed_rate, committed_burst, peak_rate, peak_burst]) = numbers.as_deref()
        else {
            return Err(unexpected(json, "two rates with their bursts"));
        };
        Ok(Some(MeterRates {
            committed_rate: *committed_rate,
            committed_burst: *committed_burst,
            peak_rate: *peak_rate,
            peak_burst: *peak_burst,
            excess_burst: excess.as_u64(),
        }))
    }

    pub fn replicas(&self, json: &Json) -> Result<Vec<Replica>, Failure> {
        let mut replicas = Vec::new();
        for pair in self.list(json)? {
            let [port, instance] = self.list(pair)? else {
                return Err(unexpected(pair, "a port and an instance"));
            };
            replicas.push(Replica {
                port: PortId(self.number(port)?),
                instance: self.number(instance)?,
            });
        }
        Ok(replicas)
    }

    /// A key. The pipeline checks it against its table.
    pub fn key(&self, json: &Json) -> Result<Vec<FieldMatch>, Failure> {
        let fields = self.list(json)?.iter();
        fields.map(|field| self.field(field)).collect()
    }

    fn field(&self, json: &Json) -> Result<FieldMatch, Failure> {
        if json.is_null() {
            return Ok(FieldMatch::Any);
        }
        let object = self.object(json)?;
        let part = |name: &str| object.get(name).map(|json| self.bits(json)).transpose();
        if let Some(value) = part("exact")? {
            return Ok(FieldMatch::Exact(value));
        }
        if let Some(value) = part("lpm")? {
            let prefix_len = self.number(&json["prefix"])?;
            return Ok(FieldMatch::Lpm { value, prefix_len });
        }
        match (part("ternary")?, part("mask")?, part("low")?, part("high")?) {
            (Some(value), Some(mask), ..) => Ok(FieldMatch::Ternary { value, mask }),
            (.., Some(low), Some(high)) => Ok(FieldMatch::Range { low, high }),
            _ => Err(unexpected(json, "a match")),
        }
    }

    fn call(
        &self,
        json: &Json,
        action: impl Fn(&str) -> Option<ActionId>,
    ) -> Result<ActionCall, Failure> {
        let name = json["name"].as_str().unwrap_or_default();
        let action = action(name).ok_or_else(|| unexpected(json, "an action of the program"))?;
        let arguments = self.list(&json["arguments"])?.iter();
        let arguments = arguments.map(|argument| self.bits(argument));
        Ok(ActionCall {
            action,
            arguments: arguments.collect::<Result<_, _>>()?,
        })
    }

    pub fn table_call(&self, table: TableId, json: &Json) -> Result<ActionCall, Failure> {
        self.call(json, |name| self.program.table_action(table, name))
    }

    /// A call of an action of the tables that use a profile.
    pub fn profile_call(
        &self,
        profile: ActionProfileId,
        json: &Json,
    ) -> Result<ActionCall, Failure> {
        let tables = || {
            let tables = self.program.tables().iter();
            tables.filter(|table| table.action_profile == Some(profile))
        };
        self.call(json, |name| {
            let mut actions = tables().flat_map(|table| table.actions.iter().copied());
            actions.find(|action| self.program.actions()[action.index()].name == name)
        })
    }

    pub fn entry_action(&self, table: TableId, json: &Json) -> Result<EntryAction, Failure> {
        if let Some(call) = json.get("call") {
            return self.table_call(table, call).map(EntryAction::Call);
        }
        if let Some(member) = json.get("member") {
            return self.number(member).map(EntryAction::Member);
        }
        match json.get("group") {
            Some(group) => self.number(group).map(EntryAction::Group),
            None => Err(unexpected(json, "an action, a member or a group")),
        }
    }
}
