//! The service manager: notifications (`sd_notify(3)`) and the socket that it may pass (`sd_listen_fds(3)`).

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{AddressFamily, SocketType, sockopt};
use std::env;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

/// Notifies the manager, if there is one.
///
/// # Errors
/// A sentence that says where it could not be reached, and why.
pub fn notify(state: &str) -> io::Result<()> {
    let Some(address) = env::var_os("NOTIFY_SOCKET") else { return Ok(()) };
    let sent = match address.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(&address),
    }
    .and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
    sent.map(drop).map_err(|error| {
        let place = Path::new(&address).display();
        io::Error::new(
            error.kind(),
            format!("cannot send {state:?} to the service manager at {place}: {error}"),
        )
    })
}

/// `RELOADING=1` with its time stamp.
pub fn reloading() -> String {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    format!(
        "RELOADING=1\nMONOTONIC_USEC={}",
        now.tv_sec as i128 * 1_000_000 + i128::from(now.tv_nsec) / 1_000
    )
}

/// The socket that was passed, if any. Another kind of socket, or more than one, is an error.
pub fn listener() -> io::Result<Option<OwnedFd>> {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    if number("LISTEN_PID") != Some(std::process::id()) {
        return Ok(None);
    }
    let wrong = |what: String| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    match number("LISTEN_FDS") {
        None | Some(0) => return Ok(None),
        Some(1) => {}
        Some(more) => return wrong(format!("{more} sockets were passed, but punctuald takes one")),
    }
    // SAFETY: by the protocol it is open, and this process's; it is asked for once, at the start.
    let socket = unsafe { OwnedFd::from_raw_fd(3) };
    fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    let is_stream = sockopt::socket_domain(&socket)? == AddressFamily::UNIX
        && sockopt::socket_type(&socket)? == SocketType::STREAM;
    if !is_stream || !sockopt::socket_acceptconn(&socket)? {
        return wrong("the socket that was passed is not a listening Unix stream socket".into());
    }
    rustix::io::ioctl_fionbio(&socket, true)?;
    Ok(Some(socket))
}
