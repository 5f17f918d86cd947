//! Types as the metadata declare them.

use std::rc::Rc;

/// A declared type.
#[derive(Clone, Debug)]
pub enum Type {
    Integer(Integer),
    Float(Float),
    Enumeration(Rc<Enumeration>),
    /// Bytes up to a zero.
    Text,
    Struct(Rc<Struct>),
    Variant(Rc<Variant>),
    Array(Rc<Type>, u64),
    /// An array whose length is the value of that field.
    Sequence(Rc<Type>, String),
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
    /// Whether it counts a clock.
    pub clock: Option<String>,
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
}

#[derive(Clone, Debug)]
pub struct Variant {
    /// The field whose label chooses.
    pub tag: Option<String>,
    pub options: Vec<(String, Type)>,
}

impl Type {
    /// In bits.
    pub fn align(&self) -> u64 {
        match self {
            Type::Integer(integer) => integer.align,
            Type::Float(float) => float.align,
            Type::Enumeration(enumeration) => enumeration.integer.align,
            Type::Text => 8,
            Type::Struct(of) => of.align,
            Type::Variant(_) => 1,
            Type::Array(element, _) | Type::Sequence(element, _) => element.align(),
        }
    }
}

impl Struct {
    /// Aligned as its fields need.
    pub fn new(least: u64, fields: Vec<(String, Type)>) -> Struct {
        let align = fields.iter().map(|(_, of)| of.align()).max().unwrap_or(1).max(least);
        Struct { align, fields }
    }
}
