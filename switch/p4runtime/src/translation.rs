//! Values that controllers know by other numbers or by names (§"User-defined types",
//! `@p4runtime_translation`), and what the data plane has for them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tonic::Code;

use super::bytestring;
use super::rejection::Rejection;
use wormcast_switch_program::Bits;

/// Most values of one type that are bound to names while the switch runs.
pub const NAMES_MAX: usize = 65_536;

const NAME_BYTES_MAX: usize = 1_024;

/// Values a message lists at most.
const LISTED_MAX: usize = 8;

/// For each type, by its name or URI: what controllers write, and the value of the data
/// plane for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranslationTables {
    types: BTreeMap<String, BTreeMap<String, u64>>,
}

/// Why a file with translations is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TranslationError(String);

/// Options of translated types.
#[derive(clap::Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct TranslationArguments {
    /// What values of types with @p4runtime_translation stand for, as JSON:
    /// {"PortId_t": {"Ethernet0": 1}}
    #[arg(long, value_name = "FILE")]
    pub translation: Option<PathBuf>,
}

impl TranslationArguments {
    /// Reads the file; without one nothing is translated by a table.
    ///
    /// # Errors
    /// A file that cannot be read, and those of [`TranslationTables::from_json`].
    pub fn tables(&self) -> Result<TranslationTables, TranslationError> {
        let Some(path) = &self.translation else {
            return Ok(TranslationTables::default());
        };
        let within = |error: &dyn fmt::Display| {
            TranslationError(format!("--translation {}: {error}", path.display()))
        };
        let text = std::fs::read_to_string(path).map_err(|error| within(&error))?;
        TranslationTables::from_json(&text).map_err(|error| within(&error))
    }
}

impl TranslationTables {
    /// Reads JSON: `{"PortId_t": {"Ethernet0": 1, "Ethernet4": 2}}`. Types of numbers have
    /// numbers for keys, decimal or hexadecimal with `0x`.
    ///
    /// # Errors
    /// Anything but such an object, and two keys of a type with one value.
    pub fn from_json(text: &str) -> Result<Self, TranslationError> {
        let types: BTreeMap<String, BTreeMap<String, u64>> =
            serde_json::from_str(text).map_err(|error| {
                TranslationError(format!(
                    "translations must be an object of types, each an object of values of the \
                     controller with numbers of the data plane: {error}"
                ))
            })?;
        for (name, table) in &types {
            let mut seen = BTreeMap::new();
            for (sdn, value) in table {
                if let Some(other) = seen.insert(value, sdn) {
                    return Err(TranslationError(format!(
                        "translations of type `{name}`: `{other}` and `{sdn}` both have the \
                         value {value}; each needs one of its own"
                    )));
                }
            }
        }
        Ok(Self { types })
    }

    fn of(&self, name: &str, uri: &str) -> Option<&BTreeMap<String, u64>> {
        self.types.get(name).or_else(|| self.types.get(uri))
    }
}

/// What controllers use for a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SdnType {
    /// Numbers of this many bits.
    Bits(u32),
    Text,
}

/// A type of P4 that controllers see as another one.
///
/// With a table from a file only its values are valid. Without one, numbers stand for
/// themselves; a name that is a decimal number of the data plane's width stands for it, and
/// every other name gets, when it is first written, a value of its own, which it keeps as
/// long as the forwarding-pipeline config does.
#[derive(Debug)]
pub struct Translation {
    name: String,
    sdn: SdnType,
    width_bits: u32,
    fixed: bool,
    pairs: Mutex<Pairs>,
}

#[derive(Debug, Default)]
struct Pairs {
    /// Controller to data plane; the key is canonical bytes or a name.
    inward: BTreeMap<Vec<u8>, Bits>,
    outward: BTreeMap<Bits, Vec<u8>>,
    /// Where the search for a free value goes on.
    next: u64,
}

impl Translation {
    /// A type whose values have `width_bits` bits in the data plane.
    ///
    /// # Errors
    /// A table that does not suit the type.
    pub fn new(
        (name, uri): (&str, &str),
        sdn: SdnType,
        width_bits: u32,
        tables: &TranslationTables,
    ) -> Result<Self, TranslationError> {
        let mut pairs = Pairs::default();
        let table = tables.of(name, uri);
        for (key, value) in table.into_iter().flatten() {
            let refuse = |what: &str| {
                Err(TranslationError(format!(
                    "translations of type `{name}`: `{key}` with {value}: {what}"
                )))
            };
            let value = Bits::from_u64(*value);
            if value.width_bits() > width_bits {
                return refuse(&format!(
                    "the data plane has {width_bits} bits, at most {}",
                    Bits::ones(width_bits)
                ));
            }
            let key = match sdn {
                SdnType::Text => key.as_bytes().to_vec(),
                SdnType::Bits(bits) => match parse_number(key) {
                    Some(number) if number.width_bits() <= bits => number.to_canonical_bytes(),
                    _ => return refuse(&format!("the key must be a number of {bits} bits")),
                },
            };
            pairs.outward.insert(value.clone(), key.clone());
            pairs.inward.insert(key, value);
        }
        // Names start in the upper half, away from the numbers that ports usually have.
        pairs.next = 1 << (width_bits.clamp(1, 63) - 1);
        Ok(Self {
            name: name.to_owned(),
            sdn,
            width_bits,
            fixed: table.is_some(),
            pairs: Mutex::new(pairs),
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// What controllers use.
    pub fn sdn(&self) -> SdnType {
        self.sdn
    }

    /// Controllers use names.
    pub fn is_text(&self) -> bool {
        self.sdn == SdnType::Text
    }

    /// Width in the data plane, bits.
    pub fn width_bits(&self) -> u32 {
        self.width_bits
    }

    /// Every number stands for itself, and both sides have the same width.
    pub fn is_identity(&self) -> bool {
        !self.fixed && self.sdn == SdnType::Bits(self.width_bits)
    }

    fn pairs(&self) -> MutexGuard<'_, Pairs> {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the data plane has for a controller's value.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` for what is too wide or empty, `INVALID_ARGUMENT` for what is not in
    /// the table, `RESOURCE_EXHAUSTED` when there is no value left for a new name.
    pub fn parse(&self, bytes: &[u8]) -> Result<Bits, Rejection> {
        let rejected = match self.sdn {
            SdnType::Bits(bits) => self.parse_number(bytes, bits),
            SdnType::Text => self.parse_name(bytes),
        };
        rejected.map_err(|rejection| rejection.within(format_args!("type `{}`", self.name)))
    }

    fn parse_number(&self, bytes: &[u8], bits: u32) -> Result<Bits, Rejection> {
        let value = bytestring::parse(bytes, bits)?;
        if self.fixed {
            return self.look_up(&value.to_canonical_bytes());
        }
        if value.width_bits() > self.width_bits {
            return Err(Rejection::out_of_range(format!(
                "value {value} stands for itself, which has at most {} bits in the data plane \
                 (at most {})",
                self.width_bits,
                Bits::ones(self.width_bits)
            )));
        }
        Ok(value)
    }

    fn look_up(&self, key: &[u8]) -> Result<Bits, Rejection> {
        let pairs = self.pairs();
        pairs.inward.get(key).cloned().ok_or_else(|| {
            let mut known: Vec<String> = pairs.inward.keys().map(|key| self.show(key)).collect();
            if known.len() > LISTED_MAX {
                let rest = known.len() - LISTED_MAX;
                known.truncate(LISTED_MAX);
                known.push(format!("and {rest} more"));
            }
            Rejection::invalid(format!(
                "{} is not in the table of translations; it has {}",
                self.show(key),
                known.join(", ")
            ))
        })
    }

    fn show(&self, key: &[u8]) -> String {
        match self.sdn {
            SdnType::Bits(_) => Bits::from_bytes(key).to_string(),
            SdnType::Text => format!("`{}`", String::from_utf8_lossy(key)),
        }
    }

    fn parse_name(&self, bytes: &[u8]) -> Result<Bits, Rejection> {
        let Ok(name) = std::str::from_utf8(bytes) else {
            return Err(Rejection::invalid("a name must be UTF-8"));
        };
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(Rejection::out_of_range(format!(
                "a name of {} bytes is not valid: 1 to {NAME_BYTES_MAX}",
                name.len()
            )));
        }
        if self.fixed {
            return self.look_up(bytes);
        }
        let mut pairs = self.pairs();
        if let Some(value) = pairs.inward.get(bytes) {
            return Ok(value.clone());
        }
        if pairs.inward.len() >= NAMES_MAX {
            return Err(exhausted(NAMES_MAX as u64));
        }
        let own = own_number(name, self.width_bits);
        let own = own.filter(|value| !pairs.outward.contains_key(value));
        let value = match own {
            Some(value) => value,
            None => pairs.free_value(self.width_bits)?,
        };
        pairs.inward.insert(bytes.to_vec(), value.clone());
        pairs.outward.insert(value.clone(), bytes.to_vec());
        Ok(value)
    }

    /// What controllers have for a value of the data plane. A value that no controller has
    /// named stands for itself, written as a decimal number where names are used.
    pub fn write(&self, value: &Bits) -> Vec<u8> {
        if let Some(key) = self.pairs().outward.get(value) {
            return key.clone();
        }
        match (self.sdn, value.to_u64()) {
            (SdnType::Text, Some(number)) => number.to_string().into_bytes(),
            (SdnType::Text, None) => value.to_string().into_bytes(),
            (SdnType::Bits(_), _) => value.to_canonical_bytes(),
        }
    }
}

impl Pairs {
    fn free_value(&mut self, width_bits: u32) -> Result<Bits, Rejection> {
        let end = 1u64 << width_bits.min(63);
        // Each try finds a value in use, so there are at most as many as names.
        for _ in 0..=self.outward.len() {
            let value = Bits::from_u64(self.next % end);
            self.next = (self.next + 1) % end;
            if !self.outward.contains_key(&value) {
                return Ok(value);
            }
        }
        Err(exhausted(end))
    }
}

fn exhausted(limit: u64) -> Rejection {
    Rejection::new(
        Code::ResourceExhausted,
        format!("there is no value left for a new name: at most {limit} names"),
    )
}

/// The number that a name without leading zeros says in decimal.
fn own_number(name: &str, width_bits: u32) -> Option<Bits> {
    let number: u64 = name.parse().ok()?;
    let value = Bits::from_u64(number);
    (number.to_string() == name && value.width_bits() <= width_bits).then_some(value)
}

fn parse_number(text: &str) -> Option<Bits> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => text.parse().ok()?,
    };
    Some(Bits::from_u64(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(width_bits: u32) -> Translation {
        let tables = TranslationTables::default();
        Translation::new(("name_t", "uri"), SdnType::Text, width_bits, &tables).unwrap()
    }

    fn table(json: &str, sdn: SdnType) -> Result<Translation, TranslationError> {
        let tables = TranslationTables::from_json(json)?;
        Translation::new(("port_t", "example.org/port"), sdn, 9, &tables)
    }

    #[test]
    fn names_get_values_of_their_own_and_keep_them() {
        let names = names(9);
        let first = names.parse(b"nexthop-1").unwrap();
        assert_eq!(first, Bits::from_u64(256));
        assert_eq!(names.parse(b"nexthop-2").unwrap(), Bits::from_u64(257));
        assert_eq!(names.parse(b"nexthop-1").unwrap(), first);
        assert_eq!(names.parse(b"7").unwrap(), Bits::from_u64(7));
        // 256 is taken, so its name is a name like any other; 007 is no number.
        assert_eq!(names.parse(b"256").unwrap(), Bits::from_u64(258));
        assert_eq!(names.parse(b"007").unwrap(), Bits::from_u64(259));
        for name in [&b"nexthop-1"[..], b"7", b"256", b"007"] {
            assert_eq!(names.write(&names.parse(name).unwrap()), name);
        }
        assert_eq!(names.write(&Bits::from_u64(3)), b"3");
    }

    #[test]
    fn names_end_where_the_values_end() {
        let names = names(2);
        for name in [&b"a"[..], b"b", b"c", b"d"] {
            names.parse(name).unwrap();
        }
        let rejection = names.parse(b"e").unwrap_err();
        assert_eq!(rejection.code, Code::ResourceExhausted);
        assert_eq!(
            rejection.message,
            "type `name_t`: there is no value left for a new name: at most 4 names"
        );
        assert_eq!(names.parse(b"").unwrap_err().code, Code::OutOfRange);
        assert_eq!(
            names.parse(&[0xff]).unwrap_err().code,
            Code::InvalidArgument
        );
    }

    #[test]
    fn a_table_says_all_that_is_valid() {
        let ports = table(
            r#"{"port_t": {"Ethernet0": 1, "Ethernet4": 2}}"#,
            SdnType::Text,
        );
        let ports = ports.unwrap();
        assert_eq!(ports.parse(b"Ethernet4").unwrap(), Bits::from_u64(2));
        assert_eq!(ports.write(&Bits::from_u64(1)), b"Ethernet0");
        assert_eq!(
            ports.parse(b"eth0").unwrap_err().message,
            "type `port_t`: `eth0` is not in the table of translations; it has `Ethernet0`, \
             `Ethernet4`"
        );
        let json = r#"{"example.org/port": {"1": 5, "0xfffffffd": 510}}"#;
        let numbers = table(json, SdnType::Bits(32)).unwrap();
        let cpu = [0xff, 0xff, 0xff, 0xfd];
        assert_eq!(numbers.parse(&cpu).unwrap(), Bits::from_u64(510));
        assert_eq!(numbers.write(&Bits::from_u64(510)), cpu);
        assert_eq!(
            numbers.parse(&[9]).unwrap_err().message,
            "type `port_t`: 0x9 is not in the table of translations; it has 0x1, 0xfffffffd"
        );
    }

    #[test]
    fn tables_are_read_from_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ports.json");
        let arguments = TranslationArguments {
            translation: Some(path.clone()),
        };
        let error = arguments.tables().unwrap_err().to_string();
        let start = format!("--translation {}: ", path.display());
        assert!(error.starts_with(&start), "{error}");
        std::fs::write(&path, r#"{"port_t": {"a": 1}}"#).unwrap();
        let tables = arguments.tables().unwrap();
        assert_eq!(tables.of("port_t", "").unwrap()["a"], 1);
        assert_eq!(
            TranslationArguments::default().tables(),
            Ok(TranslationTables::default())
        );
    }

    #[test]
    fn numbers_without_a_table_stand_for_themselves() {
        let numbers = table("{}", SdnType::Bits(32)).unwrap();
        assert_eq!(
            numbers.parse(&[0, 0, 1, 0xff]).unwrap(),
            Bits::from_u64(511)
        );
        assert_eq!(numbers.write(&Bits::from_u64(0)), [0]);
        let rejection = numbers.parse(&[2, 0]).unwrap_err();
        assert_eq!(rejection.code, Code::OutOfRange);
        assert_eq!(
            rejection.message,
            "type `port_t`: value 0x200 stands for itself, which has at most 9 bits in the \
             data plane (at most 0x1ff)"
        );
    }

    #[test]
    fn tables_that_contradict_themselves_or_the_type_are_refused() {
        let refuse = |json: &str, sdn| table(json, sdn).unwrap_err().to_string();
        assert_eq!(
            refuse(r#"{"port_t": {"a": 1, "b": 1}}"#, SdnType::Text),
            "translations of type `port_t`: `a` and `b` both have the value 1; each needs one \
             of its own"
        );
        assert_eq!(
            refuse(r#"{"port_t": {"a": 512}}"#, SdnType::Text),
            "translations of type `port_t`: `a` with 512: the data plane has 9 bits, at most 0x1ff"
        );
        assert_eq!(
            refuse(r#"{"port_t": {"a": 5}}"#, SdnType::Bits(32)),
            "translations of type `port_t`: `a` with 5: the key must be a number of 32 bits"
        );
        assert!(refuse("[]", SdnType::Text).starts_with("translations must be an object"));
    }
}
