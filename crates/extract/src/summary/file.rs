//! The file `*.summary`: a magic line, the version, a checksum, and the summary in `postcard`, packed by
//! Zstandard (not in version 1), with the programs of tasks whose commands are unknown (from version 3 on),
//! the open jobs of tasks (from version 4 on), and what those took that never waited (from version 5 on).
//! Separators have names of addresses from version 6 on, late jobs have causes from version 7 on, and streams
//! have modes from version 8 on, those of several runs from version 9 on; runs have notes and steps of their
//! clock, and streams the greatest certain response, from version 10 on, and the checksum is of the version,
//! too; all certain responses from version 11 on.

use super::curve::RunNumber;
use super::{Run, Summary};
use crate::certain::Certain;
use punctual_model::{Causes, ClockStep, Mode};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a summary begins.
pub const MAGIC: &[u8; 16] = b"punctual.summary";

const VERSION: u32 = 11;

/// The version whose summaries are not packed.
const UNPACKED: u32 = 1;

/// The last version that merged tasks of any runs whose commands were unknown.
const WITHOUT_PROGRAMS: u32 = 2;
/// The last version that did not tell of open jobs.
const WITHOUT_OPEN_JOBS: u32 = 3;
/// The last version that did not tell of tasks that never waited.
const WITHOUT_BUSY: u32 = 4;
/// The last version without causes of late jobs.
const WITHOUT_CAUSES: u32 = 6;
/// The last version without modes of several runs.
const WITHOUT_KINDS: u32 = 8;
/// The last version without notes of runs.
const WITHOUT_NOTES: u32 = 9;
/// The last version without all certain responses.
const WITHOUT_CERTAIN: u32 = 10;

/// Zstandard's own default: higher levels save 2 % and take twice as long.
const LEVEL: i32 = 3;

/// A body is at most that many times as long as its packed form, beyond a few bytes that are always allowed:
/// more than the codec does with curves, so that small files cannot take much memory.
const MOST_PACKED: (u64, u64) = (1024, 1 << 20);

/// Magic, version, checksum of the rest; little-endian.
const HEAD: usize = MAGIC.len() + 8;

/// Why a file is no summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileError {
    /// It is something else.
    NotASummary,
    /// It is of another version.
    Version(u32),
    /// It was changed, or is cut off.
    Damaged,
    /// Its checksum is right, but its contents are those of something else.
    Undecodable,
    /// The same, with what is wrong.
    Invalid(String),
}

impl std::error::Error for FileError {}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::NotASummary => {
                write!(f, "it is no summary: punctual summarize makes one of a recording")
            }
            FileError::Version(version) => write!(
                f,
                "it has version {version} of the format; this Punctual reads {UNPACKED} to {VERSION}: \
                 make it again with punctual summarize"
            ),
            FileError::Damaged => write!(f, "it is damaged or cut off: its checksum differs"),
            FileError::Undecodable => {
                write!(f, "its contents are not those of a summary; make it again with punctual summarize")
            }
            FileError::Invalid(reason) => write!(f, "it is invalid: {reason}"),
        }
    }
}

/// Modes of a stream of several runs, as JSON, with the number of the stream among all.
#[derive(Serialize, Deserialize)]
struct Kinds(u64, #[serde(with = "super::json")] Vec<Mode>);

/// What is to be known of a run, and the steps of its clock, as JSON.
#[derive(Serialize, Deserialize)]
struct Noted(Vec<String>, #[serde(with = "super::json")] Vec<ClockStep>);

/// Causes, as JSON.
#[derive(Serialize, Deserialize)]
struct Written(#[serde(with = "super::json")] Option<Causes>);

impl Summary {
    /// The file's contents: the same bytes for the same runs, however they were merged.
    pub fn to_bytes(&self) -> Vec<u8> {
        let programs: Vec<RunNumber> = self.tasks.iter().filter_map(|task| task.key.program).collect();
        let open: Vec<Option<u64>> = self.tasks.iter().map(|task| task.open).collect();
        let busy: Vec<Option<u64>> = self.tasks.iter().map(|task| task.busy).collect();
        let causes = Written(self.causes.clone());
        let streams = (0..).zip(self.tasks.iter().flat_map(|task| &task.streams));
        let of_several = streams.filter(|(_, it)| it.alone.is_none() && !it.kinds.is_empty());
        let kinds: Vec<Kinds> = of_several.map(|(number, it)| Kinds(number, it.kinds.clone())).collect();
        let noted = |run: &Run| Noted(run.notes.clone(), run.clock_steps.clone());
        let noted: Vec<Noted> = self.runs.iter().map(noted).collect();
        let streams = || self.tasks.iter().flat_map(|task| &task.streams);
        let greatest: Vec<Option<u64>> = streams().map(|stream| stream.certain_response).collect();
        let certain: Vec<Option<&Certain>> = streams().map(|stream| stream.certain.as_ref()).collect();
        let all = (self, programs, open, busy, causes, kinds, noted, greatest, certain);
        let body = pack(&postcard::to_allocvec(&all).expect("memory takes any summary"));
        let mut bytes = Vec::with_capacity(HEAD + body.len());
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(checksum(VERSION, &body).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    /// Reads a file's contents; every value is checked.
    ///
    /// # Errors
    /// If it is not a summary of this version, or damaged, or not one that could have been written.
    pub fn from_bytes(bytes: &[u8]) -> Result<Summary, FileError> {
        if !bytes.starts_with(MAGIC) {
            return Err(FileError::NotASummary);
        }
        let word = |at: usize| {
            bytes.get(at..at + 4).and_then(|word| Some(u32::from_le_bytes(word.try_into().ok()?)))
        };
        let version = word(MAGIC.len()).ok_or(FileError::Damaged)?;
        if !(UNPACKED..=VERSION).contains(&version) {
            return Err(FileError::Version(version));
        }
        let (Some(sum), Some(body)) = (word(MAGIC.len() + 4), bytes.get(HEAD..)) else {
            return Err(FileError::Damaged);
        };
        if checksum(version, body) != sum {
            return Err(FileError::Damaged);
        }
        match version {
            UNPACKED => Summary::from_body(body, version),
            _ => Summary::from_body(&unpack(body)?, version),
        }
    }

    /// Reads what follows the checksum.
    fn from_body(body: &[u8], version: u32) -> Result<Summary, FileError> {
        // What the codec says is of its inside, and helps nobody.
        let undecodable = |_| FileError::Undecodable;
        let (mut summary, mut rest) = postcard::take_from_bytes::<Summary>(body).map_err(undecodable)?;
        let unknown = summary.tasks.iter_mut().filter(|task| task.key.is_unknown());
        if version <= WITHOUT_PROGRAMS {
            unknown.for_each(|task| task.key.program = Some(task.alone.as_ref().map_or(0, |it| it.run)));
        } else {
            let programs: Vec<RunNumber>;
            (programs, rest) = postcard::take_from_bytes(rest).map_err(undecodable)?;
            let count = unknown.zip(&programs).map(|(task, run)| task.key.program = Some(*run)).count();
            if count < programs.len() {
                return Err(FileError::Invalid("it has more programs than tasks of unknown commands".into()));
            }
        }
        if version > WITHOUT_OPEN_JOBS {
            let open: Vec<Option<u64>>;
            (open, rest) = postcard::take_from_bytes(rest).map_err(undecodable)?;
            if open.len() != summary.tasks.len() {
                return Err(FileError::Invalid("it does not say of each task whether a job was open".into()));
            }
            summary.tasks.iter_mut().zip(open).for_each(|(task, open)| task.open = open);
        }
        if version > WITHOUT_BUSY {
            let busy: Vec<Option<u64>>;
            (busy, rest) = postcard::take_from_bytes(rest).map_err(undecodable)?;
            if busy.len() != summary.tasks.len() {
                return Err(FileError::Invalid(
                    "it does not say of each task whether it never waited".into(),
                ));
            }
            summary.tasks.iter_mut().zip(busy).for_each(|(task, busy)| task.busy = busy);
        }
        if version > WITHOUT_CAUSES {
            let causes: Written;
            (causes, rest) = postcard::take_from_bytes(rest).map_err(undecodable)?;
            summary.causes = causes.0;
        }
        let mut streams: Vec<_> = summary.tasks.iter_mut().flat_map(|task| &mut task.streams).collect();
        streams.iter_mut().for_each(|stream| stream.kinds = stream.modes_alone().unwrap_or_default());
        if version > WITHOUT_KINDS {
            let kinds: Vec<Kinds>;
            (kinds, rest) = postcard::take_from_bytes(rest).map_err(undecodable)?;
            for Kinds(number, kinds) in kinds {
                let stream = usize::try_from(number).ok().and_then(|number| streams.get_mut(number));
                let stream = stream.filter(|stream| stream.alone.is_none());
                let none = || FileError::Invalid("it has modes of a stream that has none".into());
                stream.ok_or_else(none)?.kinds = kinds;
            }
        }
        if version > WITHOUT_NOTES {
            let noted: Vec<Noted>;
            (noted, rest) = postcard::take_from_bytes(rest).map_err(undecodable)?;
            if noted.len() != summary.runs.len() {
                return Err(FileError::Invalid("it does not have the notes of each run".into()));
            }
            for (run, Noted(notes, steps)) in summary.runs.iter_mut().zip(noted) {
                (run.notes, run.clock_steps) = (notes, steps);
            }
            let certain: Vec<Option<u64>>;
            (certain, rest) = postcard::take_from_bytes(rest).map_err(undecodable)?;
            if certain.len() != streams.len() {
                return Err(FileError::Invalid("it does not have a certain response of each stream".into()));
            }
            streams.iter_mut().zip(certain).for_each(|(stream, it)| stream.certain_response = it);
        }
        if version > WITHOUT_CERTAIN {
            let certain: Vec<Option<Certain>>;
            (certain, rest) = postcard::take_from_bytes(rest).map_err(undecodable)?;
            if certain.len() != streams.len() {
                return Err(FileError::Invalid(
                    "it does not have the certain responses of each stream".into(),
                ));
            }
            streams.iter_mut().zip(certain).for_each(|(stream, it)| stream.certain = it);
        }
        if !rest.is_empty() {
            return Err(FileError::Invalid(format!("{} bytes follow its end", rest.len())));
        }
        summary.check().map_err(FileError::Invalid)?;
        Ok(summary)
    }
}

/// Of the version, too, since that one decides how the rest is read.
fn checksum(version: u32, body: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    if version > WITHOUT_NOTES {
        sum.update(&version.to_le_bytes());
    }
    sum.update(body);
    sum.finalize()
}

fn pack(body: &[u8]) -> Vec<u8> {
    let mut packed = vec![0; zstd_safe::compress_bound(body.len())];
    let length =
        zstd_safe::compress(&mut packed[..], body, LEVEL).expect("there is room for the longest form");
    packed.truncate(length);
    packed
}

fn unpack(packed: &[u8]) -> Result<Vec<u8>, FileError> {
    let length = zstd_safe::get_frame_content_size(packed).ok().flatten().ok_or(FileError::Undecodable)?;
    let (times, always) = MOST_PACKED;
    if length > (packed.len() as u64).saturating_mul(times).max(always) {
        return Err(FileError::Invalid(format!("{} bytes cannot be {length} packed ones", packed.len())));
    }
    let mut body = vec![0; usize::try_from(length).map_err(|_| FileError::Undecodable)?];
    match zstd_safe::decompress(&mut body[..], packed) {
        Ok(found) if found == body.len() => Ok(body),
        _ => Err(FileError::Undecodable),
    }
}
