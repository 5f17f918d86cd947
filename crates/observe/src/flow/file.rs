//! Probe files: which function of a framework is which event or connection, where identities and names lie,
//! and what cannot be seen of a program from outside. Several files add up: the framework's, then the
//! program's.

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

/// What a probe sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sees {
    /// An event.
    Event(Kind),
    /// A push that notifies inputs only when it completes the channel's count. The function of the other
    /// pushes is called then, and tells it.
    BarrierPush,
    /// An input, each time it is notified: the channel, the task (the probe's id), and how it counts.
    Connection(Box<InputPlaces>),
}

/// Where a connection's channel lies, and how its input counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputPlaces {
    /// The channel's id.
    pub channel: Number,
    /// Whether it is synchronised, as a number that is not 0.
    pub synchronised: Option<Number>,
    /// Its threshold.
    pub threshold: Option<Number>,
    /// Whether it is final, as a number that is not 0.
    pub is_final: Option<Number>,
    /// Whether data of unsynchronised inputs overwrite each other.
    pub overwrites: bool,
}

impl Sees {
    /// The event, if it is one.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Sees::Event(kind) => Some(*kind),
            Sees::BarrierPush => Some(Kind::Push),
            Sees::Connection(_) => None,
        }
    }

    /// Its name in files.
    pub fn name(&self) -> &'static str {
        self.kind().map_or(CONNECTION, Kind::name)
    }
}

const CONNECTION: &str = "connection";

/// One event or connection, and where it happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// What it sees.
    pub sees: Sees,
    /// The policy of whoever calls these functions: activations of a program with it.
    pub policy: Option<String>,
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
    #[serde(default)]
    barrier: Option<toml::Spanned<bool>>,
    #[serde(default)]
    policy: Option<toml::Spanned<String>>,
    #[serde(default)]
    task: Option<toml::Spanned<String>>,
    #[serde(default)]
    channel: Option<toml::Spanned<String>>,
    #[serde(default)]
    synchronised: Option<toml::Spanned<String>>,
    #[serde(default)]
    threshold: Option<toml::Spanned<String>>,
    #[serde(default, rename = "final")]
    is_final: Option<toml::Spanned<String>>,
    #[serde(default)]
    unsynchronised: Option<toml::Spanned<String>>,
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
            if !self.probes.iter().any(|probe| probe.sees == Sees::Event(kind)) {
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
        file.policy = self.policy.as_ref().map(read_policy).transpose()?;
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
        let (sees, at_return, name) = (self.sees()?, self.at_return()?, self.name()?);
        let (id, policy) = (self.id(&sees)?, self.policy()?);
        let at = self.symbol.span().start;
        let symbols = match self.symbol.into_inner() {
            Symbols::One(symbol) => vec![symbol],
            Symbols::Several(symbols) => symbols,
        };
        if symbols.is_empty() || symbols.iter().any(String::is_empty) {
            return Err((at, "symbol names no function".into()));
        }
        let probe = Probe { sees, policy, symbols, at_return, id, name };
        match probe.fault() {
            Some(fault) => Err((at, fault)),
            None => Ok(probe),
        }
    }

    fn sees(&self) -> Result<Sees, (usize, String)> {
        let event = self.event.get_ref();
        if event == CONNECTION {
            return self.input().map(Box::new).map(Sees::Connection);
        }
        self.refuse_parts_of_inputs()?;
        let known = Kind::ALL.into_iter().find(|kind| kind.name() == event);
        let kind = known.ok_or_else(|| {
            let fault =
                format!("unknown event \"{event}\"; expected push, activation, start, stop or connection");
            (self.event.span().start, fault)
        })?;
        match &self.barrier {
            Some(barrier) if *barrier.get_ref() && kind != Kind::Push => {
                Err((barrier.span().start, format!("barrier = true is for pushes, not for a {event}")))
            }
            Some(barrier) if *barrier.get_ref() => Ok(Sees::BarrierPush),
            _ => Ok(Sees::Event(kind)),
        }
    }

    /// Keys that only connections have.
    fn refuse_parts_of_inputs(&self) -> Result<(), (usize, String)> {
        let keys = [
            ("task", &self.task),
            ("channel", &self.channel),
            ("synchronised", &self.synchronised),
            ("threshold", &self.threshold),
            ("final", &self.is_final),
            ("unsynchronised", &self.unsynchronised),
        ];
        match keys.into_iter().find_map(|(key, value)| Some((key, value.as_ref()?))) {
            Some((key, value)) => {
                Err((value.span().start, format!("{key} is for probes with event = \"{CONNECTION}\"")))
            }
            None => Ok(()),
        }
    }

    fn input(&self) -> Result<InputPlaces, (usize, String)> {
        let needed = |key: &str, value| {
            let missing = || {
                let fault = format!("a connection needs {key} = \"…\", such as \"u32 at [arg0+16]+8\"");
                (self.event.span().start, fault)
            };
            number(key, value)?.ok_or_else(missing)
        };
        let overwrites = match &self.unsynchronised {
            None => false,
            Some(keeps) if keeps.get_ref() == "newest" => true,
            Some(keeps) => {
                let fault = format!("unsynchronised = \"{}\" is not valid; expected newest", keeps.get_ref());
                return Err((keeps.span().start, fault));
            }
        };
        if let (Some(unsynchronised), None) = (&self.unsynchronised, &self.synchronised) {
            let fault = "unsynchronised = \"newest\" needs to know which inputs are: synchronised = \"…\"";
            return Err((unsynchronised.span().start, fault.into()));
        }
        Ok(InputPlaces {
            channel: needed("channel", &self.channel)?,
            synchronised: number("synchronised", &self.synchronised)?,
            threshold: number("threshold", &self.threshold)?,
            is_final: number("final", &self.is_final)?,
            overwrites,
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

    /// Of a connection, the task's.
    fn id(&self, sees: &Sees) -> Result<Option<Number>, (usize, String)> {
        match (sees, &self.id) {
            (Sees::Connection(_), Some(id)) => {
                Err((id.span().start, "a connection has two ids: task and channel".into()))
            }
            (Sees::Connection(_), None) => number("task", &self.task),
            _ => number("id", &self.id),
        }
    }

    fn policy(&self) -> Result<Option<String>, (usize, String)> {
        let Some(policy) = &self.policy else { return Ok(None) };
        if self.event.get_ref() != Kind::Activation.name() {
            return Err((policy.span().start, "policy is for activations: whoever queues them".into()));
        }
        read_policy(policy).map(Some)
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

fn number(key: &str, value: &Option<toml::Spanned<String>>) -> Result<Option<Number>, (usize, String)> {
    let Some(value) = value else { return Ok(None) };
    let number = value.get_ref().parse::<Number>();
    let number =
        number.map_err(|what| (value.span().start, format!("{key} = \"{}\": {what}", value.get_ref())));
    number.map(Some)
}

fn read_policy(policy: &toml::Spanned<String>) -> Result<String, (usize, String)> {
    let text = policy.get_ref();
    match !text.trim().is_empty() && !text.contains(char::is_control) {
        true => Ok(text.clone()),
        false => {
            let fault = "policy names none; such as \"fifo\", \"lifo\", \"priority\"";
            Err((policy.span().start, fault.into()))
        }
    }
}

impl Probe {
    /// Whether it names channels, or tasks: connections name none.
    pub fn names(&self, channel: bool) -> bool {
        self.sees.kind().is_some_and(|kind| (kind == Kind::Push) == channel)
    }

    /// What its parts, each possible by itself, make impossible together.
    fn fault(&self) -> Option<String> {
        let is_stop = self.sees == Sees::Event(Kind::Stop);
        match (is_stop, self.at_return, &self.id) {
            (true, true, Some(_)) => {
                return Some(
                    "at its return a function's arguments are gone: leave the id out, it is that of the \
                     running task"
                        .into(),
                );
            }
            (true, ..) | (_, false, Some(_)) => {}
            (false, true, _) => {
                return Some(format!(
                    "a {} is at the entry of a function; at its return its arguments are gone",
                    self.sees.name()
                ));
            }
            (false, false, None) => {
                let key = if matches!(self.sees, Sees::Connection(_)) { "task" } else { "id" };
                return Some(format!(
                    "a {} needs {}, such as {key} = \"u32 at arg0+8\"",
                    self.sees.name(),
                    if key == "id" { "an id" } else { "its task" }
                ));
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
mod tests;
