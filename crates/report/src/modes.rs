//! Modes of a stream in words: several rates, bursts, and rates that change.

use crate::number::{at_most, counted, three_digits};
use punctual_model::{Duration, Instant, Mode, Source};

/// Most modes that are listed.
const MOST: usize = 4;

/// `10 ms + 25 ms`, `5 ms until +4.0 s, then 8 ms`, `4 jobs in 0.6 ms, every 20 ms`, `5 ms or 8 ms, 12
/// changes`; times since `begin`.
pub(crate) fn short(modes: &[Mode], begin: Instant) -> String {
    let kinds = kinds(modes);
    if !have_times(modes) || modes.len() > MOST && kinds.len() < MOST {
        let changes = modes.len().saturating_sub(kinds.len().max(1)) as u64;
        let kinds = kinds.into_iter().map(sources).collect::<Vec<_>>().join(" or ");
        return if changes == 0 { kinds } else { format!("{kinds}, {} changes", modes.len() - 1) };
    }
    let mut parts: Vec<String> = Vec::new();
    for (at, mode) in modes.iter().take(MOST).enumerate() {
        let before = &modes[..at];
        let what = match before.last().and_then(|before| jump(before, mode)) {
            Some(jump) => format!("moved by {jump}"),
            None if !mode.sources.is_empty() && before.iter().any(|other| other.is_like(mode)) => {
                format!("{} again", sources(mode))
            }
            None => sources(mode),
        };
        parts.push(if at + 1 < modes.len() { format!("{what} until {}", tenths(mode, begin)) } else { what });
    }
    if modes.len() > MOST {
        parts.push(format!("{} more", modes.len() - MOST));
    }
    parts.join(", then ")
}

/// The first mode of each kind.
fn kinds(modes: &[Mode]) -> Vec<&Mode> {
    let mut kinds: Vec<&Mode> = Vec::new();
    for mode in modes {
        if !kinds.iter().any(|kind| kind.is_like(mode)) {
            kinds.push(mode);
        }
    }
    kinds
}

/// Whether it is known when each mode was: not of several runs.
fn have_times(modes: &[Mode]) -> bool {
    modes.iter().any(|mode| mode.until_ns > Instant::from_ns(0))
}

/// What releases jobs in a mode.
fn sources(mode: &Mode) -> String {
    match &mode.sources[..] {
        [] => "irregular".into(),
        sources => sources.iter().map(source).collect::<Vec<_>>().join(" + "),
    }
}

fn source(source: &Source) -> String {
    let period = source.period_ns;
    match source.burst {
        Some(burst) => format!("{} jobs in {}, every {period}", burst.jobs, at_most(burst.within_ns)),
        None => period.to_string(),
    }
}

/// The greatest jitter of any source, without outliers.
pub(crate) fn jitter(modes: &[Mode]) -> Option<Duration> {
    modes.iter().flat_map(|mode| &mode.sources).map(Source::usual_jitter).max()
}

/// Sentences about each mode; times since `begin`.
pub(crate) fn prose(modes: &[Mode], begin: Instant) -> Vec<String> {
    let mut text = vec![match modes {
        [only] if only.sources.len() > 1 => {
            format!("Released by {} periodic sources: {}.", only.sources.len(), sources(only))
        }
        [only] => format!("Released in bursts: {}.", sources(only)),
        _ if have_times(modes) => format!("Its rate or phase changes: it has {} modes.", modes.len()),
        _ => format!("The runs differ, or its rate changes: it has {} modes.", modes.len()),
    }];
    for (at, mode) in modes.iter().enumerate() {
        let moved = at.checked_sub(1).and_then(|before| jump(&modes[before], mode));
        let moved = moved.map_or(String::new(), |jump| format!(", moved by {jump}"));
        let times = match modes.len() {
            1 => String::new(),
            _ if !have_times(modes) => format!("{}: ", sources(mode)),
            _ => format!(
                "{} to {}: {}{moved}. ",
                since(mode.from_ns, begin),
                since(mode.until_ns, begin),
                sources(mode)
            ),
        };
        let each = mode.sources.iter().map(|source| {
            let with_outliers = match source.usual_jitter_ns {
                Some(_) => format!(" ({} with outliers)", at_most(source.jitter_ns)),
                None => String::new(),
            };
            format!("{}{with_outliers} for {}", at_most(source.usual_jitter()), source.period_ns)
        });
        let each = each.collect::<Vec<_>>().join(", ");
        text.push(match each.is_empty() {
            true => format!("{times}{} without a known source.", counted(mode.releases, "release")),
            false => format!("{times}The jitter is at most {each}."),
        });
    }
    text
}

/// By how much the phase differs from that of the mode before, if that is all.
fn jump(before: &Mode, mode: &Mode) -> Option<String> {
    let ([one], [other]) = (&before.sources[..], &mode.sources[..]) else { return None };
    if !mode.is_like(before) || one.burst.is_some() {
        return None;
    }
    let period = i128::from(one.period_ns.ns());
    let off = (i128::from(other.offset_ns) - i128::from(one.offset_ns)).rem_euclid(period);
    let (sign, off) = if off > period / 2 { ('−', period - off) } else { ('+', off) };
    let off = Duration::from_ns(u64::try_from(off).ok()?);
    Some(format!("{sign}{}", three_digits(off)))
}

/// When a mode ended: `+4.0 s`.
fn tenths(mode: &Mode, begin: Instant) -> String {
    let tenths = (mode.until_ns.ns().saturating_sub(begin.ns()) + 50_000_000) / 100_000_000;
    format!("+{}.{} s", tenths / 10, tenths % 10)
}

fn since(at: Instant, begin: Instant) -> String {
    crate::text::since(Duration::from_ns(at.ns().saturating_sub(begin.ns())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::Burst;

    const MS: u64 = 1_000_000;

    fn source(period_ms: u64, offset_ms: i64) -> Source {
        Source {
            period_ns: Duration::from_ms(period_ms),
            period_exact: None,
            offset_ns: offset_ms * MS as i64,
            jitter_ns: Duration::from_us(120),
            usual_jitter_ns: None,
            activations: 100,
            burst: None,
        }
    }

    fn mode(from_ms: u64, until_ms: u64, sources: Vec<Source>) -> Mode {
        let at = |ms: u64| Instant::from_ns(ms * MS);
        Mode { from_ns: at(from_ms), until_ns: at(until_ms), releases: 100, sources }
    }

    fn shown(modes: &[Mode]) -> String {
        short(modes, Instant::from_ns(1_000 * MS))
    }

    #[test]
    fn modes_are_short_in_a_table() {
        let two = mode(1_000, 9_000, vec![source(10, 0), source(25, 3)]);
        assert_eq!(shown(&[two]), "10 ms + 25 ms");
        let burst = Some(Burst { jobs: 4, within_ns: Duration::from_us(600) });
        let bursts = mode(1_000, 9_000, vec![Source { burst, ..source(20, 0) }]);
        assert_eq!(shown(&[bursts]), "4 jobs in 600 µs, every 20 ms");
        let five = mode(1_000, 4_996, vec![source(5, 1_000)]);
        let eight = mode(5_004, 9_000, vec![source(8, 5_004)]);
        assert_eq!(shown(&[five.clone(), eight.clone()]), "5 ms until +4.0 s, then 8 ms");
        let back = mode(5_002, 9_000, vec![source(5, 5_003)]);
        assert_eq!(shown(&[five.clone(), back]), "5 ms until +4.0 s, then moved by −2 ms");
        let gap = mode(5_000, 5_100, Vec::new());
        let again = mode(9_004, 12_000, vec![source(5, 9_004)]);
        assert_eq!(
            shown(&[five.clone(), eight.clone(), again.clone()]),
            "5 ms until +4.0 s, then 8 ms until +8.0 s, then 5 ms again"
        );
        let often = [&five, &eight, &again, &eight, &five].map(Clone::clone);
        assert_eq!(shown(&often), "5 ms or 8 ms, 4 changes");
        let of_runs = [&five, &eight].map(|it| mode(0, 0, it.sources.clone()));
        assert_eq!(shown(&of_runs), "5 ms or 8 ms");
        let twenty = mode(9_004, 12_000, vec![source(20, 9_004)]);
        let many = [five.clone(), gap.clone(), eight.clone(), gap, five, twenty];
        assert_eq!(
            shown(&many),
            "5 ms until +4.0 s, then irregular until +4.1 s, then 8 ms until +8.0 s, then irregular until \
             +4.1 s, then 2 more"
        );
    }

    #[test]
    fn each_mode_has_its_jitter() {
        let usual_jitter_ns = Some(Duration::from_us(80));
        let five = mode(1_000, 4_996, vec![Source { usual_jitter_ns, ..source(5, 1_000) }]);
        let gap = mode(5_000, 5_100, Vec::new());
        assert_eq!(
            prose(&[five, gap], Instant::from_ns(1_000 * MS)),
            [
                "Its rate or phase changes: it has 2 modes.",
                "+0.000000 s to +3.996000 s: 5 ms. \
                 The jitter is at most 80 µs (120 µs with outliers) for 5 ms.",
                "+4.000000 s to +4.100000 s: irregular. 100 releases without a known source.",
            ]
        );
    }
}
