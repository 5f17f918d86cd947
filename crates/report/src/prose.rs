//! Everything known about one task, in words: the plain statement first, the literature's term and the exact
//! figure in parentheses.

use crate::busy::{self, without_jobs};
use crate::derived::{is_merged, primary};
use crate::models::{arrivals, completion, demand};
use crate::number::{about, at_most, count, counted};
use crate::overview::{arrival, policy, stolen};
use crate::{Page, visible, wrapped};
use punctual_model::threads::UNKNOWN_COMMAND;
use punctual_model::{EndedBy, Instant, Task, ThreadIds, TimingModel};
use std::fmt::Write;

/// Which tasks to describe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection(String);

impl Selection {
    /// By a thread's name, or by its TID.
    pub fn new(text: &str) -> Self {
        Selection(text.into())
    }

    /// The tasks of that thread, or of all threads of that name; where a name is also a number, the name
    /// wins.
    pub fn tasks<'a>(&self, model: &'a TimingModel) -> Vec<&'a Task> {
        let by_name: Vec<&Task> = model.tasks().iter().filter(|task| task.name == self.0).collect();
        match (by_name.is_empty(), self.0.parse::<u32>()) {
            (true, Ok(tid)) => model.tasks().iter().filter(|task| task.tid == tid).collect(),
            _ => by_name,
        }
    }
}

/// Lines longer than this are hard to read.
const READABLE: usize = 100;

/// The selected tasks, one after the other; `None` if there is none.
pub fn tasks(model: &TimingModel, selection: &Selection, page: &Page) -> Option<String> {
    let tasks = selection.tasks(model);
    let width = page.width.map_or(READABLE, usize::from).clamp(40, READABLE);
    let texts: Vec<String> =
        tasks.iter().map(|task| fill(&describe(model, task), width, page.colour)).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// All tasks of an observation under way, without colours.
pub(crate) fn plain(model: &TimingModel, width: u16) -> String {
    let width = usize::from(width).clamp(40, READABLE);
    let so_far = |line: Line| match line {
        Line::Text(text) => Line::Text(text.replace(&format!(", {TO_THE_END}"), " so far")),
        other => other,
    };
    let lines = |task: &Task| describe(model, task).into_iter().map(so_far).collect::<Vec<_>>();
    let texts: Vec<String> = model.tasks().iter().map(|task| fill(&lines(task), width, false)).collect();
    texts.join("\n")
}

/// How an observation that is over is said to have ended.
const TO_THE_END: &str = "until the observation ended";

/// A line of the text before it is filled to the page.
enum Line {
    Title(String),
    Heading(&'static str),
    Text(String),
}

fn fill(lines: &[Line], width: usize, colour: bool) -> String {
    let bold = |text: &str| if colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_string() };
    let mut out = String::new();
    for line in lines {
        match line {
            Line::Title(text) => out += &(bold(text) + "\n"),
            Line::Heading(text) => out += &format!("\n{}\n", bold(text)),
            Line::Text(text) => {
                let options = wrapped(width).initial_indent("  ").subsequent_indent("    ");
                out += &(crate::filled(text, options) + "\n");
            }
        }
    }
    out
}

fn describe(model: &TimingModel, task: &Task) -> Vec<Line> {
    let mut lines = vec![Line::Title(format!("{} ({})", visible(&task.name), number(task)))];
    lines.extend(identity(model, task).into_iter().map(Line::Text));
    if let Some(stream) = primary(task) {
        for (heading, text) in [
            ("When its jobs come", arrivals(task, stream, begin(model, task))),
            ("What a job needs", demand(stream)),
            ("How long a job takes", completion(stream)),
        ] {
            if !text.is_empty() {
                lines.push(Line::Heading(heading));
                lines.extend(text.into_iter().map(Line::Text));
            }
        }
    } else {
        lines.push(Line::Text(without_jobs(task)));
    }
    let uncertain = uncertain(model, task);
    if !uncertain.is_empty() {
        lines.push(Line::Heading("Caveats"));
        lines.extend(uncertain.into_iter().map(Line::Text));
    }
    let others = others(task);
    if !others.is_empty() {
        lines.push(Line::Heading("Other separators"));
        lines.extend(others.into_iter().map(Line::Text));
    }
    lines
}

/// The instant from which those of a task are counted: recordings that were made apart have clocks of their
/// own.
pub(crate) fn begin(model: &TimingModel, task: &Task) -> Instant {
    match &model.threads {
        Some(threads) if task.recording.is_none() => threads.from_ns,
        _ => task.from_ns,
    }
}

/// Which thread of which process it is, or which task of which runs.
pub(crate) fn number(task: &Task) -> String {
    match is_merged(task) {
        true => format!("task {} of {}", task.tid, runs(task)),
        false => format!("thread {} of process {}", task.tid, task.pid),
    }
}

/// The runs that it is of.
fn runs(task: &Task) -> String {
    visible(task.recording.as_deref().unwrap_or("1 run"))
}

pub(crate) fn identity(model: &TimingModel, task: &Task) -> Vec<String> {
    let mut text = Vec::new();
    text.push(match task.command.as_str() {
        "" => "A kernel thread.".into(),
        UNKNOWN_COMMAND => "Its program is unknown.".into(),
        command => format!("Runs {}", visible(command)),
    });
    let several = task.affinity.contains(['-', ',']);
    let processors = if several { "processors" } else { "processor" };
    let mut line = format!("Policy {}", policy(task));
    if !task.affinity.is_empty() {
        line += &format!(", on {processors} {}", visible(&task.affinity));
    }
    if task.merged_transitions > 0 {
        line += &format!(", after {} merged into this task", counted(task.merged_transitions, "change"));
    }
    if let Some(reservation) = task.reservation {
        let _ = write!(
            line,
            "; reservation: {} in every {}, within {} of its start",
            reservation.runtime_ns, reservation.period_ns, reservation.deadline_ns
        );
    }
    text.push(line + ".");
    if is_merged(task) {
        text.push(format!("Merged from several tasks of {}.", runs(task)));
        return text;
    }
    let ended = match task.ended_by {
        EndedBy::ObservationEnd => TO_THE_END,
        EndedBy::PolicyChange => "until its policy changed",
        EndedBy::PriorityChange => "until its priority, nice value or reservation changed",
        EndedBy::AffinityChange => "until its affinity changed",
        EndedBy::Exec => "until it executed another program",
        EndedBy::Exit => "until it ended",
        EndedBy::Loss => "until records were lost",
    };
    let mut line = format!("Observed for {}, {ended}", about(task.until_ns.since(task.from_ns)));
    let phases = ThreadIds::near(model.tasks(), task).phases(task);
    if phases > 1 {
        let _ = write!(line, "; phase {} of {phases} of this thread", task.phase + 1);
    }
    text.push(line + ".");
    text
}

pub(crate) fn uncertain(model: &TimingModel, task: &Task) -> Vec<String> {
    let mut text = Vec::new();
    let lost = model.threads.as_ref().map_or(0, |threads| threads.lost_records);
    if task.ended_by == EndedBy::Loss {
        text.push(
            "Records of this thread were lost: the task ends before the gap, and no figure spans it.".into(),
        );
    } else if lost > 0 {
        text.push(format!(
            "{} lost in the whole observation, none inside this task.",
            counted(lost, "record")
        ));
    }
    if task.separators_capped {
        text.push(
            "It waited at more separators than are kept apart; the rest share one stream of jobs (“others”)."
                .into(),
        );
    }
    if let Some(stolen) = model.threads.as_ref().and_then(stolen) {
        text.push(format!(
            "{stolen} Jobs that were due then are late or took longer; costs are never too small."
        ));
    }
    let Some(stream) = primary(task) else { return text };
    if let Some(note) = busy::note(task) {
        text.push(format!("When the task ended, it {}; no job covers that time.", crate::text::note(&note)));
    }
    let windows = stream.uncertain_releases.saturating_sub(stream.back_to_back);
    if windows > 0 {
        text.push(format!(
            "{} of {}: exact release time unknown; figures assume the worst case.",
            count(windows),
            counted(stream.releases, "release"),
        ));
    }
    if stream.back_to_back > 0 {
        text.push(format!(
            "{} of {} came while the previous job was still running, so the call did not wait: exact time \
             unknown; figures assume the worst case.",
            count(stream.back_to_back),
            counted(stream.releases, "release")
        ));
    }
    if stream.arrival.periodic.as_ref().is_some_and(|periodic| periodic.approximate) {
        text.push("Jitter and offset are slightly too large: the summary of the releases was full.".into());
    }
    text
}

fn others(task: &Task) -> Vec<String> {
    let streams = task.streams.iter().enumerate().filter(|(index, _)| Some(*index) != task.primary);
    streams
        .map(|(_, stream)| {
            let separator = visible(&stream.separator.to_string());
            let mut line = format!("{separator}: {}, {}", counted(stream.jobs, "job"), arrival(stream));
            if let Some(wcet) = stream.execution.as_ref().and_then(|execution| execution.wcet_ns.first()) {
                let _ = write!(line, ", max cost {}", at_most(*wcet));
            }
            line
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{best_effort_phase, model, task};
    use punctual_model::{Duration, SegmentBound};

    #[test]
    fn a_newcomer_reads_what_a_task_does() {
        let text = tasks(&model(vec![task("ctl", 1_202, 80)]), &Selection::new("ctl"), &Page::default());
        assert_eq!(
            text.as_deref().unwrap_or_default(),
            "\
ctl (thread 1202 of process 1200)
  Runs /usr/bin/plant --fast
  Policy FIFO 80, on processors 0-1.
  Observed for 10 s, until the observation ended.

When its jobs come
  It sleeps until absolute times (separator: clock_nanosleep CLOCK_MONOTONIC absolute).
  Why this separator: it is the only call that separates jobs.
  Released every 5 ms (period T), never more than 41 µs late (release jitter J = 41,000 ns).
  Lateness is measured from a grid of that period, fitted to the wake-up times that the thread
    requested; if those drift, the drift counts as lateness.
  This is the roundest period that explains the releases; the least jitter of any period is 40.49 µs
    (40,488 ns).
  The first arrival was at +0.000000 s (offset Φ).
  Two releases are never closer than 4.959 ms (minimum separation, δ⁻(2) = 4,959,000 ns), and never
    further apart than 5.041 ms (δ⁺(2) = 5,041,000 ns).
  Between 99 and 101 are released in any 500 ms (arrival curves η⁻, η⁺).
  The curves are exact for up to 200 consecutive releases.

What a job needs
  The most expensive job took 800 µs of processor time (observed maximum C = 800,000 ns), 700 µs on
    average.
  Any 10 jobs in a row took at most 7.2 ms (WCET(10) = 7,200,000 ns).
  Over 199 jobs in a row that is at most 14.24 % of one processor (utilization).
  It never sleeps inside a job (no self-suspension).

How long a job takes
  Every job ended at most 900 µs after its arrival (response time R = 900,000 ns), 720 µs on
    average.
  No job took longer than the period.
  Based on 2,000 complete jobs.
"
        );
    }

    /// Never "the roundest that explains the releases" where it does not explain all.
    #[test]
    fn outliers_are_described() {
        let mut odd = task("ctl", 1_202, 80);
        odd.streams[0].arrival.periodic = Some(crate::example::disturbed());
        odd.streams[0].percentiles = Some(crate::example::percentiles());
        let text = tasks(&model(vec![odd]), &Selection::new("ctl"), &Page::default()).unwrap_or_default();
        for part in [
            "\
  Released every 1 ms (period T), typically never more than 16 µs late (16,000 ns).
  This leaves out 2 of 2,001 releases (0.10 %): one 310 µs before its arrival (a signal interrupted
    or stopped the thread), at +1.999690 s; one 30 ms later than that (the machine stood still), at
    +3.030016 s.
  Counting every release, jitter is 30.33 ms (J = 30,326,000 ns).
  3 activations were skipped: before the release at +0.500004 s, 2 before the release at
    +0.800002 s.
  Lateness is measured from a grid of that period, fitted to the wake-up times that the thread
    requested; if those drift, the drift counts as lateness.
  Half of the releases came at most 6 µs after the time that the thread requested, 90 % at most
    12 µs, 99 % at most 14 µs, 99.9 % at most 16 µs.
",
            "\
  This is the roundest period that explains the other 1,999 releases; the least jitter of any
    period, for all releases, is 30 ms (30,000,000 ns).
  The first arrival was at +0.000000 s (offset Φ); counting every release, at −310 µs.
",
            "\n  Half of the jobs needed at most 700 µs, 90 % at most 750 µs, 99 % at most 790 µs, \
             99.9 % at most\n    800 µs.\n",
            "\n  Half of the jobs took at most 720 µs, 90 % at most 760 µs, 99 % at most 850 µs, \
             99.9 % at most\n    890 µs.\n",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn a_thread_is_named_by_name_or_tid() {
        let ctl = task("ctl", 1_202, 80);
        let model = model(vec![ctl.clone(), best_effort_phase(ctl), task("12", 7, 1), task("x", 12, 1)]);
        let chosen = |text: &str| -> Vec<u32> {
            Selection::new(text).tasks(&model).iter().map(|task| task.tid).collect()
        };
        assert_eq!(chosen("ctl"), [1_202, 1_202]);
        assert_eq!(chosen("1202"), [1_202, 1_202]);
        assert_eq!(chosen("12"), [7]);
        assert!(chosen("nobody").is_empty());
        assert_eq!(tasks(&model, &Selection::new("nobody"), &Page::default()), None);
    }

    #[test]
    fn a_task_of_several_runs_is_not_described_as_a_thread() {
        let mut merged = task("ctl", 1, 80);
        (merged.pid, merged.recording) = (0, Some("3 runs".into()));
        let text = tasks(&model(vec![merged]), &Selection::new("ctl"), &Page::default()).unwrap_or_default();
        assert!(text.starts_with("ctl (task 1 of 3 runs)\n"), "{text}");
        assert!(text.contains("Merged from several tasks of 3 runs."), "{text}");
        assert!(!text.contains("process 0") && !text.contains("Observed for"), "{text}");
        assert!(!text.contains("first arrival"), "{text}");
    }

    #[test]
    fn uncertainty_is_described() {
        let mut uncertain = task("ctl", 1_202, 80);
        uncertain.separators_capped = true;
        uncertain.streams[0].uncertain_releases = 10;
        uncertain.streams[0].back_to_back = 7;
        let mut model = model(vec![uncertain]);
        let threads = model.threads.as_mut().expect("threads");
        (threads.lost_records, threads.stolen_ns) = (2, Duration::from_ms(40));
        let text = tasks(&model, &Selection::new("ctl"), &Page::default()).unwrap_or_default();
        for part in [
            "Caveats",
            "2 records lost in the whole observation",
            "It waited at more separators",
            "The hypervisor took 40 ms of processor time during the observation. Jobs",
            "3 of 2,001 releases",
            "7 of 2,001",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn suspension_is_described_by_its_patterns() {
        let mut suspending = task("ctl", 1_202, 80);
        let model_of = suspending.streams[0].suspension.as_mut().expect("suspension");
        model_of.dynamic_ns = Duration::from_ns(1_060_123);
        let bound = |suspended: u64, cost: u64| SegmentBound {
            suspended_ns: Duration::from_us(suspended),
            cost_ns: Duration::from_us(cost),
        };
        model_of.segmented = vec![vec![bound(0, 260), bound(1_060, 255)]];
        let text =
            tasks(&model(vec![suspending]), &Selection::new("ctl"), &Page::default()).unwrap_or_default();
        assert!(
            text.contains(
                "sleeps at most 1.061 ms in total inside a job (dynamic self-suspension S = 1,060,123 ns)"
            ),
            "{text}"
        );
        assert!(text.contains("run ≤ 260 µs, sleep ≤ 1.06 ms, run ≤ 255 µs"), "{text}");
    }

    #[test]
    fn a_task_without_jobs_is_described() {
        let mut idle = task("migration/0", 19, 99);
        idle.command.clear();
        idle.streams.clear();
        idle.primary = None;
        let text = tasks(&model(vec![idle]), &Selection::new("19"), &Page::default()).unwrap_or_default();
        assert!(text.contains("A kernel thread.") && text.contains("No job was seen"), "{text}");
    }

    #[test]
    fn lines_fit_the_page() {
        let page = Page { width: Some(60), colour: false };
        let text =
            tasks(&model(vec![task("ctl", 1_202, 80)]), &Selection::new("ctl"), &page).unwrap_or_default();
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    }
}
