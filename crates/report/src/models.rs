//! The models of one stream in sentences: when jobs come, what they need, how long they take.

use crate::derived::{self, utilization};
use crate::number::{about, agreeing, at_least, at_most, count, counted, frequency};
use crate::shape::Shape;
use crate::visible;
use crate::{modes, percentiles, slips};
use punctual_model::{
    Call, Choice, Curve, Duration, Instant, MANY_LATE, Object, Periodic, PeriodicOn, SegmentBound, Stream,
    Task,
};
use std::fmt::Write;

/// How the thread waits for its next job.
fn waits(stream: &Stream) -> String {
    let separator = &stream.separator;
    match (separator.call, separator.object) {
        (Call::Suspension, _) => "Every sleep ends a job, whatever its cause (separator: suspension).".into(),
        (Call::SchedYield, _) => {
            "It yields the rest of its budget at the end of a job and continues in its next period \
             (separator: sched_yield)."
                .into()
        }
        (_, Object::Clock { absolute: true, .. }) => {
            format!("It sleeps until absolute times (separator: {separator}).")
        }
        (_, Object::Clock { absolute: false, .. }) => {
            format!("It sleeps for fixed durations (separator: {separator}).")
        }
        _ => format!("It waits for its next job in {}.", visible(&separator.to_string())),
    }
}

pub(crate) fn arrivals(task: &Task, stream: &Stream, begin: Instant) -> Vec<String> {
    let mut text = vec![waits(stream)];
    if let Some(reason) = &task.primary_reason {
        text.push(format!("Why this separator: {}.", visible(reason.trim_end_matches('.'))));
    }
    match (Shape::new(stream), &stream.arrival.periodic) {
        (Shape::Periodic(periodic), _) if derived::is_merged(task) => {
            let unplaced = Periodic { slips: Vec::new(), ..periodic.clone() };
            text.extend(regular(&unplaced, stream, begin));
        }
        (Shape::Periodic(periodic), _) => {
            text.extend(regular(periodic, stream, begin));
            text.push(first_arrival(periodic, begin));
        }
        (Shape::Modes(modes), _) => text.extend(modes::prose(modes, begin)),
        (shape, periodic) => text.extend(irregular(&shape, periodic.as_ref())),
    }
    let curve = stream.arrival.curve.as_ref();
    text.extend(
        stream.arrival.sporadic.as_ref().map(|sporadic| separations(sporadic.min_separation_ns, curve)),
    );
    text.extend(curve.map(in_windows).unwrap_or_default());
    text
}

/// How releases come that no period explains.
fn irregular(shape: &Shape<'_>, periodic: Option<&Periodic>) -> Vec<String> {
    let how = match shape {
        Shape::Bursts { jobs, span } => format!(
            "Released in bursts: at most {jobs} in any {} (δ⁻({}) = {}).",
            at_least(*span),
            jobs + 1,
            ns(*span)
        ),
        Shape::Sporadic(_) => "Released irregularly: no period fits.".into(),
        Shape::Periodic(_) | Shape::Modes(_) | Shape::Unknown => {
            "Too few releases for an arrival model.".into()
        }
    };
    let loose = periodic.map(|periodic| {
        format!(
            "A periodic model of {} (period T) would need a jitter of {} (J = {}), so it is not useful.",
            exact(periodic),
            at_most(periodic.jitter_ns),
            ns(periodic.jitter_ns)
        )
    });
    [how].into_iter().chain(loose).collect()
}

/// How close and how far apart releases in a row are.
fn separations(least: Duration, curve: Option<&Curve>) -> String {
    let mut line = match least {
        Duration::ZERO => "Two releases can coincide".to_string(),
        _ => format!("Two releases are never closer than {}", at_least(least)),
    };
    let _ = write!(line, " (minimum separation, δ⁻(2) = {})", ns(least));
    if let Some(most) = curve.and_then(|curve| curve.delta_max_ns.first()) {
        let and = if least.is_zero() { "and are" } else { "and" };
        let _ = write!(line, ", {and} never further apart than {} (δ⁺(2) = {})", at_most(*most), ns(*most));
    }
    line + "."
}

/// How many releases there are in windows, by the curves.
fn in_windows(curve: &Curve) -> Vec<String> {
    let example = window(&curve.delta_min_ns).and_then(|length| {
        let (most, fewest) = (curve.eta_max(length)?, curve.eta_min(length));
        Some(match most == fewest {
            true => format!("Exactly {} released in any {length} (arrival curves η⁻, η⁺).", are(most)),
            false => format!(
                "Between {fewest} and {} released in any {length} (arrival curves η⁻, η⁺).",
                are(most)
            ),
        })
    });
    let exact_for = format!(
        "The curves are exact for up to {} consecutive releases.",
        count(curve.delta_min_ns.len() as u64 + 1)
    );
    example.into_iter().chain([exact_for]).collect()
}

fn are(number: u64) -> String {
    format!("{number} {}", agreeing(number, "is", "are"))
}

fn regular(periodic: &Periodic, stream: &Stream, begin: Instant) -> Vec<String> {
    let typical = derived::typical(periodic);
    let mut text = vec![match typical {
        Some(typical) => format!(
            "Released every {} (period T), typically never more than {} late ({}).",
            exact(periodic),
            at_most(typical.jitter_ns),
            ns(typical.jitter_ns)
        ),
        None => format!(
            "Released every {} (period T), never more than {} late (release jitter J = {}).",
            exact(periodic),
            at_most(periodic.jitter_ns),
            ns(periodic.jitter_ns)
        ),
    }];
    text.extend(slips::exceptions(periodic, stream.releases, begin));
    text.extend(slips::why_not_typical(periodic, stream.releases));
    let lateness = stream.percentiles.and_then(|percentiles| percentiles.lateness);
    // Of fewer, one in a thousand says nothing.
    let lateness = lateness.filter(|_| stream.releases >= percentiles::MANY);
    text.extend(lateness.and_then(|lateness| slips::limit(periodic, stream, lateness.p999_ns)));
    text.extend(slips::slips(periodic, begin));
    text.push(match periodic.on {
        PeriodicOn::Arrival => {
            "Lateness is measured from a grid of that period, fitted to the wake-up times that the \
             thread requested; if those drift, the drift counts as lateness."
                .into()
        }
        PeriodicOn::Release => {
            "Lateness is measured from the latest grid of that period that no release precedes; when \
             jobs were due is unknown."
                .into()
        }
    });
    text.extend(percentiles::lateness(stream).map(|row| match percentiles::is_requested(periodic, stream) {
        true => row.sentence("came", "releases", " after the time that the thread requested"),
        false => row.sentence("were", "releases", " late"),
    }));
    text.push(why_this_period(periodic, stream.releases));
    text
}

fn first_arrival(periodic: &Periodic, begin: Instant) -> String {
    match derived::typical(periodic).filter(|typical| typical.offset_ns != periodic.offset_ns) {
        None => format!("The first arrival was at {} (offset Φ).", relative(periodic.offset_ns, begin)),
        Some(typical) => format!(
            "The first arrival was at {} (offset Φ); counting every release, at {}.",
            relative(typical.offset_ns, begin),
            relative(periodic.offset_ns, begin)
        ),
    }
}

/// How the period was chosen.
fn why_this_period(periodic: &Periodic, releases: u64) -> String {
    let explained = match derived::left_out(periodic) {
        0 => "the releases".to_string(),
        left_out => format!("the other {}", counted(releases.saturating_sub(left_out), "release")),
    };
    let mut line = match periodic.choice {
        Choice::Rounded => format!("This is the roundest period that explains {explained}"),
        Choice::Estimated => {
            format!("The period is an estimate: no rounder one explains {explained} as well")
        }
        Choice::LeastJitter => "This is the period with the least jitter".into(),
    };
    if periodic.choice != Choice::LeastJitter {
        let _ = write!(
            line,
            "; the least jitter of any period{} is {} ({})",
            if derived::left_out(periodic) > 0 { ", for all releases," } else { "" },
            at_most(periodic.least_jitter_ns),
            ns(periodic.least_jitter_ns)
        );
    }
    line + "."
}

/// A period, exactly.
fn exact(periodic: &Periodic) -> String {
    let mut text = periodic.period_ns.to_string();
    if let Some(fraction) = periodic.period_exact.filter(|fraction| fraction.denominator > 1) {
        let _ = write!(text, " (exactly {}/{} ns", fraction.numerator, fraction.denominator);
        match frequency(periodic) {
            Some(hertz) => {
                let _ = write!(text, ", {hertz})");
            }
            None => text.push(')'),
        }
    }
    text
}

/// A round length of some dozens of releases within the curve's horizon, to say how many releases fall into
/// it.
fn window(delta_min: &[Duration]) -> Option<Duration> {
    let (gaps, horizon) = (delta_min.len() as u64, delta_min.last()?.ns());
    let mean = horizon.checked_div(gaps)?;
    let wanted = mean.saturating_mul(gaps.min(100)).saturating_add(mean / 2).min(horizon);
    let decade = 10_u64.pow(wanted.checked_ilog10()?);
    [5, 2, 1].into_iter().map(|digit| Duration::from_ns(digit * decade)).find(|length| length.ns() <= wanted)
}

pub(crate) fn demand(stream: &Stream) -> Vec<String> {
    let mut text = Vec::new();
    let Some(execution) = &stream.execution else { return text };
    let Some(&worst) = execution.wcet_ns.first() else { return text };
    let mut line = format!(
        "The most expensive job took {} of processor time (observed maximum C = {})",
        at_most(worst),
        ns(worst)
    );
    if let Some(mean) = execution.mean_ns {
        let _ = write!(line, ", {} on average", about(mean));
    }
    text.push(line + ".");
    text.extend(percentiles::cost(stream).map(|row| row.sentence("needed", "jobs", "")));
    if let Some((jobs, total)) = [10, execution.wcet_ns.len()]
        .into_iter()
        .find_map(|jobs| Some((jobs, *execution.wcet_ns.get(jobs.checked_sub(1)?)?)))
        .filter(|(jobs, _)| *jobs >= 2)
    {
        text.push(format!(
            "Any {jobs} jobs in a row took at most {} (WCET({jobs}) = {}).",
            at_most(total),
            ns(total)
        ));
    }
    if let Some((jobs, share)) = utilization(stream) {
        text.push(format!(
            "Over {} in a row that is at most {}.{:02} % of one processor (utilization).",
            counted(jobs, "job"),
            share / 100,
            share % 100
        ));
    }
    text.extend(suspension(stream));
    text
}

fn suspension(stream: &Stream) -> Vec<String> {
    let Some(model) = &stream.suspension else { return Vec::new() };
    if model.dynamic_ns == Duration::ZERO {
        return vec!["It never sleeps inside a job (no self-suspension).".into()];
    }
    let mut text = vec![format!(
        "It sleeps at most {} in total inside a job (dynamic self-suspension S = {}).",
        at_most(model.dynamic_ns),
        ns(model.dynamic_ns)
    )];
    let shown = 4;
    let which = if model.segmented.len() == 1 { "Every job does this" } else { "Some jobs do this" };
    for vector in model.segmented.iter().take(shown) {
        text.push(format!("{which}: {} (segmented self-suspension).", segments(vector)));
    }
    if model.segmented.len() > shown {
        text.push({
            let more = (model.segmented.len() - shown) as u64;
            format!(
                "{} more {} in the model file.",
                counted(more, "such pattern"),
                agreeing(more, "is", "are")
            )
        });
    }
    text
}

fn segments(vector: &[SegmentBound]) -> String {
    let mut parts = Vec::new();
    for (index, segment) in vector.iter().enumerate() {
        if index > 0 {
            parts.push(format!("sleep ≤ {}", at_most(segment.suspended_ns)));
        }
        parts.push(format!("run ≤ {}", at_most(segment.cost_ns)));
    }
    let shown = 9;
    if parts.len() > shown {
        let more = parts.len() - shown;
        parts.truncate(shown);
        parts.push(format!("… ({more} more)"));
    }
    parts.join(", ")
}

pub(crate) fn completion(stream: &Stream) -> Vec<String> {
    let Some(response) = &stream.response else { return Vec::new() };
    let from = match stream.arrival.periodic.as_ref().map(|periodic| periodic.on) {
        Some(PeriodicOn::Arrival) => "arrival",
        _ => "release",
    };
    let mut line = format!(
        "Every job ended at most {} after its {from} (response time R = {})",
        at_most(response.max_ns),
        ns(response.max_ns)
    );
    if let Some(mean) = response.mean_ns {
        let _ = write!(line, ", {} on average", about(mean));
    }
    let mut text = vec![line + "."];
    text.extend(percentiles::response(stream).map(|row| row.sentence("took", "jobs", "")));
    text.extend(late(stream));
    text.push(format!("Based on {}.", counted(stream.jobs, "complete job")));
    text
}

/// How many jobs took longer than the period.
fn late(stream: &Stream) -> Option<String> {
    let Shape::Periodic(_) = Shape::new(stream) else { return None };
    let jobs = match stream.late? {
        0 => "No job".to_owned(),
        few @ 1..MANY_LATE => counted(few, "job"),
        many => format!("At least {}", counted(many, "job")),
    };
    let certainly = if stream.uncertain_releases > 0 { "certainly " } else { "" };
    Some(format!("{jobs} {certainly}took longer than the period."))
}

/// The exact figure, for calculations.
fn ns(duration: Duration) -> String {
    format!("{} ns", count(duration.ns()))
}

/// An instant of the clock, counted from the beginning of the observation: `+0.005000 s`, `−12 µs`.
fn relative(ns: i64, begin: Instant) -> String {
    let distance = i128::from(ns) - i128::from(begin.ns());
    let span = Duration::from_ns(u64::try_from(distance.unsigned_abs()).unwrap_or(u64::MAX));
    if distance < 0 { format!("−{span}") } else { crate::text::since(span) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_of_several_runs_has_no_instants() {
        let mut task = crate::example::task("control", 3, 80);
        let mut stream = crate::example::stream(1_000_000, 16_000);
        let (skipped, slips) = (3, crate::example::disturbed().slips);
        stream.arrival.periodic =
            Some(Periodic { skipped, slips, ..crate::example::periodic(1_000_000, 16_000) });
        let text = |task: &Task| arrivals(task, &stream, Instant::from_ns(0)).join(" ");
        assert!(text(&task).contains("before the release at") && text(&task).contains("first arrival"));
        task.pid = 0;
        assert!(text(&task).contains("3 activations were skipped."), "{}", text(&task));
        assert!(!text(&task).contains(" at +") && !text(&task).contains("first arrival"), "{}", text(&task));
    }

    #[test]
    fn late_jobs_are_counted() {
        let text = |late, uncertain_releases| {
            let stream = crate::example::stream(1_000_000, 16_000);
            completion(&Stream { late, uncertain_releases, ..stream }).join(" ")
        };
        assert!(text(Some(0), 0).contains("No job took longer than the period."));
        assert!(text(Some(1), 5).contains("1 job certainly took longer than the period."));
        assert!(text(Some(32), 0).contains("At least 32 jobs took longer than the period."));
        assert!(!text(None, 0).contains("longer than the period"));
    }

    #[test]
    fn a_frequency_is_printed_exactly() {
        let mut periodic = crate::example::periodic(16_666_667, 80);
        periodic.period_exact = Some(punctual_model::Fraction { numerator: 50_000_000, denominator: 3 });
        assert_eq!(exact(&periodic), "16.666667 ms (exactly 50000000/3 ns, 60 Hz)");
    }
}
