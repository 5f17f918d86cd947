//! Who sent a message, and what its process may take of real-time.

use super::Client;
use crate::access::Who;
use punctual_linux::thread;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use zbus::Connection;
use zbus::fdo::{self, DBusProxy};
use zbus::message::Header;

/// Asks the bus who sent a message. The process is pinned by the bus's pidfd if it has one, else by its
/// number; then it must belong to the user whom the bus names.
pub(super) async fn identify(connection: &Connection, header: &Header<'_>) -> fdo::Result<Client> {
    let failed = |what: String| fdo::Error::Failed(what);
    let sender = header.sender().ok_or_else(|| failed("the message has no sender".into()))?;
    let bus = DBusProxy::new(connection).await?;
    let credentials = bus.get_connection_credentials(sender.to_owned().into()).await?;
    let unknown = || failed("the bus does not know who asks".into());
    let user = credentials.unix_user_id().ok_or_else(unknown)?;
    let process = credentials.process_id().ok_or_else(unknown)?;
    let lost = |error: io::Error| failed(format!("process {process}, which asks: {error}"));
    let pidfd: OwnedFd = match credentials.process_fd() {
        Some(pidfd) => pidfd.as_fd().try_clone_to_owned().map_err(lost)?,
        None => thread::pin_process(process).map_err(lost)?.0,
    };
    if thread::process_user(process).map_err(lost)? != user {
        return Err(fdo::Error::AccessDenied(format!("process {process} belongs to another user now")));
    }
    let group = thread::process_group(process).map_err(lost)?;
    let groups = match credentials.into_unix_group_ids() {
        Some(groups) => groups,
        None => thread::groups(process).map_err(lost)?,
    };
    if thread::has_ended(pidfd.as_fd()) {
        return Err(failed(format!("process {process}, which asks, has ended")));
    }
    Ok(Client { who: Who { user, group, groups }, process, pidfd })
}

/// The hard RLIMIT_RTTIME of a process, in µs; `None` if it has none.
pub(super) fn rttime_limit(process: u32) -> io::Result<Option<u64>> {
    let text = fs::read_to_string(format!("/proc/{process}/limits"))?;
    let limits = text.lines().find_map(|line| line.strip_prefix("Max realtime timeout"));
    let hard = limits.and_then(|limits| limits.split_ascii_whitespace().nth(1));
    match hard {
        Some("unlimited") => Ok(None),
        Some(us) => us.parse().map(Some).map_err(|_| io::ErrorKind::InvalidData.into()),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_this_process_is_read() {
        let hard = rustix::process::getrlimit(rustix::process::Resource::Rttime).maximum;
        assert_eq!(rttime_limit(std::process::id()).expect("limits"), hard);
    }
}
