//! JSON objects one after the other, out of an array or by themselves, on one line each or not: read a little
//! at a time, so that it does not matter how long the file is.

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
    /// Whether the array's end has come.
    closed: bool,
}

impl Objects {
    /// From the beginning of a file.
    pub fn new(path: &Path) -> Objects {
        Objects {
            path: path.to_path_buf(),
            offset: 0,
            buffer: Vec::new(),
            next: 0,
            at_end: false,
            closed: false,
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How far it has been read.
    pub fn position(&self) -> u64 {
        self.offset + self.next as u64
    }

    /// Whether the array's end has come.
    pub fn closed(&self) -> bool {
        self.closed
    }

    /// The rest of the file is not to be read.
    pub fn give_up(&mut self) {
        self.rest();
        self.at_end = true;
        self.closed = true;
    }

    /// Takes no memory until the next object is asked for.
    pub fn rest(&mut self) {
        self.offset = self.position();
        self.buffer = Vec::new();
        self.next = 0;
        self.at_end = false;
    }

    /// The text of the next object, with where it begins; `None` at the end.
    pub fn next(&mut self) -> Result<Option<(u64, &[u8])>, Problem> {
        loop {
            match self.buffer.get(self.next).copied() {
                Some(b'{') => break,
                Some(b' ' | b'\t' | b'\n' | b'\r' | b',' | b'[') => self.next += 1,
                Some(b']') => {
                    self.closed = true;
                    self.next += 1;
                }
                Some(_) => return Err(Problem::Nonsense(self.position())),
                None if !self.fill()? => return Ok(None),
                None => {}
            }
        }
        let mut scan = Scan::default();
        // Of what is in the buffer from `next` on, how much has been looked at.
        let mut seen = 0;
        loop {
            let end = scan.find_end(&self.buffer[self.next + seen..]);
            if let Some(end) = end {
                let from = self.next;
                self.next += seen + end;
                return Ok(Some((self.offset + from as u64, &self.buffer[from..self.next])));
            }
            seen = self.buffer.len() - self.next;
            if seen > MOST {
                return Err(Problem::Nonsense(self.position()));
            }
            if !self.fill()? {
                return Err(Problem::CutOff(self.position()));
            }
        }
    }

    /// Reads on; what was taken before is needed no more. False at the end of the file.
    fn fill(&mut self) -> Result<bool, Problem> {
        if self.at_end {
            return Ok(false);
        }
        self.buffer.drain(..self.next);
        self.offset += self.next as u64;
        self.next = 0;
        let read = || -> io::Result<usize> {
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(self.offset + self.buffer.len() as u64))?;
            file.take(CHUNK as u64).read_to_end(&mut self.buffer)
        }()
        .map_err(Problem::Io)?;
        self.at_end = read == 0;
        Ok(!self.at_end)
    }
}

/// How deep in braces, and whether in a text.
#[derive(Default)]
struct Scan {
    depth: u32,
    in_text: bool,
    escaped: bool,
}

impl Scan {
    /// Just behind the brace that closes the first one.
    fn find_end(&mut self, bytes: &[u8]) -> Option<usize> {
        for (place, byte) in bytes.iter().enumerate() {
            if self.in_text {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_text = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_text = true,
                b'{' => self.depth += 1,
                b'}' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(place + 1);
                    }
                }
                _ => {}
            }
        }
        None
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
            // Nothing is lost by it.
            if found.len() % 2 == 1 {
                objects.rest();
            }
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
    fn objects_may_span_read_buffers() {
        let text: String =
            (0..2_000).map(|number| format!("{{\"number\":{number},\"text\":\"}}\\\\\"}},\n")).collect();
        let (found, problem) = all(&text);
        assert!(text.len() > CHUNK && problem.is_none());
        assert_eq!(found.len(), 2_000);
        assert_eq!(found[1_999], "{\"number\":1999,\"text\":\"}\\\\\"}");
    }

    #[test]
    fn text_between_objects_is_reported() {
        assert!(matches!(all("[{\"a\":1} x").1, Some(Problem::Nonsense(9))));
        let long = format!("{{{}", " ".repeat(MOST + 10));
        assert!(matches!(all(&long).1, Some(Problem::Nonsense(0))));
    }
}
