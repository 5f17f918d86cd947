//! Reads CTF 2 metadata: a sequence of JSON objects, its fragments, each with a record separator before it as
//! LTTng writes them, or without.

use super::document::{Clock, Document, EventClass, StreamClass};
use super::json::{BitOrder, ByteOrder, Choice, Class, FieldClass, Fragment, Id, Member};
use super::json::{Location as JsonLocation, Offset};
use super::types::{self, Float, Integer, Length, Location, Range, Roles, Type};
use std::collections::HashMap;

/// Before each fragment (RFC 7464).
const SEPARATOR: u8 = 0x1E;
/// What is known by the name of its field, as LTTng gives it: CTF 2 has no role for it.
const CPU: &str = "cpu_id";

/// Whether text is CTF 2 rather than TSDL.
pub fn begin(text: &[u8]) -> bool {
    let (before, rest) = text.split_at(gap(text));
    before.contains(&SEPARATOR) || rest.starts_with(b"{")
}

/// Says so.
pub fn not_understood(why: &str) -> String {
    format!("its CTF 2 metadata cannot be understood: {why}")
}

/// Bytes before the next fragment.
fn gap(text: &[u8]) -> usize {
    let is_between = |byte: &&u8| byte.is_ascii_whitespace() || **byte == SEPARATOR;
    text.iter().take_while(is_between).count()
}

/// Reads the text of `metadata`; or says where it cannot be understood, and why.
pub fn read(text: &[u8]) -> Result<Document, String> {
    let mut reader = Reader::default();
    let (mut at, mut line) = (0, 1);
    loop {
        let skipped = gap(&text[at..]);
        line += lines(&text[at..at + skipped]);
        at += skipped;
        match text.get(at) {
            None => return reader.finish(),
            Some(b'{') => {}
            Some(_) => return Err(format!("line {line}: there should be a fragment, which begins with {{")),
        }
        let mut fragments = serde_json::Deserializer::from_slice(&text[at..]).into_iter::<Fragment>();
        match fragments.next() {
            Some(Ok(fragment)) => {
                let of = fragment.kind.clone();
                reader.fragment(fragment).map_err(|why| format!("line {line}, {of}: {why}"))?;
            }
            Some(Err(error)) => return Err(format!("line {}: {}", line + error.line() - 1, reason(&error))),
            None => return reader.finish(),
        }
        let next = at + fragments.byte_offset();
        line += lines(&text[at..next]);
        at = next;
    }
}

fn lines(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text).count()
}

/// An error without its place.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let reason = text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason);
    reason.replace("EOF while parsing", "the text ends within")
}

#[derive(Default)]
struct Reader {
    document: Document,
    has_begun: bool,
    aliases: HashMap<String, Type>,
    /// By ID: the place in the document.
    clocks: HashMap<String, usize>,
    /// The clock of the streams.
    clock: Option<usize>,
}

impl Reader {
    fn finish(mut self) -> Result<Document, String> {
        if !self.has_begun {
            return Err("it has no fragments".into());
        }
        self.document.is_ctf2 = true;
        if let Some(clock) = self.clock {
            self.document.clocks.swap(0, clock);
        }
        Ok(self.document)
    }

    fn fragment(&mut self, of: Fragment) -> Result<(), String> {
        if !self.has_begun && of.kind != "preamble" {
            return Err("there should be a preamble before it".into());
        }
        match of.kind.as_str() {
            "preamble" => self.preamble(&of),
            "field-class-alias" => self.alias(of),
            "trace-class" => self.trace(of),
            "clock-class" => self.clock(of),
            "data-stream-class" => self.stream(of),
            "event-record-class" => self.event(of),
            _ => Err("fragments of this type are not known".into()),
        }
    }

    fn preamble(&mut self, of: &Fragment) -> Result<(), String> {
        self.has_begun = true;
        match (of.version, of.extensions.keys().next()) {
            (Some(2), None) => Ok(()),
            (Some(2), Some(name)) => Err(format!("it needs extensions of {name}, which are not read here")),
            (Some(version), _) => Err(format!("version {version} is not read here")),
            (None, _) => Err("it has no version".into()),
        }
    }

    fn alias(&mut self, of: Fragment) -> Result<(), String> {
        let (name, class) = (needed(of.name, "name")?, needed(of.field_class, "field-class")?);
        let found = self.class(class).map_err(|why| format!("{name}: {why}"))?;
        self.aliases.insert(name, found);
        Ok(())
    }

    fn trace(&mut self, of: Fragment) -> Result<(), String> {
        let header = self.root("packet-header", of.packet_header_field_class)?;
        self.document.is_big = header.as_ref().is_some_and(begins_big);
        self.document.packet_header = header;
        let entries = of.environment.into_iter().map(|(name, value)| (name, value.to_string()));
        self.document.env.extend(entries);
        Ok(())
    }

    fn clock(&mut self, of: Fragment) -> Result<(), String> {
        let id = match of.id {
            Some(Id::Text(id)) => id,
            Some(Id::Number(id)) => id.to_string(),
            // In drafts, the name is the ID.
            None => needed(of.name.clone(), "id")?,
        };
        let frequency = needed(of.frequency.filter(|frequency| *frequency > 0), "frequency")?;
        let Offset { seconds, cycles } = of.offset_from_origin;
        self.clocks.insert(id.clone(), self.document.clocks.len());
        self.document.clocks.push(Clock {
            name: of.name.unwrap_or(id),
            uuid: of.uid.or_else(|| of.uuid.map(|uuid| uuid::Uuid::from_bytes(uuid).to_string())),
            frequency,
            offset_s: seconds,
            offset_ticks: cycles,
        });
        Ok(())
    }

    fn stream(&mut self, of: Fragment) -> Result<(), String> {
        if let Some(id) = &of.default_clock_class_id {
            let clock = *self.clocks.get(id).ok_or_else(|| format!("there is no clock {id} before it"))?;
            if *self.clock.get_or_insert(clock) != clock {
                return Err("streams with different clocks are not read here".into());
            }
        }
        let class = StreamClass {
            packet_context: self.root("packet-context", of.packet_context_field_class)?,
            event_header: self.root("event-record-header", of.event_record_header_field_class)?,
            event_context: self
                .root("event-record-common-context", of.event_record_common_context_field_class)?,
        };
        self.document.streams.insert(number(of.id)?, class);
        Ok(())
    }

    fn event(&mut self, of: Fragment) -> Result<(), String> {
        let name = of.name.or(of.uid).unwrap_or_default();
        let in_event = |why: String| format!("{name}: {why}");
        let class = EventClass {
            id: number(of.id)?,
            stream: of.data_stream_class_id.unwrap_or(0),
            context: self.root("specific-context", of.specific_context_field_class).map_err(in_event)?,
            fields: self.root("payload", of.payload_field_class).map_err(in_event)?,
            name,
        };
        self.document.events.push(class);
        Ok(())
    }

    /// The fields of a scope.
    fn root(&self, scope: &str, of: Option<Class>) -> Result<Option<Type>, String> {
        match of.map(|of| self.class(of)).transpose() {
            Ok(None) => Ok(None),
            Ok(Some(Type::Struct(of))) => Ok(Some(Type::Struct(of))),
            Ok(Some(_)) => Err(format!("{scope}: it is no structure")),
            Err(why) => Err(format!("{scope}: {why}")),
        }
    }

    fn class(&self, of: Class) -> Result<Type, String> {
        match of {
            Class::Alias(name) => {
                let found = self.aliases.get(&name).cloned();
                found.ok_or_else(|| format!("there is no field class {name:?} before it"))
            }
            Class::Inline(of) => self.inline(*of),
        }
    }

    fn inline(&self, of: FieldClass) -> Result<Type, String> {
        match of.kind.as_str() {
            "structure" => self.structure(of),
            "static-length-array" | "dynamic-length-array" => self.array(of),
            "optional" => self.optional(of),
            "variant" => self.variant(of),
            _ => scalar(&of).map_err(|why| format!("{}: {why}", of.kind)),
        }
    }

    fn structure(&self, of: FieldClass) -> Result<Type, String> {
        let least = types::align(of.minimum_alignment.unwrap_or(1))?;
        let fields = of.member_classes.into_iter().map(|member| self.member(member));
        Type::structure(least, fields.collect::<Result<_, String>>()?)
    }

    fn member(&self, Member { name, field_class }: Member) -> Result<(String, Type), String> {
        let mut found = self.class(field_class).map_err(|why| format!("{name}: {why}"))?;
        if let (CPU, Type::Integer(Integer { roles, .. }) | Type::Variable { roles, .. }) =
            (name.as_str(), &mut found)
        {
            roles.says.push(CPU);
        }
        Ok((identifier(&name), found))
    }

    fn array(&self, of: FieldClass) -> Result<Type, String> {
        let (least, length) = (types::align(of.minimum_alignment.unwrap_or(1))?, length(&of)?);
        Type::array(least, self.class(needed(of.element_field_class, "element-field-class")?)?, length)
    }

    /// A variant of it and nothing.
    fn optional(&self, of: FieldClass) -> Result<Type, String> {
        let selector = location(of.selector_field_location.as_ref(), "selector-field-location")?;
        let found = self.class(needed(of.field_class, "field-class")?)?;
        let nothing = Type::structure(1, Vec::new())?;
        let ranges = match of.selector_field_ranges {
            Some(chosen) => {
                let mut ranges = ranges(chosen, 0)?;
                ranges.push(Range { from: i128::MIN, until: i128::MAX, option: 1 });
                ranges
            }
            // By a boolean.
            None => vec![
                Range { from: 0, until: 0, option: 1 },
                Range { from: i128::MIN, until: i128::MAX, option: 0 },
            ],
        };
        let options = vec![(String::new(), found), (String::new(), nothing)];
        Type::variant(Some(selector), options, Some(ranges.into()))
    }

    fn variant(&self, of: FieldClass) -> Result<Type, String> {
        let selector = location(of.selector_field_location.as_ref(), "selector-field-location")?;
        let (mut options, mut all) = (Vec::new(), Vec::new());
        for (option, Choice { name, field_class, selector_field_ranges }) in
            of.options.into_iter().enumerate()
        {
            options.push((name, self.class(field_class)?));
            all.extend(ranges(selector_field_ranges, option)?);
        }
        Type::variant(Some(selector), options, Some(all.into()))
    }
}

/// A field class without others in it.
fn scalar(of: &FieldClass) -> Result<Type, String> {
    match of.kind.as_str() {
        "fixed-length-bit-array"
        | "fixed-length-bit-map"
        | "fixed-length-boolean"
        | "fixed-length-unsigned-integer"
        | "fixed-length-unsigned-enumeration" => integer(of, false),
        "fixed-length-signed-integer" | "fixed-length-signed-enumeration" => integer(of, true),
        "fixed-length-floating-point-number" => float(of),
        "variable-length-unsigned-integer" | "variable-length-unsigned-enumeration" => {
            Ok(Type::Variable { signed: false, roles: roles(&of.roles) })
        }
        "variable-length-signed-integer" | "variable-length-signed-enumeration" => {
            Ok(Type::Variable { signed: true, roles: Roles::default() })
        }
        "null-terminated-string" => {
            has_known_encoding(of)?;
            Ok(Type::Text)
        }
        "static-length-string" | "dynamic-length-string" | "static-length-blob" | "dynamic-length-blob" => {
            has_known_encoding(of)?;
            Type::array(1, BYTE, length(of)?)
        }
        _ => Err("field classes of this type are not known".into()),
    }
}

/// An element of a string or of a BLOB.
const BYTE: Type = Type::Integer(Integer {
    bits: 8,
    align: 8,
    signed: false,
    is_big: None,
    roles: Roles { is_clock: false, is_id: false, says: Vec::new() },
});

fn integer(of: &FieldClass, signed: bool) -> Result<Type, String> {
    let bits = types::integer_bits(of.length).ok_or("it has not 1 to 64 bits")?;
    let align = types::align(of.alignment.unwrap_or(1))?;
    let roles = if signed { Roles::default() } else { roles(&of.roles) };
    Ok(Type::Integer(Integer { bits, align, signed, is_big: Some(is_big(of)?), roles }))
}

fn float(of: &FieldClass) -> Result<Type, String> {
    let bits = types::float_bits(needed(of.length, "length")?)?;
    let align = types::align(of.alignment.unwrap_or(1))?;
    Ok(Type::Float(Float { bits, align, is_big: Some(is_big(of)?) }))
}

fn is_big(of: &FieldClass) -> Result<bool, String> {
    match (needed(of.byte_order, "byte-order")?, of.bit_order) {
        (ByteOrder::LittleEndian, None | Some(BitOrder::FirstToLast)) => Ok(false),
        (ByteOrder::BigEndian, None | Some(BitOrder::LastToFirst)) => Ok(true),
        _ => Err("bits in another order than bytes are not read here".into()),
    }
}

/// Whether the first field is big-endian: the magic number, where there is one.
fn begins_big(header: &Type) -> bool {
    let Type::Struct(of) = header else { return false };
    matches!(of.fields.first(), Some((_, Type::Integer(Integer { is_big: Some(true), .. }))))
}

fn has_known_encoding(of: &FieldClass) -> Result<(), String> {
    match of.encoding.as_deref() {
        None | Some("utf-8") => Ok(()),
        Some(other) => Err(format!("text in {other} is not read here")),
    }
}

fn length(of: &FieldClass) -> Result<Length<Location>, String> {
    match of.kind.starts_with("static") {
        true => needed(of.length, "length").map(Length::Fixed),
        false => location(of.length_field_location.as_ref(), "length-field-location").map(Length::Of),
    }
}

fn location(of: Option<&JsonLocation>, what: &str) -> Result<Location, String> {
    let JsonLocation { origin, path } = needed(of, what)?;
    let root = origin.as_deref().map(root).transpose()?;
    let steps = path.iter().map(|step| step.as_deref().map(identifier)).collect();
    Ok(Location::Path { root, steps })
}

fn root(origin: &str) -> Result<&'static str, String> {
    Ok(match origin {
        "packet-header" => "trace.packet.header",
        "packet-context" => "stream.packet.context",
        "event-record-header" => "stream.event.header",
        "event-record-common-context" => "stream.event.context",
        "event-record-specific-context" => "event.context",
        "event-record-payload" => "event.fields",
        _ => return Err(format!("there is no origin {origin:?} of fields")),
    })
}

/// All for one option.
fn ranges(of: Vec<(i128, i128)>, option: usize) -> Result<Vec<Range>, String> {
    let range = |(from, until)| match from <= until {
        true => Ok(Range { from, until, option }),
        false => Err(format!("{from} to {until} is no range of numbers")),
    };
    of.into_iter().map(range).collect()
}

fn roles(of: &[String]) -> Roles {
    let mut roles = Roles::default();
    for role in of {
        roles.is_clock |= role == "default-clock-timestamp";
        roles.is_id |= role == "event-record-class-id";
        roles.says.extend(said(role));
    }
    roles
}

/// The name in CTF 1.8 of what a role says of a packet.
fn said(role: &str) -> Option<&'static str> {
    Some(match role {
        "packet-magic-number" => "magic",
        "data-stream-class-id" => "stream_id",
        "packet-total-length" => "packet_size",
        "packet-content-length" => "content_size",
        "packet-sequence-number" => "packet_seq_num",
        "discarded-event-record-counter-snapshot" => "events_discarded",
        "default-clock-timestamp" => "timestamp_begin",
        "packet-end-default-clock-timestamp" => "timestamp_end",
        _ => return None,
    })
}

/// A name as LTTng writes it in CTF 1.8.
fn identifier(name: &str) -> String {
    name.chars().map(|sign| if sign.is_ascii_alphanumeric() { sign } else { '_' }).collect()
}

fn number(id: Option<Id>) -> Result<u64, String> {
    match id {
        None => Ok(0),
        Some(Id::Number(id)) => Ok(id),
        Some(Id::Text(id)) => Err(format!("the id {id:?} is no number")),
    }
}

fn needed<T>(of: Option<T>, what: &str) -> Result<T, String> {
    of.ok_or_else(|| format!("it has no {what}"))
}

#[cfg(test)]
mod tests;
