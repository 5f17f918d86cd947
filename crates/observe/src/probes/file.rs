//! The file that says which function of a framework is which event, and where identities and names lie.

use super::place::{Number, Place, Text};
use punctual_trace::flow::Kind;
use serde::Deserialize;
use std::path::Path;

/// As many probes as the kernel side has room for.
pub const MOST_PROBES: usize = 32;
/// Nobody writes more by hand.
const MOST_BYTES: usize = 1 << 20;

/// What such a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeFile {
    /// What it is for, for people.
    pub framework: String,
    /// In the file's order.
    pub probes: Vec<Probe>,
}

/// One event, and where it happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The event.
    pub kind: Kind,
    /// Functions, each of which is this event; at least one has to be there.
    pub symbols: Vec<String>,
    /// Whether it happens when they return.
    pub at_return: bool,
    /// Whose event it is: the channel's or task's; of a stop without one, that of the task which the thread runs.
    pub id: Option<Number>,
    /// What that is called.
    pub name: Name,
}

/// What an object is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// By its number.
    None,
    /// The id's bytes are characters, the most significant first.
    Id,
    /// Text in the program.
    Text(Text),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    framework: String,
    #[serde(default)]
    probe: Vec<RawProbe>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProbe {
    event: toml::Spanned<String>,
    symbol: toml::Spanned<Symbols>,
    #[serde(default)]
    at: Option<toml::Spanned<String>>,
    #[serde(default)]
    id: Option<toml::Spanned<String>>,
    #[serde(default)]
    name: Option<toml::Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Symbols {
    One(String),
    Several(Vec<String>),
}

impl ProbeFile {
    /// Reads one. An error says the line, and what would be right.
    pub fn read(path: &Path) -> Result<Self, String> {
        let bytes = std::fs::read(path).map_err(|error| {
            let said = error.to_string();
            format!("cannot read {}: {}", path.display(), said.split(" (os error").next().unwrap_or_default().to_lowercase())
        })?;
        let text = std::str::from_utf8(&bytes).ok().filter(|text| text.len() <= MOST_BYTES);
        let text = text.ok_or_else(|| format!("{}: is no text of at most {MOST_BYTES} bytes", path.display()))?;
        Self::parse(text).map_err(|(line, what)| format!("{}:{line}: {what}", path.display()))
    }

    /// Reads its text; errors are a line and what is wrong there.
    pub fn parse(text: &str) -> Result<Self, (usize, String)> {
        let line = |offset: usize| text.get(..offset).map_or(1, |before| before.matches('\n').count() + 1);
        let raw: RawFile = toml::from_str(text)
            .map_err(|error| (error.span().map_or(1, |span| line(span.start)), error.message().trim_end().to_owned()))?;
        let mut probes = Vec::new();
        for raw in raw.probe {
            probes.push(raw.read().map_err(|(offset, what)| (line(offset), what))?);
        }
        let file = Self { framework: raw.framework, probes };
        file.check().map_err(|what| (1, what))?;
        Ok(file)
    }

    fn check(&self) -> Result<(), String> {
        for kind in Kind::ALL {
            if !self.probes.iter().any(|probe| probe.kind == kind) {
                return Err(format!("there is no [[probe]] with event = \"{}\"; a trace needs all four", kind.name()));
            }
        }
        let places: usize = self.probes.iter().map(|probe| probe.symbols.len()).sum();
        if places > MOST_PROBES {
            return Err(format!("{places} symbols are more than there is room for; {MOST_PROBES} at most"));
        }
        Ok(())
    }
}

impl RawProbe {
    fn read(self) -> Result<Probe, (usize, String)> {
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == self.event.get_ref()).ok_or_else(|| {
            (self.event.span().start, format!("event = \"{}\" is none; expected push, activation, start or stop", self.event.get_ref()))
        })?;
        let at = self.symbol.span().start;
        let symbols = match self.symbol.into_inner() {
            Symbols::One(symbol) => vec![symbol],
            Symbols::Several(symbols) => symbols,
        };
        if symbols.is_empty() || symbols.iter().any(String::is_empty) {
            return Err((at, "symbol names no function".into()));
        }
        let at_return = match self.at.as_ref().map(|at| (at.span().start, at.get_ref().as_str())) {
            None | Some((_, "entry")) => false,
            Some((_, "return")) => true,
            Some((offset, other)) => return Err((offset, format!("at = \"{other}\" is none; expected entry or return"))),
        };
        let id = match &self.id {
            None => None,
            Some(id) => {
                Some(id.get_ref().parse::<Number>().map_err(|what| (id.span().start, format!("id = \"{}\": {what}", id.get_ref())))?)
            }
        };
        let name = match &self.name {
            None => Name::None,
            Some(name) if name.get_ref() == "id" => Name::Id,
            Some(name) => Name::Text(
                name.get_ref().parse().map_err(|what| (name.span().start, format!("name = \"{}\": {what}, or \"id\"", name.get_ref())))?,
            ),
        };
        match (kind, at_return, &id) {
            (Kind::Stop, ..) | (_, false, Some(_)) => {}
            (_, true, _) => {
                return Err((at, format!("a {} is at the entry of a function; at its return its arguments are gone", kind.name())));
            }
            (_, _, None) => return Err((at, format!("a {} needs an id, such as id = \"u32 at arg0+8\"", kind.name()))),
        }
        if at_return && id.is_some() {
            return Err((at, "at its return a function's arguments are gone: leave the id out, it is that of the running task".into()));
        }
        if matches!(&name, Name::Id) && id.as_ref().is_some_and(|id| id.place.is_argument()) {
            return Err((at, "an address is no name: name = \"id\" is for ids that are characters".into()));
        }
        Ok(Probe { kind, symbols, at_return, id, name })
    }
}

impl Place {
    fn is_argument(&self) -> bool {
        self.offsets.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
framework = "X"
[[probe]]
event = "push"
symbol = "push"
id = "u32 at arg0+8"
name = "id"
[[probe]]
event = "activation"
symbol = ["queue", "queue_too"]
id = "u32 at [arg1]+8"
name = "string at [arg1]+0x10"
[[probe]]
event = "start"
symbol = "run"
id = "arg1"
[[probe]]
event = "stop"
symbol = "run"
at = "return"
"#;

    #[test]
    fn a_file_is_read() {
        let file = ProbeFile::parse(FILE).unwrap();
        assert_eq!(file.probes.len(), 4);
        assert_eq!(file.probes[1].symbols, ["queue", "queue_too"]);
        assert_eq!(file.probes[1].id.as_ref().unwrap().place.offsets, [0, 8]);
        assert!(file.probes[3].at_return && file.probes[3].id.is_none());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (from, to, line, said) in [
            ("event = \"push\"", "event = \"shove\"", 4, "expected push, activation, start or stop"),
            ("u32 at arg0+8", "u32 at arg9+8", 6, "arg0 to arg5"),
            ("u32 at arg0+8", "i32 at arg0+8", 6, "u8, u16, u32 or u64"),
            ("at = \"return\"", "at = \"leave\"", 20, "expected entry or return"),
            ("at = \"return\"", "at = \"return\"\nid = \"arg0\"", 19, "arguments are gone"),
            ("id = \"arg1\"", "", 15, "needs an id"),
            ("symbol = \"push\"", "symbol = []", 5, "names no function"),
            ("symbol = \"push\"", "symbols = \"push\"", 5, "unknown field"),
            ("[[probe]]\nevent = \"stop\"\nsymbol = \"run\"\nat = \"return\"\n", "", 1, "no [[probe]] with event = \"stop\""),
        ] {
            let text = FILE.replacen(from, to, 1);
            let (at, what) = ProbeFile::parse(&text).expect_err(to);
            assert!(what.contains(said), "{to}: {what}");
            assert_eq!(at, line, "{to}: {what}");
        }
    }
}
