//! Types made ready to decode, and how they are decoded.

use super::bits::{Bits, Stop};
use super::types::{Length, Range};
use std::ops;
use std::sync::Arc;

/// Most elements of an array, and most steps of an event in all.
const MOST_STEPS: u64 = 1 << 20;

/// A value that was decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Value {
    #[default]
    Missing,
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    /// Place and length among the bytes at hand: a string, or an array of bytes.
    Bytes(usize, usize),
}

impl Value {
    pub fn number(self) -> Option<i128> {
        match self {
            Value::Unsigned(value) => Some(i128::from(value)),
            Value::Signed(value) => Some(i128::from(value)),
            _ => None,
        }
    }
}

/// A type at its place.
#[derive(Clone, Debug)]
pub enum Node {
    Integer {
        bits: u32,
        align: u64,
        signed: bool,
        is_big: bool,
        role: Role,
        place: usize,
    },
    /// An integer in LEB128.
    Variable {
        signed: bool,
        role: Role,
        place: usize,
    },
    Float {
        bits: u32,
        align: u64,
        is_big: bool,
        place: usize,
    },
    Text {
        place: usize,
    },
    /// Bytes one after the other.
    Bytes {
        align: u64,
        length: Length<usize>,
        place: usize,
    },
    Struct {
        align: u64,
        fields: Vec<Node>,
    },
    Array {
        align: u64,
        element: Box<Node>,
        length: Length<usize>,
    },
    Variant {
        tag: usize,
        ranges: Arc<[Range]>,
        options: Vec<Node>,
        /// Of the options' values.
        places: ops::Range<usize>,
    },
}

/// What an integer says beside its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Nothing,
    /// It is the clock, or its low bits.
    Clock,
    /// In an event's header: which event.
    Id,
}

/// What is known while a packet is decoded.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub values: Vec<Value>,
    pub clock: u64,
    pub id: u64,
    steps: u64,
}

impl State {
    pub fn new(places: usize) -> State {
        State { values: vec![Value::Missing; places], ..State::default() }
    }

    /// The next thing of the packet begins.
    pub fn begin(&mut self) {
        self.steps = 0;
        self.id = 0;
    }

    #[inline]
    fn step(&mut self, values: usize) -> Result<(), Stop> {
        self.steps += values as u64;
        if self.steps > MOST_STEPS {
            return Err(Stop::Nonsense("an event has too many values"));
        }
        Ok(())
    }

    /// Updates the clock by its low bits, which wrap around.
    #[inline]
    fn tick(&mut self, value: u64, bits: u32) {
        if bits >= 64 {
            self.clock = value;
            return;
        }
        let mask = (1 << bits) - 1;
        let turn = if value < self.clock & mask { mask + 1 } else { 0 };
        self.clock = ((self.clock & !mask) | value).wrapping_add(turn);
    }

    /// Takes what an integer says.
    #[inline]
    fn hear(&mut self, role: Role, value: u64, bits: u32) {
        match role {
            Role::Nothing => {}
            Role::Clock => self.tick(value, bits),
            Role::Id => self.id = value,
        }
    }

    fn length(&self, length: Length<usize>) -> Result<u64, Stop> {
        match length {
            Length::Fixed(length) => Ok(length),
            Length::Of(place) => match self.values[place] {
                Value::Unsigned(length) => Ok(length),
                _ => Err(Stop::Nonsense("a length is missing")),
            },
        }
    }
}

impl Node {
    pub fn decode(&self, bits: &mut Bits<'_>, state: &mut State) -> Result<(), Stop> {
        state.step(1)?;
        match self {
            Node::Integer { bits: size, align, signed, is_big, role, place } => {
                bits.align(*align);
                let value = bits.unsigned(*size, *is_big)?;
                state.hear(*role, value, *size);
                let unused = 64 - size;
                state.values[*place] = match signed {
                    true => Value::Signed((value << unused) as i64 >> unused),
                    false => Value::Unsigned(value),
                };
            }
            Node::Variable { signed, role, place } => {
                bits.align(8);
                let (value, size) = bits.variable(*signed)?;
                state.hear(*role, value, size);
                state.values[*place] = match signed {
                    true => Value::Signed(value as i64),
                    false => Value::Unsigned(value),
                };
            }
            Node::Float { bits: size, align, is_big, place } => {
                bits.align(*align);
                let value = bits.unsigned(*size, *is_big)?;
                state.values[*place] = Value::Float(match size {
                    32 => f64::from(f32::from_bits(value as u32)),
                    _ => f64::from_bits(value),
                });
            }
            Node::Text { place } => {
                bits.align(8);
                let (from, length) = bits.text()?;
                state.values[*place] = Value::Bytes(from, length);
            }
            Node::Bytes { align, length, place } => {
                bits.align(*align);
                let (from, length) = bits.bytes(state.length(*length)?)?;
                state.values[*place] = Value::Bytes(from, length);
            }
            Node::Struct { align, fields } => {
                bits.align(*align);
                for field in fields {
                    field.decode(bits, state)?;
                }
            }
            Node::Array { align, element, length } => {
                bits.align(*align);
                for _ in 0..state.length(*length)? {
                    element.decode(bits, state)?;
                }
            }
            Node::Variant { tag, ranges, options, places } => {
                let tag = state.values[*tag].number().ok_or(Stop::Nonsense("a variant has no tag"))?;
                let range = ranges.iter().find(|range| (range.from..=range.until).contains(&tag));
                let range = range.ok_or(Stop::Nonsense("a variant's tag has no label"))?;
                // Of the options that were chosen before, nothing stays.
                state.step(places.len())?;
                state.values[places.clone()].fill(Value::Missing);
                options[range.option].decode(bits, state)?;
            }
        }
        Ok(())
    }
}
