//! The table of all tasks: what a user sees first.

use crate::derived::{is_merged, left_out, primary, typical};
use crate::figures::{self, Phases, THREADS};
use crate::number::{about, counted};
use crate::shape::Shape;
use crate::summed::Summed;
use crate::table;
use crate::{Page, text, visible};
use crate::{busy, clock, modes, one_job, pool};
use punctual_model::{
    Loss, Periodic, Platform, Section, Stream, Task, ThreadId, ThreadIds, Threads, TimingModel,
};
use std::collections::HashMap;

/// Which tasks the table has, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Tasks with fewer than two jobs and best-effort phases of real-time threads too.
    pub all: bool,
    /// A row for each phase of a thread, rather than their sum.
    pub phases: bool,
}

/// The table of tasks, most urgent first, and below it what was left out and what the notes mean.
pub fn overview(model: &TimingModel, page: &Page, rows: Rows) -> String {
    let (ids, urgencies) = threads(model);
    let mut tasks: Vec<&Task> = model.tasks().iter().collect();
    tasks.sort_by_cached_key(|task| (urgencies[&ids.of(task)], ids.of(task), task.phase));
    let why = |task: &Task| fold(task, urgencies[&ids.of(task)]);
    let (shown, folded): (Vec<&Task>, Vec<&Task>) =
        tasks.into_iter().partition(|task| rows.all || why(task).is_none());
    let groups = if rows.phases { Summed::each(&shown) } else { Summed::by_separator(&shown, &ids) };

    let mut text = String::new();
    if !groups.is_empty() {
        text += &table::of_figures(THREADS, groups.iter().map(|group| group.row(&ids))).text(page);
    }
    let few: Vec<&Task> = folded.iter().copied().filter(|task| why(task) == Some(Fold::FewJobs)).collect();
    let of_one_job = one_job::groups(&few);
    // Of those in groups, a sentence tells.
    let alone = few.len() - of_one_job.iter().map(Vec::len).sum::<usize>();
    let folds = [(Fold::FewJobs, alone), (Fold::BestEffort, folded.len() - few.len())];
    if let Some(hidden) = hidden(&folds, " hidden") {
        text += &crate::paragraph(&format!("{hidden}; punctual show --all lists them"), page);
    } else if model.tasks().is_empty() {
        text += "No task was seen.\n";
    }
    for line in of_one_job.into_iter().map(one_job::sentence).chain(pool::sentences(&shown)) {
        text += &crate::paragraph(&line, page);
    }
    let summed = groups.iter().filter(|group| group.is_sum()).count() as u64;
    if summed > 0 {
        let line = format!("{} with several phases summed up; --phases shows each", counted(summed, "row"));
        text += &crate::paragraph(&line, page);
    }
    let is_in_phases = |group: &Summed| !matches!(group.row(&ids).phases, Phases::Only);
    if groups.iter().any(is_in_phases) {
        text += &crate::paragraph(PHASE, page);
    }
    for line in legend(&groups.iter().map(|group| group.task.as_ref()).collect::<Vec<_>>()) {
        text += &crate::paragraph(&line, page);
    }
    text
}

/// How long was observed, where, how much, and what was lost; empty without threads.
pub fn summary(model: &TimingModel) -> String {
    let Some(threads) = &model.threads else { return String::new() };
    let loss = match (threads.lost_records, listed(&threads.losses())) {
        (0, None) if threads.notes.is_empty() => "nothing lost".to_string(),
        (0, None) => "no record lost".to_string(),
        (0, Some(losses)) => format!("no record lost, but {losses}"),
        (lost, _) => format!("{} LOST: models end where records are missing", counted(lost, "record")),
    };
    let unknown = Platform::default();
    let platform = model.platform.as_ref().unwrap_or(&unknown);
    // Imported traces do not always say.
    let machine = match (platform.kernel.is_empty(), platform.cpus) {
        (true, _) => "an unknown machine".to_string(),
        (false, 0) if platform.machine.is_empty() => format!("Linux {}", visible(&platform.kernel)),
        (false, 0) => format!("Linux {} ({})", visible(&platform.kernel), visible(&platform.machine)),
        (false, cpus) => {
            format!(
                "Linux {} ({}, {})",
                visible(&platform.kernel),
                visible(&platform.machine),
                counted(cpus.into(), "processor")
            )
        }
    };
    let all = noted(threads).chain(stolen(threads)).chain(clock::steps(threads));
    let notes: String = all.map(|it| it + "\n").collect();
    format!(
        "{} on {machine}: {}, {}, {loss}.\n{notes}",
        how_long(model),
        counted(model.tasks().len() as u64, "task"),
        counted(threads.records, "record"),
    )
}

/// `3 lost records, 21 skipped events`; `None` if nothing was missed.
pub(crate) fn listed(losses: &[Loss]) -> Option<String> {
    let one = |loss: &Loss| {
        let what = loss.counter.replace('_', " ");
        counted(loss.count, what.strip_suffix('s').unwrap_or(&what))
    };
    (!losses.is_empty()).then(|| losses.iter().map(one).collect::<Vec<_>>().join(", "))
}

/// What is to be known of the recordings as a whole.
pub(crate) fn noted(seen: &Threads) -> impl Iterator<Item = String> {
    seen.notes.iter().map(|note| format!("Note: {}.", visible(note)))
}

/// The time that the hypervisor took from the machine, where it took any.
pub(crate) fn stolen(seen: &Threads) -> Option<String> {
    let line =
        || format!("The hypervisor took {} of processor time during the observation.", about(seen.stolen_ns));
    (!seen.stolen_ns.is_zero()).then(line)
}

/// How long was observed. Recordings that were made apart have no span in common.
pub(crate) fn how_long(model: &TimingModel) -> String {
    let mut recordings: Vec<&str> =
        model.tasks().iter().filter_map(|task| task.recording.as_deref()).collect();
    recordings.sort_unstable();
    recordings.dedup();
    // How many all are, the model does not say.
    if model.tasks().iter().any(|task| is_merged(task) && task.recording.is_some()) {
        return "Observed in several runs".to_owned();
    }
    match recordings.len() {
        0 => {
            let span = model.spans().first().map(|(_, span)| span.until_ns.since(span.from_ns));
            format!("Observed for {}", about(span.unwrap_or_default()))
        }
        count => format!("Observed in {}", counted(count as u64, "recording")),
    }
}

/// Policy and priority, without the `SCHED_` that all of them share.
pub(crate) fn policy(task: &Task) -> String {
    text::policy(task.policy, task.priority, task.nice)
}

/// Period or arrival, and jitter, in words.
pub(crate) fn arrival(stream: &Stream) -> String {
    use crate::number::{at_least, at_most, frequency, period};
    match Shape::new(stream) {
        Shape::Periodic(periodic) => {
            let every = if frequency(periodic).is_some() { "at" } else { "every" };
            format!("{every} {}, jitter {}", period(periodic), at_most(periodic.usual_jitter()))
        }
        Shape::Modes(modes) => format!(
            "{}, jitter {}",
            modes::short(modes, modes[0].from_ns),
            at_most(modes::jitter(modes).unwrap_or_default())
        ),
        Shape::Bursts { jobs, span } => format!("≤ {jobs} in {}", at_least(span)),
        Shape::Sporadic(separation) => format!("≥ {} apart", at_least(separation)),
        Shape::Unknown => "too few releases".into(),
    }
}

/// The threads of a model, and how urgent the most urgent task of each is.
pub(crate) fn threads(model: &TimingModel) -> (ThreadIds<'_>, HashMap<ThreadId<'_>, u32>) {
    let ids = ThreadIds::new(model.tasks());
    let mut urgencies = HashMap::new();
    for task in model.tasks() {
        let least: &mut u32 = urgencies.entry(ids.of(task)).or_insert(u32::MAX);
        *least = urgency(task).min(*least);
    }
    (ids, urgencies)
}

/// The least of a thread's tasks is the most urgent.
fn urgency(task: &Task) -> u32 {
    figures::urgency(task.policy, task.priority)
}

fn is_best_effort(task: &Task) -> bool {
    !task.policy.is_real_time()
}

/// Why a task is not shown at first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fold {
    /// It has fewer than two jobs.
    FewJobs,
    /// It is the best-effort phase of a real-time thread.
    BestEffort,
    /// Another row has the sum of it and other phases.
    Summed,
}

impl Fold {
    /// What is folded, and which of them.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Fold::FewJobs => ("task", "fewer than two jobs"),
            Fold::BestEffort => ("best-effort phase", "of real-time threads"),
            Fold::Summed => ("phase", "summed up"),
        }
    }
}

/// A thread that is best-effort throughout is in the model because the user asked for it, so only the phases
/// of real-time threads fold. `thread` is the urgency of its thread.
pub(crate) fn fold(task: &Task, thread: u32) -> Option<Fold> {
    if is_best_effort(task) && thread < urgency(task) {
        Some(Fold::BestEffort)
    } else if primary(task).is_none_or(|stream| stream.jobs < 2) && busy::note(task).is_none() {
        Some(Fold::FewJobs)
    } else {
        None
    }
}

/// The rows that are not shown at first, each kind with `verb` after its number.
pub(crate) fn hidden(folds: &[(Fold, usize)], verb: &str) -> Option<String> {
    let part = |(fold, number): &(Fold, usize)| {
        let (noun, which) = fold.words();
        format!("{}{verb} ({which})", counted(*number as u64, noun))
    };
    let parts: Vec<String> = folds.iter().filter(|(_, number)| *number > 0).map(part).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

const PHASE: &str =
    "phase: what a thread did until its policy, priority, affinity or program changed, or records were lost.";

/// What the two columns of jitter are.
pub(crate) const MAX_JITTER: &str = "Max jitter counts every release; Jitter ignores a few outliers.";

/// The terms in the notes that a newcomer cannot know.
pub(crate) fn legend(shown: &[&Task]) -> Vec<String> {
    let any = |what: fn(&Stream) -> bool| shown.iter().copied().filter_map(primary).any(what);
    let periodic = |what: fn(&Periodic) -> bool| {
        shown
            .iter()
            .copied()
            .filter_map(primary)
            .any(|stream| matches!(Shape::new(stream), Shape::Periodic(periodic) if what(periodic)))
    };
    let lines = [
        (
            any(|stream| stream.uncertain_releases > stream.back_to_back),
            "window: exact release time unknown; figures assume the worst case.",
        ),
        (
            any(|stream| stream.back_to_back > 0),
            "back to back: the next job was due before the previous job had ended, so the call did not wait.",
        ),
        (periodic(|periodic| typical(periodic).is_some()), MAX_JITTER),
        (periodic(|periodic| left_out(periodic) > 0), "left out: outliers, which Jitter does not count."),
        (periodic(|periodic| periodic.skipped > 0), "skipped: periods in which no job was released."),
        (periodic(|periodic| periodic.extra > 0), "extra: releases beyond one for each period."),
    ];
    lines.into_iter().filter(|(is_there, _)| *is_there).map(|(_, line)| line.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{best_effort_phase, model, task};
    use punctual_model::{EndedBy, Instant};

    const ALL: Rows = Rows { all: true, phases: true };

    #[test]
    fn a_machine_that_a_trace_does_not_name_is_left_out() {
        let mut model = model(vec![]);
        let kernel = "6.1.0".to_owned();
        model.platform = Some(Platform { kernel, machine: String::new(), cpus: 0 });
        assert!(summary(&model).contains(" on Linux 6.1.0: "), "{}", summary(&model));
    }

    #[test]
    fn one_line_per_task_most_urgent_first() {
        let text = overview(
            &model(vec![task("low", 1_201, 10), task("ctl", 1_202, 80)]),
            &Page::default(),
            Rows::default(),
        );
        assert_eq!(
            text,
            "\
Thread   TID  Policy   Separator                 Period or arrival  Jitter  Mean cost  Max cost  \
Suspended  Mean response  Max response   Jobs
ctl     1202  FIFO 80  clock_nanosleep absolute               5 ms   41 µs     700 µs    800 µs  \
\x20    0 ns         720 µs        900 µs  2,000
low     1201  FIFO 10  clock_nanosleep absolute               5 ms   41 µs     700 µs    800 µs  \
\x20    0 ns         720 µs        900 µs  2,000
"
        );
    }

    #[test]
    fn what_is_uncertain_is_noted_and_explained() {
        let mut uncertain = task("ctl", 1_202, 80);
        uncertain.ended_by = punctual_model::EndedBy::Loss;
        uncertain.streams[0].uncertain_releases = 10;
        uncertain.streams[0].back_to_back = 7;
        let text = overview(&model(vec![uncertain]), &Page::default(), Rows::default());
        assert!(text.lines().next().is_some_and(|header| header.ends_with("Notes")), "{text}");
        assert!(text.contains("  ended by loss, 3 windows, 7 back to back\n"), "{text}");
        assert!(text.contains("\nwindow: ") && text.contains("\nback to back: "), "{text}");
    }

    #[test]
    fn slips_are_noted_and_both_jitters_are_shown() {
        let (mut disturbed, mut extra) = (task("ctl", 1_202, 80), task("more", 1_203, 70));
        disturbed.streams[0].arrival.periodic = Some(crate::example::disturbed());
        extra.streams[0].arrival.periodic = Some(crate::example::extra());
        let text = overview(&model(vec![disturbed, extra]), &Page::default(), Rows::default());
        let cells = |thread: &str| -> Vec<String> {
            let line = text.lines().find(|line| line.starts_with(thread)).unwrap_or_default();
            line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(Into::into).collect()
        };
        assert_eq!(cells("ctl")[4..7], ["1 ms", "16 µs", "30.33 ms"], "{text}");
        assert_eq!(cells("ctl").last().map(String::as_str), Some("3 skipped, 2 left out"));
        assert_eq!(cells("more")[4..7], ["1 ms", "16 µs", "1.016 ms"]);
        assert_eq!(cells("more").last().map(String::as_str), Some("1 extra"));
        assert!(
            text.ends_with(
                "\
Max jitter counts every release; Jitter ignores a few outliers.
left out: outliers, which Jitter does not count.
skipped: periods in which no job was released.
extra: releases beyond one for each period.
"
            ),
            "{text}"
        );
    }

    /// Percentiles, and means beside the greatest.
    #[test]
    fn costs_and_responses_have_their_distribution() {
        let mut task = task("ctl", 1_202, 80);
        task.streams[0].percentiles = Some(crate::example::percentiles());
        let text = overview(&model(vec![task]), &Page::default(), Rows::default());
        let head = "Mean cost  p99 cost  Max cost  Suspended  Mean response  p99 response  Max response";
        assert!(text.lines().next().is_some_and(|line| line.contains(head)), "{text}");
        assert!(
            text.contains(
                "   700 µs    790 µs    800 µs       0 ns         720 µs        850 µs        900 µs"
            )
        );
    }

    /// Records are lost again and again: a task ends at each loss.
    #[test]
    fn losses_do_not_flood_the_table() {
        let phases: Vec<Task> = (0..300)
            .map(|phase| {
                let mut task = task("ctl", 1_202, 80);
                (task.phase, task.ended_by) = (phase, punctual_model::EndedBy::Loss);
                task
            })
            .collect();
        let model = model(phases);
        let text = overview(&model, &Page::default(), Rows::default());
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(text.contains("600,000  300 phases, ended by loss\n"), "{text}");
        let legend = format!("1 row with several phases summed up; --phases shows each\n{PHASE}\n");
        assert!(text.ends_with(&legend), "{text}");
        let each = overview(&model, &Page::default(), Rows { phases: true, ..Rows::default() });
        assert_eq!(each.lines().count(), 302, "{each}");
    }

    #[test]
    fn idle_tasks_and_best_effort_phases_are_hidden_by_default() {
        let ctl = task("ctl", 1_202, 80);
        let mut idle = task("migration/0", 19, 99);
        idle.streams[0].jobs = 1;
        let tasks = model(vec![ctl.clone(), best_effort_phase(ctl), idle]);
        let text = overview(&tasks, &Page::default(), Rows::default());
        let hidden = "\n1 task hidden (fewer than two jobs), 1 best-effort phase hidden (of real-time \
                      threads); punctual show --all lists them\n";
        assert!(text.ends_with(&format!("{hidden}{PHASE}\n")), "{text}");
        assert_eq!(text.lines().count(), 4, "{text}");
        let all = overview(&tasks, &Page::default(), ALL);
        assert_eq!(all.lines().count(), 5, "{all}");
        assert!(all.contains("phase 1 of 2") && all.contains("phase 2 of 2"), "{all}");
    }

    #[test]
    fn tasks_that_a_line_is_about_are_not_hidden() {
        let mut spin = task("spin", 7, 40);
        (spin.primary, spin.busy_ns) = (None, Some(spin.until_ns.since(spin.from_ns)));
        spin.streams.clear();
        let mut short = spin.clone();
        (short.busy_ns, short.ended_by) = (None, EndedBy::Exit);
        let timer = (0..9).map(|tid| Task { name: "timer".into(), tid, ..short.clone() });
        let tasks = model(timer.chain([spin, short.clone()]).collect());
        let text = overview(&tasks, &Page::default(), Rows::default());
        assert!(text.contains("  never waits, 100 % of a CPU\n"), "{text}");
        assert!(text.contains("\n1 task hidden (fewer than two jobs);"), "{text}");
        assert!(text.contains("\ntimer (FIFO 40): 9 threads with one job each"), "{text}");
    }

    #[test]
    fn threads_with_a_reused_tid_are_not_phases() {
        let mut first = task("first", 7, 1);
        (first.ended_by, first.until_ns) = (EndedBy::Exit, Instant::from_ns(2_000_000_000));
        let mut second = task("second", 7, 1);
        second.from_ns = Instant::from_ns(3_000_000_000);
        let mut third = best_effort_phase(second.clone());
        third.from_ns = Instant::from_ns(4_000_000_000);
        let text = overview(&model(vec![first.clone(), second.clone()]), &Page::default(), Rows::default());
        assert!(text.contains("\nfirst ") && text.contains("\nsecond ") && !text.contains("phase"), "{text}");
        let text = overview(&model(vec![first, second, third]), &Page::default(), ALL);
        assert!(text.contains("phase 1 of 2") && text.contains("phase 2 of 2"), "{text}");
    }

    #[test]
    fn threads_of_other_recordings_are_not_phases() {
        let (mut monday, mut tuesday) = (task("ctl", 1_202, 80), task("ctl", 1_202, 80));
        monday.recording = Some("monday".into());
        tuesday.recording = Some("tuesday".into());
        let text = overview(&model(vec![monday, tuesday]), &Page::default(), Rows::default());
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(!text.contains("phase"), "{text}");
    }

    #[test]
    fn how_long_counts_no_runs_as_recordings() {
        let mut tasks = [task("one", 1, 80), task("other", 2, 80)];
        tasks.iter_mut().for_each(|task| task.recording = Some(task.name.clone()));
        assert_eq!(how_long(&model(tasks.to_vec())), "Observed in 2 recordings");
        (tasks[0].pid, tasks[0].recording) = (0, Some("2 runs".into()));
        assert_eq!(how_long(&model(tasks.to_vec())), "Observed in several runs");
    }

    #[test]
    fn a_thread_that_is_only_best_effort_is_shown() {
        let mut only = best_effort_phase(task("worker", 7, 0));
        only.phase = 0;
        assert!(overview(&model(vec![only]), &Page::default(), Rows::default()).contains("\nworker "));
    }

    #[test]
    fn no_line_is_wider_than_the_page() {
        let tasks = model(vec![task("timer-sigwait", 1_202, 80), task("a", 1, 1)]);
        for width in [40, 60, 72, 80, 100, 132, 200] {
            let page = Page { width: Some(width), colour: false };
            let text = overview(&tasks, &page, Rows::default());
            assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{width}\n{text}");
        }
        let narrow = overview(&tasks, &Page { width: Some(72), colour: false }, Rows::default());
        assert!(narrow.contains("\ntimer-sigwait  1202  clock_nanosleep absolute     5 ms "), "{narrow}");
        assert!(narrow.contains("(not shown at this width: Policy, Mean cost,"), "{narrow}");
    }

    /// Threads of one name stay apart, and remarks do not fold to columns of a word.
    #[test]
    fn narrow_tables_say_which_thread() {
        let threads = (1..4).map(|number| {
            let mut task = task("cyclictest", 3_870 + number, 80);
            let stream = &mut task.streams[0];
            (stream.uncertain_releases, stream.percentiles) = (3, Some(crate::example::percentiles()));
            stream.arrival.periodic.as_mut().expect("periodic").skipped = 103;
            task
        });
        let threads = model(threads.collect());
        let at = |width| overview(&threads, &Page { width: Some(width), colour: false }, Rows::default());
        let head = "                                             Period
                                                 or             Max       Max
Thread       TID  Separator                 arrival  Jitter    cost  response
cyclictest  3871  clock_nanosleep absolute     5 ms   41 µs  800 µs    900 µs
    103 skipped, 3 windows
cyclictest  3872";
        assert!(at(80).starts_with(head), "{}", at(80));
        assert!(at(120).contains("  41 µs"), "{}", at(120));
        for width in [80, 100, 120, 140] {
            assert!(at(width).contains("\n    103 skipped, 3 windows\n"), "{}", at(width));
            assert!(at(width).lines().all(|line| line.chars().count() <= usize::from(width)));
        }
    }

    #[test]
    fn colours_only_where_the_page_shows_them() {
        let tasks = model(vec![task("ctl", 1_202, 80)]);
        assert!(!overview(&tasks, &Page::default(), Rows::default()).contains('\x1b'));
        assert!(overview(&tasks, &Page { width: None, colour: true }, Rows::default()).contains("\x1b[1m"));
    }

    #[test]
    fn losses_are_in_the_first_line() {
        let mut lossy = model(vec![task("ctl", 1_202, 80)]);
        assert_eq!(
            summary(&lossy),
            "Observed for 10 s on Linux 6.18.44 (x86_64, 2 processors): 1 task, 12,345 records, nothing \
             lost.\n"
        );
        lossy.threads.as_mut().expect("threads").lost_records = 3;
        assert!(summary(&lossy).contains("3 records LOST"));
        let mut noted = model(Vec::new());
        noted.threads.as_mut().expect("threads").notes = vec!["it has no wake-ups".to_owned()];
        assert!(
            summary(&noted).ends_with("no record lost.\nNote: it has no wake-ups.\n"),
            "{}",
            summary(&noted)
        );
        let mut skipped = model(Vec::new());
        skipped.threads.as_mut().expect("threads").skipped_events = 21;
        assert!(summary(&skipped).contains("no record lost, but 21 skipped events"));
        lossy.threads.as_mut().expect("threads").stolen_ns = punctual_model::Duration::from_ms(1_230);
        let taken = "The hypervisor took 1.23 s of processor time during the observation.\n";
        assert!(summary(&lossy).ends_with(taken), "{}", summary(&lossy));
    }

    #[test]
    fn a_model_without_tasks_says_so() {
        assert_eq!(overview(&model(vec![]), &Page::default(), Rows::default()), "No task was seen.\n");
    }
}
