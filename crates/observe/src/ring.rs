//! The reading end of a ring buffer.

use crate::error::{Error, ErrorKind};
use crate::loader::refused;
use libbpf_rs::{MapCore, RingBuffer, RingBufferBuilder};
use std::cell::RefCell;
use std::rc::Rc;

/// Entries are handed on in batches of this many, so that memory does not grow with the backlog.
const BATCH: usize = 512;

/// A ring buffer whose entries are decoded into `T`.
pub struct Ring<T> {
    ring: RingBuffer<'static>,
    inbox: Rc<RefCell<Inbox<T>>>,
}

/// What the ring buffer's callback has decoded.
struct Inbox<T> {
    entries: Vec<T>,
    undecodable: u64,
}

impl<T: 'static> Ring<T> {
    /// Opens the reading end of `map`.
    pub fn open(map: &impl MapCore, decode: impl Fn(&[u8]) -> Option<T> + 'static) -> Result<Ring<T>, Error> {
        let inbox = Rc::new(RefCell::new(Inbox { entries: Vec::new(), undecodable: 0 }));
        let into = Rc::clone(&inbox);
        let add = move |bytes: &[u8]| {
            let mut inbox = into.borrow_mut();
            match decode(bytes) {
                Some(entry) => inbox.entries.push(entry),
                None => inbox.undecodable += 1,
            }
            0
        };
        let failed = |error| refused("mapping the ring buffer", &error);
        let mut builder = RingBufferBuilder::new();
        builder.add(map, add).map_err(failed)?;
        Ok(Ring { ring: builder.build().map_err(failed)?, inbox })
    }

    /// Hands on everything in the buffer; returns how many entries that was.
    pub fn drain(&mut self, each: impl FnMut(T)) -> Result<usize, Error> {
        self.drain_at_most(usize::MAX, each)
    }

    /// The same, but ends after `most` entries or a few more: where entries come faster than they are taken,
    /// `drain` would never end.
    pub fn drain_at_most(&mut self, most: usize, mut each: impl FnMut(T)) -> Result<usize, Error> {
        let mut total = 0;
        loop {
            let result = self.ring.consume_raw_n(BATCH);
            if result < 0 {
                let error = std::io::Error::from_raw_os_error(-result);
                return Err(Error::new(ErrorKind::Other, format!("cannot read the ring buffer: {error}")));
            }
            let mut inbox = self.inbox.borrow_mut();
            total += inbox.entries.len();
            inbox.entries.drain(..).for_each(&mut each);
            if (result as usize) < BATCH || total >= most {
                return Ok(total);
            }
        }
    }

    /// Entries that could not be decoded.
    pub fn undecodable(&self) -> u64 {
        self.inbox.borrow().undecodable
    }
}
