//! The files of a recording: one, or those of a folder (`perf record --threads`), in which each buffer of the
//! kernel has its own beside that of the header.

use super::header::{self, Places};
use super::order::{Layouts, Merged, Ordered, Part, processors};
use super::pipe;
use super::records::{Records, kind};
use super::source::{Content, Cursor};
use crate::Error;
use linux_perf_data::{Feature, PerfFile, PerfFileReader};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::BufReader;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A recording whose header was read.
pub struct Files {
    pub file: PerfFile,
    pub layouts: Rc<Layouts>,
    pub bytes: u64,
    parts: Vec<Piece>,
    /// Whether each buffer has a file.
    is_split: bool,
    /// Whether perf wrote it to a pipe.
    pub is_piped: bool,
    /// What of the file or folder is not read, and why.
    pub left_out: Vec<String>,
}

/// The file of a buffer that has nothing.
pub struct Missing {
    pub name: String,
    /// The processor, if it is known.
    pub cpu: Option<u64>,
    /// Whether there is one, but without content.
    pub is_empty: bool,
}

/// A file, or the part of one, with records.
struct Piece {
    path: PathBuf,
    /// The buffer that it is of.
    buffer: Option<u64>,
    content: Rc<Content>,
    range: Range<u64>,
}

impl Files {
    /// Opens the file with the header, and those beside it that belong to it.
    pub fn open(path: &Path) -> Result<Files, Error> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Files::of(path, whole(path)?.0, Some(folder))
    }

    /// The same of a file whose content is at hand. Files that belong to it are in `folder`.
    pub fn of(path: &Path, content: Content, folder: Option<&Path>) -> Result<Files, Error> {
        let mut magic = [0; 8];
        if content.read_exact_at(&mut magic, 0).is_ok() && &magic == b"2ELIFREP" {
            let why = "it was recorded on a big-endian machine, whose tracepoints cannot be read here";
            return Err(Error::malformed(path, why));
        }
        let malformed = |why: String| Error::malformed(path, why);
        let is_piped = pipe::is_one(&content);
        let content = if is_piped { pipe::content(content).map_err(malformed)? } else { content };
        let Places { data: range, second } = header::check(&content).map_err(malformed)?;
        let content = Rc::new(content);
        let cursor = BufReader::new(Cursor::new(Rc::clone(&content), 0));
        let PerfFileReader { perf_file: file, .. } = PerfFileReader::parse_file(cursor)
            .map_err(|error| malformed(format!("it cannot be read as a perf.data file: {error}")))?;
        let is_split = is_split(&file).map_err(malformed)?;
        let another = |at: u64| {
            format!(
                "another perf.data follows at byte {at}, which is not read: import it alone (tail -c +{})",
                at + 1
            )
        };
        let mut left_out: Vec<String> = second.map(another).into_iter().collect();
        let mut parts = vec![Piece { path: path.to_owned(), buffer: None, content, range }];
        if let Some(folder) = folder.filter(|_| is_split) {
            let listed = parts.first().map(listed).unwrap_or_default();
            parts.extend(of_buffers(folder, &listed, &mut left_out)?);
        }
        let bytes = parts.iter().map(|part| part.content.length()).sum();
        let layouts = Rc::new(Layouts::of(&file));
        Ok(Files { file, layouts, bytes, parts, is_split, is_piped, left_out })
    }

    /// The records, from the first one on.
    pub fn records(&self) -> Merged {
        let files = self.parts.iter().enumerate().map(|(index, piece)| {
            let part = match (self.is_split, piece.buffer) {
                (false, _) if self.is_piped => Part::Piped,
                (false, _) => Part::Whole,
                (true, None) => Part::OfPerf,
                (true, Some(_)) => Part::OfProcessor,
            };
            let records = Records::new(Rc::clone(&piece.content), piece.range.clone());
            Ordered::new(index, records, part, Rc::clone(&self.layouts))
        });
        Merged::new(files.collect())
    }

    pub fn path(&self, file: usize) -> Option<&Path> {
        self.parts.get(file).map(|part| part.path.as_path())
    }

    /// Which byte of this file this one of what is read as its content is.
    pub fn byte(&self, file: usize, at: u64) -> u64 {
        self.parts.get(file).map_or(at, |part| part.content.byte_of_file(at))
    }

    /// The names of the files of buffers that have content, by their places among all.
    pub fn of_buffers(&self) -> impl Iterator<Item = (usize, String)> {
        let pieces = self.parts.iter().enumerate().filter(|(_, piece)| !piece.range.is_empty());
        pieces.filter_map(|(file, piece)| Some((file, format!("data.{}", piece.buffer?))))
    }

    /// The files that are missing, or have no content.
    pub fn missing(&self, processors: &[(u64, u64)]) -> Vec<Missing> {
        if !self.is_split {
            return Vec::new();
        }
        let mut expected: BTreeMap<u64, Option<u64>> =
            processors.iter().map(|(buffer, cpu)| (*buffer, Some(*cpu))).collect();
        // Older ones do not list them: each event has a number for each buffer.
        let ids = self.file.event_attributes().iter().map(|attribute| attribute.ids().len() as u64).max();
        let buffers = ids.unwrap_or(0).min(cpus(&self.file).into());
        let last = self.parts.iter().filter_map(|part| part.buffer).max();
        let count = if expected.is_empty() { buffers } else { 0 }.max(last.map_or(1, |last| last + 1));
        (0..count).for_each(|buffer| {
            expected.entry(buffer).or_insert(None);
        });
        let of = |is_empty: bool| {
            let parts = self.parts.iter().filter(move |part| part.range.is_empty() == is_empty);
            parts.filter_map(|part| part.buffer).collect::<BTreeSet<u64>>()
        };
        let (empty, full) = (of(true), of(false));
        let missing = expected.into_iter().filter(|(buffer, _)| !full.contains(buffer));
        let missing = missing.map(|(buffer, cpu)| Missing {
            name: format!("data.{buffer}"),
            cpu,
            is_empty: empty.contains(&buffer),
        });
        missing.collect()
    }
}

/// Processors that were online.
pub fn cpus(file: &PerfFile) -> u32 {
    file.nr_cpus().ok().flatten().map_or(0, |cpus| cpus.nr_cpus_online)
}

/// Whether there is a file for each buffer; an error if they are of a kind that came later.
fn is_split(file: &PerfFile) -> Result<bool, String> {
    let version = file.feature_section_data(Feature::DIR_FORMAT).and_then(|data| data.first_chunk());
    match version.map_or(0, |version| u64::from_le_bytes(*version)) {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(format!("its folder has version {other}, and those up to 1 are known")),
    }
}

/// A file as it is, and its length.
fn whole(path: &Path) -> Result<(Content, u64), Error> {
    let file = File::open(path).map_err(|error| Error::io(path, &error))?;
    let bytes = file.metadata().map_err(|error| Error::io(path, &error))?.len();
    Ok((Content::whole(file, bytes), bytes))
}

/// The buffers that perf lists in the file with the header; none in older ones.
fn listed(piece: &Piece) -> BTreeSet<u64> {
    let mut records = Records::new(Rc::clone(&piece.content), piece.range.clone());
    let (mut body, mut listed) = (Vec::new(), BTreeSet::new());
    // What is broken is said when the rest is read.
    while let Ok(Some(head)) = records.next(&mut body) {
        if head.kind == kind::ID_INDEX {
            listed.extend(processors(&body).into_iter().map(|(buffer, _)| buffer));
        }
    }
    listed
}

/// Why a file of a buffer is not read, if so. Others than regular ones are not even opened: to open a pipe
/// waits for somebody who writes to it.
fn objection(path: &Path, buffer: u64, listed: &BTreeSet<u64>) -> Result<Option<&'static str>, Error> {
    let metadata = fs::metadata(path).map_err(|error| Error::io(path, &error))?;
    Ok(if !listed.is_empty() && !listed.contains(&buffer) {
        Some("is not one of the files that perf listed for this recording")
    } else if metadata.is_dir() {
        Some("is a folder, not a file")
    } else if !metadata.is_file() {
        Some("is no regular file")
    } else {
        None
    })
}

/// The files of buffers in a folder, but for those that do not belong there.
fn of_buffers(
    folder: &Path,
    listed: &BTreeSet<u64>,
    left_out: &mut Vec<String>,
) -> Result<Vec<Piece>, Error> {
    /// As many processors as Linux can have.
    const MOST: u64 = 1 << 13;
    let mut pieces = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| Error::io(folder, &error))?.flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("data.")?.parse::<u64>().ok());
        let Some(buffer) = number.filter(|number| *number < MOST) else { continue };
        let path = entry.path();
        if let Some(why) = objection(&path, buffer, listed)? {
            left_out.push(format!("data.{buffer} {why}: it is left out"));
            continue;
        }
        let (content, bytes) = whole(&path)?;
        let content = Rc::new(content);
        pieces.push(Piece { path, buffer: Some(buffer), content, range: 0..bytes });
    }
    left_out.sort_unstable();
    pieces.sort_unstable_by_key(|piece| piece.buffer);
    Ok(pieces)
}
