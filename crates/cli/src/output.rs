//! Where results go: to standard output, or to a file that is there whole or not at all.

use crate::failure::{Code, Failure, reason};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Prints to standard output. A reader that has gone (`| head`) has what it wanted.
pub fn print(text: &str) -> Result<(), Failure> {
    print_bytes(text.as_bytes())
}

/// [`print`], of bytes.
pub fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::file("write", "standard output", reason(&error)))
        }
        _ => Ok(()),
    }
}

/// A file to be written at the end of something long, whose path has been found fit at its beginning.
#[derive(Debug)]
pub struct Destination {
    path: PathBuf,
    replace: bool,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It is replaced as a whole, or not at all.
    File,
    /// A device or pipe is written to; replacing it by a file would break what it is.
    Special,
    /// What this process was given, be it a file that somebody else writes to as well: it is written to where
    /// it stands, and never replaced.
    StandardOutput,
}

/// Names of standard output. Where it is redirected they lead to a file, which is not ours to replace.
const STANDARD_OUTPUT: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

impl Destination {
    /// Checks all that can be known before: the file does not exist (or may be replaced), its directory takes
    /// new files.
    pub fn new(path: &Path, replace: bool) -> Result<Destination, Failure> {
        let name = path.display();
        if STANDARD_OUTPUT.iter().any(|name| path.as_os_str() == *name) {
            return Ok(Destination { path: "standard output".into(), replace, kind: Kind::StandardOutput });
        }
        // A link stays a link: what it leads to is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let destination = match fs::metadata(&path) {
            Ok(found) if found.is_dir() => {
                return Err(Failure::new(
                    Code::File,
                    format!("cannot write {name}: it is a directory; name a file in it"),
                ));
            }
            Ok(found) if found.is_file() && !replace => {
                return Err(Failure::new(
                    Code::File,
                    format!("cannot write {name}: it exists; --force replaces it"),
                ));
            }
            Ok(found) if found.is_file() => Destination { path, replace, kind: Kind::File },
            Ok(_) => Destination { path, replace, kind: Kind::Special },
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Destination { path, replace, kind: Kind::File }
            }
            Err(error) => return Err(Failure::file("write", name, reason(&error))),
        };
        if destination.kind == Kind::File {
            temporary(directory(&destination.path)).map_err(|error| {
                let why = match error.kind() {
                    ErrorKind::NotFound if directory(&destination.path).is_dir() => {
                        "no file can be made in that directory".to_owned()
                    }
                    ErrorKind::NotFound => {
                        format!("there is no directory {}", directory(&destination.path).display())
                    }
                    _ => reason(&error),
                };
                Failure::new(Code::File, format!("cannot write {name}: {why}; choose another place"))
            })?;
        }
        Ok(destination)
    }

    /// Writes the file.
    pub fn write(&self, contents: &[u8]) -> io::Result<()> {
        let mut file = self.begin()?;
        file.write_all(contents)?;
        file.finish()
    }

    /// The file, to be written bit by bit; [`Pending::finish`] puts it in its place.
    pub fn begin(&self) -> io::Result<Pending<'_>> {
        let file = match self.kind {
            Kind::StandardOutput => {
                Unfinished::Special(File::from(io::stdout().as_fd().try_clone_to_owned()?))
            }
            Kind::Special => Unfinished::Special(OpenOptions::new().write(true).open(&self.path)?),
            Kind::File => Unfinished::File(temporary(directory(&self.path))?),
        };
        Ok(Pending { destination: self, file })
    }

    /// [`Destination::write`]; what cannot be written there any more (the disk is full) is put into the directory for temporary files
    /// rather than lost.
    pub fn write_or_rescue(&self, contents: &[u8]) -> Result<(), Failure> {
        let Err(error) = self.write(contents) else { return Ok(()) };
        let mut failure = Failure::file("write", self.path.display(), reason(&error));
        let name = self.path.file_name().unwrap_or_default();
        let rescue =
            tempfile::Builder::new().prefix("punctual-").suffix(name).tempfile_in(std::env::temp_dir());
        let rescued = rescue.and_then(|mut file| {
            file.write_all(contents)?;
            file.keep().map_err(|error| error.error)
        });
        failure.message += &match rescued {
            Ok((_, path)) => format!("; what was to be in it is in {} instead", path.display()),
            Err(_) => "; what was to be in it is lost, run this again then".into(),
        };
        Err(failure)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A file under another name in the same directory, gone if it is dropped.
#[derive(Debug)]
pub struct Pending<'a> {
    destination: &'a Destination,
    file: Unfinished,
}

#[derive(Debug)]
enum Unfinished {
    File(NamedTempFile),
    Special(File),
}

impl Pending<'_> {
    /// To the disk, then renamed.
    pub fn finish(self) -> io::Result<()> {
        let Unfinished::File(file) = self.file else { return Ok(()) };
        let Destination { path, replace, .. } = self.destination;
        file.as_file().sync_all()?;
        let renamed = if *replace { file.persist(path) } else { file.persist_noclobber(path) };
        renamed.map_err(|error| error.error)?;
        // The rename is on the disk only when its directory is; where a file system cannot do that, it is as
        // good as renamed.
        let _ = File::open(directory(path)).and_then(|directory| directory.sync_all());
        Ok(())
    }
}

impl Write for Pending<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            Unfinished::File(file) => file.write(bytes),
            Unfinished::Special(file) => file.write(bytes),
        }
        .map_err(|error| plain(&error))
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.file {
            Unfinished::File(file) => file.flush(),
            Unfinished::Special(file) => file.flush(),
        }
        .map_err(|error| plain(&error))
    }
}

/// The error in words for whoever named the file: without the temporary file's name, with what to do. It goes
/// through other libraries, which hand on nothing but its text.
fn plain(error: &io::Error) -> io::Error {
    let advice = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "; make room or choose another place",
        _ => "",
    };
    io::Error::new(error.kind(), reason(error) + advice)
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Gone when dropped, readable for whoever the user's mask lets read.
fn temporary(directory: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".punctual-").permissions(Permissions::from_mode(0o666));
    builder.tempfile_in(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("the directory");
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_file_appears_whole_and_alone() {
        let folder = tempfile::tempdir().expect("a directory");
        let destination = Destination::new(&folder.path().join("a.timing.json"), false).expect("fit");
        assert!(files(folder.path()).is_empty());
        destination.write(b"whole").expect("written");
        assert_eq!(files(folder.path()), ["a.timing.json"]);
        assert_eq!(fs::read(destination.path()).expect("read"), b"whole");
    }

    #[test]
    fn an_existing_file_is_replaced_only_if_asked() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("a.timing.json");
        let late = Destination::new(&path, false).expect("fit");
        fs::write(&path, "old").expect("written");
        let refused = Destination::new(&path, false).expect_err("it exists");
        assert_eq!(refused.code, Code::File);
        assert!(refused.message.contains("--force"), "{}", refused.message);
        late.write(b"new").expect_err("it came meanwhile");
        assert_eq!(fs::read(&path).expect("read"), b"old");
        Destination::new(&path, true).expect("fit").write(b"new").expect("written");
        assert_eq!(fs::read(&path).expect("read"), b"new");
        assert_eq!(files(folder.path()), ["a.timing.json"]);
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().expect("a directory");
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "old").expect("written");
        std::os::unix::fs::symlink(&target, &link).expect("linked");
        Destination::new(&link, true).expect("fit").write(b"new").expect("written");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(fs::read(&target).expect("read"), b"new");
    }

    #[test]
    fn a_device_is_written_to_and_stays_one() {
        let null = Destination::new(Path::new("/dev/null"), true).expect("fit");
        null.write(b"gone").expect("written");
        assert!(!fs::metadata("/dev/null").expect("there").is_file());
    }

    #[test]
    fn unfit_places_are_found_before() {
        let folder = tempfile::tempdir().expect("a directory");
        let missing = Destination::new(&folder.path().join("no/a"), false).expect_err("no directory");
        assert!(missing.message.contains("there is no directory"), "{}", missing.message);
        let directory = Destination::new(folder.path(), true).expect_err("a directory");
        assert!(directory.message.contains("it is a directory"), "{}", directory.message);
    }

    #[test]
    fn a_full_disk_is_told_of_the_file_that_was_asked_for() {
        let full = Destination::new(Path::new("/dev/full"), true).expect("fit");
        let error = full.write(b"models").expect_err("there is no room");
        assert_eq!(error.to_string(), "no space left on device; make room or choose another place");
    }

    #[test]
    fn what_cannot_be_written_is_rescued() {
        let folder = tempfile::tempdir().expect("a directory");
        let destination = Destination::new(&folder.path().join("a"), false).expect("fit");
        drop(folder);
        let failure = destination.write_or_rescue(b"models").expect_err("its directory has gone");
        let (_, rest) = failure.message.split_once("; what was to be in it is in ").expect("rescued");
        let path = rest.strip_suffix(" instead").expect("a path");
        assert_eq!(fs::read(path).expect("rescued"), b"models");
        fs::remove_file(path).expect("removed");
    }
}
