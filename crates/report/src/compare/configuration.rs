//! Which inputs are runs of one configuration, and the names of configurations: what they differ in.

use super::input::Input;
use crate::{counted, visible};
use std::collections::BTreeSet;
use std::path::Path;

/// What configurations may differ in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// The program.
    Program,
    /// Operating system and processor.
    Platform,
    /// The scheduling policy of the executors.
    Policy,
    /// How many executors there are.
    Executors,
    /// The file: each is a configuration of its own.
    File,
    /// The folder that the file or trace is in.
    Folder,
}

impl By {
    /// The properties of a dataflow program that make a configuration.
    pub(super) const PROPERTIES: [By; 4] = [By::Program, By::Platform, By::Policy, By::Executors];

    /// Its name in options and text.
    pub fn name(self) -> &'static str {
        match self {
            By::Program => "program",
            By::Platform => "platform",
            By::Policy => "policy",
            By::Executors => "executors",
            By::File => "file",
            By::Folder => "folder",
        }
    }

    fn value_in(self, input: &Input) -> Option<String> {
        let flow = input.model.dataflow.as_ref();
        let platform = input.model.platform.as_ref();
        match self {
            By::Program => flow?.program.clone(),
            By::Platform => match flow {
                Some(flow) => flow.platform.clone(),
                None => {
                    let platform = platform.filter(|platform| !platform.kernel.is_empty())?;
                    let processors = counted(platform.cpus.into(), "processor");
                    Some(format!("Linux {}, {}, {processors}", platform.kernel, platform.machine))
                }
            },
            By::Policy => flow?.policy.clone(),
            By::Executors => flow?.executors.map(|executors| executors.to_string()),
            By::File => None,
            By::Folder => Some(folder(&input.name)),
        }
    }

    /// A value in words: `fifo`, `2 executors`.
    pub(super) fn words(self, value: &Value) -> String {
        match value {
            Value::Known(value) if self == By::Executors => {
                format!("{value} executor{}", if value == "1" { "" } else { "s" })
            }
            Value::Known(value) => visible(value),
            Value::Unknown => format!("{} unknown", self.name()),
            Value::Mixed => format!("{} mixed", self.name()),
        }
    }
}

/// The folder that an input is in.
fn folder(name: &str) -> String {
    let parent = Path::new(name).parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.map_or_else(|| ".".to_owned(), |parent| parent.to_string_lossy().into_owned())
}

/// One property of the runs of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// The same in all.
    Known(String),
    /// Unknown in all.
    Unknown,
    /// Different, since the user did not group by it.
    Mixed,
}

/// The properties that make a configuration in this comparison.
#[derive(Clone, Debug)]
pub(super) struct Grouping {
    pub(super) by: Vec<By>,
    /// Whether it is the default for threads, whose models do not say what they are runs of.
    pub(super) is_assumed: bool,
}

impl Grouping {
    pub(super) fn new(inputs: &[Input], by: &[By]) -> Grouping {
        let mut wanted = by.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        let is_flow = inputs.iter().all(|input| input.model.dataflow.is_some());
        match (wanted.is_empty(), is_flow) {
            (false, _) => Grouping { by: wanted, is_assumed: false },
            (true, true) => {
                // Programs of no scheduler of their own have no policy; what no run says groups nothing.
                let is_said = |by: &By| {
                    !matches!(by, By::Policy | By::Platform)
                        || inputs.iter().any(|it| by.value_in(it).is_some())
                };
                let by = By::PROPERTIES.into_iter().filter(is_said).collect();
                Grouping { by, is_assumed: false }
            }
            (true, false) => Grouping { by: vec![By::File], is_assumed: true },
        }
    }

    pub(super) fn is_by_file(&self) -> bool {
        self.by.contains(&By::File)
    }
}

/// Repeated runs.
#[derive(Clone, Debug)]
pub(super) struct Configuration {
    /// How it differs from the others.
    pub(super) label: String,
    /// Its inputs, by number.
    pub(super) runs: Vec<usize>,
    /// Whether it is a single run of which nobody knows what it is a run of.
    pub(super) is_alone: bool,
    /// By [`By::PROPERTIES`], and then the folder.
    properties: [Value; 5],
}

/// What [`Configuration::value`] knows.
const KNOWN: [By; 5] = [By::Program, By::Platform, By::Policy, By::Executors, By::Folder];

impl Configuration {
    /// In the order of their first runs.
    pub(super) fn all(inputs: &[Input], grouping: &Grouping) -> Vec<Configuration> {
        let mut found: Vec<(Vec<Option<String>>, Vec<usize>)> = Vec::new();
        for (number, input) in inputs.iter().enumerate() {
            let key: Vec<Option<String>> = grouping
                .by
                .iter()
                .map(|by| if *by == By::File { Some(number.to_string()) } else { by.value_in(input) })
                .chain(alone(input, grouping).then(|| Some(number.to_string())))
                .collect();
            match found.iter_mut().find(|(known, _)| *known == key) {
                Some((_, runs)) => runs.push(number),
                None => found.push((key, vec![number])),
            }
        }
        let mut all: Vec<Configuration> = found
            .into_iter()
            .map(|(_, runs)| Configuration {
                label: String::new(),
                is_alone: alone(&inputs[runs[0]], grouping),
                properties: KNOWN.map(|by| Value::common(runs.iter().map(|run| by.value_in(&inputs[*run])))),
                runs,
            })
            .collect();
        label(&mut all, inputs, grouping);
        all
    }

    pub(super) fn value(&self, by: By) -> &Value {
        KNOWN
            .iter()
            .position(|property| *property == by)
            .map_or(&Value::Unknown, |index| &self.properties[index])
    }
}

/// Whether a dataflow program does not say something by which it is grouped, such as its policy: it may have
/// been any, so nobody knows which other runs are of the same configuration.
fn alone(input: &Input, grouping: &Grouping) -> bool {
    let is_unknown = |by: &By| grouping.by.contains(by) && by.value_in(input).is_none();
    input.model.dataflow.is_some() && By::PROPERTIES.iter().any(is_unknown)
}

impl Value {
    fn common(mut values: impl Iterator<Item = Option<String>>) -> Value {
        let first = values.next().flatten();
        match values.all(|value| value == first) {
            true => first.map_or(Value::Unknown, Value::Known),
            false => Value::Mixed,
        }
    }
}

/// Whether configurations differ in it.
pub(super) fn varies(all: &[Configuration], by: By) -> bool {
    all.windows(2).any(|pair| pair[0].value(by) != pair[1].value(by))
}

fn label(all: &mut [Configuration], inputs: &[Input], grouping: &Grouping) {
    if grouping.is_by_file() {
        let names = names(inputs);
        for configuration in all {
            configuration.label = names[configuration.runs[0]].clone();
        }
        return;
    }
    let varied: Vec<By> = match all.len() {
        1 => grouping.by.iter().copied().filter(|by| matches!(all[0].value(*by), Value::Known(_))).collect(),
        _ => grouping.by.iter().copied().filter(|by| varies(all, *by)).collect(),
    };
    let paths: Vec<String> = all.iter().map(|it| By::Folder.words(it.value(By::Folder))).collect();
    let names = names(inputs);
    for (configuration, folder) in all.iter_mut().zip(shortened(&paths)) {
        let words = |by: &By| match by {
            By::Folder => folder.clone(),
            by => by.words(configuration.value(*by)),
        };
        let mut words: Vec<String> = varied.iter().map(words).collect();
        // Others may have the same words.
        words.extend(configuration.is_alone.then(|| names[configuration.runs[0]].clone()));
        configuration.label = if words.is_empty() { "all".into() } else { words.join(", ") };
    }
}

/// The last parts of paths, where different paths differ in those.
fn shortened(paths: &[String]) -> Vec<String> {
    let last = |path: &String| {
        Path::new(path).file_name().map_or_else(|| path.clone(), |last| last.to_string_lossy().into_owned())
    };
    let (whole, short): (BTreeSet<&String>, BTreeSet<String>) =
        (paths.iter().collect(), paths.iter().map(last).collect());
    match whole.len() == short.len() {
        true => paths.iter().map(last).collect(),
        false => paths.to_vec(),
    }
}

/// The names of inputs: the last part of their paths, if those differ.
pub(super) fn names(inputs: &[Input]) -> Vec<String> {
    let last = |name: &str| -> String {
        let last = Path::new(name).file_name().map_or(name.into(), |last| last.to_string_lossy());
        last.strip_suffix(".timing.json").unwrap_or(&last).to_owned()
    };
    let short: BTreeSet<String> = inputs.iter().map(|input| last(&input.name)).collect();
    let is_plain = short.len() == inputs.len();
    inputs
        .iter()
        .map(|input| visible(&if is_plain { last(&input.name) } else { input.name.clone() }))
        .collect()
}

/// Caveats about incomplete traces.
pub(super) fn lacking(inputs: &[Input]) -> Vec<String> {
    let mut text = Vec::new();
    for (input, name) in inputs.iter().zip(names(inputs)) {
        let Some(flow) = &input.model.dataflow else { continue };
        let packets = flow.missing_packets.saturating_add(flow.damaged_packets);
        let mut parts = Vec::new();
        if flow.discarded_events > 0 {
            parts.push(format!("{} discarded", counted(flow.discarded_events, "event")));
        }
        if packets > 0 {
            parts.push(format!("{} missing or damaged", counted(packets, "packet")));
        }
        let missing = flow.missing_events();
        if parts.is_empty() && missing > 0 {
            parts.push(format!("at least {} missing", counted(missing, "event")));
        }
        if !parts.is_empty() {
            text.push(format!(
                "{name} is incomplete ({}): its figures cover what could be followed.",
                parts.join(", ")
            ));
        }
        if flow.chains_omitted {
            text.push(format!(
                "{name} has too many chains to compare them all; name those that you want with --chain."
            ));
        }
    }
    // Independent of the order of the inputs.
    text.sort_unstable();
    text
}
