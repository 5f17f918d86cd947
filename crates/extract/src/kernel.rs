//! The inner loops of the curves: a batch of new jobs compared with all jobs before them, at any distance.
//!
//! The new jobs are the first `jobs` values of a [`crate::ring::Ring`]. Curve entries stay in registers while
//! the batch passes; pairs that reach past the oldest job meet NaN, which never compares. Entry k is for jobs
//! k + 1 apart.

use crate::batch::{WIDTH, greater, lesser};
use crate::sieve::Sieve;

/// Spans between exact instants: the least into `least`, the greatest into `greatest`.
pub(crate) fn spans(instants: &[f64], jobs: usize, least: &mut [f64], greatest: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the line above checked that the processor has AVX2.
        return unsafe { avx2::spans(instants, jobs, least, greatest) };
    }
    spans_in_blocks::<8>(instants, jobs, least, greatest);
}

/// Spans between windows: from latest to earliest bound into `least`, from earliest to latest into
/// `greatest`.
pub(crate) fn window_spans(
    earliest: &[f64],
    latest: &[f64],
    jobs: usize,
    least: &mut [f64],
    greatest: &mut [f64],
) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the line above checked that the processor has AVX2.
        return unsafe { avx2::window_spans(earliest, latest, jobs, least, greatest) };
    }
    window_spans_in_blocks::<8>(earliest, latest, jobs, least, greatest);
}

/// Growth of a total: the greatest into `greatest`.
pub(crate) fn growth(totals: &[f64], jobs: usize, greatest: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the line above checked that the processor has AVX2.
        return unsafe { avx2::growth(totals, jobs, greatest) };
    }
    growth_in_blocks::<16>(totals, jobs, greatest);
}

/// The same loops for processors with AVX2, whose registers hold blocks twice as wide.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    /// # Safety
    ///
    /// The processor must have AVX2.
    #[target_feature(enable = "avx2")]
    pub unsafe fn spans(instants: &[f64], jobs: usize, least: &mut [f64], greatest: &mut [f64]) {
        super::spans_in_blocks::<16>(instants, jobs, least, greatest);
    }

    /// # Safety
    ///
    /// The processor must have AVX2.
    #[target_feature(enable = "avx2")]
    pub unsafe fn window_spans(
        earliest: &[f64],
        latest: &[f64],
        jobs: usize,
        least: &mut [f64],
        greatest: &mut [f64],
    ) {
        super::window_spans_in_blocks::<16>(earliest, latest, jobs, least, greatest);
    }

    /// # Safety
    ///
    /// The processor must have AVX2.
    #[target_feature(enable = "avx2")]
    pub unsafe fn growth(totals: &[f64], jobs: usize, greatest: &mut [f64]) {
        super::growth_in_blocks::<32>(totals, jobs, greatest);
    }
}

#[inline(always)]
fn spans_in_blocks<const N: usize>(instants: &[f64], jobs: usize, least: &mut [f64], greatest: &mut [f64]) {
    let mut sieve = Sieve::new(instants, instants);
    for (block, (least, greatest)) in
        least.chunks_exact_mut(WIDTH).zip(greatest.chunks_exact_mut(WIDTH)).enumerate()
    {
        if !sieve.passes(least, greatest) {
            continue;
        }
        for (part, (least, greatest)) in
            least.chunks_exact_mut(N).zip(greatest.chunks_exact_mut(N)).enumerate()
        {
            let (mut lows, mut highs) = ([0.0; N], [0.0; N]);
            lows.copy_from_slice(least);
            highs.copy_from_slice(greatest);
            let distance = block * WIDTH + part * N + 1;
            for (before, now) in instants[distance..].windows(N).zip(&instants[..jobs]) {
                for lane in 0..N {
                    let span = now - before[lane];
                    lows[lane] = lesser(span, lows[lane]);
                    highs[lane] = greater(span, highs[lane]);
                }
            }
            least.copy_from_slice(&lows);
            greatest.copy_from_slice(&highs);
        }
    }
}

#[inline(always)]
fn window_spans_in_blocks<const N: usize>(
    earliest: &[f64],
    latest: &[f64],
    jobs: usize,
    least: &mut [f64],
    greatest: &mut [f64],
) {
    let mut sieve = Sieve::new(earliest, latest);
    for (block, (least, greatest)) in
        least.chunks_exact_mut(WIDTH).zip(greatest.chunks_exact_mut(WIDTH)).enumerate()
    {
        if !sieve.passes(least, greatest) {
            continue;
        }
        for (part, (least, greatest)) in
            least.chunks_exact_mut(N).zip(greatest.chunks_exact_mut(N)).enumerate()
        {
            let (mut lows, mut highs) = ([0.0; N], [0.0; N]);
            lows.copy_from_slice(least);
            highs.copy_from_slice(greatest);
            let distance = block * WIDTH + part * N + 1;
            let before = earliest[distance..].windows(N).zip(latest[distance..].windows(N));
            let now = earliest[..jobs].iter().zip(&latest[..jobs]);
            for ((earliest, latest), (earliest_now, latest_now)) in before.zip(now) {
                for lane in 0..N {
                    lows[lane] = lesser(earliest_now - latest[lane], lows[lane]);
                    highs[lane] = greater(latest_now - earliest[lane], highs[lane]);
                }
            }
            least.copy_from_slice(&lows);
            greatest.copy_from_slice(&highs);
        }
    }
}

#[inline(always)]
fn growth_in_blocks<const N: usize>(totals: &[f64], jobs: usize, greatest: &mut [f64]) {
    let mut sieve = Sieve::new(totals, totals);
    for (block, greatest) in greatest.chunks_exact_mut(WIDTH).enumerate() {
        if !sieve.passes(&[], greatest) {
            continue;
        }
        for (part, greatest) in greatest.chunks_exact_mut(N).enumerate() {
            let mut highs = [0.0; N];
            highs.copy_from_slice(greatest);
            for (before, now) in totals[block * WIDTH + part * N + 1..].windows(N).zip(&totals[..jobs]) {
                for lane in 0..N {
                    highs[lane] = greater(now - before[lane], highs[lane]);
                }
            }
            greatest.copy_from_slice(&highs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{BATCH, PADDING};

    /// Values that fall and rise, newest first, and the padding.
    fn values(count: usize, seed: u64) -> Vec<f64> {
        let value = |index: usize| {
            ((index as u64 + 1).wrapping_mul(seed) % 1_000_003) as f64 - 1_000.0 * index as f64
        };
        (0..count).map(value).chain([f64::NAN; PADDING]).collect()
    }

    #[test]
    fn every_path_gives_the_same() {
        for (count, jobs) in [(1, 1), (2, 1), (33, 32), (40, 7), (200, 32), (300, BATCH)] {
            let (earliest, latest) = (values(count, 7_919), values(count, 104_729));
            let length = (count - 1).next_multiple_of(WIDTH);
            let run = |kernel: &dyn Fn(&mut [f64], &mut [f64])| {
                let (mut least, mut greatest) =
                    (vec![f64::INFINITY; length], vec![f64::NEG_INFINITY; length]);
                kernel(&mut least, &mut greatest);
                (least, greatest)
            };
            let mut plain = (vec![f64::INFINITY; length], vec![f64::NEG_INFINITY; length]);
            let mut windows = plain.clone();
            for job in 0..jobs {
                for distance in 1..count - job {
                    let (now, before) = (job, job + distance);
                    plain.0[distance - 1] = plain.0[distance - 1].min(earliest[now] - earliest[before]);
                    plain.1[distance - 1] = plain.1[distance - 1].max(earliest[now] - earliest[before]);
                    windows.0[distance - 1] = windows.0[distance - 1].min(earliest[now] - latest[before]);
                    windows.1[distance - 1] = windows.1[distance - 1].max(latest[now] - earliest[before]);
                }
            }
            assert_eq!(run(&|least, greatest| spans(&earliest, jobs, least, greatest)), plain);
            assert_eq!(run(&|least, greatest| spans_in_blocks::<8>(&earliest, jobs, least, greatest)), plain);
            assert_eq!(
                run(&|least, greatest| window_spans(&earliest, &latest, jobs, least, greatest)),
                windows
            );
            assert_eq!(
                run(&|least, greatest| window_spans_in_blocks::<8>(
                    &earliest, &latest, jobs, least, greatest
                )),
                windows
            );
            assert_eq!(run(&|_, greatest| growth(&earliest, jobs, greatest)).1, plain.1);
            assert_eq!(run(&|_, greatest| growth_in_blocks::<16>(&earliest, jobs, greatest)).1, plain.1);
        }
    }
}
