//! What lies in the initramfs of a machine: files of this one, at the same paths wherever that can be.

use crate::elf::Libraries;
use crate::error::{Error, Result, cannot};
use cpio::newc::{Builder, ModeFileType, trailer};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A root to be packed: paths in the machine (absolute, in order) and what lies there.
pub struct Root {
    entries: BTreeMap<PathBuf, Entry>,
    libraries: Libraries,
    /// Where libraries go, in the machine.
    library_folder: PathBuf,
    /// What some machines have beside it.
    layer: Option<Box<Root>>,
}

enum Entry {
    Folder { mode: u32 },
    Link(PathBuf),
    Text { bytes: Vec<u8>, mode: u32 },
    Copy { source: PathBuf, mode: u32 },
}

/// Paths that are links since /usr was merged.
const MERGED: &[(&str, &str)] =
    &[("/bin", "usr/bin"), ("/sbin", "usr/sbin"), ("/lib", "usr/lib"), ("/lib64", "usr/lib64")];

impl Root {
    /// One with nothing but the folders that every system has. Libraries are looked for in `libraries` and go
    /// to `/usr/lib/<triplet>`, where the loader of a Debian of that architecture looks.
    pub fn new(libraries: Libraries, triplet: &str) -> Root {
        let library_folder = Path::new("/usr/lib").join(triplet);
        let mut root = Root { entries: BTreeMap::new(), libraries, library_folder, layer: None };
        for folder in [
            "/dev",
            "/proc",
            "/sys",
            "/run",
            "/etc",
            "/root",
            "/lab",
            "/mnt",
            "/usr/bin",
            "/usr/sbin",
            "/usr/lib64",
            "/var/tmp",
        ] {
            root.folder(Path::new(folder), 0o755);
        }
        root.folder(Path::new("/tmp"), 0o1777);
        for (link, target) in MERGED {
            root.link(Path::new(link), Path::new(target));
        }
        root
    }

    /// A folder.
    pub fn folder(&mut self, path: &Path, mode: u32) {
        for parent in path.ancestors().skip(1).filter(|parent| parent.parent().is_some()) {
            self.entries.entry(parent.to_path_buf()).or_insert(Entry::Folder { mode: 0o755 });
        }
        self.entries.entry(path.to_path_buf()).or_insert(Entry::Folder { mode });
    }

    fn put(&mut self, path: &Path, entry: Entry) {
        let path = unmerged(path);
        if let Some(parent) = path.parent() {
            self.folder(parent, 0o755);
        }
        self.entries.insert(path, entry);
    }

    /// A symbolic link.
    pub fn link(&mut self, path: &Path, target: &Path) {
        self.put(path, Entry::Link(target.to_path_buf()));
    }

    /// A file with this content.
    pub fn text(&mut self, path: &str, content: impl Into<Vec<u8>>, mode: u32) {
        self.put(Path::new(path), Entry::Text { bytes: content.into(), mode });
    }

    /// A copy of a file of this machine.
    pub fn file(&mut self, path: &Path, source: &Path) -> Result {
        let about = fs::metadata(source).map_err(|error| cannot("read", source, error))?;
        self.put(
            path,
            Entry::Copy { source: source.to_path_buf(), mode: about.permissions().mode() & 0o7777 },
        );
        Ok(())
    }

    /// A folder of this machine with all that is in it.
    pub fn tree(&mut self, path: &Path, source: &Path) -> Result {
        self.folder(&unmerged(path), 0o755);
        for entry in fs::read_dir(source).map_err(|error| cannot("read", source, error))? {
            let entry = entry.map_err(|error| cannot("read", source, error))?;
            let (to, from) = (path.join(entry.file_name()), entry.path());
            let kind = entry.file_type().map_err(|error| cannot("read", &from, error))?;
            if kind.is_dir() {
                self.tree(&to, &from)?;
            } else if kind.is_symlink() {
                self.link(&to, &fs::read_link(&from).map_err(|error| cannot("read", &from, error))?);
            } else {
                self.file(&to, &from)?;
            }
        }
        Ok(())
    }

    /// The root of another system, on top of what is there.
    pub fn all_of(&mut self, source: &Path) -> Result {
        for entry in fs::read_dir(source).map_err(|error| cannot("read", source, error))? {
            let entry = entry.map_err(|error| cannot("read", source, error))?;
            // Links of a merged /usr are here already.
            if entry.file_type().map_err(|error| cannot("read", &entry.path(), error))?.is_dir() {
                self.tree(&Path::new("/").join(entry.file_name()), &entry.path())?;
            }
        }
        Ok(())
    }

    /// Puts another root beside this one, where this one has nothing, until the next layer replaces it.
    pub fn set_layer(&mut self, layer: Option<Root>) {
        self.layer = layer.map(Box::new);
    }

    /// A program, or a library that is loaded by name, with all that it needs.
    pub fn program(&mut self, path: &Path, source: &Path) -> Result {
        self.file(path, source)?;
        for (name, found) in self.libraries.needed(source).map_err(Error)? {
            if name.starts_with('/') {
                self.file(Path::new(&name), &found)?;
            } else {
                self.file(&self.library_folder.join(name), &found)?;
            }
        }
        Ok(())
    }

    /// Writes the initramfs. Nothing in it depends on when it is made.
    pub fn pack(&self, to: &Path) -> Result {
        let file = File::create(to).map_err(|error| cannot("create", to, error))?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        let beside = self.layer.iter().flat_map(|layer| &layer.entries);
        let beside = beside.filter(|(path, _)| !self.entries.contains_key(*path));
        for (number, (path, entry)) in self.entries.iter().chain(beside).enumerate() {
            // Paths in an initramfs have no slash at the beginning; numbers of files differ, or they would be
            // one.
            let name = path.strip_prefix("/").unwrap_or(path).to_string_lossy();
            let header = |mode, kind| {
                Builder::new(&name).ino(number as u32 + 1).nlink(1).mode(mode).set_mode_file_type(kind)
            };
            let packed = match entry {
                Entry::Folder { mode } => whole(header(*mode, ModeFileType::Directory), &[], &mut out),
                Entry::Link(target) => {
                    whole(header(0o777, ModeFileType::Symlink), target.to_string_lossy().as_bytes(), &mut out)
                }
                Entry::Text { bytes, mode } => whole(header(*mode, ModeFileType::Regular), bytes, &mut out),
                Entry::Copy { source, mode } => {
                    let bytes = fs::read(source).map_err(|error| cannot("read", source, error))?;
                    whole(header(*mode, ModeFileType::Regular), &bytes, &mut out)
                }
            };
            packed.map_err(|error| cannot("write", to, error))?;
        }
        let ended = trailer(&mut out).and_then(|out| out.flush());
        ended.map_err(|error| cannot("write", to, error))
    }
}

fn whole(header: Builder, bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
    let size = u32::try_from(bytes.len()).map_err(|_| io::Error::other("a file of 4 GiB or more"))?;
    let mut writer = header.write(out, size);
    writer.write_all(bytes)?;
    writer.finish().map(|_| ())
}

/// `/lib/x` lies in `/usr/lib/x`, of which `/lib` is a link.
fn unmerged(path: &Path) -> PathBuf {
    for (link, target) in MERGED {
        match path.strip_prefix(link) {
            Ok(rest) if !rest.as_os_str().is_empty() => return Path::new("/").join(target).join(rest),
            _ => {}
        }
    }
    path.to_path_buf()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn cpio_unpacks_the_archive() {
        let folder = tempfile::tempdir().unwrap();
        let mut root = Root::new(
            Libraries { folders: vec!["/lib/x86_64-linux-gnu".into(), "/lib64".into()] },
            "x86_64-linux-gnu",
        );
        root.text("/lab/job", "run\0true\0", 0o600);
        root.program(Path::new("/bin/sh"), Path::new("/bin/sh")).unwrap();
        let mut layer = Root::new(Libraries { folders: vec![] }, "x86_64-linux-gnu");
        layer.text("/lab/layer", "beside it", 0o600);
        layer.text("/lab/job", "not twice", 0o644);
        root.set_layer(Some(layer));
        let archive = folder.path().join("root.cpio");
        root.pack(&archive).unwrap();
        let listed = Command::new("cpio").args(["-i", "-t", "-v", "-F"]).arg(&archive).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        for expected in ["lab/job", "lab/layer", "usr/bin/sh", "bin -> usr/bin", "drwxrwxrwt"] {
            assert!(listed.contains(expected), "no {expected} in\n{listed}");
        }
        assert_eq!(listed.matches("lab/job").count(), 1, "{listed}");
        assert!(
            listed.lines().any(|line| line.ends_with("/libc.so.6")),
            "the shell's library is missing in\n{listed}"
        );
    }
}
