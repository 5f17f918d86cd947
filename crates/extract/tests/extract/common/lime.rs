//! The published algorithm, as a baseline: batches, candidate sets, outlier removal. (papers: LiME, Algorithm
//! 1.)
//!
//! Where the paper leaves something open (batch length, how δ accounts for late releases), the more
//! favourable reading is used.

const BATCH: usize = 1_000;
const SIGMA: i128 = 3;

#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    pub offset: i128,
    pub period: i128,
    pub jitter: i128,
}

impl Candidate {
    fn arrival(&self, job: usize) -> i128 {
        self.offset + job as i128 * self.period
    }

    /// Makes it sound for releases from job `first` on.
    fn update(&mut self, first: usize, releases: &[u64]) {
        for (index, &release) in releases.iter().enumerate() {
            let late = i128::from(release) - self.arrival(first + index);
            if late < 0 {
                self.offset += late;
                self.jitter -= late;
            } else {
                self.jitter = self.jitter.max(late);
            }
        }
    }
}

/// The model of the whole stream; at least two releases.
pub fn infer(releases: &[u64]) -> Candidate {
    let end = releases.len().min(BATCH);
    let best = best_period(without_outliers(&releases[..end]));
    let (fine, human) = (fine_periods(&releases[..end], best), human_periods(best));
    let fresh = |periods: &[i128]| -> Vec<Candidate> {
        let new = |&period: &i128| Candidate { offset: releases[0].into(), period, jitter: 0 };
        periods.iter().map(new).collect()
    };
    let (mut fine, mut human) = (fresh(&fine), fresh(&human));
    for candidate in fine.iter_mut().chain(&mut human) {
        candidate.update(0, &releases[..end]);
    }
    let (mut mean, mut batches, mut last) = (best as f64, 1, end - 1);
    while last + 1 < releases.len() {
        let batch = &releases[last..releases.len().min(last + BATCH)];
        let best = best_period(without_outliers(batch));
        mean += (best as f64 - mean) / f64::from(batches);
        batches += 1;
        for period in [best, mean.round() as i128] {
            let nearest =
                fine.iter().chain(&human).min_by_key(|candidate| (candidate.period - period).abs()).copied();
            fine.extend(nearest.map(|sound| derive(sound, period, last)));
        }
        for candidate in fine.iter_mut().chain(&mut human) {
            candidate.update(last, batch);
        }
        let least = fine.iter().chain(&human).map(|candidate| candidate.jitter).min().unwrap_or(0);
        fine.retain(|candidate| candidate.jitter <= 5 * least);
        human.retain(|candidate| candidate.jitter <= 5 * least);
        last += batch.len() - 1;
    }
    let best = *fine.iter().chain(&human).min_by_key(|candidate| candidate.jitter).unwrap();
    let mut grain = 10_i128.pow(best.period.ilog10());
    while grain > 0 {
        let round = (best.period + grain / 2) / grain * grain;
        let fits =
            |candidate: &&Candidate| candidate.period == round && 4 * candidate.jitter <= 5 * best.jitter;
        if let Some(candidate) = human.iter().find(fits) {
            return *candidate;
        }
        grain /= 10;
    }
    best
}

/// A model with another period that is sound for jobs up to `last`, as it follows from one that is.
fn derive(sound: Candidate, period: i128, last: usize) -> Candidate {
    let far = sound.arrival(last) - last as i128 * period;
    let offset = if period > sound.period { far } else { sound.offset };
    let jitter = sound.jitter + (far - sound.offset).abs();
    Candidate { offset, period, jitter }
}

fn without_outliers(releases: &[u64]) -> &[u64] {
    let gaps: Vec<u64> = releases.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let median = |values: &[u64]| {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or(0)
    };
    let centre = median(&gaps);
    let deviation = median(&gaps.iter().map(|gap| gap.abs_diff(centre)).collect::<Vec<_>>());
    let ordinary = |gap: &u64| gap.abs_diff(centre) as f64 <= 3.0 * 1.4826 * deviation as f64;
    match (gaps.iter().position(ordinary), gaps.iter().rposition(ordinary)) {
        (Some(first), Some(last)) => &releases[first..=last + 1],
        _ => releases,
    }
}

fn least_jitter(releases: &[u64], period: i128) -> i128 {
    let mut candidate = Candidate { offset: releases[0].into(), period, jitter: 0 };
    candidate.update(0, releases);
    candidate.jitter
}

/// Ternary search.
fn best_period(releases: &[u64]) -> i128 {
    let gaps = releases.windows(2).map(|pair| i128::from(pair[1] - pair[0]));
    let (mut low, mut high) = gaps.fold((i128::MAX, 1), |(low, high), gap| (low.min(gap), high.max(gap)));
    low = low.clamp(1, high);
    while high - low > 2 {
        let third = (high - low) / 3;
        if least_jitter(releases, low + third) <= least_jitter(releases, high - third) {
            high -= third;
        } else {
            low += third;
        }
    }
    (low..=high).min_by_key(|&period| least_jitter(releases, period)).unwrap_or(low)
}

fn fine_periods(releases: &[u64], best: i128) -> Vec<i128> {
    let reach = SIGMA * least_jitter(without_outliers(releases), best) + 10;
    let periods = (0..50).map(|step| best - reach + 2 * reach * step / 49).chain([best]);
    periods.filter(|&period| period > 0).collect()
}

fn human_periods(best: i128) -> Vec<i128> {
    let mut periods = Vec::new();
    let mut grain = 1;
    while grain <= best {
        let round = (best + grain / 2) / grain;
        periods.extend((-2..=2).map(|step| (round + step) * grain).filter(|&period| period > 0));
        grain *= 10;
    }
    periods.sort_unstable();
    periods.dedup();
    periods
}
