//! Probe files: which function of a framework is which event, where identities and names lie, and what cannot
//! be seen of a program from outside. Several files add up: the framework's, then the program's.

use super::place::{Number, Place, Text};
use super::skeleton::types::flow_limits;
use punctual_trace::flow::{Arming, Kind};
use serde::Deserialize;

/// How many probes the eBPF program has room for.
pub const MOST_PROBES: usize = flow_limits::MOST_PROBES.0 as usize;
/// Nobody writes more by hand.
const MOST_BYTES: usize = 1 << 20;

/// The content of probe files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeFile {
    /// What they are for, for people.
    pub framework: Option<String>,
    /// In the files' order.
    pub probes: Vec<Probe>,
    /// How the program chooses among ready tasks.
    pub policy: Option<String>,
    /// How many threads execute tasks; at least one.
    pub executors: Option<u32>,
    /// What cannot be found from who activates whom. No two are the same.
    pub connections: Vec<Declared>,
}

/// An input of a task, by names as they are seen while the program runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The channel's.
    pub channel: String,
    /// The task's.
    pub task: String,
    /// How it counts data; `None` if not declared.
    pub arming: Option<Arming>,
}

/// One event, and where it happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The event.
    pub kind: Kind,
    /// Functions that are this event; the program must have at least one.
    pub symbols: Vec<String>,
    /// Whether it happens when they return.
    pub at_return: bool,
    /// Whose event it is: the channel's or task's; of a stop without one, that of the task which the thread
    /// runs.
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
    #[serde(default)]
    framework: Option<String>,
    #[serde(default)]
    policy: Option<toml::Spanned<String>>,
    #[serde(default)]
    executors: Option<toml::Spanned<u32>>,
    #[serde(default)]
    probe: Vec<RawProbe>,
    #[serde(default)]
    connection: Vec<RawConnection>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConnection {
    channel: toml::Spanned<String>,
    task: toml::Spanned<String>,
    #[serde(default)]
    threshold: Option<toml::Spanned<u32>>,
    #[serde(default)]
    synchronised: Option<bool>,
    #[serde(default)]
    optional: Option<bool>,
    #[serde(default, rename = "final")]
    is_final: Option<bool>,
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
    /// Reads the bytes of a file; errors are a line and what is wrong there.
    pub fn parse(bytes: &[u8]) -> Result<Self, (usize, String)> {
        let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= MOST_BYTES);
        let text =
            text.ok_or_else(|| (1, format!("not a probes file (TOML text of at most {MOST_BYTES} bytes)")))?;
        let line = |offset: usize| text.get(..offset).map_or(1, |before| before.matches('\n').count() + 1);
        let raw: RawFile = toml::from_str(text).map_err(|error| {
            (error.span().map_or(1, |span| line(span.start)), error.message().trim_end().to_owned())
        })?;
        raw.read().map_err(|(offset, what)| (line(offset), what))
    }

    /// Merges a later file: its probes and connections are added, the rest replaces what was there.
    pub fn add(&mut self, later: ProbeFile) {
        self.framework = later.framework.or(self.framework.take());
        self.policy = later.policy.or(self.policy.take());
        self.executors = later.executors.or(self.executors);
        self.probes.extend(later.probes);
        let new = later
            .connections
            .into_iter()
            .filter(|connection| !self.connections.contains(connection))
            .collect::<Vec<_>>();
        self.connections.extend(new);
    }

    /// Fails unless all four events are declared and there is room for their probes.
    pub fn check(&self) -> Result<(), String> {
        for kind in Kind::ALL {
            if !self.probes.iter().any(|probe| probe.kind == kind) {
                return Err(format!(
                    "there is no [[probe]] with event = \"{}\"; a trace needs all four",
                    kind.name()
                ));
            }
        }
        let places: usize = self.probes.iter().map(|probe| probe.symbols.len()).sum();
        if places > MOST_PROBES {
            return Err(format!("{places} symbols are more than there is room for; {MOST_PROBES} at most"));
        }
        Ok(())
    }
}

impl RawFile {
    fn read(self) -> Result<ProbeFile, (usize, String)> {
        let probes = self.probe.into_iter().map(RawProbe::read).collect::<Result<_, _>>()?;
        let mut file = ProbeFile { framework: self.framework, probes, ..ProbeFile::default() };
        if let Some(policy) = self.policy {
            let is_name = !policy.get_ref().trim().is_empty() && !policy.get_ref().contains(char::is_control);
            if !is_name {
                return Err((
                    policy.span().start,
                    "policy names none; such as \"fifo\", \"lifo\", \"priority\"".into(),
                ));
            }
            file.policy = Some(policy.into_inner());
        }
        if let Some(executors) = self.executors {
            if *executors.get_ref() == 0 {
                return Err((executors.span().start, "executors = 0: nobody would execute a task".into()));
            }
            file.executors = Some(executors.into_inner());
        }
        for connection in self.connection {
            let connection = connection.read()?;
            if !file.connections.contains(&connection) {
                file.connections.push(connection);
            }
        }
        Ok(file)
    }
}

impl RawConnection {
    fn read(self) -> Result<Declared, (usize, String)> {
        for (what, name) in [("channel", &self.channel), ("task", &self.task)] {
            if name.get_ref().is_empty() {
                return Err((name.span().start, format!("{what} = \"\" names none")));
            }
        }
        if let Some(threshold) = self.threshold.as_ref().filter(|threshold| *threshold.get_ref() == 0) {
            return Err((
                threshold.span().start,
                "threshold = 0: an input is armed by one push at least; where the task does not wait for \
                 it, say optional = true"
                    .into(),
            ));
        }
        let says_how = self.threshold.is_some()
            || [self.synchronised, self.optional, self.is_final].iter().any(Option::is_some);
        let usual = Arming::default();
        let arming = says_how.then(|| Arming {
            threshold: self.threshold.map_or(usual.threshold, toml::Spanned::into_inner),
            synchronised: self.synchronised.unwrap_or(usual.synchronised),
            optional: self.optional.unwrap_or(usual.optional),
            is_final: self.is_final.unwrap_or(usual.is_final),
            // It is watched from its first instruction on.
            pending: 0,
        });
        Ok(Declared { channel: self.channel.into_inner(), task: self.task.into_inner(), arming })
    }
}

impl RawProbe {
    fn read(self) -> Result<Probe, (usize, String)> {
        let (kind, at_return, id, name) = (self.kind()?, self.at_return()?, self.id()?, self.name()?);
        let at = self.symbol.span().start;
        let symbols = match self.symbol.into_inner() {
            Symbols::One(symbol) => vec![symbol],
            Symbols::Several(symbols) => symbols,
        };
        if symbols.is_empty() || symbols.iter().any(String::is_empty) {
            return Err((at, "symbol names no function".into()));
        }
        let probe = Probe { kind, symbols, at_return, id, name };
        match probe.fault() {
            Some(fault) => Err((at, fault)),
            None => Ok(probe),
        }
    }

    fn kind(&self) -> Result<Kind, (usize, String)> {
        let event = self.event.get_ref();
        let known = Kind::ALL.into_iter().find(|kind| kind.name() == event);
        known.ok_or_else(|| {
            let fault = format!("unknown event \"{event}\"; expected push, activation, start or stop");
            (self.event.span().start, fault)
        })
    }

    fn at_return(&self) -> Result<bool, (usize, String)> {
        let Some(at) = &self.at else { return Ok(false) };
        match at.get_ref().as_str() {
            "entry" => Ok(false),
            "return" => Ok(true),
            other => {
                Err((at.span().start, format!("at = \"{other}\" is not valid; expected entry or return")))
            }
        }
    }

    fn id(&self) -> Result<Option<Number>, (usize, String)> {
        let Some(id) = &self.id else { return Ok(None) };
        let number = id.get_ref().parse::<Number>();
        let number = number.map_err(|what| (id.span().start, format!("id = \"{}\": {what}", id.get_ref())));
        number.map(Some)
    }

    fn name(&self) -> Result<Name, (usize, String)> {
        let Some(name) = &self.name else { return Ok(Name::None) };
        match name.get_ref().as_str() {
            "id" => Ok(Name::Id),
            text => text
                .parse()
                .map(Name::Text)
                .map_err(|what| (name.span().start, format!("name = \"{text}\": {what}, or \"id\""))),
        }
    }
}

impl Probe {
    /// What its parts, each possible by itself, make impossible together.
    fn fault(&self) -> Option<String> {
        match (self.kind, self.at_return, &self.id) {
            (Kind::Stop, true, Some(_)) => {
                return Some(
                    "at its return a function's arguments are gone: leave the id out, it is that of the \
                     running task"
                        .into(),
                );
            }
            (Kind::Stop, ..) | (_, false, Some(_)) => {}
            (kind, true, _) => {
                return Some(format!(
                    "a {} is at the entry of a function; at its return its arguments are gone",
                    kind.name()
                ));
            }
            (kind, false, None) => {
                return Some(format!("a {} needs an id, such as id = \"u32 at arg0+8\"", kind.name()));
            }
        }
        let is_address = self.id.as_ref().is_some_and(|id| id.place.is_argument());
        (matches!(self.name, Name::Id) && is_address)
            .then(|| "an address is not a name: name = \"id\" is for ids that are characters".into())
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

    fn parse(text: &str) -> Result<ProbeFile, (usize, String)> {
        let file = ProbeFile::parse(text.as_bytes())?;
        file.check().map_err(|what| (1, what))?;
        Ok(file)
    }

    #[test]
    fn a_file_is_read() {
        let file = parse(FILE).unwrap();
        assert_eq!(file.framework.as_deref(), Some("X"));
        assert_eq!(file.probes.len(), 4);
        assert_eq!(file.probes[1].symbols, ["queue", "queue_too"]);
        assert_eq!(file.probes[1].id.as_ref().unwrap().place.offsets, [0, 8]);
        assert!(file.probes[3].at_return && file.probes[3].id.is_none());
        assert_eq!((file.policy, file.executors, file.connections), (None, None, Vec::new()));
        // Nothing needs a name.
        assert!(parse(&FILE.replace("framework = \"X\"", "")).is_ok());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (from, to, line, expected) in [
            ("event = \"push\"", "event = \"shove\"", 4, "expected push, activation, start or stop"),
            ("u32 at arg0+8", "u32 at arg9+8", 6, "arg0 to arg5"),
            ("u32 at arg0+8", "i32 at arg0+8", 6, "u8, u16, u32 or u64"),
            ("at = \"return\"", "at = \"leave\"", 20, "expected entry or return"),
            ("at = \"return\"", "at = \"return\"\nid = \"arg0\"", 19, "arguments are gone"),
            ("id = \"arg1\"", "", 15, "needs an id"),
            ("symbol = \"push\"", "symbol = []", 5, "names no function"),
            ("symbol = \"push\"", "symbols = \"push\"", 5, "unknown field"),
            (
                "[[probe]]\nevent = \"stop\"\nsymbol = \"run\"\nat = \"return\"\n",
                "",
                1,
                "no [[probe]] with event = \"stop\"",
            ),
            ("framework = \"X\"", "policy = \" \"", 2, "policy names none"),
            ("framework = \"X\"", "executors = 0", 2, "nobody would execute"),
            ("framework = \"X\"", "executors = -1", 2, "expected u32"),
        ] {
            let text = FILE.replacen(from, to, 1);
            let (at, what) = parse(&text).expect_err(to);
            assert!(what.contains(expected), "{to}: {what}");
            assert_eq!(at, line, "{to}: {what}");
        }
        for (connection, expected) in [
            ("channel = \"\"\ntask = \"t\"", "names none"),
            ("channel = \"c\"", "missing field `task`"),
            ("channel = \"c\"\ntask = \"t\"\nthreshold = 0", "one push at least"),
            ("channel = \"c\"\ntask = \"t\"\nsynchronized = true", "unknown field"),
            ("channel = \"c\"\ntask = \"t\"\nfinal = 1", "expected a boolean"),
        ] {
            let (line, what) =
                ProbeFile::parse(format!("[[connection]]\n{connection}\n").as_bytes()).expect_err(connection);
            assert!(what.contains(expected), "{connection}: {what}");
            assert!(line <= 4, "{connection}: line {line}");
        }
    }

    #[test]
    fn inputs_are_declared_as_far_as_they_are_known() {
        let arming_of = |text: &str| {
            let file =
                ProbeFile::parse(format!("[[connection]]\nchannel = \"c\"\ntask = \"t\"\n{text}").as_bytes())
                    .unwrap();
            let [Declared { channel, task, arming }] = &file.connections[..] else { panic!("{file:?}") };
            assert_eq!((channel.as_str(), task.as_str()), ("c", "t"));
            *arming
        };
        assert_eq!(arming_of(""), None);
        assert_eq!(arming_of("threshold = 3"), Some(Arming { threshold: 3, ..Arming::default() }));
        assert_eq!(arming_of("synchronised = true"), Some(Arming::default()));
        let newest = Arming { synchronised: false, optional: true, is_final: true, ..Arming::default() };
        assert_eq!(arming_of("synchronised = false\noptional = true\nfinal = true"), Some(newest));
    }

    #[test]
    fn files_add_up() {
        let connection = "[[connection]]\nchannel = \"c\"\ntask = \"t\"\n";
        let mut file = parse(FILE).unwrap();
        file.add(
            ProbeFile::parse(format!("policy = \"fifo\"\nexecutors = 2\n{connection}").as_bytes()).unwrap(),
        );
        file.add(
            ProbeFile::parse(
                format!("policy = \"lifo\"\n{connection}threshold = 2\n{connection}").as_bytes(),
            )
            .unwrap(),
        );
        assert_eq!((file.framework.as_deref(), file.probes.len()), (Some("X"), 4));
        assert_eq!((file.policy.as_deref(), file.executors), (Some("lifo"), Some(2)));
        let thresholds: Vec<_> =
            file.connections.iter().map(|it| it.arming.map(|arming| arming.threshold)).collect();
        assert_eq!(thresholds, [None, Some(2)]);
        // Of one that is of a program alone, what is missing is said.
        assert!(
            ProbeFile::parse(b"policy = \"fifo\"").unwrap().check().unwrap_err().contains("event = \"push\"")
        );
        assert!(ProbeFile::parse(&[0xff]).unwrap_err().1.contains("not a probes file"));
    }
}
