//! The file `metadata` of a flow trace: written, and read as far as it says something.

use super::{About, Arming, Barrier, ByteOrder, Connection, Input, OBJECTS, Opening};
use crate::damage::Damage;
use crate::error::{Error, ErrorKind};
use crate::tsdl::{METADATA, Values, quoted};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// Version of the format.
pub const MAJOR: u64 = 1;
pub const MINOR: u64 = 1;
/// 65,536 channels and as many tasks with long names fit.
pub const MAX_BYTES: u64 = 32 << 20;

const TYPES: &str = "\
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := instant_t;
/* The low half of the same. */
typealias integer { size = 32; align = 8; signed = false; map = clock.monotonic.value; } := instant32_t;
";

const STREAM: &str = "\
stream {
	id = 0;
	packet.context := struct {
		instant_t timestamp_begin;
		instant_t timestamp_end;
		uint32_t content_size;
		uint32_t packet_size;
		uint32_t packet_seq_num;
		uint32_t events_discarded;
		uint32_t producer;
		uint32_t zero;
	};
	event.header := struct {
		instant32_t timestamp;
		integer { size = 2; align = 1; signed = false; } id;
	};
	event.context := struct {
		integer { size = 14; align = 1; signed = false; } number;
	};
};

event { name = \"push\"; id = 0; stream_id = 0; fields := struct { enum channel channel; }; };
event { name = \"activation\"; id = 1; stream_id = 0; fields := struct { enum task task; }; };
event { name = \"start\"; id = 2; stream_id = 0; fields := struct { enum task task; }; };
event { name = \"stop\"; id = 3; stream_id = 0; fields := struct { enum task task; }; };
";

/// The text for a trace.
pub fn write(about: &About) -> String {
    let order = match about.byte_order {
        ByteOrder::Little => "le",
        ByteOrder::Big => "be",
    };
    let mut text = format!(
        "/* CTF 1.8 */\n\n/* A trace of a dataflow program: docs/flow-traces.md of Punctual is its \
            format. */\n
trace {{
	major = 1;
	minor = 8;
	byte_order = {order};
	packet.header := struct {{
		integer {{ size = 32; align = 8; signed = false; base = 16; }} magic;
		integer {{ size = 32; align = 8; signed = false; }} stream_id;
	}};
}};

env {{\n"
    );
    env(&mut text, about);
    let (name, frequency) = (quoted(&about.clock), about.frequency);
    let _ = write!(
        text,
        "}};\n\nclock {{\n\tname = monotonic;\n\tdescription = {name};\n\tfreq = {frequency};\n"
    );
    if let Some(zero) = about.clock_zero {
        let (seconds, rest) = (zero / 1_000_000_000, zero % 1_000_000_000);
        let ticks = u128::from(rest) * u128::from(frequency) / 1_000_000_000;
        let _ = write!(text, "\toffset_s = {seconds};\n\toffset = {ticks};\n\tabsolute = true;\n");
    }
    text.push_str("};\n\n");
    text.push_str(TYPES);
    enumeration(&mut text, "channel", &about.channels);
    enumeration(&mut text, "task", &about.tasks);
    text.push('\n');
    text.push_str(STREAM);
    text
}

fn env(text: &mut String, about: &About) {
    let mut line = |key: &str, value: String| {
        let _ = writeln!(text, "\t{key} = {value};");
    };
    line("domain", quoted("dataflow"));
    line("tracer_name", quoted("punctual"));
    line("tracer_major", MAJOR.to_string());
    line("tracer_minor", MINOR.to_string());
    for (key, value) in
        [("program", &about.program), ("platform", &about.platform), ("policy", &about.policy)]
    {
        value.iter().for_each(|value| line(key, quoted(value)));
    }
    about.executors.iter().for_each(|executors| line("executors", executors.to_string()));
    about.discarded.iter().for_each(|events| line("discarded", events.to_string()));
    about.producers.iter().for_each(|(number, name)| line(&format!("producer_{number}"), quoted(name)));
    about.threads.iter().for_each(|(number, thread)| line(&format!("thread_{number}"), thread.to_string()));
    about.inputs.iter().enumerate().for_each(|(number, input)| {
        let assumed = if about.assumed.contains(&input.connection) { " assumed" } else { "" };
        line(&format!("connection_{number}"), quoted(&(input_text(input) + assumed)));
    });
    match (about.has_all_inputs, about.has_seen_inputs) {
        (true, _) => line("connections", quoted("all")),
        (false, true) => line("connections", quoted("seen")),
        (false, false) => {}
    }
    if about.has_told_takes {
        line("takes", quoted("told"));
    }
    for (number, opening) in about.openings.iter().enumerate() {
        line(&format!("opening_{number}"), quoted(&opening_text(opening)));
    }
    for (number, (channel, Barrier { count, arrived })) in about.barriers.iter().enumerate() {
        line(&format!("barrier_{number}"), quoted(&format!("{channel} {count} {arrived}")));
    }
}

fn enumeration(text: &mut String, name: &str, labels: &BTreeMap<u16, String>) {
    let _ = write!(text, "\nenum {name} : integer {{ size = 16; align = 8; signed = false; }} {{\n");
    for (number, label) in labels {
        let _ = writeln!(text, "\t{} = {number},", quoted(label));
    }
    // An enumeration without labels is not valid.
    if labels.is_empty() {
        let _ = writeln!(text, "\t\"{name} 0\" = 0,");
    }
    text.push_str("};\n");
}

/// What the file says.
pub struct Metadata {
    pub about: About,
    /// Whether it says the byte order.
    pub names_order: bool,
    pub damage: Option<Damage>,
}

/// Reads the file, as far as it makes sense where it was truncated or damaged. Fails if it is not the
/// metadata of a flow trace, and says what it is instead.
pub fn read(bytes: &[u8], folder: &Path) -> Result<Metadata, Error> {
    let values = Values::parse(bytes);
    let damage = match values.error {
        _ if bytes.is_empty() => {
            Some(Damage::new(METADATA, 0, "the file is empty; names and connections are unknown"))
        }
        Some(error) => {
            let what = format!(
                "the file was cut off or is damaged here ({}); names and connections may be missing",
                error.what
            );
            Some(Damage::new(METADATA, error.offset as u64, what))
        }
        None => None,
    };
    check_kind(&values, damage.is_none(), folder)?;
    let order = values.word("trace.byte_order");
    let mut about = About {
        byte_order: match order {
            Some("be" | "network") => ByteOrder::Big,
            _ => ByteOrder::Little,
        },
        frequency: values.number("clock.freq").filter(|frequency| *frequency > 0).unwrap_or(1_000_000_000),
        channels: labels(&values, "channel"),
        tasks: labels(&values, "task"),
        program: values.text("env.program").map(str::to_owned),
        platform: values.text("env.platform").map(str::to_owned),
        policy: values.text("env.policy").map(str::to_owned),
        executors: values.number("env.executors").and_then(|number| number.try_into().ok()),
        discarded: values.number("env.discarded"),
        ..About::default()
    };
    let named = values.text("clock.description").or(values.text("clock.name")).or(values.word("clock.name"));
    about.clock = match named {
        // On Linux, it is this one.
        Some("monotonic") | None if about.frequency == 1_000_000_000 => about.clock,
        Some(name) => name.to_owned(),
        None => "clock".into(),
    };
    about.clock_zero = clock_zero(&values, about.frequency);
    for (number, value) in values.numbered("env.producer_") {
        about.producers.insert(number, value.as_str().to_owned());
    }
    for (number, value) in values.numbered("env.thread_") {
        about.threads.extend(value.as_str().parse().ok().map(|thread| (number, thread)));
    }
    about.inputs =
        values.numbered("env.connection_").filter_map(|(_, value)| input(value.as_str())).collect();
    about.assumed = values
        .numbered("env.connection_")
        .filter(|(_, value)| value.as_str().split_whitespace().skip(2).any(|word| word == "assumed"))
        .filter_map(|(_, value)| Some(input(value.as_str())?.connection))
        .collect();
    about.inputs.sort_unstable();
    about.inputs.dedup();
    about.has_all_inputs = values.text("env.connections") == Some("all");
    about.has_told_takes = values.text("env.takes") == Some("told");
    about.has_seen_inputs = values.text("env.connections") == Some("seen");
    about.openings =
        values.numbered("env.opening_").filter_map(|(_, value)| opening(value.as_str())).collect();
    about.barriers =
        values.numbered("env.barrier_").filter_map(|(_, value)| barrier(value.as_str())).collect();
    Ok(Metadata { about, names_order: order.is_some(), damage })
}

/// `"CHANNEL TASK"`, by number, and how it counts.
fn input_text(input: &Input) -> String {
    let Connection { channel, task } = input.connection;
    let mut text = format!("{channel} {task}");
    if let Some(Arming { threshold, synchronised, optional, is_final, pending }) = input.arming {
        let _ = write!(
            text,
            " threshold={threshold} {}",
            if synchronised { "synchronised" } else { "unsynchronised" }
        );
        [(optional, " optional"), (is_final, " final")]
            .into_iter()
            .filter(|(is, _)| *is)
            .for_each(|(_, word)| text.push_str(word));
        if pending > 0 {
            let _ = write!(text, " pending={pending}");
        }
    }
    text
}

/// The same, read. Words that are not known are for readers to come.
fn input(text: &str) -> Option<Input> {
    let mut words = text.split_whitespace();
    let connection = Connection { channel: words.next()?.parse().ok()?, task: words.next()?.parse().ok()? };
    let (mut arming, mut threshold) = (Arming::default(), None);
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("threshold", number) => threshold = number.parse().ok().filter(|threshold| *threshold > 0),
            ("pending", number) => arming.pending = number.parse().unwrap_or(0),
            ("synchronised", "") => arming.synchronised = true,
            ("unsynchronised", "") => arming.synchronised = false,
            ("optional", "") => arming.optional = true,
            ("final", "") => arming.is_final = true,
            _ => {}
        }
    }
    Some(Input { connection, arming: threshold.map(|threshold| Arming { threshold, ..arming }) })
}

/// `"before=TASK,… behind=TASK,… WHY"`, by number.
fn opening_text(Opening { before, behind, why }: &Opening) -> String {
    let list =
        |tasks: &BTreeSet<u16>| tasks.iter().map(|task| task.to_string()).collect::<Vec<_>>().join(",");
    format!("before={} behind={} {why}", list(before), list(behind))
}

/// The same, read.
fn opening(text: &str) -> Option<Opening> {
    let tasks = |list: &str| list.split(',').filter_map(|task| task.parse().ok()).collect();
    let (before, rest) = text.strip_prefix("before=")?.split_once(' ')?;
    let (behind, why) = rest.strip_prefix("behind=")?.split_once(' ')?;
    Some(Opening { before: tasks(before), behind: tasks(behind), why: why.to_owned() })
}

/// `"CHANNEL COUNT ARRIVED"`.
fn barrier(text: &str) -> Option<(u16, Barrier)> {
    let mut words = text.split_whitespace();
    let channel = words.next()?.parse().ok()?;
    let count = words.next()?.parse().ok().filter(|count| *count > 0)?;
    Some((channel, Barrier { count, arrived: words.next()?.parse().ok()? }))
}

fn labels(values: &Values, name: &str) -> BTreeMap<u16, String> {
    // As the page calls it, or the type's name.
    let types = [name.to_owned(), format!("{name}_id")];
    let labels = types
        .iter()
        .map(|name| values.enumeration(name))
        .find(|labels| !labels.is_empty())
        .unwrap_or(&[])
        .iter()
        .take(OBJECTS);
    labels.filter_map(|(label, number)| Some((u16::try_from(*number).ok()?, label.clone()))).collect()
}

fn clock_zero(values: &Values, frequency: u64) -> Option<u64> {
    let (seconds, ticks) = (values.number("clock.offset_s"), values.number("clock.offset"));
    if seconds.is_none() && ticks.is_none() {
        return None;
    }
    let rest = u128::from(ticks.unwrap_or(0)) * 1_000_000_000 / u128::from(frequency);
    u64::try_from(u128::from(seconds.unwrap_or(0)) * 1_000_000_000 + rest).ok()
}

/// Whether it is a flow trace of a version that is read here.
fn check_kind(values: &Values, is_whole: bool, folder: &Path) -> Result<(), Error> {
    let place = folder.display();
    let domain = values.text("env.domain");
    let tracer = values.text("env.tracer_name");
    let other = |what: String| {
        Err(Error::new(ErrorKind::NotATrace, format!("{place} is not a trace of a dataflow program: {what}")))
    };
    match (domain, tracer) {
        (Some("dataflow"), _) => {}
        (None, Some("punctual")) if values.get("env.format_version").is_some() => {
            return other(
                "it is a recording of threads, which punctual replay and punctual report read".into(),
            );
        }
        (Some(domain), Some(tracer)) => {
            return other(format!("it is a trace by {tracer} of domain {domain:?}"));
        }
        (Some(domain), None) => return other(format!("it is a trace of domain {domain:?}")),
        (None, Some(tracer)) if tracer != "punctual" => return other(format!("it is a trace by {tracer}")),
        // Cut off before it says so: the packets have to show it.
        (None, _) if !is_whole => {}
        (None, _) => return other("its metadata do not say domain = \"dataflow\"".into()),
    }
    match values.number("env.tracer_major") {
        Some(major) if major != MAJOR => {
            let message = format!(
                "{place} is of version {major} of the format of flow traces, and this Punctual reads \
                    version {MAJOR}"
            );
            Err(Error::new(ErrorKind::Version, message))
        }
        _ => Ok(()),
    }
}
