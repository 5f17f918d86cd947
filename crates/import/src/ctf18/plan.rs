//! One trace made ready to read: what its packets and each class of its events consist of.

use super::builder::{Builder, TOO_LARGE};
use super::document::{Clock, Document, StreamClass};
use super::fragments;
use super::nodes::Node;
use std::collections::{BTreeMap, HashMap};

/// Most classes of events, and most nodes of all of them.
const MOST_CLASSES: usize = 1 << 16;
const MOST_NODES: usize = 1 << 19;

/// Where a value of an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field(pub(super) usize);

/// A class of events.
#[derive(Clone, Debug)]
pub struct Class {
    /// Its name: `PROVIDER:EVENT` of user space, `EVENT` of the kernel.
    pub name: String,
    /// Of which trace of the folder, from 0.
    pub trace: usize,
    context: Option<Node>,
    fields: Option<Node>,
    names: HashMap<String, usize>,
    contexts: HashMap<String, usize>,
}

impl Class {
    /// A field, by its name without the underscore that LTTng puts before it; of a short array, `name.index`.
    pub fn field(&self, name: &str) -> Option<Field> {
        self.names.get(name).copied().map(Field)
    }

    /// A field of its context: of the stream's events or of its own.
    pub fn context(&self, name: &str) -> Option<Field> {
        self.contexts.get(name).copied().map(Field)
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.context.iter().chain(&self.fields)
    }
}

/// What a packet says of itself.
#[derive(Clone, Debug, Default)]
pub struct PacketPlan {
    pub header: Option<Node>,
    names: HashMap<String, usize>,
}

/// What the packets and events of a stream begin with.
#[derive(Clone, Debug, Default)]
pub struct StreamPlan {
    pub packet_context: Option<Node>,
    pub event_header: Option<Node>,
    pub event_context: Option<Node>,
    names: HashMap<String, usize>,
    /// By number in this stream: index among all classes.
    classes: HashMap<u64, usize>,
}

/// A trace made ready to read.
#[derive(Debug)]
pub struct Plan {
    pub packet: PacketPlan,
    pub streams: BTreeMap<u64, StreamPlan>,
    pub is_big: bool,
    pub clock: Clock,
    /// Whether something that comes with an event is mapped to the clock.
    pub has_times: bool,
    pub env: BTreeMap<String, String>,
    /// Places for values that a decoder needs.
    pub places: usize,
}

impl PacketPlan {
    pub fn place(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }
}

impl StreamPlan {
    /// Of a field of its packets' context.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    #[inline]
    pub fn class(&self, id: u64) -> Option<usize> {
        self.classes.get(&id).copied()
    }
}

impl Plan {
    /// Prepares a trace; its classes go behind those of the traces before.
    pub fn new(document: Document, trace: usize, classes: &mut Vec<Class>) -> Result<Plan, String> {
        let is_ctf2 = document.is_ctf2;
        let plan = Plan::prepare(document, trace, classes);
        plan.map_err(|why| if is_ctf2 { fragments::not_understood(&why) } else { why })
    }

    fn prepare(document: Document, trace: usize, classes: &mut Vec<Class>) -> Result<Plan, String> {
        let mut packet = Builder::new(document.is_big, document.is_ctf2);
        let header = packet.scope("trace.packet.header", &document.packet_header)?;
        let mut plan = Plan {
            packet: PacketPlan { header, names: said(&mut packet, "trace.packet.header.") },
            streams: BTreeMap::new(),
            is_big: document.is_big,
            has_times: false,
            clock: document.clocks.into_iter().next().unwrap_or_default(),
            env: document.env,
            places: packet.places(),
        };
        let mut builders = BTreeMap::new();
        let mut declared = document.streams;
        // Without a block for it, there is one stream whose events are bare.
        for event in &document.events {
            declared.entry(event.stream).or_default();
        }
        for (id, class) in declared {
            let mut builder = packet.clone();
            plan.streams.insert(id, stream(&mut builder, &class)?);
            plan.places = plan.places.max(builder.places());
            plan.has_times |= builder.has_clock;
            builders.insert(id, builder);
        }
        let mut nodes = 0;
        for event in document.events {
            let (Some(stream), Some(builder)) =
                (plan.streams.get_mut(&event.stream), builders.get(&event.stream))
            else {
                continue;
            };
            let before = builder.places();
            let mut builder = builder.clone();
            let of_event = |why: String| format!("the event {}: {why}", event.name);
            let context = builder.scope("event.context", &event.context).map_err(of_event)?;
            let fields = builder.scope("event.fields", &event.fields).map_err(of_event)?;
            plan.places = plan.places.max(builder.places());
            nodes += builder.places() - before;
            if nodes > MOST_NODES {
                return Err(TOO_LARGE.into());
            }
            if classes.len() == MOST_CLASSES {
                return Err(format!("it has more than {MOST_CLASSES} kinds of events"));
            }
            let mut contexts = names(&builder, "stream.event.context.");
            contexts.extend(names(&builder, "event.context."));
            stream.classes.insert(event.id, classes.len());
            let names = names(&builder, "event.fields.");
            classes.push(Class { name: event.name, trace, context, fields, names, contexts });
        }
        Ok(plan)
    }
}

fn stream(builder: &mut Builder, class: &StreamClass) -> Result<StreamPlan, String> {
    let packet_context = builder.scope("stream.packet.context", &class.packet_context)?;
    let names = said(builder, "stream.packet.context.");
    let event_header = builder.scope("stream.event.header", &class.event_header)?;
    let event_context = builder.scope("stream.event.context", &class.event_context)?;
    Ok(StreamPlan { packet_context, event_header, event_context, names, classes: HashMap::new() })
}

/// Places of what a packet says, by the names of CTF 1.8.
fn said(builder: &mut Builder, root: &str) -> HashMap<String, usize> {
    match builder.is_ctf2 {
        true => std::mem::take(&mut builder.said),
        false => names(builder, root),
    }
}

/// Names below a root, and their places; those of CTF 1.8 without one underscore at the front.
fn names(builder: &Builder, root: &str) -> HashMap<String, usize> {
    let below = builder.named.iter().filter_map(|named| Some((named.path.strip_prefix(root)?, named.place)));
    let plain = |name: &'_ str| match builder.is_ctf2 {
        true => name.to_owned(),
        false => name.strip_prefix('_').unwrap_or(name).to_owned(),
    };
    below.map(|(name, place)| (plain(name), place)).collect()
}
