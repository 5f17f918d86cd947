//! Types as the metadata declare them.

use std::rc::Rc;
use std::sync::Arc;

/// Deepest nesting of types.
pub const MOST_NESTED: usize = 48;
/// Greatest alignment, in bits.
const MOST_ALIGN: u64 = 1 << 15;

/// A declared type.
#[derive(Clone, Debug)]
pub enum Type {
    Integer(Integer),
    /// An integer in LEB128.
    Variable {
        signed: bool,
        roles: Roles,
    },
    Float(Float),
    Enumeration(Rc<Enumeration>),
    /// Bytes up to a zero.
    Text,
    Struct(Rc<Struct>),
    Variant(Rc<Variant>),
    Array(Rc<Array>),
}

#[derive(Clone, Debug)]
pub struct Integer {
    /// 1 to 64.
    pub bits: u32,
    /// In bits; a power of two.
    pub align: u64,
    pub signed: bool,
    /// Big-endian; `None` as the trace.
    pub is_big: Option<bool>,
    pub roles: Roles,
}

/// What an integer says of its packet or event.
#[derive(Clone, Debug, Default)]
pub struct Roles {
    /// It counts the clock.
    pub is_clock: bool,
    /// Which event it is. In CTF 1.8, its name says that.
    pub is_id: bool,
    /// Of its packet, by the names of CTF 1.8: there, its own name says that.
    pub says: Vec<&'static str>,
}

#[derive(Clone, Debug)]
pub struct Float {
    /// 32 or 64.
    pub bits: u32,
    pub align: u64,
    pub is_big: Option<bool>,
}

#[derive(Clone, Debug)]
pub struct Enumeration {
    pub integer: Integer,
    pub labels: Vec<Label>,
}

/// The values from `from` to `until`, both included, have this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    pub name: String,
    pub from: i128,
    pub until: i128,
}

#[derive(Clone, Debug)]
pub struct Struct {
    /// The least; its fields may demand more.
    pub align: u64,
    pub fields: Vec<(String, Type)>,
    depth: usize,
}

#[derive(Clone, Debug)]
pub struct Variant {
    /// The field that chooses.
    pub tag: Option<Location>,
    pub options: Vec<(String, Type)>,
    /// Of its values; the first range that fits counts. `None` where the labels of its values choose, as in
    /// CTF 1.8.
    pub ranges: Option<Arc<[Range]>>,
    depth: usize,
}

/// The values from `from` to `until`, both included, choose the option of this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub from: i128,
    pub until: i128,
    pub option: usize,
}

#[derive(Clone, Debug)]
pub struct Array {
    pub element: Type,
    pub length: Length<Location>,
    pub align: u64,
    depth: usize,
}

/// How many elements there are.
#[derive(Clone, Copy, Debug)]
pub enum Length<Field> {
    Fixed(u64),
    /// The value of that field.
    Of(Field),
}

/// Where an earlier field is.
#[derive(Clone, Debug)]
pub enum Location {
    /// The nearest with this name: CTF 1.8.
    Named(String),
    /// Names from the root of a scope on, or from the structure around; `None` leads to the structure around
    /// that. CTF 2.
    Path { root: Option<&'static str>, steps: Vec<Option<String>> },
}

impl Type {
    /// In bits.
    pub fn align(&self) -> u64 {
        match self {
            Type::Integer(integer) => integer.align,
            Type::Float(float) => float.align,
            Type::Enumeration(enumeration) => enumeration.integer.align,
            Type::Text | Type::Variable { .. } => 8,
            Type::Struct(of) => of.align,
            Type::Variant(_) => 1,
            Type::Array(of) => of.align,
        }
    }

    fn depth(&self) -> usize {
        match self {
            Type::Struct(of) => of.depth,
            Type::Variant(of) => of.depth,
            Type::Array(of) => of.depth,
            _ => 0,
        }
    }

    /// Aligned as its fields need.
    pub fn structure(least: u64, fields: Vec<(String, Type)>) -> Result<Type, String> {
        let align = fields.iter().map(|(_, of)| of.align()).max().unwrap_or(1).max(least);
        let depth = depth(fields.iter().map(|(_, of)| of))?;
        Ok(Type::Struct(Rc::new(Struct { align, fields, depth })))
    }

    pub fn variant(
        tag: Option<Location>,
        options: Vec<(String, Type)>,
        ranges: Option<Arc<[Range]>>,
    ) -> Result<Type, String> {
        let depth = depth(options.iter().map(|(_, of)| of))?;
        Ok(Type::Variant(Rc::new(Variant { tag, options, ranges, depth })))
    }

    /// Aligned as its elements need.
    pub fn array(least: u64, element: Type, length: Length<Location>) -> Result<Type, String> {
        let (align, depth) = (element.align().max(least), depth([&element])?);
        Ok(Type::Array(Rc::new(Array { element, length, align, depth })))
    }
}

/// Of what consists of these.
fn depth<'a>(of: impl IntoIterator<Item = &'a Type>) -> Result<usize, String> {
    let depth = 1 + of.into_iter().map(Type::depth).max().unwrap_or(0);
    if depth > MOST_NESTED { Err("types are nested too deep".into()) } else { Ok(depth) }
}

/// An alignment that is one.
pub fn align(bits: u64) -> Result<u64, String> {
    match bits.is_power_of_two() && bits <= MOST_ALIGN {
        true => Ok(bits),
        false => Err(format!("an alignment of {bits} bits")),
    }
}

/// The size of an integer, if it can be one.
pub fn integer_bits(bits: Option<u64>) -> Option<u32> {
    bits.and_then(|bits| u32::try_from(bits).ok()).filter(|bits| (1..=64).contains(bits))
}

/// The size of a floating-point number, if it is read here.
pub fn float_bits(bits: u64) -> Result<u32, String> {
    match bits {
        32 => Ok(32),
        64 => Ok(64),
        _ => Err(format!("floating-point numbers of {bits} bits are not read here")),
    }
}
