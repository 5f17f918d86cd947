//! Modes of a stream in words: several rates, bursts, and rates that change.

use crate::number::{at_most, counted, three_digits};
use punctual_model::{Duration, Instant, Mode, Source};

/// Most modes that are listed.
const MOST: usize = 4;

/// `10 ms + 25 ms`, `5 ms until +4.0 s, then 8 ms`, `4 jobs in 0.6 ms, every 20 ms`; times since `begin`.
pub(crate) fn short(modes: &[Mode], begin: Instant) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (at, mode) in modes.iter().take(MOST).enumerate() {
        let what = match at.checked_sub(1).and_then(|before| jump(&modes[before], mode)) {
            Some(jump) => format!("moved by {jump}"),
            None => sources(mode),
        };
        parts.push(if at + 1 < modes.len() { format!("{what} until {}", tenths(mode, begin)) } else { what });
    }
    if modes.len() > MOST {
        parts.push(format!("{} more", modes.len() - MOST));
    }
    parts.join(", then ")
}

/// What releases jobs in a mode.
pub(crate) fn sources(mode: &Mode) -> String {
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
        _ => format!("Its rate or phase changes: it has {} modes.", modes.len()),
    }];
    for (at, mode) in modes.iter().enumerate() {
        let moved = at.checked_sub(1).and_then(|before| jump(&modes[before], mode));
        let moved = moved.map_or(String::new(), |jump| format!(", moved by {jump}"));
        let times = match modes.len() {
            1 => String::new(),
            _ => format!(
                "{} to {}: {}{moved}. ",
                since(mode.from_ns, begin),
                since(mode.until_ns, begin),
                sources(mode)
            ),
        };
        let each = mode.sources.iter().map(|source| {
            let most = match source.usual_jitter_ns {
                Some(usual) => format!("{}, with outliers {}", at_most(usual), at_most(source.jitter_ns)),
                None => at_most(source.jitter_ns).to_string(),
            };
            format!("{} with a jitter of {most}", source.period_ns)
        });
        let each = each.collect::<Vec<_>>().join("; ");
        text.push(match each.is_empty() {
            true => format!("{times}No sources explain these {}.", counted(mode.releases, "release")),
            false => format!("{times}Each source: {each}."),
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
