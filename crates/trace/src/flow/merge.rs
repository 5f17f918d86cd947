//! Streams merged by time. At the same tick a stop goes before a push, that before an activation, that before
//! a start: the order of causes. Within a stream the order is its own.

use super::notes::{self, Note, Notes};
use super::numbers::Numbers;
use super::stream::Head;
use super::{Count, Event, Gap, Item, Kind, Take};
use punctual_model::Instant;

/// Ticks to nanoseconds.
#[derive(Clone, Copy, Debug)]
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

/// A stream that is merged with others.
pub trait Stream {
    /// Why it cannot be read.
    type Error;
    /// What comes next.
    fn head(&self) -> &Head;
    /// Goes on to what comes next.
    fn advance(&mut self) -> Result<(), Self::Error>;
    /// Whose events they are.
    fn producer(&self) -> u32;
    /// When the last event was that was read.
    fn tick(&self) -> u64;
    /// How far it has come in its file.
    fn offset(&self) -> u64;
}

/// Streams on their way to one sequence.
pub struct Merge {
    clock: Clock,
    numbers: Numbers,
    /// By stream, if there can be any.
    notes: Option<Vec<Notes>>,
    /// How many events were parts of notes.
    pub parts: u64,
}

impl Merge {
    pub fn new(clock: Clock, has_notes: bool) -> Merge {
        Merge { clock, numbers: Numbers::default(), notes: has_notes.then(Vec::new), parts: 0 }
    }

    /// Gives everything in the streams, in order; tells every now and then how far it has come in its files.
    /// More may follow, of these streams and of further ones behind them, if nothing of it comes before what
    /// was given. On an error, which stream's it is.
    pub fn run<S: Stream>(
        &mut self,
        streams: &mut [S],
        each: &mut (impl FnMut(Item) + ?Sized),
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), (usize, S::Error)> {
        let Merge { clock, numbers, notes, parts } = self;
        notes.iter_mut().for_each(|notes| notes.resize(streams.len(), Notes::default()));
        let mut ranks: Vec<Rank> = streams.iter().map(|stream| rank(stream.head())).collect();
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
                progress(streams.iter().map(Stream::offset).sum());
                return Ok(());
            }
            if second.0 == ranks[first].0 {
                first = unless_too_early(first, streams, &ranks, numbers);
            }
            let stream = &mut streams[first];
            // As long as no other stream has something at the same tick, it goes on.
            loop {
                let notes = notes.as_mut().and_then(|notes| notes.get_mut(first));
                match notes.and_then(|notes| part_of_note(stream.head(), notes)) {
                    None => each(item(stream, *clock, numbers)),
                    Some(note) => {
                        *parts += 1;
                        let at = clock.instant(stream.tick());
                        let producer = stream.producer();
                        let noted = |note| noted(note, at, producer, numbers);
                        note.map(noted).into_iter().for_each(&mut *each);
                    }
                }
                stream.advance().map_err(|error| (first, error))?;
                given += 1;
                if given % 65_536 == 0 {
                    break;
                }
                if rank(stream.head()).0 >= second.0 {
                    break;
                }
            }
            ranks[first] = rank(stream.head());
            if given % 65_536 == 0 {
                progress(streams.iter().map(Stream::offset).sum());
            }
        }
    }
}

/// The same stream, or another that has something at the same tick, if the first would start an instance
/// whose activation has not come: it is in another stream behind events of the same tick.
#[cold]
fn unless_too_early<S: Stream>(first: usize, streams: &[S], ranks: &[Rank], numbers: &Numbers) -> usize {
    let is_too_early = |index: usize| match streams[index].head() {
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
fn part_of_note(head: &Head, notes: &mut Notes) -> Option<Option<Note>> {
    match head {
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
fn item(stream: &impl Stream, clock: Clock, numbers: &mut Numbers) -> Item {
    let producer = stream.producer();
    match *stream.head() {
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
