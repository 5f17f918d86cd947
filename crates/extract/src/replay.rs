//! Replays a long sequence of records with several workers; the result is that of a single pass.
//!
//! The sequence is cut into contiguous pieces. Workers sum them up ([`crate::piece`]), while this thread
//! merges the sums in order.

use crate::extractor::{Extractor, Options};
use crate::piece::Piece;
use punctual_trace::Record;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Pieces per worker. More pieces leave workers idle for less time at the end, but cost more where curves
/// begin anew.
const PIECES_PER_WORKER: usize = 2;

/// Fewest activations of a piece. Merging a piece costs as much as some thousand activations of each stream.
const LEAST_PIECE: u64 = 100_000;

/// Finished pieces per worker that may wait for an earlier one; each takes the memory of an extractor.
const WAITING_PER_WORKER: usize = 1;

/// Activations between two reports of progress.
const STEP: u64 = 1 << 16;

/// Records in stretches that several threads can read at once, in any order, and more than once.
pub trait Source: Sync {
    /// Why records cannot be read.
    type Error: Send;

    /// Number of stretches.
    fn stretches(&self) -> usize;

    /// Approximate number of activations in a stretch.
    fn activations(&self, stretch: usize) -> u64;

    /// Passes every record of these stretches to `each`, in order.
    fn read(&self, stretches: Range<usize>, each: &mut dyn FnMut(&Record)) -> Result<(), Self::Error>;
}

/// Options of a replay.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Threads that read and extract. Memory grows with them.
    pub workers: NonZeroUsize,
    /// What to extract.
    pub options: Options,
}

/// Extracts all records of the source. The extractor is the same for any number of workers. `progress` is
/// called now and then, from any thread, with the number of activations so far.
pub fn replay<S: Source>(
    source: &S,
    replay: &Replay,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Extractor, S::Error> {
    replay_into(Extractor::new(replay.options.clone()), source, replay, progress)
}

/// The same into an extractor without records, made of the same options.
pub fn replay_into<S: Source>(
    mut extractor: Extractor,
    source: &S,
    replay: &Replay,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Extractor, S::Error> {
    let (workers, taken) = (replay.workers.get(), AtomicU64::new(0));
    let mut count = Count { taken: &taken, since: 0, progress };
    let pieces = if workers > 1 { cut(source, workers) } else { Vec::new() };
    if pieces.len() > 1 {
        in_pieces(source, workers, &pieces, &replay.options, &count, &mut extractor)?;
        return Ok(extractor);
    }
    source.read(0..source.stretches(), &mut |record| {
        count.count(record);
        extractor.record(record);
    })?;
    count.report();
    Ok(extractor)
}

fn in_pieces<S: Source>(
    source: &S,
    workers: usize,
    pieces: &[Range<usize>],
    options: &Options,
    count: &Count<'_>,
    extractor: &mut Extractor,
) -> Result<(), S::Error> {
    let (ask, asked) = channel();
    let asked = Mutex::new(asked);
    let (answer, answers) = channel();
    thread::scope(|scope| {
        for _ in 0..workers.min(pieces.len()) {
            let (asked, answer) = (&asked, answer.clone());
            scope.spawn(move || {
                while let Some(number) = wait_for(asked) {
                    let range: &Range<usize> = &pieces[number];
                    // A panic resumes in the thread that waits for the answer.
                    let piece = catch_unwind(AssertUnwindSafe(|| {
                        sum_up(source, range.clone(), options, count.clone())
                    }));
                    if answer.send((number, piece)).is_err() {
                        return;
                    }
                }
            });
        }
        // Moved, so that it is dropped however this ends: then the workers stop.
        let ask = ask;
        let mut to_ask = 0..pieces.len();
        let mut ask_next = || to_ask.next().is_some_and(|number| ask.send(number).is_ok());
        for _ in 0..workers * (1 + WAITING_PER_WORKER) {
            ask_next();
        }
        let mut waiting = BTreeMap::new();
        for (number, range) in pieces.iter().enumerate() {
            let piece = loop {
                match waiting.remove(&number) {
                    Some(piece) => break piece,
                    None => waiting.extend(answers.iter().next()),
                }
            };
            append(extractor, piece.unwrap_or_else(|panic| resume_unwind(panic))?, source, range.clone())?;
            ask_next();
        }
        Ok(())
    })
}

fn wait_for(asked: &Mutex<Receiver<usize>>) -> Option<usize> {
    asked.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

fn sum_up<S: Source>(
    source: &S,
    stretches: Range<usize>,
    options: &Options,
    mut count: Count<'_>,
) -> Result<Piece, S::Error> {
    let mut piece = Piece::new(&options.stream);
    source.read(stretches, &mut |record| {
        count.count(record);
        piece.record(record);
    })?;
    count.report();
    Ok(piece)
}

/// Merges a piece, and reads again what it could not sum up.
fn append<S: Source>(
    extractor: &mut Extractor,
    piece: Piece,
    source: &S,
    stretches: Range<usize>,
) -> Result<(), S::Error> {
    let Some(mut again) = extractor.append(piece) else {
        return source.read(stretches, &mut |record| extractor.record(record));
    };
    if again.is_empty() {
        return Ok(());
    }
    source.read(stretches, &mut |record| match again.get_mut(&record.tid()) {
        None => {}
        Some(_) if matches!(record, Record::Switch(_)) => {}
        Some(0) => extractor.record(record),
        Some(before) => *before -= 1,
    })
}

/// Contiguous pieces of about equal numbers of activations.
fn cut<S: Source>(source: &S, workers: usize) -> Vec<Range<usize>> {
    let stretches = source.stretches();
    let total: u128 = (0..stretches).map(|stretch| u128::from(source.activations(stretch))).sum();
    let most = u128::from(LEAST_PIECE).min(total).max(1);
    let count = (total / most).min((workers * PIECES_PER_WORKER) as u128).max(1);
    let (mut pieces, mut from, mut activations) = (Vec::new(), 0, 0);
    for stretch in 0..stretches {
        activations += u128::from(source.activations(stretch));
        let end = total * (pieces.len() as u128 + 1) / count;
        if activations >= end || stretch + 1 == stretches {
            pieces.push(from..stretch + 1);
            from = stretch + 1;
        }
    }
    pieces
}

/// Counts the activations of one reader, and reports them in steps.
#[derive(Clone)]
struct Count<'a> {
    taken: &'a AtomicU64,
    since: u64,
    progress: &'a (dyn Fn(u64) + Sync),
}

impl Count<'_> {
    #[inline]
    fn count(&mut self, record: &Record) {
        self.since += u64::from(matches!(record, Record::Activation(_)));
        if self.since == STEP {
            self.report();
        }
    }

    fn report(&mut self) {
        (self.progress)(self.taken.fetch_add(self.since, Ordering::Relaxed) + self.since);
        self.since = 0;
    }
}
