//! Finds the blocks of a curve that a batch of jobs can change: hardly any, after some thousand jobs.
//!
//! An instant minus a steady pace is its residual; the span of two jobs k apart is k paces plus the
//! difference of their residuals. So the extremes of the residuals in whole chunks of jobs bound all spans
//! between them, and a block whose entries all exceed those bounds can be skipped. The pace is a whole
//! number, and so is everything else: the bounds are exact.

use crate::batch::{BATCH, PADDING, WIDTH, greater, lesser};

/// As long as residuals and paces stay below this, nothing is rounded.
const EXACT: f64 = (1_u64 << 51) as f64;

const LANES: usize = 8;

/// Chunks in a batch. A block of the curve pairs the batch with as many chunks before it, plus one.
const CHUNKS: usize = BATCH / WIDTH;
const _: () = assert!(BATCH % WIDTH == 0);

/// Walks through a curve, block by block. Jobs are newest first, in chunks as long as a block.
pub(crate) struct Sieve<'a> {
    earliest: &'a [f64],
    latest: &'a [f64],
    pace: f64,
    /// The pace times each place in a chunk.
    ramp: [f64; WIDTH],
    batch: Extremes,
    /// The chunks paired with the batch by the next block, all but the last; a ring.
    before: [Extremes; CHUNKS],
    block: usize,
}

/// The least and the greatest of a set of residuals.
#[derive(Clone, Copy)]
struct Extremes {
    least: f64,
    greatest: f64,
}

impl<'a> Sieve<'a> {
    /// A sieve for the batch at the front of these bounds.
    #[inline(always)]
    pub fn new(earliest: &'a [f64], latest: &'a [f64]) -> Sieve<'a> {
        let jobs = earliest.len().saturating_sub(PADDING);
        let pace = match earliest[..jobs] {
            [newest, .., oldest] => ((newest - oldest) / (jobs - 1) as f64).floor(),
            _ => 0.0,
        };
        let nothing = Extremes { least: f64::NAN, greatest: f64::NAN };
        let mut ramp = [0.0; WIDTH];
        for (place, step) in ramp.iter_mut().enumerate() {
            *step = place as f64 * pace;
        }
        let mut sieve =
            Sieve { earliest, latest, pace, ramp, batch: nothing, before: [nothing; CHUNKS], block: 0 };
        for chunk in 0..CHUNKS {
            sieve.before[chunk] = sieve.extremes(chunk);
            sieve.batch = sieve.batch.and(sieve.before[chunk]);
        }
        sieve
    }

    /// Whether the batch can change the next block, with these entries. `least` may be empty.
    #[inline(always)]
    pub fn passes(&mut self, least: &[f64], greatest: &[f64]) -> bool {
        let paces = (self.block * WIDTH + 1) as f64 * self.pace;
        self.block += 1;
        let further = self.extremes(self.block + CHUNKS - 1);
        let before = self.before.iter().fold(further, |all, chunk| all.and(*chunk));
        self.before[(self.block - 1) % CHUNKS] = further;
        let all = self.batch.and(before);
        let reach = ((self.block + CHUNKS) * WIDTH) as f64 * self.pace.abs();
        let is_exact = all.least > -EXACT && all.greatest < EXACT && reach < EXACT;
        let to_beat = fold(greatest, |entry, place| entry - self.ramp[place], f64::INFINITY, lesser) - paces;
        let to_undercut =
            fold(least, |entry, place| entry - self.ramp[place], f64::NEG_INFINITY, greater) - paces;
        let (longest, shortest) = (self.batch.greatest - before.least, self.batch.least - before.greatest);
        !is_exact || longest > to_beat || shortest < to_undercut
    }

    /// The extremes of a chunk; infinite past the oldest job.
    #[inline(always)]
    fn extremes(&self, chunk: usize) -> Extremes {
        let from = chunk * WIDTH;
        let (Some(earliest), Some(latest)) =
            (self.earliest.get(from..from + WIDTH), self.latest.get(from..from + WIDTH))
        else {
            return Extremes { least: f64::INFINITY, greatest: f64::NEG_INFINITY };
        };
        let paces = from as f64 * self.pace;
        let residual = |instant: f64, place: usize| instant + self.ramp[place];
        Extremes {
            least: fold(earliest, residual, f64::INFINITY, lesser) + paces,
            greatest: fold(latest, residual, f64::NEG_INFINITY, greater) + paces,
        }
    }
}

impl Extremes {
    #[inline(always)]
    fn and(self, other: Extremes) -> Extremes {
        Extremes { least: lesser(self.least, other.least), greatest: greater(self.greatest, other.greatest) }
    }
}

/// The best of the mapped values of a chunk, several lanes at a time.
#[inline(always)]
fn fold(
    values: &[f64],
    map: impl Fn(f64, usize) -> f64,
    worst: f64,
    better: impl Fn(f64, f64) -> f64,
) -> f64 {
    let mut best = [worst; LANES];
    for (part, values) in values.chunks_exact(LANES).enumerate() {
        for lane in 0..LANES {
            best[lane] = better(map(values[lane], part * LANES + lane), best[lane]);
        }
    }
    best.into_iter().fold(worst, |best, value| better(value, best))
}
