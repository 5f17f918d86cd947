//! Sockets of other processes.

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Connects to a server. Neither that nor any message takes longer than `limit`, also if the server is
/// stopped: then many connect, and the next one waits.
///
/// # Errors
/// `WouldBlock` if it takes longer; otherwise what the kernel said.
pub fn connect_within(path: &Path, limit: Duration) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(limit))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(limit))?;
    connect(&socket, &address)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{bind, listen};

    #[test]
    fn a_server_that_never_accepts_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        bind(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        listen(&socket, 1).unwrap();
        let limit = Duration::from_millis(10);
        // The kernel lets one more wait than is said.
        let waiting: Vec<_> = (0..4).map(|_| connect_within(&path, limit)).collect();
        let errors: Vec<_> = waiting.iter().filter_map(|it| it.as_ref().err().map(io::Error::kind)).collect();
        assert_eq!(errors, [io::ErrorKind::WouldBlock; 2]);
    }
}
