//! The folder a recording will be written to, checked before anything is observed.

use crate::error::{Error, Result, plain_reason};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A place for a new recording.
#[derive(Clone, Debug)]
pub struct RecordingFolder {
    path: PathBuf,
    /// An existing recording is deleted when the new one begins.
    replace: bool,
}

impl RecordingFolder {
    /// Checks that the folder does not exist, is empty, or holds a recording that `replace` allows to
    /// replace.
    pub fn new(path: &Path, replace: bool) -> Result<RecordingFolder> {
        let refuse = |why: &str, advice: Option<&str>| {
            let error = Error::file(format!("cannot write a recording to {}", path.display())).because(why);
            Err(match advice {
                Some(advice) => error.advise(advice),
                None => error,
            })
        };
        let elsewhere = Some("choose another place");
        match fs::read_dir(path).map(|mut entries| entries.next().is_none()) {
            Ok(true) => {}
            Ok(_) if replace && holds_recording(path) => {}
            Ok(_) if replace => return refuse("it holds something other than a recording", elsewhere),
            Ok(_) if holds_recording(path) => {
                return refuse("it holds a recording", Some("--force replaces it"));
            }
            Ok(_) => return refuse("it is not empty", elsewhere),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let parent =
                    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
                if !parent.is_dir() {
                    return refuse(&format!("there is no directory {}", parent.display()), None);
                }
            }
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                return refuse("it is a file; a recording is a folder", None);
            }
            Err(error) => return refuse(&plain_reason(&error), None),
        }
        Ok(RecordingFolder { path: path.to_path_buf(), replace })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether an existing recording is replaced.
    pub fn replaces(&self) -> bool {
        self.replace
    }

    /// Deletes the recording that was begun here, and the folder if nothing else is in it. What cannot be
    /// deleted stays.
    pub(crate) fn discard(&self) {
        let files = fs::read_dir(&self.path).into_iter().flatten().flatten();
        for file in files.filter(|file| belongs_to_recording(&file.file_name().to_string_lossy())) {
            let _ = fs::remove_file(file.path());
        }
        let _ = fs::remove_dir(&self.path);
    }

    /// Deletes the recording to be replaced: its own files and nothing else.
    pub fn clear(&self) -> Result<()> {
        if !self.replace || !self.path.is_dir() {
            return Ok(());
        }
        let failed =
            |error: &std::io::Error| Error::io("replace the recording in", self.path.display(), error);
        for entry in fs::read_dir(&self.path).map_err(|error| failed(&error))? {
            let entry = entry.map_err(|error| failed(&error))?;
            if belongs_to_recording(&entry.file_name().to_string_lossy()) {
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
    names.iter().any(|name| name == "metadata") && names.iter().all(|name| belongs_to_recording(name))
}

fn belongs_to_recording(name: &str) -> bool {
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
        RecordingFolder::new(&path, false).expect("new");
        fs::create_dir(&path).expect("made");
        RecordingFolder::new(&path, false).expect("empty");
        fs::write(path.join("metadata"), "").expect("written");
        fs::write(path.join("stream_0"), "").expect("written");
        let refusal = |path: &Path, replace| {
            let error = RecordingFolder::new(path, replace).expect_err("refused");
            format!("{error:#}")
        };
        assert!(refusal(&path, false).contains("--force"));
        RecordingFolder::new(&path, true).expect("a recording").clear().expect("cleared");
        assert_eq!(fs::read_dir(&path).expect("there").count(), 0);
        fs::write(path.join("metadata"), "").expect("written");
        fs::write(path.join("thesis.tex"), "").expect("written");
        assert!(refusal(&path, true).contains("something other"));
        assert!(refusal(&place.path().join("no/where"), false).contains("there is no directory"));
    }
}
