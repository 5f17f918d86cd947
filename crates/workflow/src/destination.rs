//! Where results go: to standard output, or to a file that appears complete or not at all.

use crate::error::{Error, Result, plain_reason};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file to write at the end of something long; its path is checked at the beginning.
#[derive(Debug)]
pub struct Destination {
    path: PathBuf,
    replace: bool,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Replaced as a whole, or not at all.
    File,
    /// A device or pipe: written to, never replaced by a file.
    Special,
    /// Written to at its current position, never replaced: others may write to the same file.
    StandardOutput,
}

/// Names of standard output. If it is redirected they lead to a file that is not ours to replace.
const STANDARD_OUTPUT: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

impl Destination {
    /// Checks what can be checked now: the file does not exist (or `replace` is set) and its directory takes
    /// new files. `-` is standard output.
    pub fn new(path: &Path, replace: bool) -> Result<Destination> {
        let name = path.display();
        if STANDARD_OUTPUT.iter().any(|name| path.as_os_str() == *name) {
            return Ok(Destination { path: "standard output".into(), replace, kind: Kind::StandardOutput });
        }
        // A link stays a link: its target is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let refuse = |why: &str, advice: &str| {
            Err(Error::file(format!("cannot write {name}")).because(why).advise(advice))
        };
        let kind = match fs::metadata(&path) {
            Ok(found) if found.is_dir() => return refuse("it is a directory", "name a file in it"),
            Ok(found) if found.is_file() && !replace => return refuse("it exists", "--force replaces it"),
            Ok(found) if found.is_file() => Kind::File,
            Ok(_) => Kind::Special,
            Err(error) if error.kind() == ErrorKind::NotFound => Kind::File,
            Err(error) => return Err(Error::io("write", name, &error)),
        };
        if kind == Kind::File {
            if let Err(error) = temporary(directory(&path)) {
                return refuse(&unwritable(directory(&path), &error), "choose another place");
            }
        }
        Ok(Destination { path, replace, kind })
    }

    /// Writes the file.
    pub fn write(&self, contents: &[u8]) -> io::Result<()> {
        let mut file = self.begin()?;
        file.write_all(contents)?;
        file.finish()
    }

    /// Begins a file that is written bit by bit; [`Pending::finish`] puts it in its place.
    pub fn begin(&self) -> io::Result<Pending<'_>> {
        let file = match self.kind {
            Kind::StandardOutput => {
                Unfinished::StandardOutput(File::from(io::stdout().as_fd().try_clone_to_owned()?))
            }
            Kind::Special => Unfinished::Special(OpenOptions::new().write(true).open(&self.path)?),
            Kind::File => Unfinished::File(temporary(directory(&self.path))?),
        };
        Ok(Pending { destination: self, file })
    }

    /// [`Destination::write`]; if that fails (a full disk), saves the contents in the directory for temporary
    /// files and says where.
    pub fn write_or_rescue(&self, contents: &[u8]) -> Result<()> {
        let Err(error) = self.write(contents) else { return Ok(()) };
        let name = self.path.file_name().unwrap_or_default();
        let rescue =
            tempfile::Builder::new().prefix("punctual-").suffix(name).tempfile_in(std::env::temp_dir());
        let rescued = rescue.and_then(|mut file| {
            file.write_all(contents)?;
            file.keep().map_err(|error| error.error)
        });
        Err(Error::io("write", self.path.display(), &error).advise(match rescued {
            Ok((_, path)) => format!("its contents are in {} instead", path.display()),
            Err(_) => "its contents are lost: run this again afterwards".into(),
        }))
    }

    /// Where it goes; `standard output` if it goes there.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it goes to standard output.
    pub fn is_standard_output(&self) -> bool {
        self.kind == Kind::StandardOutput
    }
}

fn unwritable(directory: &Path, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound if directory.is_dir() => "its directory takes no new files".to_owned(),
        ErrorKind::NotFound => format!("there is no directory {}", directory.display()),
        _ => plain_reason(error),
    }
}

/// A file under a temporary name in the same directory; deleted if it is dropped.
#[derive(Debug)]
pub struct Pending<'a> {
    destination: &'a Destination,
    file: Unfinished,
}

#[derive(Debug)]
enum Unfinished {
    File(NamedTempFile),
    Special(File),
    StandardOutput(File),
}

impl Pending<'_> {
    /// Puts the complete file in its place.
    pub fn finish(self) -> io::Result<()> {
        let Unfinished::File(file) = self.file else { return Ok(()) };
        let Destination { path, replace, .. } = self.destination;
        file.as_file().sync_all()?;
        let renamed = if *replace { file.persist(path) } else { file.persist_noclobber(path) };
        renamed.map_err(|error| error.error)?;
        // The rename is durable only once the directory is. Not every file system can sync directories.
        let _ = File::open(directory(path)).and_then(|directory| directory.sync_all());
        Ok(())
    }
}

impl Write for Pending<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            Unfinished::File(file) => file.write(bytes),
            Unfinished::Special(file) => file.write(bytes),
            Unfinished::StandardOutput(file) => match file.write(bytes) {
                // The reader has what it wanted (`| head`).
                Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(bytes.len()),
                result => result,
            },
        }
        .map_err(|error| explain(&error))
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.file {
            Unfinished::File(file) => file.flush(),
            Unfinished::Special(file) | Unfinished::StandardOutput(file) => file.flush(),
        }
        .map_err(|error| explain(&error))
    }
}

/// The error for whoever named the file: without the temporary file's name, and with advice. Other libraries
/// pass it on as text alone.
fn explain(error: &io::Error) -> io::Error {
    let advice = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "; make room or choose another place",
        _ => "",
    };
    io::Error::new(error.kind(), plain_reason(error) + advice)
}

/// The default path of a file made from `path`: in the current directory, with `ending` replaced by
/// `extension`.
pub fn derived_path(path: &Path, ending: &str, extension: &str) -> PathBuf {
    let name = own_name(path).unwrap_or_else(|| "punctual".into());
    let stem = name.strip_suffix(ending).unwrap_or(&name);
    PathBuf::from(format!("{stem}.{extension}"))
}

/// The name of a file or folder in its folder, even of `.`.
pub(crate) fn own_name(path: &Path) -> Option<String> {
    let real = if path.file_name().is_none() { fs::canonicalize(path).ok() } else { None };
    real.as_deref().unwrap_or(path).file_name().map(|name| name.to_string_lossy().into_owned())
}

/// Whether `path` is `-`: standard input or standard output.
pub fn is_standard_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Deleted when dropped; readable as the user's mask says.
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
    fn a_file_appears_complete_and_alone() {
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
        assert_eq!(refused.kind(), crate::ErrorKind::File);
        assert!(format!("{refused:#}").ends_with("it exists; --force replaces it"), "{refused:#}");
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
    fn a_device_is_written_to_and_not_replaced() {
        let null = Destination::new(Path::new("/dev/null"), true).expect("fit");
        null.write(b"gone").expect("written");
        assert!(!fs::metadata("/dev/null").expect("there").is_file());
    }

    #[test]
    fn unusable_places_are_refused_at_once() {
        let folder = tempfile::tempdir().expect("a directory");
        let missing = Destination::new(&folder.path().join("no/a"), false).expect_err("no directory");
        assert!(format!("{missing:#}").contains("there is no directory"), "{missing:#}");
        let directory = Destination::new(folder.path(), true).expect_err("a directory");
        assert!(format!("{directory:#}").contains("it is a directory"), "{directory:#}");
    }

    #[test]
    fn a_full_disk_is_reported_with_advice() {
        let full = Destination::new(Path::new("/dev/full"), true).expect("fit");
        let error = full.write(b"models").expect_err("there is no room");
        assert_eq!(error.to_string(), "no space left on device; make room or choose another place");
    }

    #[test]
    fn output_that_cannot_be_written_is_rescued() {
        let folder = tempfile::tempdir().expect("a directory");
        let destination = Destination::new(&folder.path().join("a"), false).expect("fit");
        drop(folder);
        let failure = destination.write_or_rescue(b"models").expect_err("its directory has gone");
        let text = format!("{failure:#}");
        let (_, rest) = text.split_once("; its contents are in ").expect("rescued");
        let path = rest.strip_suffix(" instead").expect("a path");
        assert_eq!(fs::read(path).expect("rescued"), b"models");
        fs::remove_file(path).expect("removed");
    }
}
