//! How rows get to a dispatching thread, which waits for nobody.

use crate::rows::{COMING, Rows};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A mailbox with room for one letter.
#[derive(Debug)]
pub struct Mail(Mutex<Letters>);

#[derive(Debug)]
struct Letters {
    coming: Option<Box<Rows>>,
    /// Whether the last rows were taken; none: they were not looked at yet.
    answer: Option<bool>,
    /// Rows that are over: freeing memory is not for dispatching threads.
    over: Vec<Box<Rows>>,
}

impl Mail {
    /// Empty.
    pub fn new() -> Mail {
        Mail(Mutex::new(Letters { coming: None, answer: None, over: Vec::with_capacity(COMING) }))
    }

    fn letters(&self) -> MutexGuard<'_, Letters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts rows there. Ring after that.
    pub fn put(&self, rows: Rows) {
        let mut letters = self.letters();
        letters.over.clear();
        (letters.coming, letters.answer) = (Some(Box::new(rows)), None);
    }

    /// Whether the rows were taken; none as long as nobody has looked at them.
    pub fn answer(&self) -> Option<bool> {
        self.letters().answer
    }

    /// Takes rows back that nobody has looked at. False if somebody has.
    pub fn withdraw(&self) -> bool {
        self.letters().coming.take().is_some()
    }

    /// For the dispatching thread: has `take` decide about rows that are there, and hands over those that are
    /// over. Does nothing while somebody else is here, who will ring.
    pub fn look(&self, over: &mut Vec<Box<Rows>>, take: impl FnOnce(Box<Rows>) -> Result<(), Box<Rows>>) {
        let Ok(mut letters) = self.0.try_lock() else { return };
        if letters.over.is_empty() {
            std::mem::swap(&mut letters.over, over);
        }
        let Some(rows) = letters.coming.take() else { return };
        let taken = take(rows);
        letters.answer = Some(taken.is_ok());
        // At least as much room as `coming` has.
        letters.over.extend(taken.err());
    }
}
