//! Reads the interrupts that the programs hand over, in the forms that interface.h describes.

use super::skeleton::types::latency_buffer;
use punctual_model::{Duration, Instant};
use std::ptr::addr_of;
use std::sync::atomic::{Ordering, fence};

/// One run of an interrupt's handler, or of the NMI's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// 1 is the NMI, up to 255 a vector of the processor, from 256 on a number of the kernel's.
    pub source: u32,
    /// When the processor entered it.
    pub entry: Instant,
    /// When the processor left it.
    pub exit: Instant,
    /// Its execution time, without NMIs inside.
    pub execution: Duration,
}

/// What happens on a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An interrupt.
    Interrupt(Interrupt),
    /// So many interrupts were overwritten before they were read.
    Lost(u64),
}

/// As in interface.h.
const WORD: usize = 8;
const FORM_BITS: u32 = 2;
const SOURCE_BITS: u32 = 12;
const LONGEST: usize = 5 * WORD;

/// A form in which an interrupt has the time since the one before.
struct Form {
    bytes: usize,
    /// It has the place of its source.
    has_place: bool,
    source_bits: u32,
    execution_bits: u32,
    gap_bits: u32,
}

const FORMS: [Form; 3] = [
    Form { bytes: 5, has_place: true, source_bits: 4, execution_bits: 14, gap_bits: 20 },
    Form { bytes: 6, has_place: true, source_bits: 4, execution_bits: 17, gap_bits: 25 },
    Form { bytes: 8, has_place: false, source_bits: SOURCE_BITS, execution_bits: 20, gap_bits: 30 },
];

/// Reads one processor's buffer.
#[derive(Clone, Default)]
pub struct Reader {
    /// Bytes read.
    read: u64,
    /// Interrupts read.
    count: u64,
    previous_exit: u64,
}

impl Reader {
    /// Hands on what has been written since the last call. What was overwritten meanwhile is counted, and
    /// reading goes on at the last interrupt that has its times.
    ///
    /// # Safety
    /// `buffer` is valid for reading, and only the programs write to it.
    pub unsafe fn drain(&mut self, buffer: *const latency_buffer, events: &mut Vec<Event>) {
        // SAFETY: as the caller says.
        unsafe {
            while !self.try_drain(buffer, events) {
                self.read = addr_of!((*buffer).absolute_at).read_volatile();
            }
        }
    }

    /// `false` if what would have to be read next is overwritten.
    unsafe fn try_drain(&mut self, buffer: *const latency_buffer, events: &mut Vec<Event>) -> bool {
        // SAFETY: as the caller says.
        let (end, room) = unsafe {
            (addr_of!((*buffer).end).read_volatile(), length(&raw const (*buffer).bytes) - WORD as u64)
        };
        fence(Ordering::Acquire);
        if end > self.read + room {
            return false;
        }
        // SAFETY: as the caller says; a place keeps its source.
        let sources = unsafe { addr_of!((*buffer).sources).read_volatile() };
        let word = |at: u64| {
            let offset = (at % room) as usize;
            // SAFETY: as the caller says; a word lies behind the last place where one begins. It is not
            // aligned.
            let bytes =
                unsafe { (&raw const (*buffer).bytes).byte_add(offset).cast::<[u8; WORD]>().read_volatile() };
            u64::from_le_bytes(bytes)
        };
        let (mut next, before) = (self.clone(), events.len());
        while next.read < end {
            next.decode(&word, &sources, events);
        }
        fence(Ordering::Acquire);
        // SAFETY: as the caller says.
        let after = unsafe { addr_of!((*buffer).end).read_volatile() };
        // The programs may be writing an interrupt.
        if self.read + room < after + (LONGEST + WORD) as u64 {
            events.truncate(before);
            return false;
        }
        *self = next;
        true
    }

    /// Reads the next interrupt, of words that begin at any byte.
    fn decode(&mut self, word: &impl Fn(u64) -> u64, sources: &[u32], events: &mut Vec<Event>) {
        let head = word(self.read);
        let (interrupt, length) = match FORMS.get((head & 3) as usize) {
            Some(form) => (self.relative(form, head, sources), form.bytes),
            None => {
                (self.absolute([0, 1, 2, 3, 4].map(|at| word(self.read + at * WORD as u64)), events), LONGEST)
            }
        };
        self.read += length as u64;
        self.count += 1;
        self.previous_exit = interrupt.exit.ns();
        events.push(Event::Interrupt(interrupt));
    }

    fn relative(&self, form: &Form, word: u64, sources: &[u32]) -> Interrupt {
        let mut rest = word >> FORM_BITS;
        let mut take = |bits: u32| {
            let value = rest & ((1 << bits) - 1);
            rest >>= bits;
            value
        };
        let source = take(form.source_bits);
        let place = sources.get(source as usize).copied().filter(|_| form.has_place);
        let execution = take(form.execution_bits);
        let entry = self.previous_exit.wrapping_add(take(form.gap_bits));
        Interrupt {
            source: place.unwrap_or(source as u32),
            entry: Instant::from_ns(entry),
            exit: Instant::from_ns(entry.wrapping_add(execution)),
            execution: Duration::from_ns(execution),
        }
    }

    /// An interrupt that has its times, and how many there were before.
    fn absolute(
        &mut self,
        [head, count, entry, exit, execution]: [u64; 5],
        events: &mut Vec<Event>,
    ) -> Interrupt {
        if count > self.count {
            events.push(Event::Lost(count - self.count));
        }
        self.count = count;
        Interrupt {
            source: (head >> FORM_BITS & ((1 << SOURCE_BITS) - 1)) as u32,
            entry: Instant::from_ns(entry),
            exit: Instant::from_ns(exit),
            execution: Duration::from_ns(execution),
        }
    }
}

/// The length of an array that is not read.
pub(super) fn length<T, const N: usize>(_: *const [T; N]) -> u64 {
    N as u64
}

#[cfg(test)]
#[path = "interrupts_tests.rs"]
mod tests;
