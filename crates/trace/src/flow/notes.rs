//! What a trace says beside its events: pushes on a reserved channel; their numbers are pieces of the text.

use super::Kind;
use super::event::NOTES;
use super::header::Raw;

/// Pushes that one note takes, and bits of each.
const PUSHES: u32 = 4;
const BITS: u32 = 14;
/// That a barrier's count is another from here on.
const COUNT: u64 = 1;

/// A note of one stream, as far as it has come.
#[derive(Clone, Copy, Debug, Default)]
pub struct Notes {
    pushes: u32,
    value: u64,
}

/// What a note says: of which channel, and its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    pub channel: u16,
    pub count: u32,
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
        // Notes of other kinds are for readers to come.
        let note = Note { channel: value as u16, count: (value >> 16) as u32 };
        (value >> 48 == COUNT && note.count > 0).then_some(note)
    }

    /// Something else came: the incomplete note is dropped.
    #[inline]
    pub fn interrupt(&mut self) {
        *self = Notes::default();
    }
}

/// The numbers of the pushes that make a note.
pub fn numbers(channel: u16, count: u32) -> [u64; PUSHES as usize] {
    let value = u64::from(channel) | u64::from(count) << 16 | COUNT << 48;
    [0, 1, 2, 3].map(|part| value >> (BITS * part) & ((1 << BITS) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_split_over_four_pushes() {
        let raw = |number: u64| Raw { low: 0, kind: Kind::Push, number: number as u16, object: NOTES };
        for note in [
            Note { channel: 0, count: 1 },
            Note { channel: 54_321, count: u32::MAX },
            Note { channel: 7, count: 65_537 },
        ] {
            let mut notes = Notes::default();
            let taken = numbers(note.channel, note.count).map(|number| notes.take(&raw(number)));
            assert_eq!(taken, [None, None, None, Some(note)]);
            // One whose beginning is missing is dropped and does not affect the next.
            assert_eq!(notes.take(&raw(3)), None);
            notes.interrupt();
            assert_eq!(
                numbers(note.channel, note.count).map(|number| notes.take(&raw(number)))[3],
                Some(note)
            );
        }
    }
}
