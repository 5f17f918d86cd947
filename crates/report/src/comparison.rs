//! What a workload was configured to do, beside what its model says.

use crate::derived::primary;
use crate::figures::{Fit, THREADS, ThreadRow, Unit};
use crate::number::{at_least, at_most, count, period};
use crate::overview::{MAX_JITTER, legend};
use crate::shape::Shape;
use crate::slips::{jitters, period_and_slips};
use crate::table::{Column, Table, Tone, figures, words};
use crate::{Page, paragraph, visible};
use crate::{modes, text};
use punctual_model::{Duration, Fraction, Mode, Periodic, Source, Stream, Task, ThreadIds, TimingModel};
use serde::Deserialize;

/// The configuration of one thread.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Configured {
    /// Its name.
    pub thread: String,
    /// The call in which it waits for its next job.
    pub call: String,
    /// How its jobs come.
    pub kind: Kind,
    /// The period (drifting: of the sleep alone; sporadic: the least separation), rounded to whole
    /// nanoseconds.
    pub period_ns: Duration,
    /// The exact period, where it is no whole number of nanoseconds.
    #[serde(default)]
    pub period_exact: Option<Fraction>,
    /// Jobs per period, of bursts.
    #[serde(default)]
    pub burst: Option<usize>,
    /// Processor time of each job.
    pub cost_ns: Duration,
    /// Suspension inside each job.
    #[serde(default)]
    pub suspension_ns: Duration,
    /// Anything a reader should know.
    #[serde(default)]
    pub note: String,
}

/// How jobs come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// One per period.
    Periodic,
    /// Never closer than the period.
    Sporadic,
    /// Several at once in each period.
    Bursty,
    /// Sleeps for the period after each job, so that cost and latency add to it.
    Drifting,
}

/// Reads a truth file: a JSON array of [`Configured`].
///
/// # Errors
/// What is wrong with the text, and where.
pub fn configured(json: &str) -> Result<Vec<Configured>, serde_json::Error> {
    serde_json::from_str(json)
}

const COLUMNS: [Column; 11] = [
    words("Thread", Fit::Keep),
    words("Separator", Fit::Drop(6)),
    figures("Configured", Fit::Keep),
    figures("Found", Fit::Keep),
    words("", Fit::Keep),
    figures("Jitter", Fit::Keep),
    figures("Cost", Fit::Drop(7)),
    figures("Max cost", Fit::Keep),
    figures("Sleeps", Fit::Drop(9)),
    figures("Suspended", Fit::Drop(8)),
    figures("Jobs", Fit::Keep),
];

/// The table of configured beside found values, with a verdict for each, and how many periods were found
/// exactly.
pub fn comparison(model: &TimingModel, truth: &[Configured], page: &Page) -> String {
    let found: Vec<Option<(&Task, &Stream)>> = truth.iter().map(|row| longest(model, &row.thread)).collect();
    let mut table = Table::new(&COLUMNS);
    table.rows = truth.iter().zip(&found).map(|(row, found)| line(row, *found)).collect();
    let mut text = table.text(page);

    let periodic: Vec<Verdict> = truth
        .iter()
        .zip(&found)
        .filter(|(row, _)| row.kind == Kind::Periodic)
        .map(|(row, found)| verdict(row, found.map(|(_, stream)| stream)))
        .collect();
    let exact = periodic.iter().filter(|verdict| **verdict == Verdict::Exact).count();
    text += &format!("{exact} of {} periods found exactly, to the nanosecond.\n", periodic.len());
    let absent: Vec<&str> = truth
        .iter()
        .zip(&found)
        .filter(|(_, found)| found.is_none())
        .map(|(row, _)| row.thread.as_str())
        .collect();
    if !absent.is_empty() {
        text += &format!("Not seen: {}.\n", visible(&absent.join(", ")));
    }
    let seen: Vec<&Task> = found.iter().flatten().map(|(task, _)| *task).collect();
    let noted: Vec<String> = seen
        .iter()
        .map(|task| (task, notes(model, task)))
        .filter(|(_, notes)| !notes.is_empty())
        .map(|(task, notes)| format!("{} ({notes})", visible(&task.name)))
        .collect();
    if !noted.is_empty() {
        let line = format!("Caveats: {}.", noted.join(", "));
        text += &paragraph(&line, &Page { width: page.width.or(Some(110)), ..*page });
    }
    for line in legend(&seen) {
        // Here both are in one column.
        let line = if line == MAX_JITTER { JITTERS } else { &line };
        text += &paragraph(line, page);
    }
    text
}

/// What a cell with two jitters has.
const JITTERS: &str = "Jitter ignores a few outliers; in parentheses, it counts every release.";

fn notes(model: &TimingModel, task: &Task) -> String {
    let row = ThreadRow::new(&ThreadIds::near(model.tasks(), task), task);
    THREADS
        .iter()
        .filter(|entry| entry.figure.unit == Unit::Notes)
        .map(|entry| text::cell(entry, &row))
        .collect()
}

/// A thread's task with the most jobs: a thread sets its policy and name as it starts, so that its first
/// phases may be short.
fn longest<'a>(model: &'a TimingModel, thread: &str) -> Option<(&'a Task, &'a Stream)> {
    let tasks = model.tasks().iter().filter(|task| task.name == thread);
    tasks.filter_map(|task| Some((task, primary(task)?))).max_by_key(|(_, stream)| stream.jobs)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    /// The period to the nanosecond, or to the fraction where it has one.
    Exact,
    /// Another period, and how far off.
    Off(i64),
    /// No period where one was configured.
    NoPeriod,
    /// As configured, where there is no period to be exact about.
    Fits,
    /// Longer than the sleep, by parts in a thousand.
    Drifts(u64),
    /// Contradicts what was configured.
    Contradicts,
    /// The thread was not seen.
    Absent,
}

fn verdict(row: &Configured, stream: Option<&Stream>) -> Verdict {
    let Some(stream) = stream else { return Verdict::Absent };
    let periodic = stream.arrival.periodic.as_ref();
    match row.kind {
        Kind::Periodic => match periodic {
            Some(periodic) if same_period(row, periodic) => Verdict::Exact,
            Some(periodic) => Verdict::Off(periodic.period_ns.ns() as i64 - row.period_ns.ns() as i64),
            None => Verdict::NoPeriod,
        },
        Kind::Drifting => match periodic {
            Some(periodic) if periodic.period_ns > row.period_ns => {
                let excess = periodic.period_ns.saturating_sub(row.period_ns);
                Verdict::Drifts(excess.ns().saturating_mul(1_000) / row.period_ns.ns().max(1))
            }
            Some(_) => Verdict::Contradicts,
            None => Verdict::NoPeriod,
        },
        Kind::Bursty => match (Shape::new(stream), row.burst) {
            (Shape::Bursts { jobs, .. }, Some(burst)) if jobs == burst => Verdict::Fits,
            (Shape::Bursts { .. }, None) => Verdict::Fits,
            (Shape::Modes([mode]), burst) if fits_burst(mode, burst) => Verdict::Fits,
            _ => Verdict::Contradicts,
        },
        Kind::Sporadic => match &stream.arrival.sporadic {
            Some(sporadic) if sporadic.min_separation_ns.ns().saturating_mul(2) >= row.period_ns.ns() => {
                Verdict::Fits
            }
            Some(_) => Verdict::Contradicts,
            None => Verdict::NoPeriod,
        },
    }
}

fn fits_burst(mode: &Mode, burst: Option<usize>) -> bool {
    let jobs = |source: &Source| source.burst.map(|burst| burst.jobs as usize);
    let fits = |jobs: usize| burst.is_none_or(|burst| burst == jobs);
    matches!(&mode.sources[..], [source] if jobs(source).is_some_and(fits))
}

fn same_period(row: &Configured, found: &Periodic) -> bool {
    let fraction = |whole: Duration, exact: Option<Fraction>| match exact {
        Some(exact) => (u128::from(exact.numerator), u128::from(exact.denominator)),
        None => (u128::from(whole.ns()), 1),
    };
    let (a, b) = (fraction(row.period_ns, row.period_exact), fraction(found.period_ns, found.period_exact));
    a.0 * b.1 == b.0 * a.1
}

fn line(row: &Configured, found: Option<(&Task, &Stream)>) -> Vec<(String, Tone)> {
    let plain = |text: String| (text, Tone::Plain);
    let configured = match (row.kind, row.burst) {
        (Kind::Periodic, _) => exact_period(row),
        (Kind::Drifting, _) => format!("sleep {}", row.period_ns),
        (Kind::Bursty, burst) => format!("{} in {}", burst.unwrap_or(2), row.period_ns),
        (Kind::Sporadic, _) => format!("≥ {} apart", row.period_ns),
    };
    let suspends = match row.suspension_ns {
        Duration::ZERO => "–".into(),
        suspension => suspension.to_string(),
    };
    let verdict = verdict(row, found.map(|(_, stream)| stream));
    let Some((_, stream)) = found else {
        let mut cells = vec![visible(&row.thread), visible(&row.call), configured, "–".into()];
        cells.extend(["not seen".into(), "–".into(), row.cost_ns.to_string(), "–".into(), suspends]);
        cells.extend(["–".into(), "0".into()]);
        return cells.into_iter().map(|cell| (cell, Tone::Warning)).collect();
    };
    let separator = if stream.separator.call.name() == row.call {
        plain(row.call.clone())
    } else {
        (format!("{} (not {})", stream.separator.call, visible(&row.call)), Tone::Bad)
    };
    let (found, jitter) = arrival(row, stream);
    let wcet = stream.execution.as_ref().and_then(|execution| execution.wcet_ns.first());
    let suspended = match &stream.suspension {
        Some(model) if model.dynamic_ns > Duration::ZERO => at_most(model.dynamic_ns).to_string(),
        _ => "–".into(),
    };
    vec![
        plain(visible(&row.thread)),
        separator,
        plain(configured),
        plain(found),
        mark(verdict),
        plain(jitter),
        plain(row.cost_ns.to_string()),
        plain(wcet.map_or("–".into(), |wcet| at_most(*wcet).to_string())),
        plain(suspends),
        plain(suspended),
        plain(count(stream.jobs)),
    ]
}

/// What was found, in the terms of what was configured: a period is shown for a periodic thread even where
/// its jitter is large.
fn arrival(row: &Configured, stream: &Stream) -> (String, String) {
    match (row.kind, &stream.arrival.periodic) {
        (Kind::Periodic | Kind::Drifting, Some(periodic)) => (period_and_slips(periodic), jitters(periodic)),
        (Kind::Sporadic, _) => {
            let sporadic = stream.arrival.sporadic.as_ref();
            let text = sporadic.map(|sporadic| format!("≥ {} apart", at_least(sporadic.min_separation_ns)));
            (text.unwrap_or("–".into()), "–".into())
        }
        _ => match Shape::new(stream) {
            Shape::Periodic(periodic) => (period_and_slips(periodic), jitters(periodic)),
            Shape::Modes(modes) => (
                modes::short(modes, modes[0].from_ns),
                modes::jitter(modes).map_or("–".into(), |jitter| at_most(jitter).to_string()),
            ),
            Shape::Bursts { jobs, span } => (format!("≤ {jobs} in {}", at_least(span)), "–".into()),
            Shape::Sporadic(separation) => (format!("≥ {} apart", at_least(separation)), "–".into()),
            Shape::Unknown => ("–".into(), "–".into()),
        },
    }
}

fn exact_period(row: &Configured) -> String {
    let written = Periodic {
        on: punctual_model::PeriodicOn::Arrival,
        period_ns: row.period_ns,
        period_exact: row.period_exact,
        offset_ns: 0,
        jitter_ns: Duration::ZERO,
        least_jitter_ns: Duration::ZERO,
        choice: punctual_model::Choice::Rounded,
        approximate: false,
        skipped: 0,
        extra: 0,
        slips: Vec::new(),
        typical: None,
    };
    period(&written)
}

fn mark(verdict: Verdict) -> (String, Tone) {
    match verdict {
        Verdict::Exact => ("✓ exact".into(), Tone::Good),
        Verdict::Fits => ("✓".into(), Tone::Good),
        Verdict::Drifts(thousandths) => {
            (format!("✓ +{}.{} %", thousandths / 10, thousandths % 10), Tone::Good)
        }
        Verdict::Off(ns) => {
            let sign = if ns < 0 { '−' } else { '+' };
            (format!("✗ {sign}{}", Duration::from_ns(ns.unsigned_abs())), Tone::Bad)
        }
        Verdict::NoPeriod => ("✗ too few jobs".into(), Tone::Bad),
        Verdict::Contradicts => ("✗".into(), Tone::Bad),
        Verdict::Absent => ("not seen".into(), Tone::Warning),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{model, task};

    fn truth() -> Vec<Configured> {
        configured(
            r#"[{"thread": "ctl", "call": "clock_nanosleep", "kind": "periodic", "policy": "SCHED_FIFO",
                 "priority": 80, "period_ns": 5000000, "cost_ns": 700000, "suspension_ns": 0,
                 "note": "sleeps until absolute times"},
                {"thread": "video", "call": "clock_nanosleep", "kind": "periodic", "period_ns": 16666667,
                 "period_exact": {"numerator": 50000000, "denominator": 3}, "cost_ns": 300000,
                 "suspension_ns": 0},
                {"thread": "drift", "call": "clock_nanosleep", "kind": "drifting", "period_ns": 4900000,
                 "cost_ns": 100000}]"#,
        )
        .expect("a truth file as the demonstration prints it")
    }

    #[test]
    fn configured_and_found_values_are_side_by_side() {
        let mut video = task("video", 1_203, 70);
        let found = video.streams[0].arrival.periodic.as_mut().expect("periodic");
        found.period_ns = Duration::from_ns(16_666_667);
        found.period_exact = Some(Fraction { numerator: 50_000_000, denominator: 3 });
        let text = comparison(
            &model(vec![task("ctl", 1_202, 80), video, task("drift", 1_204, 9)]),
            &truth(),
            &Page::default(),
        );
        assert_eq!(
            text,
            "\
Thread  Separator          Configured  Found            Jitter    Cost  Max cost  Sleeps  Suspended   Jobs
ctl     clock_nanosleep          5 ms   5 ms  ✓ exact    41 µs  700 µs    800 µs       –          –  2,000
video   clock_nanosleep         60 Hz  60 Hz  ✓ exact    41 µs  300 µs    800 µs       –          –  2,000
drift   clock_nanosleep  sleep 4.9 ms   5 ms  ✓ +2.0 %   41 µs  100 µs    800 µs       –          –  2,000
2 of 2 periods found exactly, to the nanosecond.
"
        );
    }

    #[test]
    fn a_nanosecond_off_is_not_exact() {
        let mut off = task("ctl", 1_202, 80);
        let stream = &mut off.streams[0];
        stream.separator.call = punctual_model::Call::Nanosleep;
        stream.arrival.periodic.as_mut().expect("periodic").period_ns = Duration::from_ns(4_999_999);
        let text = comparison(&model(vec![off]), &truth(), &Page::default());
        assert!(text.contains("✗ −1 ns"), "{text}");
        assert!(text.contains("nanosleep (not clock_nanosleep)"), "{text}");
        assert!(text.contains("0 of 2 periods found exactly"), "{text}");
        assert!(text.ends_with("Not seen: video, drift.\n"), "{text}");
    }

    #[test]
    fn the_longest_phase_of_a_thread_is_compared() {
        let mut first = task("ctl", 1_202, 80);
        first.streams[0].jobs = 1;
        first.streams[0].arrival.periodic = None;
        let mut second = task("ctl", 1_202, 80);
        second.phase = 1;
        second.streams[0].uncertain_releases = 1;
        let text = comparison(&model(vec![first, second]), &truth()[..1], &Page::default());
        assert!(text.contains("1 of 1 periods"), "{text}");
        assert!(text.contains("Caveats: ctl (phase 2 of 2, 1 window).\nwindow: "), "{text}");
    }

    #[test]
    fn the_legend_is_about_the_columns_that_are_there() {
        let mut odd = task("ctl", 1_202, 80);
        odd.streams[0].arrival.periodic = Some(crate::example::disturbed());
        let text = comparison(&model(vec![odd]), &truth()[..1], &Page::default());
        assert!(text.contains(" 16 µs (30.33 ms) ") && text.contains(&format!("\n{JITTERS}\n")), "{text}");
        assert!(!text.contains("Max jitter"), "{text}");
    }

    #[test]
    fn bursts_match_by_their_size() {
        let mut row = truth()[0].clone();
        row.kind = Kind::Bursty;
        row.burst = Some(3);
        let mut stream = crate::example::stream(13_333_333, 27_000_000);
        let spans = [0, 2, 39_800, 39_802].map(Duration::from_us).to_vec();
        stream.arrival.curve =
            Some(punctual_model::Curve { delta_min_ns: spans.clone(), delta_max_ns: spans });
        assert_eq!(verdict(&row, Some(&stream)), Verdict::Fits);
        for other in [2, 4] {
            row.burst = Some(other);
            assert_eq!(verdict(&row, Some(&stream)), Verdict::Contradicts);
        }
    }

    #[test]
    fn a_fractional_period_matches_only_itself() {
        let row = &truth()[1];
        let mut stream = crate::example::stream(16_666_666, 41_000);
        assert_eq!(verdict(row, Some(&stream)), Verdict::Off(-1));
        let found = stream.arrival.periodic.as_mut().expect("periodic");
        found.period_exact = Some(Fraction { numerator: 50_000_000, denominator: 3 });
        assert_eq!(verdict(row, Some(&stream)), Verdict::Exact);
    }
}
