//! The modes of all runs, whenever they were.

use punctual_model::arrival::MAX_MODES;
use punctual_model::{Burst, Duration, Instant, Mode, Source};

/// Modes of two runs are the same if the periods of the sources and the jobs of bursts are.
type Key = Vec<(Duration, Option<u64>)>;

fn key(mode: &Mode) -> Key {
    mode.sources.iter().map(|source| (source.period_ns, source.burst.map(|burst| burst.jobs))).collect()
}

/// The modes of one run, without times and phases, in the order of their keys.
pub(crate) fn of(modes: &[Mode]) -> Vec<Mode> {
    let start = Instant::from_ns(0);
    let timeless = |mode: &Mode| Mode {
        from_ns: start,
        until_ns: start,
        releases: mode.releases,
        sources: mode.sources.iter().map(|source| Source { offset_ns: 0, ..source.clone() }).collect(),
    };
    let mut kinds = Vec::new();
    merge(&mut kinds, modes.iter().map(timeless));
    kinds
}

/// Adds those of other runs. Too many lose those with the greatest keys, whatever the order of merges.
pub(crate) fn merge(kinds: &mut Vec<Mode>, others: impl IntoIterator<Item = Mode>) {
    kinds.extend(others);
    kinds.sort_by_cached_key(key);
    kinds.dedup_by(|later, first| {
        let is_same = later.is_like(first);
        if is_same {
            first.releases = first.releases.saturating_add(later.releases);
            first.sources.iter_mut().zip(&later.sources).for_each(|(first, later)| widen(first, later));
        }
        is_same
    });
    kinds.truncate(MAX_MODES);
}

/// Widens a source to cover another one of the same period.
fn widen(source: &mut Source, other: &Source) {
    let usual = source.usual_jitter().max(other.usual_jitter());
    source.jitter_ns = source.jitter_ns.max(other.jitter_ns);
    source.usual_jitter_ns = (usual < source.jitter_ns).then_some(usual);
    source.period_exact = source.period_exact.filter(|exact| other.period_exact == Some(*exact));
    source.activations = source.activations.saturating_add(other.activations);
    source.burst = source
        .burst
        .zip(other.burst)
        .map(|(burst, other)| Burst { within_ns: burst.within_ns.max(other.within_ns), ..burst });
}

/// Whether these can have been merged.
pub(crate) fn are_valid(kinds: &[Mode]) -> bool {
    let is_timeless =
        |mode: &Mode| mode.until_ns.ns() == 0 && mode.sources.iter().all(|source| source.offset_ns == 0);
    kinds.len() <= MAX_MODES
        && kinds.iter().all(is_timeless)
        && kinds.is_sorted_by(|one, next| key(one) < key(next))
}
