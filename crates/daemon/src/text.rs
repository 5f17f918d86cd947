//! Files of an administrator: reading them safely, and reporting problems with their places.

use punctual_protocol::one_line;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// More than anyone writes by hand.
const GREATEST: u64 = 1 << 20;
/// More than timing models of large machines have.
const GREATEST_GENERATED: u64 = 64 << 20;

/// An error or a warning about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub path: PathBuf,
    /// Line and column, both from 1; the column in characters, 0 if the whole line is meant. `None` if the
    /// whole file is.
    pub at: Option<(usize, usize)>,
    /// What is wrong, and what would be right: one line, whatever it quotes. Names the file if it is about
    /// the whole file.
    pub message: String,
}

impl Problem {
    /// About a whole file.
    pub fn in_file(path: &Path, message: impl Into<String>) -> Problem {
        let message = format!("{}: {}", path.display(), message.into());
        Problem { path: path.to_owned(), at: None, message: one_line(&message) }
    }

    /// About a file that cannot be read.
    pub fn unreadable(path: &Path, error: &std::io::Error) -> Problem {
        let message = format!("cannot read {}: {}", path.display(), reason(error));
        Problem { path: path.to_owned(), at: None, message: one_line(&message) }
    }

    /// About a line of it.
    pub fn in_line(path: &Path, line: usize, message: impl Into<String>) -> Problem {
        Problem { path: path.to_owned(), at: Some((line, 0)), message: one_line(&message.into()) }
    }

    /// About the byte of a text at an offset.
    pub fn at(path: &Path, text: &str, offset: usize, message: impl Into<String>) -> Problem {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &text[..offset];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Problem { path: path.to_owned(), at: Some((line, column)), message: one_line(&message.into()) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, message) = (one_line(&self.path.display().to_string()), &self.message);
        match self.at {
            Some((line, 0)) => write!(f, "{path}:{line}: {message}"),
            Some((line, column)) => write!(f, "{path}:{line}:{column}: {message}"),
            None => f.write_str(message),
        }
    }
}

/// Why a file cannot be used: everything that is wrong with it, in the file's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(pub Vec<Problem>);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.0.iter().enumerate() {
            write!(f, "{}{problem}", if at == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// Reads a file that only root, or the user of this process, can have written (ReTiF, Section 4.1).
pub fn read(path: &Path) -> Result<String, Problem> {
    read_up_to(path, GREATEST)
}

/// The same for a file that a program wrote, which may be longer.
pub fn read_generated(path: &Path) -> Result<String, Problem> {
    read_up_to(path, GREATEST_GENERATED)
}

fn read_up_to(path: &Path, greatest: u64) -> Result<String, Problem> {
    let cannot = |error: std::io::Error| Problem::unreadable(path, &error);
    let file = File::open(path).map_err(cannot)?;
    let about = file.metadata().map_err(cannot)?;
    if !about.is_file() {
        return Err(Problem::in_file(path, "is not a regular file"));
    }
    trusted(&about).map_err(|why| Problem::in_file(path, why))?;
    let mut bytes = Vec::new();
    file.take(greatest + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > greatest {
        return Err(Problem::in_file(path, format!("is longer than {greatest} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let valid = String::from_utf8_lossy(&error.as_bytes()[..at]).into_owned();
        Problem::at(path, &valid, at, "is not UTF-8 from here on")
    })
}

/// Whether only root and the user of this process can change a file: owner and permissions.
pub fn trusted(about: &std::fs::Metadata) -> Result<(), String> {
    let me = nix::unistd::geteuid().as_raw();
    if about.uid() != 0 && about.uid() != me {
        return Err(format!(
            "belongs to user {}; it must belong to root or the daemon's user (sudo chown \
             root)",
            about.uid()
        ));
    }
    if about.mode() & 0o022 != 0 {
        return Err(format!("is writable by others (mode {:03o}); use chmod go-w", about.mode() & 0o777));
    }
    Ok(())
}

/// An operating system's error without its number.
pub fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_lines_and_columns_of_characters() {
        let path = Path::new("x");
        let at = |offset| Problem::at(path, "ab\nπc\n", offset, "m").to_string();
        assert_eq!(
            [at(0), at(3), at(5), at(4), at(7), at(99)],
            ["x:1:1: m", "x:2:1: m", "x:2:2: m", "x:2:1: m", "x:3:1: m", "x:3:1: m"]
        );
    }

    #[test]
    fn a_message_is_one_line_whatever_it_quotes() {
        let problem = Problem::in_file(Path::new("/a\nb"), "there is no plugin 'R\nM\u{1b}[1m', nor 'ä'");
        assert_eq!(problem.to_string(), "/a\\nb: there is no plugin 'R\\nM\\u{1b}[1m', nor 'ä'");
    }

    #[test]
    fn files_writable_by_others_are_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rules.conf");
        std::fs::write(&path, "# nothing\n").unwrap();
        for (mode, fine) in [(0o644, true), (0o600, true), (0o664, false), (0o646, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read(&path).is_ok(), fine, "{mode:o}: {:?}", read(&path));
        }
    }

    #[test]
    fn missing_binary_and_oversized_files_are_refused_with_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let error = |path: &Path| read(path).unwrap_err().to_string();
        assert!(error(&folder.path().join("none")).ends_with("none: no such file or directory"));
        assert!(error(folder.path()).ends_with("is not a regular file"));
        let path = folder.path().join("much");
        std::fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
        assert!(error(&path).contains("longer than 1048576 bytes"));
        std::fs::write(&path, b"# \xff").unwrap();
        assert!(error(&path).ends_with("much:1:3: is not UTF-8 from here on"), "{}", error(&path));
    }
}
