//! A mutex with priority inheritance: an ordinary thread that holds it runs at the priority of a real-time
//! thread that waits for it. The one of the standard library has none.

use std::cell::UnsafeCell;
use std::io;
use std::ops::{Deref, DerefMut};

/// The mutex, and what it guards.
pub struct Inheriting<T> {
    // Its address must not change.
    raw: Box<UnsafeCell<libc::pthread_mutex_t>>,
    value: UnsafeCell<T>,
}

// SAFETY: the mutex gives the value to one thread at a time.
unsafe impl<T: Send> Sync for Inheriting<T> {}
// SAFETY: both parts may move to another thread, as long as nobody holds the lock; a guard borrows it.
unsafe impl<T: Send> Send for Inheriting<T> {}

/// The value, as long as it is held.
pub struct Guard<'a, T>(&'a Inheriting<T>);

impl<T> Inheriting<T> {
    /// Fails where the kernel has no priority inheritance.
    pub fn new(value: T) -> io::Result<Self> {
        let raw = Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
        let mut attributes = std::mem::MaybeUninit::uninit();
        let check = |code: i32| match code {
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(code)),
        };
        // SAFETY: attributes are initialized by the first call and used by the next; nobody else knows of
        // the mutex yet.
        unsafe {
            check(libc::pthread_mutexattr_init(attributes.as_mut_ptr()))?;
            check(libc::pthread_mutexattr_setprotocol(attributes.as_mut_ptr(), libc::PTHREAD_PRIO_INHERIT))?;
            check(libc::pthread_mutex_init(raw.get(), attributes.as_ptr()))?;
            libc::pthread_mutexattr_destroy(attributes.as_mut_ptr());
        }
        Ok(Self { raw, value: UnsafeCell::new(value) })
    }

    /// Waits until nobody else holds it. A thread must not take it twice.
    pub fn lock(&self) -> Guard<'_, T> {
        // SAFETY: it was initialized by `new`.
        let taken = unsafe { libc::pthread_mutex_lock(self.raw.get()) };
        assert_eq!(taken, 0, "the lock of the enforcer");
        Guard(self)
    }
}

impl<T> Drop for Inheriting<T> {
    fn drop(&mut self) {
        // SAFETY: guards borrow it, so nobody holds it.
        unsafe { libc::pthread_mutex_destroy(self.raw.get()) };
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the lock.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard holds the lock.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: this guard holds the lock.
        unsafe { libc::pthread_mutex_unlock(self.0.raw.get()) };
    }
}

impl<T> std::fmt::Debug for Inheriting<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Inheriting")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_holds_it() {
        let count = Inheriting::new(0u32).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| *count.lock() += 1));
            }
        });
        assert_eq!(*count.lock(), 40_000);
    }
}
