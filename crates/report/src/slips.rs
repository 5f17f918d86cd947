//! What a periodic model says beside its period: skipped activations and extra releases, the typical jitter
//! and what it leaves out.

use crate::figure::{agreeing, at_most, count, counted, period};
use punctual_model::{Disturbance, Duration, LeftOut, MAX_SLIPS, Periodic, Slip, Typical};

/// Places and releases that are named one by one.
const SHOWN: usize = 4;

/// `1 ms, 3 skipped, 1 extra`.
pub(crate) fn period_and_slips(periodic: &Periodic) -> String {
    let slips = [(periodic.skipped, "skipped"), (periodic.extra, "extra")];
    let slips = slips
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!(", {} {what}", count(number)));
    period(periodic) + &slips.collect::<String>()
}

/// `16 µs`, or `16 µs (30 ms)` where the greatest is another than the typical one.
pub(crate) fn jitters(periodic: &Periodic) -> String {
    match typical(periodic) {
        Some(typical) => format!("{} ({})", at_most(typical.jitter_ns), at_most(periodic.jitter_ns)),
        None => at_most(periodic.jitter_ns).to_string(),
    }
}

/// The typical model, where it says something else than that of all releases.
pub(crate) fn typical(periodic: &Periodic) -> Option<&Typical> {
    let is_apart = |typical: &&Typical| {
        !typical.left_out.is_empty()
            || (typical.offset_ns, typical.jitter_ns) != (periodic.offset_ns, periodic.jitter_ns)
    };
    periodic.typical.as_ref().filter(is_apart)
}

/// How many releases the typical model leaves out.
pub(crate) fn left_out(periodic: &Periodic) -> u64 {
    periodic.typical.as_ref().map_or(0, |typical| typical.left_out.len() as u64)
}

/// What the typical model leaves out, one release after the other, and the jitter with them; nothing where
/// there is just one model.
pub(crate) fn exceptions(periodic: &Periodic, releases: u64) -> Vec<String> {
    let Some(typical) = typical(periodic) else { return Vec::new() };
    let mut text = Vec::new();
    let left_out = &typical.left_out;
    if !left_out.is_empty() {
        let named: Vec<String> = left_out.iter().take(SHOWN).map(named).collect();
        let number = left_out.len() as u64;
        let more = match left_out.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!("; {more} more in the model file"),
        };
        text.push(format!(
            "That leaves out {} of {}: {}{more}.",
            count(number),
            counted(releases, "release"),
            named.join("; ")
        ));
    }
    text.push(format!(
        "A model of all releases, one for each activation, needs a release jitter of {} (J = {} ns).",
        at_most(periodic.jitter_ns),
        count(periodic.jitter_ns.ns())
    ));
    text
}

/// How far off one was, when, and why.
fn named(release: &LeftOut) -> String {
    let off = at_most(Duration::from_ns(release.off_ns.unsigned_abs()));
    let off = match release.off_ns < 0 {
        true => format!("{off} before its arrival"),
        false => format!("{off} later than that"),
    };
    let reason = release.reason.map_or(String::new(), |reason| format!(" ({})", why(reason)));
    format!("one {off}{reason}, at {} ns of the clock", count(release.at_ns.ns()))
}

/// A reason in words.
pub(crate) fn why(reason: Disturbance) -> &'static str {
    match reason {
        Disturbance::Signal => "a signal",
        Disturbance::Ending => "the thread was being ended",
        Disturbance::Stall => "the machine stood still",
    }
}

/// Where activations were skipped, and where releases were extra.
pub(crate) fn slips(periodic: &Periodic) -> Vec<String> {
    let mut text = Vec::new();
    if periodic.skipped > 0 {
        let were = agreeing(periodic.skipped, "was", "were");
        let places = places(periodic, |slip| slip.activations > 0, "before the release");
        text.push(format!("{} {were} skipped{places}.", counted(periodic.skipped, "activation")));
    }
    if periodic.extra > 0 {
        let were = agreeing(periodic.extra, "was", "were");
        let places = places(periodic, |slip| slip.activations < 0, "the one");
        text.push(format!(
            "{} {were} extra, more than one for an activation{places}; a model of all releases counts what came before as late by a period for each.",
            counted(periodic.extra, "release")
        ));
    }
    text
}

fn places(periodic: &Periodic, is_one: impl Fn(&Slip) -> bool, at: &str) -> String {
    let all: Vec<&Slip> = periodic.slips.iter().filter(|slip| is_one(slip)).collect();
    let named = |slip: &&Slip| {
        let several = slip.activations.unsigned_abs();
        let times = if several > 1 { format!("{} ", count(several)) } else { String::new() };
        format!("{times}{at} at {} ns", count(slip.at_ns.ns()))
    };
    let named: Vec<String> = all.iter().take(SHOWN).map(named).collect();
    let more = match (all.len() > SHOWN, periodic.slips.len() == MAX_SLIPS) {
        _ if named.is_empty() => return String::new(),
        (true, true) => ", …; the model file has the first places",
        (true, false) => ", …; the model file has all places",
        (false, true) => ", and perhaps later ones",
        (false, false) => "",
    };
    format!(": {} of the clock{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn a_cell_has_both_jitters_where_they_differ() {
        let mut periodic = example::periodic(1_000_000, 16_000);
        assert_eq!((period_and_slips(&periodic), jitters(&periodic)), ("1 ms".into(), "16 µs".into()));
        // A typical model that says the same.
        periodic.typical = Some(Typical {
            offset_ns: periodic.offset_ns,
            jitter_ns: periodic.jitter_ns,
            left_out: Vec::new(),
        });
        assert_eq!(jitters(&periodic), "16 µs");
        let odd = example::disturbed();
        assert_eq!(
            (period_and_slips(&odd), jitters(&odd)),
            ("1 ms, 3 skipped".into(), "16 µs (30.33 ms)".into())
        );
        let extra = example::extra();
        assert_eq!(
            (period_and_slips(&extra), jitters(&extra)),
            ("1 ms, 1 extra".into(), "16 µs (1.016 ms)".into())
        );
    }

    #[test]
    fn what_is_left_out_is_named() {
        assert_eq!(
            exceptions(&example::disturbed(), 5_001),
            [
                "That leaves out 2 of 5,001 releases: one 310 µs before its arrival (a signal), at 2,999,690,000 ns of the clock; \
                 one 30 ms later than that (the machine stood still), at 4,030,016,000 ns of the clock.",
                "A model of all releases, one for each activation, needs a release jitter of 30.33 ms (J = 30,326,000 ns).",
            ]
        );
        let mut many = example::disturbed();
        if let Some(typical) = &mut many.typical {
            typical.left_out = vec![LeftOut { reason: Some(Disturbance::Ending), ..typical.left_out[0] }; 7];
        }
        let text = exceptions(&many, 7_001)[0].clone();
        assert!(
            text.contains("(the thread was being ended)")
                && text.ends_with("clock; 3 more in the model file."),
            "{text}"
        );
        assert_eq!(exceptions(&example::periodic(1_000_000, 16_000), 9), [""; 0]);
    }

    #[test]
    fn slips_are_told_by_their_places() {
        assert_eq!(
            slips(&example::disturbed()),
            [
                "3 activations were skipped: before the release at 1,500,004,000 ns, 2 before the release at 1,800,002,000 ns of the clock."
            ]
        );
        assert_eq!(
            slips(&example::extra()),
            [
                "1 release was extra, more than one for an activation: the one at 1,500,400,000 ns of the clock; \
              a model of all releases counts what came before as late by a period for each."
            ]
        );
        let mut many = example::disturbed();
        many.skipped = 40;
        many.slips = vec![many.slips[0]; MAX_SLIPS];
        assert!(
            slips(&many)[0].ends_with(" of the clock, …; the model file has the first places."),
            "{:?}",
            slips(&many)
        );
    }
}
