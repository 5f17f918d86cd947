//! How rows get to a dispatching thread, which waits for nobody.
#![allow(clippy::vec_box, reason = "boxes are handed over, not taken apart, where nothing may be freed")]

use punctual_tables::rows::{COMING, Rows};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A mailbox with room for one letter.
#[derive(Debug)]
pub struct Mail {
    letters: Mutex<Letters>,
    /// Whether the last rows were taken. Beside the lock: who asks must not keep the reader out.
    answer: AtomicU8,
}

const NONE: u8 = 0;
const REFUSED: u8 = 1;
const TAKEN: u8 = 2;

#[derive(Debug)]
struct Letters {
    coming: Option<Box<Rows>>,
    /// Rows that are over: freeing memory is not for dispatching threads.
    over: Vec<Box<Rows>>,
}

impl Mail {
    /// Empty.
    pub fn new() -> Mail {
        let letters = Letters { coming: None, over: Vec::with_capacity(COMING) };
        Mail { letters: Mutex::new(letters), answer: AtomicU8::new(NONE) }
    }

    fn letters(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts rows there. Ring after that.
    pub fn put(&self, rows: Rows) {
        let mut letters = self.letters();
        letters.over.clear();
        letters.coming = Some(Box::new(rows));
        self.answer.store(NONE, Ordering::SeqCst);
    }

    /// Whether the rows were taken; none as long as nobody has looked at them.
    pub fn answer(&self) -> Option<bool> {
        match self.answer.load(Ordering::SeqCst) {
            NONE => None,
            answer => Some(answer == TAKEN),
        }
    }

    /// Takes rows back that nobody has looked at. False if somebody has.
    pub fn withdraw(&self) -> bool {
        self.letters().coming.take().is_some()
    }

    /// For the dispatching thread: has `take` decide about rows that are there, and hands over those that are
    /// over. Does nothing while somebody else is here, who will ring.
    pub fn look(&self, over: &mut Vec<Box<Rows>>, take: impl FnOnce(Box<Rows>) -> Result<(), Box<Rows>>) {
        let Ok(mut letters) = self.letters.try_lock() else { return };
        if letters.over.is_empty() {
            std::mem::swap(&mut letters.over, over);
        }
        let Some(rows) = letters.coming.take() else { return };
        let taken = take(rows);
        self.answer.store(if taken.is_ok() { TAKEN } else { REFUSED }, Ordering::SeqCst);
        // At least as much room as `coming` has.
        letters.over.extend(taken.err());
    }
}
