//! A folder that a recording is to be written to, found fit before anything is observed.

use crate::failure::{Code, Failure, reason};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A place for a recording.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// The recording that is there goes when the new one begins.
    replace: bool,
}

impl Folder {
    /// Checks what can be known before: the folder does not exist, or is empty, or holds a recording that may
    /// be replaced.
    pub fn new(path: &Path, replace: bool) -> Result<Folder, Failure> {
        let name = path.display();
        let refused =
            |why: &str| Err(Failure::new(Code::File, format!("cannot write a recording to {name}: {why}")));
        match fs::read_dir(path).map(|mut entries| entries.next().is_none()) {
            Ok(true) => {}
            Ok(_) if replace && holds_recording(path) => {}
            Ok(_) if replace => {
                return refused("it holds something else than a recording; choose another place with -o");
            }
            Ok(_) if holds_recording(path) => return refused("there is a recording; --force replaces it"),
            Ok(_) => return refused("it is not empty; choose another place with -o"),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let parent =
                    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
                if !parent.is_dir() {
                    return refused(&format!("there is no directory {}", parent.display()));
                }
            }
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                return refused("it is a file; a recording is a folder");
            }
            Err(error) => return refused(&reason(&error)),
        }
        Ok(Folder { path: path.to_path_buf(), replace })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the recording away that is to be replaced: its own files, and nothing else.
    pub fn clear(&self) -> Result<(), Failure> {
        if !self.replace || !self.path.is_dir() {
            return Ok(());
        }
        let failed = |error: &std::io::Error| {
            Failure::file("replace the recording in", self.path.display(), reason(error))
        };
        for entry in fs::read_dir(&self.path).map_err(|error| failed(&error))? {
            let entry = entry.map_err(|error| failed(&error))?;
            if is_of_a_recording(&entry.file_name().to_string_lossy()) {
                fs::remove_file(entry.path()).map_err(|error| failed(&error))?;
            }
        }
        Ok(())
    }
}

fn holds_recording(path: &Path) -> bool {
    let Ok(entries) = fs::read_dir(path) else { return false };
    let names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.iter().any(|name| name == "metadata") && names.iter().all(|name| is_of_a_recording(name))
}

fn is_of_a_recording(name: &str) -> bool {
    name == "metadata"
        || name
            .strip_prefix("stream_")
            .is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_recording_is_ever_replaced() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("recording");
        Folder::new(&path, false).expect("new");
        fs::create_dir(&path).expect("made");
        Folder::new(&path, false).expect("empty");
        fs::write(path.join("metadata"), "").expect("written");
        fs::write(path.join("stream_0"), "").expect("written");
        assert!(Folder::new(&path, false).expect_err("taken").message.contains("--force"));
        Folder::new(&path, true).expect("a recording").clear().expect("cleared");
        assert_eq!(fs::read_dir(&path).expect("there").count(), 0);
        fs::write(path.join("metadata"), "").expect("written");
        fs::write(path.join("thesis.tex"), "").expect("written");
        assert!(Folder::new(&path, true).expect_err("something else").message.contains("something else"));
        assert!(
            Folder::new(&place.path().join("no/where"), false)
                .expect_err("no parent")
                .message
                .contains("there is no directory")
        );
    }
}
