//! Captions: what each figure means, with the values of its task.

use super::grid::Grid;
use super::histogram::Histogram;
use super::jobs::{Due, Measure, StreamJobs, due};
use super::raster::Raster;
use crate::number::{agreeing, at_least, at_most, count, counted, period};
use crate::percentiles;
use punctual_model::{
    Curve, Duration, Periodic, PeriodicOn, SegmentBound, Stream, Suspension, Task, TimingModel, request,
};
use std::fmt::Write;

fn ns(ns: u64) -> Duration {
    Duration::from_ns(ns)
}

/// A round length of one or two dozen releases, within the initial view.
fn example(curve: &Curve) -> Option<Duration> {
    let most = curve
        .delta_max_ns
        .get(..24)
        .unwrap_or(&curve.delta_max_ns)
        .last()?
        .min(curve.delta_min_ns.last()?)
        .ns();
    let decade = 10_u64.pow(most.checked_ilog10()?);
    [5, 2, 1].into_iter().map(|digit| Duration::from_ns(digit * decade)).find(|length| length.ns() <= most)
}

/// Release raster.
pub(crate) fn raster(stream: &Stream, jobs: &StreamJobs) -> String {
    let mut text = match &jobs.measure {
        Measure::Lateness(grid) => lateness_raster(grid, stream, jobs),
        &Measure::Separation { least_ns, most_ns } => separation_raster(least_ns, most_ns),
    };
    if jobs.windows > 0 {
        let _ = write!(
            text,
            " The exact time of {} is unknown: a bar spans its window.",
            counted(jobs.windows, "release"),
        );
    }
    text + &together(&jobs.raster)
}

/// Response times over time.
pub(crate) fn responses(
    model: &TimingModel,
    task: &Task,
    stream: &Stream,
    jobs: &StreamJobs,
) -> Option<String> {
    if jobs.response.count() == 0 {
        return None;
    }
    let mut text =
        "Each point is a job: when it was released, and how long after its arrival (where that is \
                    unknown, its release) it ended."
            .to_owned();
    if let Some(Due { after, name }) = due(model, task, stream) {
        let _ = write!(text, " The dashed line is its {name}, {}: a job above it was late.", at_most(after));
    }
    Some(text + &together(&jobs.responses))
}

/// How many jobs share points.
fn together(raster: &Raster) -> String {
    let together = raster.jobs_per_bucket();
    match together > 2 {
        true => format!(
            " Of every {} jobs in a row, the lowest and the highest are drawn, so every extreme is there.",
            count(together)
        ),
        false => String::new(),
    }
}

fn lateness_raster(grid: &Grid, stream: &Stream, jobs: &StreamJobs) -> String {
    let whose = match grid.on {
        PeriodicOn::Arrival => "the wake-up times that the thread requested",
        PeriodicOn::Release => "the releases themselves",
    };
    let bound = match grid.greatest_ns {
        None => {
            format!("the greatest lateness, the release jitter J = {}", at_most(ns(grid.jitter_ns)))
        }
        Some(greatest) => format!(
            "the jitter, {}; counting every release, it is J = {}",
            at_most(ns(grid.jitter_ns)),
            at_most(ns(greatest))
        ),
    };
    let mut text = format!(
        "Each point is a job: when it was released, and how much later than its place on a grid of \
         {}, fitted to {whose}. A level band means that the task keeps time, a slope that it drifts, \
         a point far up that a job came late. The dashed line is {bound}.",
        period_of(grid.numerator, grid.denominator),
    );
    if !grid.slips.is_empty() {
        text += " A vertical line marks skipped activations or extra releases.";
    }
    if jobs.truncated > 0 {
        let _ = write!(
            text,
            " The model does not show to which period {} belong: each is drawn in the last one before its \
             release and may be later by whole periods.",
            counted(jobs.truncated, "job")
        );
    }
    if !grid.left_out.is_empty() {
        text += " Ringed releases are not counted in the jitter.";
    }
    let quantiles = (jobs.worst.quantile(500), jobs.worst.quantile(990));
    if let ((Some(half), Some(most)), None) = (quantiles, percentiles::lateness(stream)) {
        let _ = write!(
            text,
            " Half of the jobs were at most {} late, 99 % at most {}.",
            at_most(ns(half)),
            at_most(ns(most))
        );
    }
    text
}

fn separation_raster(least_ns: u64, most_ns: u64) -> String {
    let mut text = format!(
        "Each point is a job: when it was released, and how long after the previous one. These jobs \
         follow no period, so there is no lateness. The lower dashed line is the least separation, \
         {}",
        at_least(ns(least_ns))
    );
    text += &match most_ns {
        u64::MAX => ".".to_string(),
        most_ns => format!("; the upper one the greatest, {}.", at_most(ns(most_ns))),
    };
    text
}

fn period_of(numerator: u64, denominator: u64) -> String {
    match denominator {
        1 => ns(numerator).to_string(),
        _ => format!("{numerator}/{denominator} ns"),
    }
}

/// How many times as high as the curves the simpler models' bounds are drawn, on a linear scale (plot.js).
const MOST_ABOVE: u64 = 2;

/// Arrival curves.
pub(crate) fn arrivals(stream: &Stream) -> Option<String> {
    let curve = stream.arrival.curve.as_ref()?;
    let mut text = String::from(
        "How many jobs are released in any interval of length Δ: at most η⁺, at least η⁻. Both allow \
         everything that was observed. Dashed lines are the bounds of simpler models; the further from the \
         curves, the more pessimistic they are.",
    );
    let mut cut = false;
    if let Some((span, most)) = example(curve).and_then(|span| Some((span, curve.eta_max(span)?))) {
        let _ = write!(
            text,
            " For example, in any {span} there are between {} and {}",
            curve.eta_min(span),
            counted(most, "release")
        );
        if let Some(separation) = stream
            .arrival
            .sporadic
            .as_ref()
            .map(|sporadic| sporadic.min_separation_ns.ns())
            .filter(|ns| *ns > 0)
        {
            let allowed = span.ns().div_ceil(separation);
            let _ = write!(
                text,
                "; the sporadic model (one every {} at most) allows {}",
                at_least(ns(separation)),
                count(allowed)
            );
            cut = allowed > MOST_ABOVE * most;
        }
        if let Some(periodic) = &stream.arrival.periodic {
            let allowed = most_of_periodic(periodic, span);
            let _ = write!(
                text,
                ", the periodic one (every {}, up to {} late) {}",
                period(periodic),
                at_most(periodic.jitter_ns),
                count(allowed)
            );
            cut |= allowed > MOST_ABOVE * most;
        }
        text.push('.');
    }
    if cut {
        text +=
            " A bound of a simpler model leaves the figure at the top; a logarithmic scale shows all of it.";
    }
    if stream.arrival.sporadic.as_ref().is_some_and(|sporadic| sporadic.min_separation_ns == Duration::ZERO) {
        text += " Two releases can coincide, so there is no sporadic bound.";
    }
    Some(text)
}

/// ⌈(Δ + J)/T⌉.
fn most_of_periodic(periodic: &Periodic, span: Duration) -> u64 {
    let whole = (u128::from(periodic.period_ns.ns()), 1);
    let (numerator, denominator) = periodic
        .period_exact
        .map_or(whole, |exact| (u128::from(exact.numerator), u128::from(exact.denominator)));
    let reach = (u128::from(span.ns()) + u128::from(periodic.jitter_ns.ns())).saturating_mul(denominator);
    reach.div_ceil(numerator.max(1)).try_into().unwrap_or(u64::MAX)
}

/// WCET(n) against n·C.
pub(crate) fn wcet(stream: &Stream) -> Option<String> {
    let execution = stream.execution.as_ref()?;
    let (jobs, one) = (execution.wcet_ns.len() as u64, *execution.wcet_ns.first()?);
    let mut text = format!(
        "The most processor time that n jobs in a row took, WCET(n). The dashed line is n times the cost of \
         the most expensive one, C = {}. The further the curve stays below it, the more rarely expensive \
         jobs follow each other.",
        at_most(one)
    );
    let (Some(&all), Some(scalar)) = (execution.wcet_ns.last(), one.ns().checked_mul(jobs)) else {
        return Some(text);
    };
    if jobs > 1 && scalar > 0 {
        let _ = write!(
            text,
            " Here {} in a row took at most {}, which is {} % of {}.",
            counted(jobs, "job"),
            at_most(all),
            percent(all.ns(), scalar),
            at_most(ns(scalar))
        );
    }
    Some(text)
}

fn percent(part: u64, whole: u64) -> u64 {
    let percent = (u128::from(part) * 100).div_ceil(u128::from(whole.max(1)));
    percent.try_into().unwrap_or(u64::MAX)
}

/// Request-bound functions.
pub(crate) fn request(stream: &Stream) -> Option<String> {
    let (arrival, execution) = (&stream.arrival, stream.execution.as_ref()?);
    let curve = arrival.curve.as_ref()?;
    let mut text = String::from(
        "How much processor time the jobs released in an interval of length Δ can demand: the input of a \
         response-time analysis. All four bounds hold. The one from two numbers (least separation and \
         greatest cost) is the most pessimistic; with curves for arrivals and costs it is the tightest.",
    );
    let span = example(curve)?;
    let scalar =
        arrival.sporadic.as_ref().and_then(|sporadic| request::sporadic_scalar(sporadic, execution, span));
    let sporadic_wcet =
        arrival.sporadic.as_ref().and_then(|sporadic| request::sporadic_wcet(sporadic, execution, span));
    let curve_scalar = request::curve_scalar(curve, execution, span);
    let both = request::curve_wcet(curve, execution, span);
    let bounds: Vec<String> = [
        (scalar, "least separation and greatest cost"),
        (sporadic_wcet, "least separation and cost curve"),
        (curve_scalar, "arrival curve and greatest cost"),
        (both, "both curves"),
    ]
    .iter()
    .filter_map(|(bound, which)| Some(format!("{} by {which}", at_most((*bound)?))))
    .collect();
    if !bounds.is_empty() {
        let _ = write!(text, " For Δ = {span}: {}.", bounds.join(", "));
    }
    if let (Some(scalar), Some(both)) = (scalar, both.filter(|both| *both > Duration::ZERO)) {
        let tenths = (u128::from(scalar.ns()) * 10 / u128::from(both.ns())).max(10);
        let _ = match tenths {
            10 => write!(text, " Here the two numbers are nearly as tight as the curves."),
            _ => write!(
                text,
                " Here the two numbers demand {}.{} times as much as the curves.",
                count((tenths / 10) as u64),
                tenths % 10
            ),
        };
    } else if scalar.is_none() {
        text += " Two releases can coincide, so the least separation bounds nothing: only the curves do.";
    }
    Some(text)
}

/// Histograms: what they are of, `means`, and the quantiles, unless a table beside them has those: rounded
/// another way, they would seem to contradict it.
pub(crate) fn histogram(histogram: &Histogram, means: &str, has_table: bool) -> Option<String> {
    let (least, greatest) = histogram.range()?;
    let quantile = |per_mille| histogram.quantile(per_mille).map(|value| at_most(ns(value)).to_string());
    let mut text = format!("{means} The scale is logarithmic, so that a single job is still visible.");
    let _ = write!(text, " Of {} the least was {}, ", counted(histogram.count(), "job"), at_least(ns(least)));
    let quantiles = (quantile(500), quantile(990), quantile(999));
    if let ((Some(half), Some(most), Some(nearly)), false) = (quantiles, has_table) {
        let _ = write!(text, "half at most {half}, 99 % at most {most}, ");
        if histogram.count() >= 1_000 {
            let _ = write!(text, "99.9 % at most {nearly}, ");
        }
    }
    let _ = write!(text, "the greatest {}.", at_most(ns(greatest)));
    Some(text)
}

/// Suspension segments.
pub(crate) fn suspension(model: &Suspension) -> String {
    let patterns = model.segmented.len();
    let mut text = match patterns {
        1 => "Every job runs and sleeps in these segments, each at most as long as drawn (segmented \
              self-suspension)."
            .to_string(),
        _ => format!(
            "Every job follows one of these {patterns} patterns, each segment at most as long as drawn \
             (segmented self-suspension)."
        ),
    };
    let sleeps = |vector: &Vec<SegmentBound>| {
        vector.iter().fold(0_u64, |sum, segment| sum.saturating_add(segment.suspended_ns.ns()))
    };
    let _ = write!(
        text,
        " In total, a job slept at most {} (dynamic self-suspension S)",
        at_most(model.dynamic_ns)
    );
    if let Some(longest) =
        model.segmented.iter().map(sleeps).max().filter(|longest| *longest > model.dynamic_ns.ns())
    {
        let _ = write!(text, "; the bounds of single segments add up to {}", at_most(ns(longest)));
    }
    text + "."
}

/// Histogram of lateness or separation.
pub(crate) fn regularity(stream: &Stream, jobs: &StreamJobs) -> Option<String> {
    let (means, worst) = match jobs.measure {
        Measure::Lateness(_) => {
            ("How much later than its place on the periodic grid each job was released.", "as late as")
        }
        Measure::Separation { .. } => {
            ("How long after the one before it each job was released.", "as close as")
        }
    };
    let mut text = histogram(&jobs.worst, means, percentiles::lateness(stream).is_some())?;
    if jobs.windows > 0 {
        let _ = write!(text, " Releases whose exact time is unknown count {worst} they may have been.");
    }
    Some(text)
}

/// How much of a model's stream a recording covers.
pub(crate) fn coverage(stream: &Stream, jobs: &StreamJobs) -> Option<String> {
    let mut text = String::new();
    if jobs.jobs != stream.jobs {
        let _ = write!(
            text,
            "The recording has {}; the model was made from {}.",
            counted(jobs.jobs, "job"),
            count(stream.jobs)
        );
    }
    if jobs.outside > 0 {
        let _ = write!(
            text,
            " {} of the recording {} outside the model: the two do not belong together, or only in part.",
            counted(jobs.outside, "job"),
            agreeing(jobs.outside, "lies", "lie"),
        );
    }
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use crate::html::Jobs;
    use punctual_model::{Execution, Sporadic};

    /// The kernel's migration threads as the paper tells of them: jobs in pairs, 37.6 µs apart at least, else
    /// every 14 ms; the first of many costs 190 µs, others a fifth of that. (papers: LiME, Section VI-A, Fig.
    /// 7.)
    fn migration() -> Stream {
        let mut stream = example::stream(14_000_000, 0);
        let apart = 37_600;
        let spans: Vec<Duration> = (0..23).map(|n| ns(apart + n * 14_000_000)).collect();
        stream.arrival.periodic = None;
        stream.arrival.sporadic = Some(Sporadic { min_separation_ns: ns(apart) });
        stream.arrival.curve = Some(Curve { delta_min_ns: spans.clone(), delta_max_ns: spans });
        stream.execution =
            Some(Execution { wcet_ns: (0..23).map(|n| ns(190_000 + n * 36_364)).collect(), mean_ns: None });
        stream
    }

    #[test]
    fn request_bounds_differ_as_in_the_paper() {
        let stream = migration();
        let (sporadic, execution) =
            (stream.arrival.sporadic.as_ref().unwrap(), stream.execution.as_ref().unwrap());
        let (curve, span) = (stream.arrival.curve.as_ref().unwrap(), Duration::from_ms(300));
        // The paper: 1515.8 ms, 344.3 ms, 4.3 ms and 0.99 ms.
        let bounds = [
            request::sporadic_scalar(sporadic, execution, span),
            request::sporadic_wcet(sporadic, execution, span),
            request::curve_scalar(curve, execution, span),
            request::curve_wcet(curve, execution, span),
        ];
        assert_eq!(
            bounds.map(|bound| at_most(bound.unwrap()).to_string()),
            ["1.517 s", "343.5 ms", "4.37 ms", "990.1 µs"]
        );
        let text = super::request(&stream).expect("a caption");
        assert!(
            text.contains(
                "For Δ = 200 ms: 1.011 s by least separation and greatest cost, 229.2 ms by least separation \
                 and cost curve, 3.04 ms by arrival curve and greatest cost, 735.5 µs by both curves."
            ),
            "{text}"
        );
        assert!(text.ends_with("Here the two numbers demand 1,374.3 times as much as the curves."), "{text}");
    }

    #[test]
    fn coinciding_releases_make_the_least_separation_useless() {
        let mut stream = migration();
        stream.arrival.sporadic = Some(Sporadic { min_separation_ns: Duration::ZERO });
        assert!(super::request(&stream).is_some_and(|text| text.ends_with("only the curves do.")));
        assert!(arrivals(&stream).is_some_and(|text| text.ends_with("so there is no sporadic bound.")));
    }

    #[test]
    fn arrival_curves_are_explained_by_a_visible_example() {
        let text = arrivals(&example::stream(5_000_000, 41_000)).expect("a caption");
        assert!(
            text.contains(
                "in any 100 ms there are between 19 and 21 releases; the sporadic model (one every 4.959 ms \
                 at most) allows 21, the periodic one (every 5 ms, up to 41 µs late) 21."
            ),
            "{text}"
        );
    }

    #[test]
    fn a_clipped_bound_is_mentioned() {
        let cut = |stream: &Stream| {
            arrivals(stream).is_some_and(|text| text.contains("leaves the figure at the top"))
        };
        assert!(cut(&migration()) && !cut(&example::stream(5_000_000, 41_000)));
    }

    #[test]
    fn the_raster_explains_its_marks() {
        let caption = |periodic: Periodic| {
            let mut task = example::task("ctl", 7, 80);
            task.streams[0].arrival.periodic = Some(periodic);
            let model = example::model(vec![task]);
            let (stream, jobs) = (&model.tasks()[0].streams[0], Jobs::new(&model));
            raster(stream, jobs.stream(0).expect("the stream"))
        };
        let plain = caption(example::periodic(1_000_000, 16_000));
        assert!(
            plain.ends_with("The dashed line is the greatest lateness, the release jitter J = 16 µs."),
            "{plain}"
        );
        let odd = caption(example::disturbed());
        for part in [
            "The dashed line is the jitter, 16 µs; counting every release, it is J = 30.33 ms.",
            "A vertical line marks skipped activations or extra releases.",
            "Ringed releases are not counted in the jitter.",
        ] {
            assert!(odd.contains(part), "{part}\n{odd}");
        }
    }

    #[test]
    fn costs_are_compared_with_the_scalar_bound() {
        let text = wcet(&example::stream(5_000_000, 41_000)).expect("a caption");
        assert!(
            text.ends_with("Here 199 jobs in a row took at most 141.6 ms, which is 89 % of 159.2 ms."),
            "{text}"
        );
    }

    #[test]
    fn a_histogram_is_described_by_its_quantiles() {
        let mut values = Histogram::default();
        (1..=2_000).for_each(|value| values.push(value * 1_000));
        let text = histogram(&values, "How long.", false).expect("a caption");
        // The ends of buckets, half a percent wide at most.
        assert!(
            text.contains("Of 2,000 jobs the least was 1 µs, half at most 1.002 ms, 99 % at most 1.983 ms"),
            "{text}"
        );
        assert!(text.ends_with("the greatest 2 ms."), "{text}");
        let beside = histogram(&values, "How long.", true).expect("a caption");
        assert!(beside.ends_with("Of 2,000 jobs the least was 1 µs, the greatest 2 ms."), "{beside}");
        assert_eq!(histogram(&Histogram::default(), "", false), None);
    }
}
