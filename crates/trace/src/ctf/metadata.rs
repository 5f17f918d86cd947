//! The file `metadata`: TSDL, which describes the packets to every reader of CTF, and in its `env` what is
//! true of the whole recording.
//!
//! Punctual itself reads only the values in `env` and the UUID; for the layout it relies on the version of
//! the format.

use super::checksum;
use super::damage::Damage;
use crate::About;
use crate::error::{Error, ErrorKind};
use punctual_model::{Call, FileClass, Instant, Platform};
use std::fmt::Write as _;
use std::path::Path;
use uuid::Uuid;

/// Version of the layout of packets and events. The second has events that the first has not, and is else the
/// same.
pub const VERSION: u32 = 2;
const READABLE: std::ops::RangeInclusive<u32> = 1..=VERSION;
/// The name of the file.
pub const NAME: &str = "metadata";
/// No metadata file of ours is longer.
pub const MOST_BYTES: usize = 1 << 20;

const PREAMBLE: &str = "/* CTF 1.8 */\n\n/* A recording by Punctual: what was seen of real-time threads, one activation event per separation of jobs. */\n";
const EVENTS: &str = include_str!("events.tsdl");
const TASK: &str = include_str!("task.tsdl");

/// The last line: `/* crc32 0x01234567: of all before this line */`.
const CRC_BEFORE: &str = "/* crc32 0x";
const CRC_BEHIND: &str = ": of all before this line */\n";
const CRC_LINE: usize = CRC_BEFORE.len() + 8 + CRC_BEHIND.len();

/// The text for a recording.
pub fn write(about: &About, uuid: Uuid) -> String {
    let mut text = PREAMBLE.to_owned();
    let _ = write!(
        text,
        r#"
trace {{
	major = 1;
	minor = 8;
	uuid = "{uuid}";
	byte_order = le;
	packet.header := struct {{
		integer {{ size = 32; align = 8; signed = false; byte_order = le; base = 16; }} magic;	/* 0xC1FC1FC1 */
		integer {{ size = 8; align = 8; signed = false; byte_order = le; base = 16; }} uuid[16];	/* the recording's, as above */
		integer {{ size = 32; align = 8; signed = false; byte_order = le; }} stream_id;	/* 0: there is one kind of stream */
		integer {{ size = 32; align = 8; signed = false; byte_order = le; }} stream_instance_id;	/* 0: all files are parts of one stream */
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
    let crc = crc32fast::hash(text.as_bytes());
    let _ = write!(text, "{CRC_BEFORE}{crc:08x}{CRC_BEHIND}");
    text
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
}

fn clock(text: &mut String, about: &About, uuid: Uuid) {
    let description = quoted(&format!("{}, in nanoseconds", about.clock));
    let _ = write!(
        text,
        "clock {{\n\tname = monotonic;\n\tuuid = \"{uuid}\";\n\tdescription = {description};\n\tfreq = 1000000000;\n"
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

/// A string of TSDL, which is one of C. A NUL has no place in it.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars().filter(|letter| *letter != '\0') {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            '\u{1}'..'\u{20}' | '\u{7f}' => {
                let _ = write!(quoted, "\\{:03o}", letter as u32);
            }
            _ => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// What [`quoted`] was made from, if it is whole.
pub(crate) fn unquoted(text: &str) -> Option<String> {
    let mut letters = text.strip_prefix('"')?.strip_suffix('"')?.chars();
    let mut plain = String::new();
    while let Some(letter) = letters.next() {
        plain.push(match letter {
            '\\' => match letters.next()? {
                'n' => '\n',
                digit @ '0'..='7' => {
                    let digits = [digit, letters.next()?, letters.next()?];
                    let number =
                        digits.iter().try_fold(0, |number, digit| Some(number * 8 + digit.to_digit(8)?))?;
                    char::from_u32(number)?
                }
                other => other,
            },
            _ => letter,
        });
    }
    Some(plain)
}

/// What the file says.
pub struct Metadata {
    pub about: About,
    /// Absent where it is cut off or damaged.
    pub uuid: Option<Uuid>,
    /// What is wrong with the file.
    pub damage: Option<Damage>,
}

/// Reads the file; of one that was cut off or damaged, what is left. An error if it is none of ours.
pub fn read(bytes: &[u8], folder: &Path) -> Result<Metadata, Error> {
    let (bytes, damage) = check(bytes);
    let text = String::from_utf8_lossy(&bytes);
    let values = Values(&text);
    let tracer = values.text("tracer_name");
    let is_ours = tracer.as_deref() == Some("punctual")
        || (tracer.is_none() && (text.starts_with(PREAMBLE) || PREAMBLE.starts_with(&*text)));
    if !is_ours {
        let made = tracer.map_or_else(String::new, |tracer| format!("; it was made by {tracer}"));
        let message = format!(
            "{} is no recording by Punctual{made}; other tools' traces are read by punctual import",
            folder.display()
        );
        return Err(Error::new(ErrorKind::NotATrace, message));
    }
    if text.contains("domain = \"dataflow\"") {
        let message =
            format!("{} is the trace of a dataflow program, which punctual chains reads", folder.display());
        return Err(Error::new(ErrorKind::NotATrace, message));
    }
    let is_readable = |version: &&str| version.parse().is_ok_and(|version| READABLE.contains(&version));
    if let Some(version) = values.find("format_version").filter(|version| !is_readable(version)) {
        let message = format!(
            "{} is of format version {version}, and this Punctual reads versions 1 to {VERSION}",
            folder.display()
        );
        return Err(Error::new(ErrorKind::Version, message));
    }
    let text = |key: &str| values.text(key).unwrap_or_default();
    let about = About {
        platform: Platform {
            kernel: text("kernel_release"),
            machine: text("machine"),
            cpus: values.number("cpus").unwrap_or(0),
        },
        host: text("hostname"),
        source: text("source"),
        clock: text("clock_name"),
        clock_zero: values.number("clock_zero_ns"),
        from: Instant::from_ns(values.number("from_ns").unwrap_or(0)),
        switches: values.number("switches") == Some(1),
    };
    Ok(Metadata { about, uuid: values.text("uuid").and_then(|uuid| Uuid::parse_str(&uuid).ok()), damage })
}

/// The lines `key = value;` of the text.
struct Values<'a>(&'a str);

impl Values<'_> {
    fn find(&self, key: &str) -> Option<&str> {
        let value = |line: &'_ str| -> Option<(usize, usize)> {
            let rest = line.strip_prefix('\t')?.strip_prefix(key)?.strip_prefix(" = ")?;
            // A value ends at the last semicolon before the comment; inside of a string there may be others,
            // and `\t` is escaped.
            let value = rest.split('\t').next()?.trim_end().strip_suffix(';')?;
            let start = line.len() - rest.len();
            Some((start, start + value.len()))
        };
        self.0.lines().find_map(|line| value(line).map(|(start, end)| &line[start..end]))
    }

    fn text(&self, key: &str) -> Option<String> {
        self.find(key).and_then(unquoted)
    }

    fn number<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        self.find(key)?.parse().ok()
    }
}

/// Compares the checksum. Where one changed byte explains a difference, that one is changed back.
fn check(bytes: &[u8]) -> (Vec<u8>, Option<Damage>) {
    let cut = |length: usize| {
        Damage::new(
            NAME,
            length as u64,
            "the file is cut off here; what it no longer says of the recording is left open, packets are read all the same",
        )
    };
    let Some(body) = bytes.len().checked_sub(CRC_LINE) else {
        return (bytes.to_vec(), Some(cut(bytes.len())));
    };
    let (body, line) = bytes.split_at(body);
    let actual = crc32fast::hash(body);
    let right = format!("{CRC_BEFORE}{actual:08x}{CRC_BEHIND}");
    let changed: Vec<usize> = (0..CRC_LINE).filter(|at| line[*at] != right.as_bytes()[*at]).collect();
    match changed[..] {
        [] => return (body.to_vec(), None),
        [at] => {
            let what = "the file's checksum is damaged here; all else in it is right";
            return (body.to_vec(), Some(Damage::new(NAME, (body.len() + at) as u64, what)));
        }
        _ => {}
    }
    let digits =
        line.strip_prefix(CRC_BEFORE.as_bytes()).and_then(|rest| rest.strip_suffix(CRC_BEHIND.as_bytes()));
    let crc = digits.and_then(|digits| u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
    // Without that line at its end the file is not whole.
    let Some(crc) = crc else { return (bytes.to_vec(), Some(cut(bytes.len()))) };
    let [changed] = checksum::explain(crc ^ actual, body.len())[..] else {
        let what = "the file is damaged in more than one place; what it says of the recording may be wrong";
        return (body.to_vec(), Some(Damage::new(NAME, 0, what)));
    };
    let mut mended = body.to_vec();
    mended[changed.offset] ^= changed.bits;
    let (is, was) = (body[changed.offset], mended[changed.offset]);
    let what =
        format!("the file is damaged: this byte is {is:#04x} and was {was:#04x}; it is read as it was");
    (mended, Some(Damage::new(NAME, changed.offset as u64, what)))
}
