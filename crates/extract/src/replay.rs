//! Replays: the tasks of a long sequence of records, by several workers, the same as in one go.
//!
//! The sequence is cut into contiguous pieces. Workers sum them up ([`crate::piece`]) while this thread puts
//! the sums together, in order.

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

/// Pieces for each worker: the more, the less a worker waits for others at the end, and the more is lost
/// where curves begin anew.
const PIECES_PER_WORKER: usize = 2;

/// Least activations of a piece. Putting pieces together costs about as much as some thousand activations of
/// each stream.
const LEAST_PIECE: u64 = 100_000;

/// Finished pieces that may wait for one before them, for each worker: as many times the memory of an
/// extractor.
const WAITING_PER_WORKER: usize = 1;

/// How often progress is told.
const STEP: u64 = 1 << 16;

/// Records in stretches that can be read in any order, by several threads at once, and more than once.
pub trait Source: Sync {
    /// Why records cannot be read.
    type Error: Send;

    /// How many stretches there are.
    fn stretches(&self) -> usize;

    /// About how many activations a stretch has.
    fn activations(&self, stretch: usize) -> u64;

    /// Gives every record of these stretches, in order.
    fn read(&self, stretches: Range<usize>, each: &mut dyn FnMut(&Record)) -> Result<(), Self::Error>;
}

/// How to replay.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Threads that read and extract. Memory grows with them.
    pub workers: NonZeroUsize,
    /// What to extract.
    pub options: Options,
}

/// Takes all records of the source: the extractor is as if they had been recorded there one after the other,
/// whatever the number of workers. `progress` is told now and then, from any thread, how many activations
/// have been taken.
pub fn replay<S: Source>(
    source: &S,
    replay: &Replay,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Extractor, S::Error> {
    let (workers, taken) = (replay.workers.get(), AtomicU64::new(0));
    let mut count = Count { taken: &taken, since: 0, tell: progress };
    let pieces = if workers > 1 { cut(source, workers) } else { Vec::new() };
    let mut extractor = Extractor::new(replay.options.clone());
    if pieces.len() > 1 {
        in_pieces(source, workers, &pieces, &replay.options, &count, &mut extractor)?;
        return Ok(extractor);
    }
    source.read(0..source.stretches(), &mut |record| {
        count.see(record);
        extractor.record(record);
    })?;
    count.tell();
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
                    // A panic goes on where the answer is waited for.
                    let piece = catch_unwind(AssertUnwindSafe(|| {
                        sum_up(source, range.clone(), options, count.clone())
                    }));
                    if answer.send((number, piece)).is_err() {
                        return;
                    }
                }
            });
        }
        // Moved, so that it is dropped when this ends, in whatever way: then nothing is asked of the workers
        // any more.
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
        count.see(record);
        piece.record(record);
    })?;
    count.tell();
    Ok(piece)
}

/// Puts a piece behind all those before it; reads it again for what it could not sum up.
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

/// Contiguous pieces of about as many activations each.
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

/// How many activations one reader has taken, told in steps.
#[derive(Clone)]
struct Count<'a> {
    taken: &'a AtomicU64,
    since: u64,
    tell: &'a (dyn Fn(u64) + Sync),
}

impl Count<'_> {
    #[inline]
    fn see(&mut self, record: &Record) {
        self.since += u64::from(matches!(record, Record::Activation(_)));
        if self.since == STEP {
            self.tell();
        }
    }

    fn tell(&mut self) {
        (self.tell)(self.taken.fetch_add(self.since, Ordering::Relaxed) + self.since);
        self.since = 0;
    }
}
