//! What all users of the system bus need: a connection that may be ended from another thread.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A connection, until its user ends.
#[derive(Debug)]
pub(crate) struct Slot<T>(Mutex<(Option<T>, bool)>);

impl<T> Slot<T> {
    pub(crate) fn new() -> Slot<T> {
        Slot(Mutex::new((None, false)))
    }

    fn lock(&self) -> MutexGuard<'_, (Option<T>, bool)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection is there; given back if its user has ended meanwhile.
    pub(crate) fn put(&self, connection: T) -> Result<(), T> {
        let mut slot = self.lock();
        if slot.1 {
            return Err(connection);
        }
        slot.0 = Some(connection);
        Ok(())
    }

    /// The connection has ended.
    pub(crate) fn clear(&self) -> Option<T> {
        self.lock().0.take()
    }

    /// Its user ends.
    pub(crate) fn end(&self) -> Option<T> {
        let mut slot = self.lock();
        slot.1 = true;
        slot.0.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_comes_too_late_is_given_back() {
        let slot = Slot::new();
        assert_eq!(slot.put(1), Ok(()));
        assert_eq!(slot.clear(), Some(1));
        assert_eq!(slot.put(2), Ok(()));
        assert_eq!(slot.end(), Some(2));
        assert_eq!(slot.put(3), Err(3));
        assert_eq!(slot.clear(), None);
    }
}
