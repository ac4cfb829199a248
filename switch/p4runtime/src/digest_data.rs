//! The data of a digest message: the flat fields of the data plane as `p4.v1.P4Data`.

use super::proto::p4::config::v1::{
    P4DataTypeSpec, P4TypeInfo, p4_bitstring_like_type_spec as bitstring,
    p4_data_type_spec::TypeSpec, p4_new_type_spec,
};
use super::proto::p4::v1::{P4Data, P4Header, P4StructLike, p4_data::Data};
use wormcast_switch_program::Bits;

/// Types within types that are followed.
const DEPTH_MAX: usize = 32;

/// The type of a digest's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One field of this width, bits.
    Bits(u32),
    /// One field of this width, the value of a serializable enum.
    Enum(u32),
    /// One field of one bit.
    Bool,
    Struct(Vec<Shape>),
    Tuple(Vec<Shape>),
    /// Widths of fields one after another.
    Header(Vec<u32>),
}

impl Shape {
    /// The shape of a type; an error in words for a type that digests cannot have here.
    pub fn of(spec: &P4DataTypeSpec, types: &P4TypeInfo) -> Result<Self, String> {
        shape(spec, types, 0)
    }

    /// Widths of the flat fields, in order.
    pub fn widths(&self) -> Vec<u32> {
        match self {
            Self::Bits(width) | Self::Enum(width) => vec![*width],
            Self::Bool => vec![1],
            Self::Struct(members) | Self::Tuple(members) => {
                members.iter().flat_map(Self::widths).collect()
            }
            Self::Header(widths) => widths.clone(),
        }
    }

    /// The message for fields in the order of [`widths`](Self::widths); fields that are not
    /// there are 0.
    pub fn data(&self, fields: &[Bits]) -> P4Data {
        self.take(&mut fields.iter())
    }

    fn take<'a>(&self, fields: &mut impl Iterator<Item = &'a Bits>) -> P4Data {
        let zero = Bits::default();
        let data = match self {
            Self::Bits(_) => Data::Bitstring(fields.next().unwrap_or(&zero).to_canonical_bytes()),
            Self::Enum(_) => Data::EnumValue(fields.next().unwrap_or(&zero).to_canonical_bytes()),
            Self::Bool => Data::Bool(fields.next().is_some_and(|value| *value != zero)),
            Self::Struct(members) => Data::Struct(P4StructLike {
                members: members.iter().map(|member| member.take(fields)).collect(),
            }),
            Self::Tuple(members) => Data::Tuple(P4StructLike {
                members: members.iter().map(|member| member.take(fields)).collect(),
            }),
            Self::Header(widths) => Data::Header(P4Header {
                is_valid: true,
                bitstrings: widths
                    .iter()
                    .map(|_| fields.next().unwrap_or(&zero).to_canonical_bytes())
                    .collect(),
            }),
        };
        P4Data { data: Some(data) }
    }
}

fn shape(spec: &P4DataTypeSpec, types: &P4TypeInfo, depth: usize) -> Result<Shape, String> {
    if depth > DEPTH_MAX {
        return Err(format!("types are nested deeper than {DEPTH_MAX}"));
    }
    let missing = |name: &str| format!("type `{name}` is not among the types");
    let member = |spec: Option<&P4DataTypeSpec>| {
        let spec = spec.ok_or_else(|| "a member has no type".to_owned())?;
        shape(spec, types, depth + 1)
    };
    match &spec.type_spec {
        Some(TypeSpec::Bitstring(bits)) => Ok(Shape::Bits(width(bits.type_spec.as_ref())?)),
        Some(TypeSpec::Bool(_)) => Ok(Shape::Bool),
        Some(TypeSpec::Tuple(tuple)) => {
            let members = tuple.members.iter().map(|spec| member(Some(spec)));
            Ok(Shape::Tuple(members.collect::<Result<_, _>>()?))
        }
        Some(TypeSpec::Struct(named)) => {
            let found = types.structs.get(&named.name);
            let found = found.ok_or_else(|| missing(&named.name))?;
            let members = found.members.iter();
            let members = members.map(|of_struct| member(of_struct.type_spec.as_ref()));
            Ok(Shape::Struct(members.collect::<Result<_, _>>()?))
        }
        Some(TypeSpec::Header(named)) => {
            let found = types.headers.get(&named.name);
            let found = found.ok_or_else(|| missing(&named.name))?;
            let fields = found.members.iter().map(|field| {
                let spec = field.type_spec.as_ref();
                width(spec.and_then(|bits| bits.type_spec.as_ref()))
            });
            Ok(Shape::Header(fields.collect::<Result<_, _>>()?))
        }
        Some(TypeSpec::SerializableEnum(named)) => {
            let found = types.serializable_enums.get(&named.name);
            let found = found.ok_or_else(|| missing(&named.name))?;
            let bits = found.underlying_type.as_ref();
            let bits = bits.ok_or_else(|| missing(&named.name))?;
            u32::try_from(bits.bitwidth)
                .map(Shape::Enum)
                .map_err(|_| format!("a width of {} bits", bits.bitwidth))
        }
        Some(TypeSpec::NewType(named)) => {
            let found = types.new_types.get(&named.name);
            let found = found.ok_or_else(|| missing(&named.name))?;
            match &found.representation {
                Some(p4_new_type_spec::Representation::OriginalType(original)) => {
                    member(Some(original))
                }
                _ => Err(format!("type `{}` is translated", named.name)),
            }
        }
        Some(_) => Err("a header union, stack, enum or error".to_owned()),
        None => Err("the type is not set".to_owned()),
    }
}

fn width(spec: Option<&bitstring::TypeSpec>) -> Result<u32, String> {
    let bits = match spec {
        Some(bitstring::TypeSpec::Bit(bits)) => bits.bitwidth,
        Some(bitstring::TypeSpec::Int(bits)) => bits.bitwidth,
        Some(bitstring::TypeSpec::Varbit(_)) | None => {
            return Err("a bit string without a fixed width".to_owned());
        }
    };
    u32::try_from(bits).map_err(|_| format!("a width of {bits} bits"))
}
