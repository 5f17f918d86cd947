//! The other end of a connection, according to the kernel.

use crate::access::Who;
use punctual_linux::thread;
use rustix::net::sockopt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The user and process that connected.
#[derive(Debug)]
pub struct Peer {
    /// User and groups when they connected.
    pub who: Who,
    /// Its number and pidfd; `None` where it is not in a PID namespace that the daemon can see, or has ended.
    pub process: Option<(u32, OwnedFd)>,
}

/// Asks the kernel.
pub fn identify(connection: BorrowedFd<'_>) -> io::Result<Peer> {
    let credentials = sockopt::socket_peercred(connection)?;
    let who =
        Who { user: credentials.uid.as_raw(), group: credentials.gid.as_raw(), groups: groups(connection)? };
    // 0 stands for a process that this namespace does not see, which rustix's type has no room for.
    let number = peer_number(connection)?;
    let process =
        if number > 0 { pidfd(connection, number, &who)?.map(|pidfd| (number, pidfd)) } else { None };
    Ok(Peer { who, process })
}

fn option<T>(connection: BorrowedFd<'_>, name: libc::c_int, into: &mut [T]) -> io::Result<usize> {
    let mut length = size_of_val(into) as libc::socklen_t;
    // SAFETY: the kernel writes at most the length that is said, which is that of the slice; its types are
    // numbers.
    match unsafe {
        libc::getsockopt(
            connection.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            into.as_mut_ptr().cast(),
            &raw mut length,
        )
    } {
        0 => Ok(length as usize / size_of::<T>()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn peer_number(connection: BorrowedFd<'_>) -> io::Result<u32> {
    let mut credentials = [0u32; 3];
    option(connection, libc::SO_PEERCRED, &mut credentials)?;
    Ok(credentials[0])
}

fn groups(connection: BorrowedFd<'_>) -> io::Result<Vec<u32>> {
    const SO_PEERGROUPS: libc::c_int = 59;
    let mut groups = vec![0u32; 32];
    let count = match option(connection, SO_PEERGROUPS, &mut groups) {
        Err(error) if error.raw_os_error() == Some(libc::ERANGE) => {
            // As many as anybody can have (NGROUPS_MAX).
            groups.resize(65_536, 0);
            option(connection, SO_PEERGROUPS, &mut groups)?
        }
        other => other?,
    };
    groups.truncate(count);
    groups.shrink_to_fit();
    Ok(groups)
}

/// A pidfd of the process that connected, even if its PID was used again. `None` if it has ended.
fn pidfd(connection: BorrowedFd<'_>, number: u32, who: &Who) -> io::Result<Option<OwnedFd>> {
    const SO_PEERPIDFD: libc::c_int = 77;
    let mut fd = [-1i32];
    match option(connection, SO_PEERPIDFD, &mut fd) {
        Ok(_) => {
            // SAFETY: the kernel just opened it for this process.
            let pidfd = unsafe { OwnedFd::from_raw_fd(fd[0]) };
            return Ok((!thread::has_ended(pidfd.as_fd())).then_some(pidfd));
        }
        Err(error) => match error.raw_os_error() {
            Some(libc::ENOPROTOOPT) => {}
            // It has ended, and been waited for.
            Some(libc::ENODATA | libc::ESRCH | libc::EINVAL) => return Ok(None),
            _ => return Err(error),
        },
    }
    // Before 6.5: assume that the process that has the PID now is the one that connected, if it belongs to
    // the same user. More cannot be known.
    let Ok((pidfd, _)) = thread::pin_process(number) else { return Ok(None) };
    Ok((thread::process_user(number).ok() == Some(who.user)).then_some(pidfd))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_peer_of_a_pair_is_this_process() {
        let (one, _other) = UnixStream::pair().unwrap();
        let peer = identify(one.as_fd()).unwrap();
        assert_eq!(peer.who.user, rustix::process::geteuid().as_raw());
        assert_eq!(peer.who.group, rustix::process::getegid().as_raw());
        let groups: Vec<u32> =
            rustix::process::getgroups().unwrap().iter().map(|group| group.as_raw()).collect();
        assert_eq!(peer.who.groups, groups);
        assert_eq!(peer.process.unwrap().0, std::process::id());
    }
}
