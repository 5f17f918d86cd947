//! The socket's file: a stale one is replaced, one with a living server is not.

use crate::config;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// A listening socket that was made here, and takes its file away when it is dropped.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode: somebody else's file at the same place stays.
    identity: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|file| (file.dev(), file.ino()) == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens. The error is a sentence.
pub fn listen_at(place: &config::Socket) -> Result<(OwnedFd, SocketFile), String> {
    let path = &place.path;
    let failed = |what: &str, error: io::Error| format!("{what} {}: {error}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| format!("creating {}: {error}", folder.display()))?;
    }
    remove_stale(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map_err(|error| failed("a socket for", error.into()))?;
    let address = SocketAddrUnix::new(path).map_err(|error| failed("the socket's path", error.into()))?;
    // Nobody connects between here and the line that says who may.
    let mask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let bound = bind(&socket, &address);
    rustix::process::umask(mask);
    bound.map_err(|error| failed("binding", error.into()))?;
    let file = fs::symlink_metadata(path).map_err(|error| failed("looking at", error))?;
    let file = SocketFile { path: path.clone(), identity: (file.dev(), file.ino()) };
    if let Some(group) = place.group {
        chown(path, None, Some(group)).map_err(|error| failed("giving a group to", error))?;
    }
    fs::set_permissions(path, Permissions::from_mode(place.mode))
        .map_err(|error| failed("setting the permissions of", error))?;
    listen(&socket, 4096).map_err(|error| failed("listening at", error.into()))?;
    Ok((socket, file))
}

fn remove_stale(path: &Path) -> Result<(), String> {
    let name = path.display();
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("looking at {name}: {error}")),
        Ok(file) if !file.file_type().is_socket() => {
            return Err(format!("{name} exists and is not a socket; not replacing it"));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(format!(
            "another server, perhaps another punctuald, answers at {name}; stop it, or use another socket \
             (--socket)"
        )),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|error| format!("removing the stale socket {name}: {error}"))
        }
        Err(error) => Err(format!("checking for a server at {name}: {error}")),
    }
}
