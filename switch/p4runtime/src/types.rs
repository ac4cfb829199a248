//! Binding the types of a P4Info: widths, and translated types.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::fit::{Bound, misfit};
use super::proto::p4::config::v1::{
    P4DataTypeSpec, P4Info, P4NamedType, P4NewTypeTranslation, p4_bitstring_like_type_spec,
    p4_data_type_spec::TypeSpec, p4_new_type_spec::Representation, p4_new_type_translation,
};
use super::schema::DataForm;
use super::translation::{SdnType, Translation, TranslationTables};
use super::values::ValueType;
use wormcast_switch_program::Program;

/// Last part of the URI, or the name, of the type of ports.
const PORT_TYPES: [&str; 2] = ["PortId_t", "port_id_t"];

/// The types of a P4Info; each translated type is made once.
pub struct Types<'a> {
    p4info: &'a P4Info,
    tables: &'a TranslationTables,
    made: RefCell<BTreeMap<String, Arc<Translation>>>,
}

impl<'a> Types<'a> {
    /// The types of a P4Info, with what a file says of them.
    pub fn new(p4info: &'a P4Info, tables: &'a TranslationTables) -> Self {
        Self {
            p4info,
            tables,
            made: RefCell::default(),
        }
    }

    fn translated(&self, name: &str) -> Option<&'a P4NewTypeTranslation> {
        let types = &self.p4info.type_info.as_ref()?.new_types;
        match types.get(name)?.representation.as_ref()? {
            Representation::TranslatedType(translation) => Some(translation),
            Representation::OriginalType(_) => None,
        }
    }

    /// The translation of a type whose values have `width_bits` bits in the data plane.
    fn translation(&self, name: &str, width_bits: u32) -> Bound<Option<Arc<Translation>>> {
        let Some(described) = self.translated(name) else {
            return Ok(None);
        };
        if let Some(made) = self.made.borrow().get(name) {
            if made.width_bits() != width_bits {
                return misfit(format!(
                    "type `{name}` has {} bits at one place of the program and {width_bits} at \
                     another",
                    made.width_bits()
                ));
            }
            return Ok(Some(Arc::clone(made)));
        }
        let sdn = match described.sdn_type {
            Some(p4_new_type_translation::SdnType::SdnString(_)) => SdnType::Text,
            Some(p4_new_type_translation::SdnType::SdnBitwidth(bits)) => {
                SdnType::Bits(width(bits, format_args!("translated type `{name}`"))?)
            }
            None => {
                return misfit(format!(
                    "translated type `{name}` says neither sdn_bitwidth nor sdn_string"
                ));
            }
        };
        let made = Translation::new((name, &described.uri), sdn, width_bits, self.tables);
        let made = Arc::new(made.or_else(|error| misfit(error.to_string()))?);
        self.made
            .borrow_mut()
            .insert(name.to_owned(), Arc::clone(&made));
        Ok(Some(made))
    }

    /// The type of a value: `bits` are those of the P4Info, `width_bits` of the program.
    pub fn value(
        &self,
        named: Option<&P4NamedType>,
        bits: i32,
        width_bits: u32,
        what: impl fmt::Display,
    ) -> Bound<ValueType> {
        let name = named.map_or("", |named| named.name.as_str());
        if let Some(translation) = self.translation(name, width_bits)? {
            let expected = match translation.sdn() {
                SdnType::Bits(bits) => i64::from(bits),
                SdnType::Text => 0,
            };
            if i64::from(bits) != expected {
                return misfit(format!(
                    "{what} has {bits} bits, its translated type `{name}` {expected}"
                ));
            }
            return Ok(ValueType {
                width_bits,
                translation: Some(translation),
            });
        }
        let bits = width(bits, &what)?;
        // Of a type without a width, such as `error`, the P4Info says none.
        if bits != width_bits && bits != 0 {
            return misfit(format!(
                "{what} has {bits} bits, in the program {width_bits}"
            ));
        }
        Ok(ValueType::plain(width_bits))
    }

    /// The translation of the index of an array, if there is one. Names cannot be indexes.
    pub fn index(
        &self,
        named: Option<&P4NamedType>,
        size: usize,
    ) -> Bound<Option<Arc<Translation>>> {
        let Some(name) = named.map(|named| named.name.as_str()) else {
            return Ok(None);
        };
        let made = self.made.borrow().get(name).map(|made| made.width_bits());
        // No other place of the program tells the width: that of its highest index.
        let highest = usize::BITS - size.saturating_sub(1).max(1).leading_zeros();
        let translation = self.translation(name, made.unwrap_or(highest))?;
        Ok(translation.filter(|translation| !translation.is_text()))
    }

    pub fn ports(&self, program: &Program) -> Bound<Option<Arc<Translation>>> {
        let Some(type_info) = &self.p4info.type_info else {
            return Ok(None);
        };
        for name in type_info.new_types.keys() {
            let Some(described) = self.translated(name) else {
                continue;
            };
            let last = described.uri.rsplit('/').next().unwrap_or_default();
            if PORT_TYPES.contains(&name.as_str()) || PORT_TYPES.contains(&last) {
                return self.translation(name, program.intrinsics.egress_spec.width);
            }
        }
        Ok(None)
    }

    /// The form and type of the cells of a register.
    pub fn data(
        &self,
        spec: Option<&P4DataTypeSpec>,
        width_bits: u32,
        what: impl fmt::Display,
    ) -> Bound<(DataForm, ValueType)> {
        use p4_bitstring_like_type_spec::TypeSpec as Bitstring;
        let plain = |form, bits| {
            self.value(None, bits, width_bits, &what)
                .map(|value| (form, value))
        };
        let type_info = self.p4info.type_info.as_ref();
        match spec.and_then(|spec| spec.type_spec.as_ref()) {
            Some(TypeSpec::Bitstring(bitstring)) => match &bitstring.type_spec {
                Some(Bitstring::Bit(bit)) => plain(DataForm::Unsigned, bit.bitwidth),
                Some(Bitstring::Int(int)) => plain(DataForm::Signed, int.bitwidth),
                Some(Bitstring::Varbit(_)) | None => {
                    misfit(format!("{what} must be of type bit<W> or int<W>"))
                }
            },
            Some(TypeSpec::Bool(_)) => plain(DataForm::Bool, 1),
            Some(TypeSpec::SerializableEnum(named)) => {
                let enums = type_info.map(|info| &info.serializable_enums);
                let described = enums.and_then(|enums| enums.get(&named.name));
                let underlying = described.and_then(|one| one.underlying_type.as_ref());
                match underlying {
                    Some(bit) => plain(DataForm::Enum, bit.bitwidth),
                    None => misfit(format!("{what} has the unknown type `{}`", named.name)),
                }
            }
            Some(TypeSpec::NewType(named)) => {
                if let Some(translation) = self.translation(&named.name, width_bits)? {
                    let value = ValueType {
                        width_bits,
                        translation: Some(translation),
                    };
                    return Ok((DataForm::Unsigned, value));
                }
                let types = type_info.map(|info| &info.new_types);
                let described = types.and_then(|types| types.get(&named.name));
                match described.and_then(|described| described.representation.as_ref()) {
                    // The original type of a type is never such a type again (§8.5.5).
                    Some(Representation::OriginalType(original))
                        if !matches!(original.type_spec, Some(TypeSpec::NewType(_))) =>
                    {
                        self.data(Some(original), width_bits, &what as &dyn fmt::Display)
                    }
                    _ => misfit(format!("{what} has the unknown type `{}`", named.name)),
                }
            }
            Some(_) => misfit(format!(
                "{what} is of a type that cells cannot have: bit<W>, int<W>, bool or a \
                 serializable enum"
            )),
            None => misfit(format!("{what} has no type")),
        }
    }

    /// The type of a field of a packet's header. The P4Info does not say how wide a
    /// translated one is in the program; `of_program` says it where it is known.
    pub fn packet_field(
        &self,
        named: Option<&P4NamedType>,
        bits: i32,
        of_program: Option<u32>,
        what: impl fmt::Display,
    ) -> Bound<ValueType> {
        let name = named.map_or("", |named| named.name.as_str());
        let made = self.made.borrow().get(name).map(|made| made.width_bits());
        match of_program.or(made) {
            Some(width_bits) if self.translated(name).is_some() => {
                self.value(named, bits, width_bits, what)
            }
            _ => Ok(ValueType::plain(width(bits, what)?)),
        }
    }
}

/// A width in bits. It may be 0: `bit<0>` is a type, and p4c keeps keys of it.
pub fn width(bits: i32, what: impl fmt::Display) -> Bound<u32> {
    u32::try_from(bits).or_else(|_| misfit(format!("{what} has a width of {bits} bits")))
}
