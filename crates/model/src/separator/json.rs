//! Separators in the file: one flat object, `{"call": "read", "object": "pipe:[1234]", "fd": 5}`.
//!
//! `call` and the one of `clock`, `object`, `address` and `id` that the call waits on identify it. Writing
//! and reading back loses nothing.

use super::{Call, FileClass, Object, ObjectName, Separator, clock_name};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The name of the objects that share a stream because the list of separators was full.
const OTHERS: &str = "others";
/// The clocks with a name in the file; others are `CLOCK_OTHER` with their number in `clock_id`.
const CLOCK_IDS: [i32; 7] = [0, 1, 2, 7, 8, 9, 11];
const CLOCK_OTHER: &str = "CLOCK_OTHER";

/// The shape in the file.
#[derive(Serialize, Deserialize)]
struct Flat {
    call: Call,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    clock: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    clock_id: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    absolute: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    object: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    fd: Option<i32>,
    /// The identity of a file whose class does not show one; rare.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    identity: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    address: Option<String>,
    /// Of an address.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    id: Option<i32>,
}

impl Serialize for Call {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Call {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Call::from_name(&name).ok_or_else(|| {
            de::Error::custom(format_args!("expected the name of a call that separates jobs, found {name:?}"))
        })
    }
}

impl Serialize for Separator {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Flat::from(*self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Separator {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Separator::try_from(Flat::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl From<Separator> for Flat {
    fn from(Separator { call, object }: Separator) -> Flat {
        let mut flat = Flat {
            call,
            clock: None,
            clock_id: None,
            absolute: None,
            object: None,
            fd: None,
            identity: None,
            address: None,
            name: None,
            id: None,
        };
        match object {
            Object::None => {}
            Object::Clock { id, absolute } => {
                flat.clock = Some(clock_name(id).to_owned());
                flat.clock_id = (!CLOCK_IDS.contains(&id)).then_some(id);
                flat.absolute = Some(absolute);
            }
            Object::File { class, fd, identity } => {
                flat.object = Some(file_name(class, identity));
                flat.fd = Some(fd);
                flat.identity = (identity != 0 && !class.has_identity()).then_some(identity);
            }
            Object::Address { address, name } => {
                flat.address = Some(format!("{address:#x}"));
                flat.name = name.map(|name| name.text().to_owned());
            }
            Object::Id(id) => flat.id = Some(id),
            Object::Others => flat.object = Some(OTHERS.to_owned()),
        }
        flat
    }
}

impl TryFrom<Flat> for Separator {
    type Error = String;

    fn try_from(flat: Flat) -> Result<Separator, String> {
        let named = [flat.clock.is_some(), flat.object.is_some(), flat.address.is_some(), flat.id.is_some()];
        if named.iter().filter(|is_there| **is_there).count() > 1 {
            return Err(
                "expected at most one of `clock`, `object`, `address` and `id`, found several".to_owned()
            );
        }
        let object = if let Some(name) = flat.clock {
            Object::Clock {
                id: clock_number(&name, flat.clock_id)?,
                absolute: flat.absolute.ok_or("expected `absolute` beside `clock`, found none")?,
            }
        } else if let Some(name) = flat.object {
            match name.as_str() {
                OTHERS => Object::Others,
                _ => {
                    let (class, identity) = parse_file_name(&name)?;
                    let fd = flat.fd.ok_or("expected `fd` beside `object`, found none")?;
                    let identity = if class.has_identity() { identity } else { flat.identity.unwrap_or(0) };
                    Object::File { class, fd, identity }
                }
            }
        } else if let Some(address) = flat.address {
            let name = flat.name.map(|text| ObjectName::new(&text).ok_or_else(|| invalid_name(&text)));
            Object::Address { address: parse_address(&address)?, name: name.transpose()? }
        } else if let Some(id) = flat.id {
            Object::Id(id)
        } else {
            Object::None
        };
        Ok(Separator { call: flat.call, object })
    }
}

/// As [`Object`] prints it, without the descriptor's number.
fn file_name(class: FileClass, identity: u64) -> String {
    match class {
        _ if identity == 0 || !class.has_identity() => class.name().to_owned(),
        FileClass::CharacterDevice | FileClass::BlockDevice => {
            format!("{} {}:{}", class.name(), identity >> 20, identity & 0xf_ffff)
        }
        _ => format!("{}:[{identity}]", class.name()),
    }
}

fn parse_file_name(name: &str) -> Result<(FileClass, u64), String> {
    let class_name = name.split([' ', ':']).next().unwrap_or_default();
    let class = FileClass::ALL.iter().copied().find(|class| class.name() == class_name);
    let identity = class.and_then(|class| {
        let rest = &name[class_name.len()..];
        match class {
            _ if rest.is_empty() => Some(0),
            FileClass::CharacterDevice | FileClass::BlockDevice => {
                let (major, minor) = rest.strip_prefix(' ')?.split_once(':')?;
                let (major, minor): (u64, u64) = (major.parse().ok()?, minor.parse().ok()?);
                (major < 1 << 44 && minor < 1 << 20).then_some(major << 20 | minor)
            }
            _ if class.has_identity() => rest.strip_prefix(":[")?.strip_suffix(']')?.parse().ok(),
            _ => None,
        }
    });
    class.zip(identity).ok_or_else(|| {
        format!(
            "expected an `object` such as \"pipe:[1234]\", \"char 10:200\", \"timerfd\" or \"others\", \
                 found {name:?}"
        )
    })
}

fn clock_number(name: &str, id: Option<i32>) -> Result<i32, String> {
    match (name, id) {
        (CLOCK_OTHER, Some(id)) => Ok(id),
        (CLOCK_OTHER, None) => Err("expected `clock_id` beside \"CLOCK_OTHER\", found none".to_owned()),
        _ => CLOCK_IDS
            .into_iter()
            .find(|id| clock_name(*id) == name)
            .ok_or_else(|| format!("expected a `clock` such as \"CLOCK_MONOTONIC\", found {name:?}")),
    }
}

fn parse_address(text: &str) -> Result<u64, String> {
    text.strip_prefix("0x")
        .filter(|digits| !digits.starts_with('+'))
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .ok_or_else(|| format!("expected an `address` such as \"0x7f0012345678\", found {text:?}"))
}

fn invalid_name(text: &str) -> String {
    format!(
        "expected a `name` such as \"robot:lock\" of at most {} bytes, without control characters, \
         found {text:?}",
        ObjectName::MOST_BYTES
    )
}
