//! `struct punctual`: a connection that threads share.

use super::failure::{Failure, guarded};
use super::parameters::path;
use crate::client::{Client, DEFAULT_TIMEOUT, default_socket};
use std::ffi::{c_char, c_int};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A client, its lock, and its process. After a fork the lock may be held forever, so a child must not touch
/// it.
#[derive(Debug)]
pub(crate) struct Shared {
    process: u32,
    client: Mutex<Client>,
}

impl Shared {
    pub fn new(client: Client) -> Shared {
        Shared { process: std::process::id(), client: Mutex::new(client) }
    }

    /// Whether it belongs to this process, not its parent.
    pub fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }

    pub fn with<T>(&self, ask: impl FnOnce(&mut Client) -> Result<T, crate::Error>) -> Result<T, Failure> {
        if !self.is_ours() {
            return Err(Failure::forked());
        }
        // A panic between two messages leaves a valid client, which reconnects.
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(ask(&mut client)?)
    }
}

/// The shared client behind a pointer that C holds.
///
/// # Safety
/// `handle` is NULL or came from [`punctual_connect`] and has not been given to [`punctual_disconnect`].
pub(crate) unsafe fn shared(handle: *const Shared) -> Result<Arc<Shared>, Failure> {
    if handle.is_null() {
        return Err(Failure::invalid("the connection is NULL"));
    }
    // SAFETY: by this function's contract the pointer is an Arc's, which C still holds.
    unsafe {
        Arc::increment_strong_count(handle);
        Ok(Arc::from_raw(handle))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_connect(socket: *const c_char, connection: *mut *const Shared) -> c_int {
    guarded(|| {
        if connection.is_null() {
            return Err(Failure::invalid("the pointer for the connection is NULL"));
        }
        // SAFETY: the header demands a string or NULL.
        let socket = unsafe { path(socket) }.unwrap_or_else(default_socket);
        let client = Client::connect_within(&socket, Some(DEFAULT_TIMEOUT))?;
        // SAFETY: the header demands a valid place.
        unsafe { *connection = Arc::into_raw(Arc::new(Shared::new(client))) };
        Ok(0)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_disconnect(connection: *const Shared) {
    if !connection.is_null() {
        // SAFETY: the header demands what punctual_connect gave, and that it is not used again.
        drop(unsafe { Arc::from_raw(connection) });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_set_timeout(connection: *const Shared, timeout_ns: u64) -> c_int {
    guarded(|| {
        // SAFETY: the header demands a live connection.
        let shared = unsafe { shared(connection) }?;
        let timeout = (timeout_ns != 0).then(|| Duration::from_nanos(timeout_ns));
        shared.with(|client| {
            client.set_timeout(timeout);
            Ok(0)
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_set_interactive(connection: *const Shared, interactive: bool) -> c_int {
    guarded(|| {
        // SAFETY: the header demands a live connection.
        let shared = unsafe { shared(connection) }?;
        shared.with(|client| {
            client.set_interactive(interactive);
            Ok(0)
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_ping(connection: *const Shared) -> c_int {
    guarded(|| {
        // SAFETY: the header demands a live connection.
        unsafe { shared(connection) }?.with(|client| client.ping().map(|()| 0))
    })
}
