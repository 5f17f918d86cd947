//! The file `metadata`: TSDL, which describes the packets to every reader of CTF, and in its `env` what is
//! true of the whole recording.
//!
//! Punctual itself reads only the values in `env` and the UUID; for the layout it relies on the version of
//! the format.

use crate::About;
use crate::damage::Damage;
use crate::error::{Error, ErrorKind};
use crate::tsdl::{METADATA, SyntaxError, Values, quoted};
use punctual_model::{Call, FileClass, Instant, Platform};
use std::fmt::Write as _;
use std::path::Path;
use uuid::Uuid;

/// Version of the layout of packets and events. Each has events that the one before has not, and is else the
/// same.
pub const VERSION: u32 = 13;
const READABLE: std::ops::RangeInclusive<u32> = 1..=VERSION;
/// No metadata file of ours is longer.
pub const MAX_BYTES: u64 = 1 << 20;

const PREAMBLE: &str = "/* CTF 1.8 */\n\n/* A recording by Punctual: what was seen of real-time threads, \
    one activation event per separation of jobs. */\n";
const EVENTS: &str = include_str!("events.tsdl");
const LATENCY: &str = include_str!("latency.tsdl");
const DISPATCH: &str = include_str!("dispatch.tsdl");
const TASK: &str = include_str!("task.tsdl");

/// The last line: `/* crc32 0x01234567: of all before this line */`.
const CRC_BEFORE: &str = "/* crc32 0x";
const CRC_BEHIND: &str = ": of all before this line */\n";
const CRC_LINE: usize = CRC_BEFORE.len() + 8 + CRC_BEHIND.len();

/// The text for a recording.
pub fn write(about: &About, uuid: Uuid) -> String {
    let mut text = PREAMBLE.to_owned();
    let attributes = "align = 8; signed = false; byte_order = le;";
    let _ = write!(
        text,
        r#"
trace {{
	major = 1;
	minor = 8;
	uuid = "{uuid}";
	byte_order = le;
	packet.header := struct {{
		integer {{ size = 32; {attributes} base = 16; }} magic;	/* 0xC1FC1FC1 */
		integer {{ size = 8; {attributes} base = 16; }} uuid[16];	/* the recording's, as above */
		integer {{ size = 32; {attributes} }} stream_id;	/* 0: there is one kind of stream */
		integer {{ size = 32; {attributes} }} stream_instance_id;	/* 0: all files are parts of one stream */
	}} align(8);
}};

env {{
"#
    );
    env(&mut text, about);
    text.push_str("};\n\n");
    clock(&mut text, about, uuid);
    text.push_str(
        &EVENTS
            .replace("@CALLS@", &calls())
            .replace("@FILES@", &files())
            .replace("@TASK@", TASK.trim_end_matches('\n')),
    );
    text.push_str(LATENCY);
    text.push_str(DISPATCH);
    text.push_str(&crc_line(text.as_bytes()));
    text
}

/// The last line for the text before it.
fn crc_line(body: &[u8]) -> String {
    format!("{CRC_BEFORE}{:08x}{CRC_BEHIND}", crc32fast::hash(body))
}

fn env(text: &mut String, about: &About) {
    let mut line = |key: &str, value: String, meaning: &str| {
        let _ = writeln!(text, "\t{key} = {value};\t/* {meaning} */");
    };
    line("tracer_name", quoted("punctual"), "what wrote this recording");
    line("tracer_major", env!("CARGO_PKG_VERSION_MAJOR").to_owned(), "its version");
    line("tracer_minor", env!("CARGO_PKG_VERSION_MINOR").to_owned(), "its version");
    line("tracer_patch", env!("CARGO_PKG_VERSION_PATCH").to_owned(), "its version");
    line("format_version", VERSION.to_string(), "version of the layout of packets and events");
    line("source", quoted(&about.source), "what saw the records, or the tool whose trace was imported");
    line("hostname", quoted(&about.host), "the machine that was observed");
    line("kernel_release", quoted(&about.platform.kernel), "its kernel");
    line("machine", quoted(&about.platform.machine), "its architecture");
    line("cpus", about.platform.cpus.to_string(), "its processors; 0 is not known");
    line("clock_name", quoted(&about.clock), "the clock of every instant");
    if let Some(zero) = about.clock_zero {
        line("clock_zero_ns", zero.to_string(), "real time at that clock's zero, in nanoseconds since 1970");
    }
    line("from_ns", about.from.ns().to_string(), "when the observation began");
    line("switches", u8::from(about.switches).to_string(), "1: with every context switch and wake-up");
    line("latency", u8::from(about.latency).to_string(), "1: a measurement of scheduling latency");
}

fn clock(text: &mut String, about: &About, uuid: Uuid) {
    let description = quoted(&format!("{}, in nanoseconds", about.clock));
    let _ = write!(
        text,
        "clock {{\n\tname = monotonic;\n\tuuid = \"{uuid}\";\n\tdescription = {description};\n\tfreq = \
            1000000000;\n"
    );
    // An offset before 1970 is nothing that readers agree on.
    if let Some(zero) = about.clock_zero.and_then(|zero| u64::try_from(zero).ok()) {
        let (seconds, rest) = (zero / 1_000_000_000, zero % 1_000_000_000);
        let _ = write!(text, "\toffset_s = {seconds};\n\toffset = {rest};\n\tabsolute = TRUE;\n");
    }
    text.push_str("};\n\n");
}

fn calls() -> String {
    let line = |call: &Call| format!("\t{} = {},", call.name(), *call as u8);
    Call::ALL.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn files() -> String {
    let line = |class: &FileClass| format!("\t{} = {},", file_name(*class), *class as u8);
    FileClass::ALL.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// As [`FileClass::name`] has it, but for words of C that TSDL reserves.
fn file_name(class: FileClass) -> &'static str {
    match class {
        FileClass::CharacterDevice => "character_device",
        FileClass::BlockDevice => "block_device",
        _ => class.name(),
    }
}

/// What the file says.
pub struct Metadata {
    pub about: About,
    /// Absent where it is cut off or damaged.
    pub uuid: Option<Uuid>,
    /// What is wrong with the file.
    pub damage: Option<Damage>,
}

/// Reads the file, as far as it makes sense where it was truncated or damaged. Fails if it is not the
/// metadata of a recording.
pub fn read(bytes: &[u8], folder: &Path) -> Result<Metadata, Error> {
    let values = Values::parse(bytes);
    let check = Check::new(bytes, values.error);
    check_kind(&values, bytes, matches!(check, Check::Whole), folder)?;
    let text = |key: &str| values.text(key).unwrap_or_default().to_owned();
    // A wrong start would falsify the observed span; without one, the first packet's is taken.
    let from_ns = values.number("env.from_ns").filter(|_| !matches!(check, Check::Damaged(_)));
    let about = About {
        platform: Platform {
            kernel: text("env.kernel_release"),
            machine: text("env.machine"),
            cpus: values.number("env.cpus").and_then(|cpus| cpus.try_into().ok()).unwrap_or(0),
        },
        host: text("env.hostname"),
        source: text("env.source"),
        clock: text("env.clock_name"),
        clock_zero: values.word("env.clock_zero_ns").and_then(|zero| zero.parse().ok()),
        from: Instant::from_ns(from_ns.unwrap_or(0)),
        switches: values.number("env.switches") == Some(1),
        latency: values.number("env.latency") == Some(1),
    };
    let uuid = values.text("trace.uuid").and_then(|uuid| Uuid::parse_str(uuid).ok());
    Ok(Metadata { about, uuid, damage: check.damage() })
}

/// Whether this is a recording of a version that is readable. Damaged metadata get the benefit of the doubt:
/// the packets will show it.
fn check_kind(values: &Values, bytes: &[u8], is_whole: bool, folder: &Path) -> Result<(), Error> {
    let place = folder.display();
    let fail = |kind: ErrorKind, message: String| Err(Error::new(kind, message));
    if values.text("env.domain") == Some("dataflow") {
        let message = format!("{place} is the trace of a dataflow program, which punctual chains reads");
        return fail(ErrorKind::NotATrace, message);
    }
    let begins_as_ours = bytes.starts_with(PREAMBLE.as_bytes());
    let tracer = values.text("env.tracer_name").unwrap_or("punctual");
    if tracer != "punctual" && (is_whole || !begins_as_ours) {
        let message = format!(
            "{place} is not a recording by Punctual; it was made by {tracer}, and other tools' traces are \
             read by punctual import"
        );
        return fail(ErrorKind::NotATrace, message);
    }
    match values.word("env.format_version") {
        Some(version) if is_whole && !version.parse().is_ok_and(|version| READABLE.contains(&version)) => {
            let message = format!(
                "{place} has format version {version}; this Punctual reads versions {} to {VERSION}",
                READABLE.start()
            );
            fail(ErrorKind::Version, message)
        }
        _ => Ok(()),
    }
}

/// What the checksum in the last line says.
enum Check {
    Whole,
    /// The last line is missing: bytes that are there.
    Truncated(usize),
    /// Where the first syntax error is; else 0.
    Damaged(usize),
}

impl Check {
    fn new(bytes: &[u8], error: Option<SyntaxError>) -> Check {
        let (body, line) = bytes.split_at(bytes.len().saturating_sub(CRC_LINE));
        if line == crc_line(body).as_bytes() {
            Check::Whole
        } else if line.starts_with(CRC_BEFORE.as_bytes()) || line.ends_with(CRC_BEHIND.as_bytes()) {
            Check::Damaged(error.map_or(0, |error| error.offset))
        } else {
            Check::Truncated(bytes.len())
        }
    }

    fn damage(self) -> Option<Damage> {
        let (offset, what) = match self {
            Check::Whole => return None,
            Check::Truncated(length) => {
                (length, "the file was cut off here; what it would say of the recording is unknown")
            }
            Check::Damaged(offset) => (
                offset,
                "the file is damaged (its checksum does not match); what it says of the recording may be \
                 wrong or missing",
            ),
        };
        Some(Damage::new(METADATA, offset as u64, format!("{what}, packets are read all the same")))
    }
}
