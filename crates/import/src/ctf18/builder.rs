//! Makes nodes of declared types: references resolved, one place for each value.

use super::nodes::{Node, Role};
use super::types::{
    Array, Enumeration, Integer, Label, Length, Location, Range, Roles, Struct, Type, Variant,
};
use std::collections::HashMap;
use std::rc::Rc;

/// Most nodes of one event: types may be used in types over and over.
const MOST_NODES: usize = 1 << 18;
/// Longest path of a value.
const MOST_PATH: usize = 1 << 10;
/// Most elements of an array that have names, as arguments of system calls have.
const MOST_NAMED: u64 = 8;

/// Why there is no plan of such types.
pub const TOO_LARGE: &str = "its types are too large";

/// A value's name from the root of its scope.
#[derive(Clone, Debug)]
pub struct Named {
    pub path: String,
    pub place: usize,
    labels: Option<Rc<Enumeration>>,
}

/// Makes nodes of the types of one class of events, scope by scope.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    pub is_big: bool,
    pub is_ctf2: bool,
    pub named: Vec<Named>,
    /// By the path without indices of arrays: the last of that path.
    found: HashMap<String, usize>,
    /// What roles say of the packet: the place by the name of CTF 1.8.
    pub said: HashMap<String, usize>,
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
    pub fn new(is_big: bool, is_ctf2: bool) -> Builder {
        Builder { is_big, is_ctf2, ..Builder::default() }
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
            return Err(TOO_LARGE.into());
        }
        if path.len() > MOST_PATH {
            return Err("its names are too long".into());
        }
        Ok(match of {
            Type::Integer(integer) => self.integer(path, integer, None),
            Type::Enumeration(of) => self.integer(path, &of.integer, Some(of)),
            Type::Variable { signed, roles } => {
                let (role, place) = self.role(path, roles, None);
                Node::Variable { signed: *signed, role, place }
            }
            Type::Float(float) => {
                let is_big = float.is_big.unwrap_or(self.is_big);
                Node::Float { bits: float.bits, align: float.align, is_big, place: self.name(path, None) }
            }
            Type::Text => Node::Text { place: self.name(path, None) },
            Type::Struct(of) => self.structure(path, of)?,
            Type::Variant(of) => self.variant(path, of)?,
            Type::Array(of) => self.array(path, of)?,
        })
    }

    /// The place of a value of this name. Values of the same name, as the options of a variant may have in
    /// CTF 2, have one place: whichever comes is found there.
    fn name(&mut self, path: String, labels: Option<&Rc<Enumeration>>) -> usize {
        let (next, index) = (self.nodes - 1, self.named.len());
        let before = self.found.insert(without_indices(&path), index);
        let place = before.map_or(next, |before| self.named[before].place);
        self.named.push(Named { path, place, labels: labels.cloned() });
        place
    }

    fn integer(&mut self, path: String, of: &Integer, labels: Option<&Rc<Enumeration>>) -> Node {
        let (role, place) = self.role(path, &of.roles, labels);
        let Integer { bits, align, signed, is_big, .. } = *of;
        let is_big = is_big.unwrap_or(self.is_big);
        Node::Integer { bits, align, signed, is_big, role, place }
    }

    /// What an integer says, and its place.
    fn role(&mut self, path: String, of: &Roles, labels: Option<&Rc<Enumeration>>) -> (Role, usize) {
        self.has_clock |= of.is_clock && self.is_header;
        let is_id = if self.is_ctf2 { of.is_id } else { path.ends_with(".id") };
        let role = match of.is_clock {
            true => Role::Clock,
            false if self.is_header && is_id => Role::Id,
            false => Role::Nothing,
        };
        let place = self.name(path, labels);
        self.said.extend(of.says.iter().map(|name| ((*name).to_owned(), place)));
        (role, place)
    }

    fn structure(&mut self, path: String, of: &Struct) -> Result<Node, String> {
        let fields = of.fields.iter().map(|(name, of)| self.node(format!("{path}.{name}"), of));
        Ok(Node::Struct { align: of.align, fields: fields.collect::<Result<_, _>>()? })
    }

    fn array(&mut self, path: String, of: &Array) -> Result<Node, String> {
        let (element, align) = (&of.element, of.align);
        let length = match &of.length {
            Length::Fixed(length) => Length::Fixed(*length),
            Length::Of(field) => Length::Of(self.resolve(&path, field)?.place),
        };
        match (element, length) {
            (Type::Integer(Integer { bits: 8, align: 1 | 8, .. }), _) if align % 8 == 0 => {
                Ok(Node::Bytes { align, length, place: self.name(path, None) })
            }
            // Each element of a few numbers has a name.
            (Type::Integer(_), Length::Fixed(length @ 1..=MOST_NAMED)) => {
                let fields = (0..length).map(|index| self.node(format!("{path}.{index}"), element));
                Ok(Node::Struct { align, fields: fields.collect::<Result<_, _>>()? })
            }
            _ => {
                let element = Box::new(self.node(format!("{path}{ELEMENT}"), element)?);
                Ok(Node::Array { align, element, length })
            }
        }
    }

    fn variant(&mut self, path: String, of: &Variant) -> Result<Node, String> {
        let Some(tag) = &of.tag else { return Err(format!("the variant {path} has no tag")) };
        let Named { place: tag, labels, .. } = self.resolve(&path, tag)?;
        let place_of = |name: &str| of.options.iter().position(|(option, _)| option == name);
        let by_label = || {
            let labels = labels.iter().flat_map(|of| &of.labels);
            let range = |Label { name, from, until }: &Label| {
                Some(Range { from: *from, until: *until, option: place_of(name)? })
            };
            labels.filter_map(range).collect()
        };
        let ranges = of.ranges.clone().unwrap_or_else(by_label);
        // In CTF 2, names of options are no part of the way to a field.
        let path_of = |name: &str| if self.is_ctf2 { path.clone() } else { format!("{path}.{name}") };
        let paths: Vec<String> = of.options.iter().map(|(name, _)| path_of(name)).collect();
        let options = of.options.iter().zip(paths);
        let first = self.nodes;
        let options = options.map(|((_, of), path)| self.node(path, of)).collect::<Result<_, _>>()?;
        Ok(Node::Variant { tag, ranges, options, places: first..self.nodes })
    }

    /// The value that a location means where `path` is declared.
    fn resolve(&self, path: &str, location: &Location) -> Result<Named, String> {
        let path = without_indices(path);
        match location {
            Location::Named(name) => {
                self.nearest(&path, name).ok_or_else(|| format!("{path}: there is no field {name} before it"))
            }
            Location::Path { root, steps } => {
                let at = destination(&path, *root, steps)
                    .ok_or_else(|| format!("{path}: the location of a field leads out of all structures"))?;
                self.find(&at).ok_or_else(|| format!("{path}: there is no field {at} before it"))
            }
        }
    }

    fn find(&self, path: &str) -> Option<Named> {
        self.found.get(path).map(|index| self.named[*index].clone())
    }

    /// The nearest of this name.
    fn nearest(&self, path: &str, name: &str) -> Option<Named> {
        let is_absolute =
            ROOTS.iter().any(|root| name.starts_with(root) && name[root.len()..].starts_with('.'));
        let mut found = if is_absolute { self.find(name) } else { None };
        let mut scope = path;
        while let (None, Some((outer, _))) = (&found, scope.rsplit_once('.')) {
            scope = outer;
            found = self.find(&format!("{scope}.{name}"));
        }
        for root in ROOTS.iter().rev() {
            found = found.or_else(|| self.find(&format!("{root}.{name}")));
        }
        found
    }
}

/// What stands for the index of an element in the path of a value.
const ELEMENT: &str = ".[]";

fn without_indices(path: &str) -> String {
    path.replace(ELEMENT, "")
}

/// Where the steps from a root, or from the structure around `path`, lead.
fn destination(path: &str, root: Option<&str>, steps: &[Option<String>]) -> Option<String> {
    let mut at = match root {
        Some(root) => root,
        None => path.rsplit_once('.')?.0,
    }
    .to_owned();
    for step in steps {
        match step {
            Some(name) => at = format!("{at}.{name}"),
            None if ROOTS.contains(&at.as_str()) => return None,
            None => at.truncate(at.rfind('.')?),
        }
    }
    Some(at)
}
