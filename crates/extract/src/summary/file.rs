//! The file `*.summary`: a magic line, the version, a checksum, and the summary in `postcard`.

use super::Summary;
use std::fmt;

/// How a summary begins.
pub const MAGIC: &[u8; 16] = b"punctual.summary";

const VERSION: u32 = 1;

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
                "it has version {version} of the format; this Punctual reads version {VERSION}: \
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

impl Summary {
    /// The file's contents: the same bytes for the same runs, however they were merged.
    pub fn to_bytes(&self) -> Vec<u8> {
        let body = postcard::to_allocvec(self).expect("memory takes any summary");
        let mut bytes = Vec::with_capacity(HEAD + body.len());
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(crc32fast::hash(&body).to_le_bytes());
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
        if version != VERSION {
            return Err(FileError::Version(version));
        }
        let (Some(sum), Some(body)) = (word(MAGIC.len() + 4), bytes.get(HEAD..)) else {
            return Err(FileError::Damaged);
        };
        if crc32fast::hash(body) != sum {
            return Err(FileError::Damaged);
        }
        Summary::from_body(body)
    }

    /// Reads what follows the checksum.
    fn from_body(body: &[u8]) -> Result<Summary, FileError> {
        // What the codec says is of its inside, and helps nobody.
        let (summary, rest) =
            postcard::take_from_bytes::<Summary>(body).map_err(|_| FileError::Undecodable)?;
        if !rest.is_empty() {
            return Err(FileError::Invalid(format!("{} bytes follow its end", rest.len())));
        }
        summary.check().map_err(FileError::Invalid)?;
        Ok(summary)
    }
}
