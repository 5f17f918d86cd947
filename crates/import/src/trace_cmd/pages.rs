//! Pages of the kernel's ring buffer (`ring_buffer.c`, libtraceevent's `kbuffer`): events with their times.

use super::file::Layout;
use std::ops::Range;

/// Kinds of entries that are no events.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

/// What the field that says how much of a page is used says besides.
const USED: u64 = (1 << 27) - 1;
const MISSED: u64 = 1 << 31;
const MISSED_COUNT: u64 = 1 << 30;

/// No page follows so many lost events: a count above is damage.
const MOST_MISSED: u64 = 1 << 32;

/// An absolute time has this many bits; those above are the ones of the time before.
const ABSOLUTE: u32 = 59;

/// A page, as far as it has been read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Page {
    at: usize,
    end: usize,
    time: u64,
    /// Events that were lost before it: at least so many.
    pub missed: u64,
}

/// An event: when, and where its bytes are in the page.
pub type Event = (u64, Range<usize>);

impl Page {
    /// Begins a page; `None` if it cannot be one.
    pub fn new(bytes: &[u8], layout: Layout) -> Option<Page> {
        let number = |at: usize, size: usize| {
            let mut wide = [0; 8];
            wide[..size].copy_from_slice(bytes.get(at..at + size)?);
            Some(u64::from_le_bytes(wide))
        };
        let (time, commit) = (number(0, 8)?, number(8, layout.commit)?);
        let end = layout.data + (commit & USED) as usize;
        if end > bytes.len() {
            return None;
        }
        let count = if commit & MISSED_COUNT != 0 { number(end, layout.commit) } else { None };
        let count = count.filter(|count| (1..=MOST_MISSED).contains(count));
        let missed = if commit & MISSED != 0 { count.unwrap_or(1) } else { 0 };
        Some(Page { at: layout.data, end, time, missed })
    }

    /// The next event; `None` at the end. An entry that does not fit is an error, and the end.
    pub fn next(&mut self, bytes: &[u8]) -> Result<Option<Event>, ()> {
        while self.at < self.end {
            let Some(head) = self.word(bytes, self.at) else { return self.give_up() };
            let (kind, delta) = (head & 31, u64::from(head >> 5));
            let second = self.word(bytes, self.at + 4);
            match (kind, second) {
                // The rest of the page is empty.
                (PADDING, _) if delta == 0 => self.at = self.end,
                (PADDING, Some(length)) => {
                    self.time = self.time.wrapping_add(delta);
                    let Some(at) = (self.at + 4).checked_add(length as usize) else { return self.give_up() };
                    self.at = at;
                }
                (TIME_EXTEND, Some(more)) => {
                    self.time = self.time.wrapping_add(u64::from(more) << 27 | delta);
                    self.at += 8;
                }
                (TIME_STAMP, Some(more)) => {
                    self.time = self.time >> ABSOLUTE << ABSOLUTE | u64::from(more) << 27 | delta;
                    self.at += 8;
                }
                (0, Some(length)) => {
                    let length = (length as usize).saturating_sub(4).next_multiple_of(4);
                    return self.event(delta, self.at + 8, length);
                }
                (1..=28, _) => return self.event(delta, self.at + 4, 4 * kind as usize),
                _ => return self.give_up(),
            }
        }
        Ok(None)
    }

    /// How many events are left, without looking at them; `None` if an entry does not fit. That was the page.
    pub fn count(&mut self, bytes: &[u8]) -> Option<u64> {
        let mut count = 0;
        let mut at = std::mem::replace(&mut self.at, self.end);
        while at < self.end {
            let head = self.word(bytes, at)?;
            let kind = head & 31;
            at += match kind {
                1..=28 => 4 + 4 * kind as usize,
                PADDING if head >> 5 == 0 => break,
                PADDING => 4 + self.word(bytes, at + 4)? as usize,
                TIME_EXTEND | TIME_STAMP => 8,
                _ => 4 + (self.word(bytes, at + 4)?.max(4) as usize).next_multiple_of(4),
            };
            count += u64::from(kind < PADDING);
        }
        (at <= self.end).then_some(count)
    }

    fn event(&mut self, delta: u64, from: usize, length: usize) -> Result<Option<Event>, ()> {
        let Some(end) = from.checked_add(length).filter(|end| *end <= self.end) else {
            return self.give_up();
        };
        self.time = self.time.wrapping_add(delta);
        self.at = end;
        Ok(Some((self.time, from..end)))
    }

    fn word(&self, bytes: &[u8], at: usize) -> Option<u32> {
        let word = bytes.get(at..at.checked_add(4)?).filter(|_| at + 4 <= self.end)?;
        Some(u32::from_le_bytes(word.try_into().ok()?))
    }

    fn give_up<T>(&mut self) -> Result<T, ()> {
        self.at = self.end;
        Err(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout { page: 128, commit: 8, data: 16 };

    fn page(time: u64, flags: u64, words: &[u32]) -> Vec<u8> {
        let used = 4 * words.len() as u64;
        let mut bytes = [time.to_le_bytes(), (used | flags).to_le_bytes()].concat();
        words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes.resize(LAYOUT.page, 0xff);
        bytes
    }

    fn events(bytes: &[u8]) -> (Vec<(u64, usize)>, bool) {
        let mut page = Page::new(bytes, LAYOUT).expect("a page");
        let mut found = Vec::new();
        loop {
            match page.next(bytes) {
                Ok(Some((at, range))) => found.push((at, range.len())),
                Ok(None) => return (found, true),
                Err(()) => return (found, false),
            }
        }
    }

    #[test]
    fn times_add_up_over_all_kinds_of_entries() {
        let words = [
            2 | 5 << 5,
            1,
            2, // 8 bytes, 5 ns later
            TIME_EXTEND | 7 << 5,
            1, // 2^27 + 7
            10 << 5,
            12,
            3,
            4, // a long one of 8 bytes, 10 ns later
            PADDING | 3 << 5,
            8,
            9, // discarded, 3 ns later
            1 | 1 << 5,
            6, // 4 bytes, 1 ns later
            PADDING,
            77,
        ];
        let bytes = page(0, 0, &words);
        let mut counted = Page::new(&bytes, LAYOUT).expect("a page");
        assert_eq!((counted.count(&bytes), counted.count(&bytes)), (Some(3), Some(0)));
        let long = 1_005 + (1 << 27) + 17;
        let (found, is_whole) = events(&page(1_000, 0, &words));
        assert_eq!(found, [(1_005, 8), (long, 8), (long + 4, 4)]);
        assert!(is_whole);
        let absolute = page(1 << 60 | 9, 0, &[TIME_STAMP | 4 << 5, 2, 1, 8]);
        assert_eq!(events(&absolute).0, [((1 << 60) + (2 << 27) + 4, 4)]);
    }

    #[test]
    fn what_does_not_fit_ends_the_page() {
        assert_eq!(events(&page(0, 0, &[1, 5, 9, 1])), (vec![(0, 4)], false));
        for words in [&[1, 5, 9, 1][..], &[0, u32::MAX, 1]] {
            let bytes = page(0, 0, words);
            assert_eq!(Page::new(&bytes, LAYOUT).expect("a page").count(&bytes), None);
        }
        assert_eq!(events(&page(0, 0, &[0, u32::MAX, 1])), (vec![], false));
        assert_eq!(events(&page(0, 0, &[PADDING | 1 << 5, u32::MAX])), (vec![], true));
        assert!(Page::new(&page(0, 1 << 20, &[]), LAYOUT).is_none());
        assert_eq!(Page::new(&page(0, MISSED, &[]), LAYOUT).map(|page| page.missed), Some(1));
        let counted = |count: u64| {
            let mut page = page(0, MISSED | MISSED_COUNT, &[]);
            page[16..24].copy_from_slice(&count.to_le_bytes());
            Page::new(&page, LAYOUT).map(|page| page.missed)
        };
        assert_eq!([0, 7, MOST_MISSED].map(counted), [1, 7, MOST_MISSED].map(Some));
        // Damage: at least one.
        assert_eq!([MOST_MISSED + 1, u64::MAX].map(counted), [Some(1); 2]);
    }
}
