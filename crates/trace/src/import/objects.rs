//! JSON objects one after the other, out of an array or by themselves, on one line each or not: read a little at a time, so that it
//! does not matter how long the file is.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Read at a time. The file is closed in between: a recording has a file for each thread.
const CHUNK: usize = 32 << 10;
/// No event is longer.
pub const MOST: usize = 64 << 10;

/// Why there is no next object.
#[derive(Debug)]
pub enum Problem {
    /// The file system failed.
    Io(io::Error),
    /// There is something else at this byte.
    Nonsense(u64),
    /// The file ends inside an object, which begins at this byte.
    CutOff(u64),
}

/// The objects of one file.
#[derive(Debug)]
pub struct Objects {
    path: PathBuf,
    /// Where `buffer` begins in the file.
    offset: u64,
    buffer: Vec<u8>,
    /// Where the next object is looked for, in `buffer`.
    next: usize,
    at_end: bool,
}

impl Objects {
    /// From the beginning of a file.
    pub fn new(path: &Path) -> Objects {
        Objects { path: path.to_path_buf(), offset: 0, buffer: Vec::new(), next: 0, at_end: false }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How far it has been read.
    pub fn position(&self) -> u64 {
        self.offset + self.next as u64
    }

    /// The text of the next object, with where it begins; `None` at the end.
    pub fn next(&mut self) -> Result<Option<(u64, &[u8])>, Problem> {
        loop {
            let Some(byte) = self.byte(self.next)? else { return Ok(None) };
            match byte {
                b'{' => break,
                b' ' | b'\t' | b'\n' | b'\r' | b',' | b'[' | b']' => self.next += 1,
                _ => return Err(Problem::Nonsense(self.position())),
            }
        }
        // What was read before is needed no more.
        self.buffer.drain(..self.next);
        self.offset += self.next as u64;
        self.next = 0;
        let (mut depth, mut in_text, mut escaped, mut end) = (0_u32, false, false, 0);
        loop {
            let Some(byte) = self.byte(end)? else { return Err(Problem::CutOff(self.offset)) };
            end += 1;
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_text => escaped = true,
                b'"' => in_text = !in_text,
                b'{' if !in_text => depth += 1,
                b'}' if !in_text => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            if end > MOST {
                return Err(Problem::Nonsense(self.offset));
            }
        }
        self.next = end;
        Ok(Some((self.offset, &self.buffer[..end])))
    }

    /// The byte at this place of the buffer, read if it has not been.
    fn byte(&mut self, place: usize) -> Result<Option<u8>, Problem> {
        if place >= self.buffer.len() && !self.at_end {
            self.fill().map_err(Problem::Io)?;
        }
        Ok(self.buffer.get(place).copied())
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.offset + self.buffer.len() as u64))?;
        let read = file.take(CHUNK as u64).read_to_end(&mut self.buffer)?;
        self.at_end = read == 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> (Vec<String>, Option<Problem>) {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("written");
        let mut objects = Objects::new(file.path());
        let mut found = Vec::new();
        loop {
            match objects.next() {
                Ok(Some((_, text))) => found.push(String::from_utf8_lossy(text).into_owned()),
                Ok(None) => return (found, None),
                Err(problem) => return (found, Some(problem)),
            }
        }
    }

    #[test]
    fn layout_does_not_matter() {
        let (found, problem) = all("[\n{\"a\":1},\n{ \"b\" : {\"c\":\"}\\\"{\"}\n }\n]\n");
        assert_eq!(found, ["{\"a\":1}", "{ \"b\" : {\"c\":\"}\\\"{\"}\n }"]);
        assert!(problem.is_none());
    }

    #[test]
    fn a_file_may_end_anywhere() {
        let text = "[{\"a\":1},{\"b\":2}";
        for end in 0..text.len() {
            let (found, problem) = all(&text[..end]);
            assert_eq!(found.len(), usize::from(end > 7), "{end}");
            assert_eq!(
                matches!(problem, Some(Problem::CutOff(at)) if at == if end > 9 { 9 } else { 1 }),
                (2..8).contains(&end) || end > 9,
                "{end}"
            );
        }
    }

    #[test]
    fn what_is_no_object_is_found() {
        assert!(matches!(all("[{\"a\":1} x").1, Some(Problem::Nonsense(9))));
        let long = format!("{{{}", " ".repeat(MOST + 10));
        assert!(matches!(all(&long).1, Some(Problem::Nonsense(0))));
    }
}
