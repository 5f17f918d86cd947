//! Declared types made ready to decode: references resolved, one place for each value.

use super::bits::{Bits, Stop};
use super::types::{Integer, Label, Struct, Type, Variant};
use std::rc::Rc;

/// Most nodes of one trace: types may be used in types over and over.
const MOST_NODES: usize = 1 << 18;
/// Most elements of an array, and most steps of an event in all.
const MOST_STEPS: u64 = 1 << 20;
/// Most elements of an array that have names, as arguments of system calls have.
const MOST_NAMED: u64 = 8;

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
        length: Length,
        place: usize,
    },
    Struct {
        align: u64,
        fields: Vec<Node>,
    },
    Array {
        element: Box<Node>,
        length: Length,
    },
    Variant {
        tag: usize,
        labels: Vec<(i128, i128, usize)>,
        options: Vec<Node>,
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

#[derive(Clone, Copy, Debug)]
pub enum Length {
    Fixed(u64),
    /// The value there.
    Of(usize),
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
    fn step(&mut self) -> Result<(), Stop> {
        self.steps += 1;
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

    fn length(&self, length: Length) -> Result<u64, Stop> {
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
        state.step()?;
        match self {
            Node::Integer { bits: size, align, signed, is_big, role, place } => {
                bits.align(*align);
                let value = bits.unsigned(*size, *is_big)?;
                match role {
                    Role::Nothing => {}
                    Role::Clock => state.tick(value, *size),
                    Role::Id => state.id = value,
                }
                let unused = 64 - size;
                state.values[*place] = match signed {
                    true => Value::Signed((value << unused) as i64 >> unused),
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
            Node::Array { element, length } => {
                for _ in 0..state.length(*length)? {
                    element.decode(bits, state)?;
                }
            }
            Node::Variant { tag, labels, options } => {
                let tag = state.values[*tag].number().ok_or(Stop::Nonsense("a variant has no tag"))?;
                let label = labels.iter().find(|(from, until, _)| (*from..=*until).contains(&tag));
                let (_, _, option) = label.ok_or(Stop::Nonsense("a variant's tag has no label"))?;
                options[*option].decode(bits, state)?;
            }
        }
        Ok(())
    }
}

/// A value's name from the root of its scope, and the labels where it is an enumeration.
#[derive(Clone, Debug)]
pub struct Named {
    pub path: String,
    pub place: usize,
    labels: Vec<Label>,
}

/// Makes nodes of the types of one class of events, scope by scope.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    pub is_big: bool,
    pub named: Vec<Named>,
    nodes: usize,
    is_header: bool,
    /// Whether a field of the header of events is mapped to a clock.
    pub has_clock: bool,
}

/// Begins of names that say in which scope they are.
const ROOTS: [&str; 7] = [
    "trace.packet.header",
    "stream.packet.context",
    "stream.event.header",
    "stream.event.context",
    "event.context",
    "event.fields",
    "env",
];

impl Builder {
    pub fn new(is_big: bool) -> Builder {
        Builder { is_big, ..Builder::default() }
    }

    /// How many places for values there are so far.
    pub fn places(&self) -> usize {
        self.nodes
    }

    /// The nodes of a scope.
    pub fn scope(&mut self, root: &str, of: &Option<Type>) -> Result<Option<Node>, String> {
        self.is_header = root == "stream.event.header";
        of.as_ref().map(|of| self.node(root.to_owned(), of)).transpose()
    }

    fn node(&mut self, path: String, of: &Type) -> Result<Node, String> {
        self.nodes += 1;
        if self.nodes > MOST_NODES {
            return Err("its types are too large".into());
        }
        Ok(match of {
            Type::Integer(integer) => self.integer(path, integer, &[]),
            Type::Enumeration(of) => self.integer(path, &of.integer, &of.labels),
            Type::Float(float) => {
                let is_big = float.is_big.unwrap_or(self.is_big);
                Node::Float { bits: float.bits, align: float.align, is_big, place: self.name(path, &[]) }
            }
            Type::Text => Node::Text { place: self.name(path, &[]) },
            Type::Struct(of) => self.structure(path, of)?,
            Type::Variant(of) => self.variant(path, of)?,
            Type::Array(element, length) => self.array(path, element, Length::Fixed(*length))?,
            Type::Sequence(element, length) => {
                let length = self.resolve(&path, length)?.place;
                self.array(path, element, Length::Of(length))?
            }
        })
    }

    fn name(&mut self, path: String, labels: &[Label]) -> usize {
        let place = self.nodes - 1;
        self.named.push(Named { path, place, labels: labels.to_vec() });
        place
    }

    fn integer(&mut self, path: String, of: &Integer, labels: &[Label]) -> Node {
        self.has_clock |= of.clock.is_some() && self.is_header;
        let role = match of.clock {
            Some(_) => Role::Clock,
            None if self.is_header && path.ends_with(".id") => Role::Id,
            None => Role::Nothing,
        };
        let Integer { bits, align, signed, is_big, .. } = *of;
        let is_big = is_big.unwrap_or(self.is_big);
        Node::Integer { bits, align, signed, is_big, role, place: self.name(path, labels) }
    }

    fn structure(&mut self, path: String, of: &Rc<Struct>) -> Result<Node, String> {
        let fields = of.fields.iter().map(|(name, of)| self.node(format!("{path}.{name}"), of));
        Ok(Node::Struct { align: of.align, fields: fields.collect::<Result<_, _>>()? })
    }

    fn array(&mut self, path: String, element: &Rc<Type>, length: Length) -> Result<Node, String> {
        if let Type::Integer(Integer { bits: 8, align, .. }) = **element {
            if align % 8 == 0 && align <= 8 {
                return Ok(Node::Bytes { align, length, place: self.name(path, &[]) });
            }
        }
        // Each element of a few numbers has a name.
        if let (Type::Integer(Integer { align, .. }), Length::Fixed(length @ 1..=MOST_NAMED)) =
            (&**element, length)
        {
            let fields = (0..length).map(|index| self.node(format!("{path}.{index}"), element));
            return Ok(Node::Struct { align: *align, fields: fields.collect::<Result<_, _>>()? });
        }
        Ok(Node::Array { element: Box::new(self.node(format!("{path}.[]"), element)?), length })
    }

    fn variant(&mut self, path: String, of: &Rc<Variant>) -> Result<Node, String> {
        let Some(tag) = &of.tag else { return Err(format!("the variant {path} has no tag")) };
        let Named { place: tag, labels, .. } = self.resolve(&path, tag)?;
        let place_of = |name: &str| of.options.iter().position(|(option, _)| option == name);
        let labels =
            labels.iter().filter_map(|label| Some((label.from, label.until, place_of(&label.name)?)));
        let labels = labels.collect();
        let options = of.options.iter().map(|(name, of)| self.node(format!("{path}.{name}"), of));
        Ok(Node::Variant { tag, labels, options: options.collect::<Result<_, _>>()? })
    }

    /// The value that a name means where `path` is declared: the nearest before it.
    fn resolve(&self, path: &str, name: &str) -> Result<Named, String> {
        let find = |path: &str| self.named.iter().rev().find(|named| named.path == path);
        let is_absolute =
            ROOTS.iter().any(|root| name.starts_with(root) && name[root.len()..].starts_with('.'));
        let mut found = if is_absolute { find(name) } else { None };
        let mut scope = path;
        while let (None, Some((outer, _))) = (&found, scope.rsplit_once('.')) {
            scope = outer;
            found = find(&format!("{scope}.{name}"));
        }
        for root in ROOTS.iter().rev() {
            found = found.or_else(|| find(&format!("{root}.{name}")));
        }
        found.cloned().ok_or_else(|| format!("{path}: there is no field {name} before it"))
    }
}
