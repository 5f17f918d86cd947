//! CTF 2 metadata as they are written: each fragment a JSON object. What is not read here is passed over.

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

/// Any fragment. Which properties it has depends on its type.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Fragment {
    #[serde(rename = "type")]
    pub kind: String,
    pub version: Option<u64>,
    #[serde(default)]
    pub extensions: BTreeMap<String, IgnoredAny>,
    pub id: Option<Id>,
    pub name: Option<String>,
    pub uid: Option<String>,
    /// Of a clock, in drafts of CTF 2.
    pub uuid: Option<[u8; 16]>,
    pub frequency: Option<u64>,
    #[serde(alias = "offset", default)]
    pub offset_from_origin: Offset,
    #[serde(default)]
    pub environment: BTreeMap<String, Entry>,
    #[serde(alias = "default-clock-class-name")]
    pub default_clock_class_id: Option<String>,
    pub data_stream_class_id: Option<u64>,
    pub field_class: Option<Class>,
    pub packet_header_field_class: Option<Class>,
    pub packet_context_field_class: Option<Class>,
    pub event_record_header_field_class: Option<Class>,
    pub event_record_common_context_field_class: Option<Class>,
    pub specific_context_field_class: Option<Class>,
    pub payload_field_class: Option<Class>,
}

/// A clock's ID is text, others are numbers.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "an id should be a number or a string")]
pub enum Id {
    Number(u64),
    Text(String),
}

#[derive(Debug, Default, Deserialize)]
pub struct Offset {
    #[serde(default)]
    pub seconds: i64,
    #[serde(default)]
    pub cycles: i64,
}

/// A value of the environment.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "the environment should have integers and strings")]
pub enum Entry {
    Positive(u64),
    Negative(i64),
    Text(String),
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Positive(value) => value.fmt(f),
            Entry::Negative(value) => value.fmt(f),
            Entry::Text(value) => f.write_str(value),
        }
    }
}

/// A field class, or the name of one.
#[derive(Debug)]
pub enum Class {
    Alias(String),
    Inline(Box<FieldClass>),
}

/// Any field class. Which properties it has depends on its type.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FieldClass {
    #[serde(rename = "type")]
    pub kind: String,
    pub length: Option<u64>,
    pub byte_order: Option<ByteOrder>,
    pub bit_order: Option<BitOrder>,
    pub alignment: Option<u64>,
    pub minimum_alignment: Option<u64>,
    pub encoding: Option<String>,
    #[serde(default)]
    pub roles: Vec<String>,
    #[serde(default)]
    pub member_classes: Vec<Member>,
    pub element_field_class: Option<Class>,
    pub field_class: Option<Class>,
    pub length_field_location: Option<Location>,
    pub selector_field_location: Option<Location>,
    pub selector_field_ranges: Option<Vec<(i128, i128)>>,
    #[serde(default)]
    pub options: Vec<Choice>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum ByteOrder {
    BigEndian,
    LittleEndian,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum BitOrder {
    FirstToLast,
    LastToFirst,
}

/// A member of a structure.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Member {
    pub name: String,
    pub field_class: Class,
}

/// An option of a variant.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Choice {
    #[serde(default)]
    pub name: String,
    pub field_class: Class,
    pub selector_field_ranges: Vec<(i128, i128)>,
}

/// Where another field is.
#[derive(Debug)]
pub struct Location {
    pub origin: Option<String>,
    pub path: Vec<Option<String>>,
}

impl<'de> Deserialize<'de> for Class {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Class, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Class;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a field class or the name of one")
            }

            fn visit_str<E>(self, name: &str) -> Result<Class, E> {
                Ok(Class::Alias(name.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Class, A::Error> {
                Box::deserialize(MapAccessDeserializer::new(map)).map(Class::Inline)
            }
        }
        from.deserialize_any(Either)
    }
}

impl<'de> Deserialize<'de> for Location {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Location, D::Error> {
        #[derive(Deserialize)]
        struct Object {
            origin: Option<String>,
            path: Vec<Option<String>>,
        }
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Location;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the location of a field")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Location, A::Error> {
                let Object { origin, path } = Object::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Location { origin, path })
            }

            /// In drafts of CTF 2, the origin stands before the path.
            fn visit_seq<A: SeqAccess<'de>>(self, steps: A) -> Result<Location, A::Error> {
                let mut steps = Vec::<String>::deserialize(SeqAccessDeserializer::new(steps))?.into_iter();
                Ok(Location { origin: steps.next(), path: steps.map(Some).collect() })
            }
        }
        from.deserialize_any(Either)
    }
}
