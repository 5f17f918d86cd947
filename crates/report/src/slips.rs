//! What a periodic model has beside its period: skipped activations, extra releases, the typical jitter and
//! the releases that it leaves out. Instants are displayed relative to the beginning of the observation.

use crate::derived::typical;
use crate::number::{agreeing, at_most, count, counted, period};
use crate::percentiles::is_requested;
use crate::text::since;
use punctual_model::{
    Disturbance, Duration, FEWEST_TYPICAL, Instant, LeftOut, MAX_SLIPS, Object, Periodic, Slip, Stream,
};

/// Places and releases that are named one by one.
const SHOWN: usize = 4;

/// A typical jitter that is more than so many times the 99.9th percentile is rare.
const FAR: u64 = 2;

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

/// The releases that the typical model leaves out, and the jitter of all; empty where both models agree.
pub(crate) fn exceptions(periodic: &Periodic, releases: u64, begin: Instant) -> Vec<String> {
    let Some(typical) = typical(periodic) else { return Vec::new() };
    let mut text = Vec::new();
    let left_out = &typical.left_out;
    if !left_out.is_empty() {
        let named: Vec<String> = left_out.iter().take(SHOWN).map(|release| named(release, begin)).collect();
        let number = left_out.len() as u64;
        let more = match left_out.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!("; {more} more in the model file"),
        };
        text.push(format!(
            "This leaves out {} of {}{}: {}{more}.",
            count(number),
            counted(releases, "release"),
            share(number, releases),
            named.join("; ")
        ));
    }
    let covered = match left_out.is_empty() && periodic.extra == 0 {
        true => "Wherever in their windows unseen releases were",
        false => "Counting every release",
    };
    text.push(format!(
        "{covered}, jitter is {} (J = {} ns).",
        at_most(periodic.jitter_ns),
        count(periodic.jitter_ns.ns())
    ));
    text
}

/// Why there is no typical jitter, where a reader would expect one.
pub(crate) fn why_not_typical(periodic: &Periodic, releases: u64) -> Option<String> {
    if typical(periodic).is_some() {
        None
    } else if releases < FEWEST_TYPICAL {
        Some(format!("Of fewer than {FEWEST_TYPICAL} releases, none is left out as an outlier."))
    } else {
        (periodic.typical.is_none() && periodic.extra > 0)
            .then(|| "Without outliers, the jitter would not be less.".into())
    }
}

/// The 99.9th percentile, where the typical jitter is far above it: a typical model can leave out only a few
/// releases, which is not enough in a long run with many late ones. Or the lateness is none, because the
/// times that the thread requested keep to no grid.
pub(crate) fn limit(periodic: &Periodic, stream: &Stream, p999: Duration) -> Option<String> {
    let is_far = p999.ns().saturating_mul(FAR) < periodic.usual_jitter().ns();
    is_far.then(|| match drift(periodic, stream) {
        None => format!(
            "Such lateness is rare: 99.9 % of the releases come within {} of their arrival.",
            at_most(p999)
        ),
        Some(why) => format!(
            "It drifts: {why}. 99.9 % of the sleeps end within {} of the requested time, while releases \
             wander by up to {} around the period.",
            at_most(p999),
            at_most(periodic.usual_jitter())
        ),
    })
}

/// Why the times that a thread requests, from which percentiles of lateness count, keep to no grid.
fn drift(periodic: &Periodic, stream: &Stream) -> Option<&'static str> {
    match stream.separator.object {
        Object::Clock { absolute: false, .. } => Some("each sleep begins when the job before it has ended"),
        _ if is_requested(periodic, stream) && stream.off_grid(periodic) > Duration::ZERO => {
            Some("the times that the thread requests keep to no grid")
        }
        _ => None,
    }
}

/// ` (0.04 %)`, rounded up to two digits after the point; empty where it is more than one in a hundred.
fn share(number: u64, total: u64) -> String {
    let parts = (u128::from(number) * 10_000).div_ceil(u128::from(total.max(1)));
    if parts > 100 { String::new() } else { format!(" ({}.{:02} %)", parts / 100, parts % 100) }
}

/// How far off a release was, why, and when.
fn named(release: &LeftOut, begin: Instant) -> String {
    let off = at_most(Duration::from_ns(release.off_ns.unsigned_abs()));
    let off = match release.off_ns < 0 {
        true => format!("{off} before its arrival"),
        false => format!("{off} later than that"),
    };
    let reason = release.reason.map_or(String::new(), |reason| format!(" ({})", why(reason)));
    format!("one {off}{reason}, at {}", since(release.at_ns.since(begin)))
}

/// A reason in words.
pub(crate) fn why(reason: Disturbance) -> &'static str {
    match reason {
        Disturbance::Signal => "a signal interrupted or stopped the thread",
        Disturbance::Ending => "the thread was ending",
        Disturbance::Stall => "the machine stood still",
    }
}

/// Where activations were skipped, and where releases were extra.
pub(crate) fn slips(periodic: &Periodic, begin: Instant) -> Vec<String> {
    let mut text = Vec::new();
    if periodic.skipped > 0 {
        let were = agreeing(periodic.skipped, "was", "were");
        let places = places(periodic, begin, |slip| slip.activations > 0, "before the release");
        text.push(format!("{} {were} skipped{places}.", counted(periodic.skipped, "activation")));
    }
    if periodic.extra > 0 {
        let were = agreeing(periodic.extra, "was", "were");
        let places = places(periodic, begin, |slip| slip.activations < 0, "the one");
        text.push(format!(
            "{} {were} extra, beyond one for each period{places}; to fit the extra {}, the conservative \
             model counts all earlier ones as one period late{}.",
            counted(periodic.extra, "release"),
            agreeing(periodic.extra, "release", "releases"),
            agreeing(periodic.extra, "", " for each"),
        ));
    }
    text
}

fn places(periodic: &Periodic, begin: Instant, is_one: impl Fn(&Slip) -> bool, at: &str) -> String {
    let all: Vec<&Slip> = periodic.slips.iter().filter(|slip| is_one(slip)).collect();
    let named = |slip: &&Slip| {
        let several = slip.activations.unsigned_abs();
        let times = if several > 1 { format!("{} ", count(several)) } else { String::new() };
        format!("{times}{at} at {}", since(slip.at_ns.since(begin)))
    };
    let named: Vec<String> = all.iter().take(SHOWN).map(named).collect();
    let more = match (all.len() > SHOWN, periodic.slips.len() == MAX_SLIPS) {
        _ if named.is_empty() => return String::new(),
        (true, true) => ", …; the model file lists the first ones",
        (true, false) => ", …; the model file lists them all",
        (false, true) => ", and perhaps later ones",
        (false, false) => "",
    };
    format!(": {}{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use punctual_model::{PeriodicOn, Typical};

    const BEGIN: Instant = Instant::from_ns(1_000_000_000);

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
    fn left_out_releases_are_named() {
        assert_eq!(
            exceptions(&example::disturbed(), 5_001, BEGIN),
            [
                "This leaves out 2 of 5,001 releases (0.04 %): one 310 µs before its arrival (a signal \
                 interrupted or stopped the thread), at +1.999690 s; one 30 ms later than that (the machine \
                 stood still), at +3.030016 s.",
                "Counting every release, jitter is 30.33 ms (J = 30,326,000 ns).",
            ]
        );
        let mut many = example::disturbed();
        if let Some(typical) = &mut many.typical {
            typical.left_out = vec![LeftOut { reason: Some(Disturbance::Ending), ..typical.left_out[0] }; 7];
        }
        let text = exceptions(&many, 7_001, BEGIN)[0].clone();
        assert!(
            text.contains("(the thread was ending)") && text.ends_with(" s; 3 more in the model file."),
            "{text}"
        );
        assert_eq!(exceptions(&example::periodic(1_000_000, 16_000), 9, BEGIN), [""; 0]);
    }

    #[test]
    fn a_typical_jitter_that_is_rare_comes_with_a_percentile() {
        let (odd, stream) = (example::disturbed(), example::stream(1_000_000, 16_000));
        let text = "Such lateness is rare: 99.9 % of the releases come within 7 µs of their arrival.";
        assert_eq!(limit(&odd, &stream, Duration::from_us(7)).as_deref(), Some(text));
        assert_eq!(limit(&odd, &stream, Duration::from_us(9)), None);
    }

    /// Percentiles count from the times that were requested, and those are on no grid.
    #[test]
    fn sleeps_that_drift_are_not_called_late() {
        let mut stream = example::stream(4_680_000, 9_688_000);
        let mut periodic = example::periodic(4_680_000, 9_688_000);
        let p999 = Duration::from_ns(184_400);
        let text = "It drifts: the times that the thread requests keep to no grid. 99.9 % of the sleeps end \
                    within 184.4 µs of the requested time, while releases wander by up to 9.688 ms around \
                    the period.";
        assert_eq!(limit(&periodic, &stream, p999).as_deref(), Some(text));
        // Released late by as much as they respond late: on a grid.
        stream.response.as_mut().expect("a response").max_ns = Duration::from_ms(10);
        assert!(limit(&periodic, &stream, p999).is_some_and(|text| text.contains("is rare")));
        for on in [PeriodicOn::Arrival, PeriodicOn::Release] {
            periodic.on = on;
            stream.separator.object = Object::Clock { id: 1, absolute: false };
            let text = limit(&periodic, &stream, p999).unwrap_or_default();
            assert!(text.starts_with("It drifts: each sleep begins when the job before it"), "{text}");
        }
    }

    #[test]
    fn slips_are_described_by_their_places() {
        assert_eq!(
            slips(&example::disturbed(), BEGIN),
            ["3 activations were skipped: before the release at +0.500004 s, 2 before the release at \
                 +0.800002 s."]
        );
        assert_eq!(
            slips(&example::extra(), BEGIN),
            ["1 release was extra, beyond one for each period: the one at +0.500400 s; to fit the extra \
                 release, the conservative model counts all earlier ones as one period late."]
        );
        let mut many = example::disturbed();
        many.skipped = 40;
        many.slips = vec![many.slips[0]; MAX_SLIPS];
        assert!(
            slips(&many, BEGIN)[0].ends_with(" s, …; the model file lists the first ones."),
            "{:?}",
            slips(&many, BEGIN)
        );
    }
}
