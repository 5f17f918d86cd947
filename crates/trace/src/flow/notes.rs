//! What a trace says beside its events: pushes on a reserved channel; their numbers are pieces of the text.

use super::Kind;
use super::event::NOTES;
use super::header::Raw;

/// Pushes that one note takes, and bits of each.
const PUSHES: u32 = 4;
const BITS: u32 = 14;
/// That a barrier's count is another from here on.
const COUNT: u64 = 1;
/// That the next activation takes this push, or one that is not known.
const TAKE: u64 = 2;
const TAKE_UNKNOWN: u64 = 3;

/// A note of one stream, as far as it has come.
#[derive(Clone, Copy, Debug, Default)]
pub struct Notes {
    pushes: u32,
    value: u64,
}

/// What a note says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// A barrier's new count.
    Count { channel: u16, count: u32 },
    /// The low bits of the number of the push that the next activation takes.
    Take { channel: u16, number: Option<u32> },
}

/// Whether the event is a part of a note.
#[inline]
pub fn is_part(raw: &Raw) -> bool {
    raw.kind == Kind::Push && raw.object == NOTES
}

impl Notes {
    /// Takes a part, and gives the note if it was the last one.
    #[cold]
    pub fn take(&mut self, raw: &Raw) -> Option<Note> {
        self.value |= u64::from(raw.number) << (BITS * self.pushes);
        self.pushes += 1;
        if self.pushes < PUSHES {
            return None;
        }
        let value = std::mem::take(self).value;
        let (channel, number) = (value as u16, (value >> 16) as u32);
        match value >> 48 {
            COUNT if number > 0 => Some(Note::Count { channel, count: number }),
            TAKE => Some(Note::Take { channel, number: Some(number) }),
            TAKE_UNKNOWN => Some(Note::Take { channel, number: None }),
            // For readers to come.
            _ => None,
        }
    }

    /// Something else came: the incomplete note is dropped.
    #[inline]
    pub fn interrupt(&mut self) {
        *self = Notes::default();
    }
}

/// The numbers of the pushes that make a note.
pub fn numbers(note: Note) -> [u64; PUSHES as usize] {
    let (kind, channel, number) = match note {
        Note::Count { channel, count } => (COUNT, channel, count),
        Note::Take { channel, number: Some(number) } => (TAKE, channel, number),
        Note::Take { channel, number: None } => (TAKE_UNKNOWN, channel, 0),
    };
    let value = u64::from(channel) | u64::from(number) << 16 | kind << 48;
    [0, 1, 2, 3].map(|part| value >> (BITS * part) & ((1 << BITS) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_split_over_four_pushes() {
        let raw = |number: u64| Raw { low: 0, kind: Kind::Push, number: number as u16, object: NOTES };
        for note in [
            Note::Count { channel: 0, count: 1 },
            Note::Count { channel: 54_321, count: u32::MAX },
            Note::Take { channel: 7, number: Some(65_537) },
            Note::Take { channel: u16::MAX, number: None },
        ] {
            let mut notes = Notes::default();
            let taken = numbers(note).map(|number| notes.take(&raw(number)));
            assert_eq!(taken, [None, None, None, Some(note)]);
            // One whose beginning is missing is dropped and does not affect the next.
            assert_eq!(notes.take(&raw(3)), None);
            notes.interrupt();
            assert_eq!(numbers(note).map(|number| notes.take(&raw(number)))[3], Some(note));
        }
    }
}
