//! Streams merged by time. At the same tick a stop goes before a push, that before an activation, that before
//! a start: the order of causes. Within a stream the order is its own.

use super::notes::{self, Note, Notes};
use super::numbers::Numbers;
use super::stream::{Cursor, Head};
use super::{Count, Event, Gap, Item, Kind, Take};
use punctual_model::Instant;
use std::io;

/// Ticks to nanoseconds.
#[derive(Clone, Copy)]
pub struct Clock {
    pub frequency: u64,
}

const NS: u64 = 1_000_000_000;

impl Clock {
    #[inline]
    pub fn instant(self, tick: u64) -> Instant {
        if self.frequency == NS || tick == u64::MAX {
            return Instant::from_ns(tick);
        }
        let ns = u128::from(tick) * u128::from(NS) / u128::from(self.frequency.max(1));
        Instant::from_ns(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

/// When and how soon the head of a stream comes; less is sooner.
type Rank = (u64, u8);

const END: Rank = (u64::MAX, u8::MAX);

fn rank(head: &Head) -> Rank {
    match head {
        Head::Gap { from, .. } => (*from, 0),
        Head::Event { tick, raw } => (*tick, [2, 3, 4, 1][raw.kind as usize]),
        Head::End => END,
    }
}

/// Gives everything in the streams, in order; tells every now and then how far it has come in its files. On
/// an error, which stream's it is. Gives how many of the events were parts of notes, if there can be any.
pub fn merge(
    cursors: &mut [Cursor<'_>],
    clock: Clock,
    has_notes: bool,
    each: &mut (impl FnMut(Item) + ?Sized),
    progress: &mut dyn FnMut(u64),
) -> Result<u64, (usize, io::Error)> {
    let mut numbers = Numbers::default();
    let mut notes = vec![Notes::default(); if has_notes { cursors.len() } else { 0 }];
    let mut parts = 0;
    let mut ranks: Vec<Rank> = cursors.iter().map(|cursor| rank(&cursor.head)).collect();
    let mut given = 0_u64;
    loop {
        let (mut first, mut second) = (0, END);
        for (index, rank) in ranks.iter().enumerate().skip(1) {
            if *rank < ranks[first] {
                (first, second) = (index, ranks[first]);
            } else {
                second = second.min(*rank);
            }
        }
        if ranks.get(first).is_none_or(|rank| *rank == END) {
            progress(cursors.iter().map(Cursor::offset).sum());
            return Ok(parts);
        }
        if second.0 == ranks[first].0 {
            first = unless_too_early(first, cursors, &ranks, &numbers);
        }
        let cursor = &mut cursors[first];
        // As long as no other stream has something at the same tick, it goes on.
        loop {
            match notes.get_mut(first).and_then(|notes| part_of_note(cursor, notes)) {
                None => each(item(cursor, clock, &mut numbers)),
                Some(note) => {
                    parts += 1;
                    let at = clock.instant(cursor.tick());
                    let producer = cursor.producer();
                    let noted = |note| noted(note, at, producer, &numbers);
                    note.map(noted).into_iter().for_each(&mut *each);
                }
            }
            cursor.advance().map_err(|error| (first, error))?;
            given += 1;
            if given % 65_536 == 0 {
                break;
            }
            if rank(&cursor.head).0 >= second.0 {
                break;
            }
        }
        ranks[first] = rank(&cursor.head);
        if given % 65_536 == 0 {
            progress(cursors.iter().map(Cursor::offset).sum());
        }
    }
}

/// The same stream, or another that has something at the same tick, if the first would start an instance
/// whose activation has not come: it is in another stream behind events of the same tick.
#[cold]
fn unless_too_early(first: usize, cursors: &[Cursor<'_>], ranks: &[Rank], numbers: &Numbers) -> usize {
    let is_too_early = |index: usize| match &cursors[index].head {
        Head::Event { raw, .. } => raw.kind == Kind::Start && !numbers.is_activated(raw.object, raw.number),
        _ => false,
    };
    if !is_too_early(first) {
        return first;
    }
    let same = (0..ranks.len()).filter(|index| ranks[*index].0 == ranks[first].0);
    same.filter(|index| !is_too_early(*index)).min_by_key(|index| ranks[*index]).unwrap_or(first)
}

/// Of a part of a note, the note if it is the last one.
#[inline]
fn part_of_note(cursor: &Cursor<'_>, notes: &mut Notes) -> Option<Option<Note>> {
    match &cursor.head {
        Head::Event { raw, .. } if notes::is_part(raw) => Some(notes.take(raw)),
        _ => {
            notes.interrupt();
            None
        }
    }
}

#[cold]
fn noted(note: Note, at: Instant, producer: u32, numbers: &Numbers) -> Item {
    match note {
        Note::Count { channel, count } => Item::Count(Count { at, producer, channel, count }),
        Note::Take { channel, number } => {
            let number = number.map(|number| numbers.taken(channel, number));
            Item::Take(Take { at, producer, channel, number })
        }
    }
}

#[inline]
fn item(cursor: &Cursor<'_>, clock: Clock, numbers: &mut Numbers) -> Item {
    let producer = cursor.producer();
    match cursor.head {
        Head::Event { tick, raw } => Item::Event(Event {
            at: clock.instant(tick),
            producer,
            kind: raw.kind,
            object: raw.object,
            number: numbers.whole(raw.kind, raw.object, raw.number),
        }),
        Head::Gap { from, until, discarded, packets } => Item::Gap(Gap {
            producer,
            from: clock.instant(from),
            until: clock.instant(until),
            discarded,
            packets,
        }),
        // Streams at their end come last, and are not asked.
        Head::End => Item::Gap(Gap {
            producer,
            from: clock.instant(u64::MAX),
            until: clock.instant(u64::MAX),
            discarded: 0,
            packets: 0,
        }),
    }
}
