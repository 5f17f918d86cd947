//! Several sources, bursts and modes of what was observed: what a contract says of them.

use super::observed::Limits;
use super::{ContractMode, ContractSource};
use crate::checker::{LEAST_OF_MODE, longest_gap};
use crate::spans::Spans;
use punctual_model::arrival::{Mode, Source};
use punctual_model::{Duration, Stream};

/// Activations that may be left out in a row, at most, where several sources or a burst explain the releases.
const MOST_SKIPS: u64 = 8;

/// The modes of all these streams, if each of them keeps to them.
pub fn agreed(streams: &[&Stream], limits: Limits) -> Option<Vec<ContractMode>> {
    let mut agreed: Vec<ContractMode> = Vec::new();
    let streams = || streams.iter().filter(|stream| stream.releases > 1);
    for stream in streams() {
        let modes = without_jumps(&stream.arrival.modes)?;
        for mode in &modes {
            let mode = observed(mode, modes.len() > 1, limits)?;
            match agreed.iter_mut().find(|other| periods(other) == periods(&mode)) {
                Some(other) => widen(other, &mode),
                None => agreed.push(mode),
            }
        }
    }
    match &mut agreed[..] {
        [] => return None,
        [only] => skips(only, streams().copied())?,
        modes if modes.len() > super::MOST_MODES => return None,
        modes => {
            let spans: Vec<Spans> = modes.iter().map(Spans::of).collect();
            let gap = |stream: &&Stream| stream.arrival.curve.as_ref()?.delta_max_ns.first().copied();
            let longest = streams().filter_map(gap).max()?;
            if Some(longest) > longest_gap(&spans) {
                return None;
            }
        }
    }
    Some(agreed)
}

/// The source of a task that has one, without bursts, and the activations that it may leave out in a row.
pub fn only(modes: &[ContractMode]) -> Option<(ContractSource, Option<u64>)> {
    match modes {
        [ContractMode { sources, skips }] => match sources[..] {
            [source] if source.burst.is_none() => Some((source, *skips)),
            _ => None,
        },
        _ => None,
    }
}

/// The modes, with a jitter that covers jumps of the phase in place of the jumps. `None` if there are no
/// modes, or if such a jitter is half a period or more.
fn without_jumps(modes: &[Mode]) -> Option<Vec<Mode>> {
    let mut joined: Vec<Mode> = Vec::with_capacity(modes.len());
    for mode in modes {
        match joined.last_mut() {
            Some(last) if last.is_like(mode) => join(last, mode)?,
            _ => joined.push(mode.clone()),
        }
    }
    (!joined.is_empty()).then_some(joined)
}

/// Goes on with a source of the same period and another phase.
fn join(mode: &mut Mode, later: &Mode) -> Option<()> {
    let ([source], [other]) = (&mut mode.sources[..], &later.sources[..]) else { return None };
    if source.burst.is_some() {
        return None;
    }
    let period = i128::from(source.period_ns.ns());
    let moved = (i128::from(other.offset_ns) - i128::from(source.offset_ns)).rem_euclid(period);
    let moved = if moved > period / 2 { moved - period } else { moved };
    let reach = |jitter: Duration, other: Duration| {
        let (begin, end) = (moved.min(0), i128::from(jitter.ns()).max(moved + i128::from(other.ns())));
        (end - begin < period / 2).then(|| u64::try_from(end - begin).ok().map(Duration::from_ns))?
    };
    let usual = reach(source.usual_jitter(), other.usual_jitter())?;
    source.jitter_ns = reach(source.jitter_ns, other.jitter_ns)?;
    source.usual_jitter_ns = Some(usual);
    source.offset_ns += i64::try_from(moved.min(0)).ok()?;
    source.activations += other.activations;
    mode.releases += later.releases;
    mode.until_ns = later.until_ns;
    Some(())
}

/// What was observed of a mode; of one of several, only if what it left out is known.
fn observed(mode: &Mode, is_of_several: bool, limits: Limits) -> Option<ContractMode> {
    let of = |source: &Source| {
        let jitter = limits.quantile.map_or(source.jitter_ns, |_| source.usual_jitter());
        ContractSource {
            period: source.period_ns,
            jitter: Some(limits.margin.above_kernel(jitter, 1)),
            burst: source.burst.map(|burst| punctual_model::Burst {
                within_ns: limits.margin.above_kernel(burst.within_ns, 1),
                ..burst
            }),
        }
    };
    let skips = match &mode.sources[..] {
        [] => return None,
        [one] if one.burst.is_none() => Some(one.activations.saturating_sub(mode.releases)),
        _ if is_of_several => return None,
        _ => None,
    };
    let is_long = !is_of_several || mode.releases >= LEAST_OF_MODE;
    is_long.then(|| ContractMode {
        sources: mode.sources.iter().map(of).collect(),
        skips: skips.filter(|it| *it > 0),
    })
}

fn periods(mode: &ContractMode) -> Vec<(Duration, Option<u64>)> {
    mode.sources.iter().map(|source| (source.period, source.burst.map(|burst| burst.jobs))).collect()
}

/// Allows what another one with the same periods allows.
fn widen(mode: &mut ContractMode, other: &ContractMode) {
    mode.skips = mode.skips.max(other.skips);
    for (source, other) in mode.sources.iter_mut().zip(&other.sources) {
        source.jitter = source.jitter.max(other.jitter);
        if let Some((burst, other)) = source.burst.as_mut().zip(other.burst) {
            burst.within_ns = burst.within_ns.max(other.within_ns);
        }
    }
}

/// As many skips as the curves of the streams show. `None` if the sources do not explain them.
fn skips<'a>(mode: &mut ContractMode, streams: impl Iterator<Item = &'a Stream>) -> Option<()> {
    let curves: Option<Vec<_>> = streams.map(|stream| stream.arrival.curve.as_ref()).collect();
    let curves = curves?;
    let keeps = |skips: &u64| {
        let spans = Spans::of(&ContractMode { skips: Some(*skips), ..mode.clone() });
        curves.iter().all(|curve| spans.allow(&curve.delta_min_ns, &curve.delta_max_ns))
    };
    let least = mode.skips.unwrap_or(0);
    mode.skips = Some((least..=least.max(MOST_SKIPS)).find(keeps)?).filter(|skips| *skips > 0);
    Some(())
}
