//! The table of all tasks: one line each, what a user sees first.

use crate::figure::{about, at_least, at_most, count, counted};
use crate::shape::Shape;
use crate::slips::{jitters, left_out, period_and_slips, typical};
use crate::table::{Column, Fit, Table, Tone, figures, words};
use crate::{Page, visible};
use punctual_model::{EndedBy, Object, Observation, Periodic, Policy, Separator, Stream, Task, TimingModel};

const COLUMNS: [Column; 11] = [
    words("Thread", Fit::Keep),
    figures("TID", Fit::Drop(9)),
    words("Policy", Fit::Drop(6)),
    words("Separator", Fit::Fold),
    figures("Period or arrival", Fit::Keep),
    figures("Jitter", Fit::Keep),
    figures("WCET", Fit::Keep),
    figures("Suspended", Fit::Drop(7)),
    figures("Response", Fit::Drop(8)),
    figures("Jobs", Fit::Keep),
    words("Notes", Fit::Fold),
];

/// The table of tasks, most urgent first, and below it what was left out and what the notes mean. With `all`,
/// nothing is left out.
pub fn overview(model: &TimingModel, page: &Page, all: bool) -> String {
    let mut tasks: Vec<&Task> = model.tasks.iter().collect();
    tasks.sort_by_key(|task| {
        let thread = model.tasks.iter().filter(|other| same_thread(task, other)).map(urgency).min();
        (thread, task.recording.as_deref(), task.pid, task.tid, task.phase)
    });
    let (shown, folded): (Vec<&Task>, Vec<&Task>) =
        tasks.into_iter().partition(|task| all || fold(model, task).is_none());

    let mut text = String::new();
    if !shown.is_empty() {
        let mut table = Table::new(&COLUMNS);
        table.rows = shown.iter().map(|task| row(model, task)).collect();
        let (lines, left_out) = table.print(page);
        text += &lines;
        if !left_out.is_empty() {
            text += &format!("(the terminal is too narrow for: {})\n", left_out.join(", "));
        }
    }
    text += &folding(model, &folded);
    text += &legend(&shown);
    text
}

/// One line: how long was observed, where, how much, and what was lost.
pub fn summary(model: &TimingModel) -> String {
    let observation = &model.observation;
    let loss = match observation.lost_records {
        0 => "nothing lost".to_string(),
        lost => format!("{} LOST: models end where records are missing", counted(lost, "record")),
    };
    let platform = &model.platform;
    // Other tools' traces do not always say.
    let machine = match (platform.kernel.is_empty(), platform.cpus) {
        (true, _) => "an unknown machine".to_string(),
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
    let stolen = stolen(observation).map_or_else(String::new, |stolen| format!("{stolen}\n"));
    format!(
        "{} on {machine}: {}, {}, {loss}.\n{stolen}",
        how_long(model),
        counted(model.tasks.len() as u64, "task"),
        counted(observation.records, "record"),
    )
}

/// What the hypervisor took from the machine, where it took anything.
pub(crate) fn stolen(seen: &Observation) -> Option<String> {
    let took = || {
        format!(
            "The hypervisor took {} of the processors' time from this machine meanwhile.",
            about(seen.stolen_ns)
        )
    };
    (!seen.stolen_ns.is_zero()).then(took)
}

/// How long was observed. Of several recordings that is not what lies between the first and the last.
pub(crate) fn how_long(model: &TimingModel) -> String {
    let mut recordings: Vec<&str> = model.tasks.iter().filter_map(|task| task.recording.as_deref()).collect();
    recordings.sort_unstable();
    recordings.dedup();
    match recordings.len() {
        0 => format!("Observed for {}", about(model.observation.until_ns.since(model.observation.from_ns))),
        count => format!("Observed in {}", counted(count as u64, "recording")),
    }
}

/// The stream that is shown for a task.
pub(crate) fn primary(task: &Task) -> Option<&Stream> {
    task.streams.get(task.primary?)
}

/// Whether two tasks are phases of one thread of one recording.
pub(crate) fn same_thread(a: &Task, b: &Task) -> bool {
    (a.pid, a.tid, &a.recording) == (b.pid, b.tid, &b.recording)
}

/// Policy and what goes with it, without the `SCHED_` that all of them share: `FIFO 80`, `DEADLINE`, `OTHER
/// nice 5`.
pub(crate) fn policy(task: &Task) -> String {
    match (task.policy, task.nice) {
        (Policy::Fifo, _) => format!("FIFO {}", task.priority),
        (Policy::Rr, _) => format!("RR {}", task.priority),
        (Policy::Deadline, _) => "DEADLINE".into(),
        (Policy::Idle, _) => "IDLE".into(),
        (policy, nice) => {
            let name = match policy {
                Policy::Batch => "BATCH",
                Policy::Ext => "EXT",
                _ => "OTHER",
            };
            nice.filter(|nice| *nice != 0).map_or(name.into(), |nice| format!("{name} nice {nice}"))
        }
    }
}

/// A separator without the clock that nearly all sleeps are on.
pub(crate) fn short(separator: &Separator) -> String {
    match separator.object {
        Object::Clock { id: 1, absolute } => {
            format!("{} {}", separator.call, if absolute { "absolute" } else { "relative" })
        }
        _ => visible(&separator.to_string()),
    }
}

/// Period or arrival as one cell, and the jitter that belongs to it.
pub(crate) fn arrival(stream: &Stream) -> (String, String) {
    match Shape::of(stream) {
        Shape::Periodic(periodic) => (period_and_slips(periodic), jitters(periodic)),
        Shape::Bursts { jobs, span } => (format!("≤ {jobs} in {}", at_least(span)), "–".into()),
        Shape::Sporadic(separation) => (format!("≥ {} apart", at_least(separation)), "–".into()),
        Shape::Unknown => ("–".into(), "–".into()),
    }
}

/// The least of a thread's tasks is the most urgent.
fn urgency(task: &Task) -> (u8, u32) {
    match task.policy {
        Policy::Deadline => (0, 0),
        Policy::Fifo | Policy::Rr => (1, 99_u32.saturating_sub(task.priority)),
        _ => (2, 0),
    }
}

fn best_effort(task: &Task) -> bool {
    !matches!(task.policy, Policy::Fifo | Policy::Rr | Policy::Deadline)
}

/// Why a task need not be shown at first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fold {
    FewJobs,
    BestEffort,
}

/// A thread that is best-effort throughout is in the model because it was asked for, so only the phases of
/// real-time threads fold.
fn fold(model: &TimingModel, task: &Task) -> Option<Fold> {
    let real_time_elsewhere =
        || model.tasks.iter().any(|other| same_thread(task, other) && !best_effort(other));
    if best_effort(task) && real_time_elsewhere() {
        Some(Fold::BestEffort)
    } else if primary(task).is_none_or(|stream| stream.jobs < 2) {
        Some(Fold::FewJobs)
    } else {
        None
    }
}

fn folding(model: &TimingModel, folded: &[&Task]) -> String {
    let number = |why: Fold| folded.iter().filter(|task| fold(model, task) == Some(why)).count() as u64;
    let parts: Vec<String> = [
        (number(Fold::FewJobs), "task", "with fewer than two jobs"),
        (number(Fold::BestEffort), "best-effort phase", "of real-time threads"),
    ]
    .iter()
    .filter(|(number, ..)| *number > 0)
    .map(|(number, noun, which)| format!("{} {which}", counted(*number, noun)))
    .collect();
    match (parts.is_empty(), model.tasks.is_empty()) {
        (false, _) => format!("+ {}; --all shows them\n", parts.join(", ")),
        (true, true) => "No task was seen.\n".into(),
        (true, false) => String::new(),
    }
}

fn row(model: &TimingModel, task: &Task) -> Vec<(String, Tone)> {
    let none = || "–".to_string();
    let mut cells = vec![visible(&task.name), task.tid.to_string(), policy(task)];
    match primary(task) {
        Some(stream) => {
            let (arrival, jitter) = arrival(stream);
            let wcet = stream.execution.as_ref().and_then(|execution| execution.wcet_ns.first());
            cells.extend([
                short(&stream.separator),
                arrival,
                jitter,
                wcet.map_or_else(none, |wcet| at_most(*wcet).to_string()),
                stream.suspension.as_ref().map_or_else(none, |model| at_most(model.dynamic_ns).to_string()),
                stream.response.as_ref().map_or_else(none, |model| at_most(model.max_ns).to_string()),
                count(stream.jobs),
            ]);
        }
        None => cells.extend([none(), none(), none(), none(), none(), none(), "0".into()]),
    }
    let mut row: Vec<(String, Tone)> = cells.into_iter().map(|cell| (cell, Tone::Plain)).collect();
    row.push((notes(model, task).join(", "), Tone::Warning));
    row
}

/// What a reader must know before relying on the figures of a task.
pub(crate) fn notes(model: &TimingModel, task: &Task) -> Vec<String> {
    let mut notes = Vec::new();
    let phases = model.tasks.iter().filter(|other| same_thread(task, other)).count();
    if phases > 1 {
        notes.push(format!("phase {} of {phases}", task.phase + 1));
    }
    if task.ended_by == EndedBy::Loss {
        notes.push("ended by loss".into());
    }
    if task.separators_capped {
        notes.push("separators capped".into());
    }
    let Some(stream) = primary(task) else { return notes };
    let windows = stream.uncertain_releases.saturating_sub(stream.back_to_back);
    if windows > 0 {
        notes.push(counted(windows, "window"));
    }
    if stream.back_to_back > 0 {
        notes.push(format!("{} back to back", count(stream.back_to_back)));
    }
    if let Some(periodic) = &stream.arrival.periodic {
        let is_periodic = matches!(Shape::of(stream), Shape::Periodic(_));
        if is_periodic && left_out(periodic) > 0 {
            notes.push(format!("{} left out", count(left_out(periodic))));
        }
        if periodic.approximate {
            notes.push("jitter approximate".into());
        }
    }
    notes
}

/// The words of the notes that a newcomer cannot know.
pub(crate) fn legend(shown: &[&Task]) -> String {
    let any = |what: fn(&Stream) -> bool| shown.iter().copied().filter_map(primary).any(what);
    let mut text = String::new();
    if any(|stream| stream.uncertain_releases > stream.back_to_back) {
        text += "window: a release that was not seen itself; every figure allows for all instants at which it may have been.\n";
    }
    if any(|stream| stream.back_to_back > 0) {
        text += "back to back: the next job was due before the one before it had ended, so the call did not wait.\n";
    }
    let periodic = |what: fn(&Periodic) -> bool| {
        shown
            .iter()
            .copied()
            .filter_map(primary)
            .any(|stream| matches!(Shape::of(stream), Shape::Periodic(periodic) if what(periodic)))
    };
    if periodic(|periodic| typical(periodic).is_some()) {
        text += "jitter 1 µs (9 µs): the typical jitter, and in parentheses the greatest of all releases.\n";
    }
    if periodic(|periodic| left_out(periodic) > 0) {
        text += "left out: a release that is far from all others; the typical jitter does not count it, the greatest does.\n";
    }
    if periodic(|periodic| periodic.skipped > 0) {
        text += "skipped: activations of the period without a release.\n";
    }
    if periodic(|periodic| periodic.extra > 0) {
        text += "extra: releases beyond one for each activation of the period.\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{best_effort_phase, model, task};

    #[test]
    fn one_line_per_task_most_urgent_first() {
        let text =
            overview(&model(vec![task("low", 1_201, 10), task("ctl", 1_202, 80)]), &Page::default(), false);
        assert_eq!(
            text,
            "\
Thread   TID  Policy   Separator                 Period or arrival  Jitter    WCET  Suspended  Response   Jobs
ctl     1202  FIFO 80  clock_nanosleep absolute               5 ms   41 µs  800 µs       0 ns    900 µs  2,000
low     1201  FIFO 10  clock_nanosleep absolute               5 ms   41 µs  800 µs       0 ns    900 µs  2,000
"
        );
    }

    #[test]
    fn what_is_uncertain_is_noted_and_explained() {
        let mut uncertain = task("ctl", 1_202, 80);
        uncertain.ended_by = EndedBy::Loss;
        uncertain.streams[0].uncertain_releases = 10;
        uncertain.streams[0].back_to_back = 7;
        let text = overview(&model(vec![uncertain]), &Page::default(), false);
        assert!(text.lines().next().is_some_and(|header| header.ends_with("Notes")), "{text}");
        assert!(text.contains("  ended by loss, 3 windows, 7 back to back\n"), "{text}");
        assert!(text.contains("\nwindow: ") && text.contains("\nback to back: "), "{text}");
    }

    #[test]
    fn slips_stand_beside_the_period_and_the_greatest_jitter_beside_the_typical_one() {
        let (mut disturbed, mut extra) = (task("ctl", 1_202, 80), task("more", 1_203, 70));
        disturbed.streams[0].arrival.periodic = Some(crate::example::disturbed());
        extra.streams[0].arrival.periodic = Some(crate::example::extra());
        let text = overview(&model(vec![disturbed, extra]), &Page::default(), false);
        assert_eq!(
            text,
            "\
Thread   TID  Policy   Separator                 Period or arrival            Jitter    WCET  Suspended  Response   Jobs  Notes
ctl     1202  FIFO 80  clock_nanosleep absolute    1 ms, 3 skipped  16 µs (30.33 ms)  800 µs       0 ns    900 µs  2,000  2 left out
more    1203  FIFO 70  clock_nanosleep absolute      1 ms, 1 extra  16 µs (1.016 ms)  800 µs       0 ns    900 µs  2,000
jitter 1 µs (9 µs): the typical jitter, and in parentheses the greatest of all releases.
left out: a release that is far from all others; the typical jitter does not count it, the greatest does.
skipped: activations of the period without a release.
extra: releases beyond one for each activation of the period.
"
        );
    }

    #[test]
    fn idle_tasks_and_best_effort_phases_fold_until_asked_for() {
        let ctl = task("ctl", 1_202, 80);
        let mut idle = task("migration/0", 19, 99);
        idle.streams[0].jobs = 1;
        let tasks = model(vec![ctl.clone(), best_effort_phase(ctl), idle]);
        let text = overview(&tasks, &Page::default(), false);
        assert!(text.ends_with("\n+ 1 task with fewer than two jobs, 1 best-effort phase of real-time threads; --all shows them\n"));
        assert_eq!(text.lines().count(), 3, "{text}");
        let all = overview(&tasks, &Page::default(), true);
        assert_eq!(all.lines().count(), 4, "{all}");
        assert!(all.contains("phase 1 of 2") && all.contains("phase 2 of 2"), "{all}");
    }

    #[test]
    fn threads_of_other_recordings_are_no_phases() {
        let (mut monday, mut tuesday) = (task("ctl", 1_202, 80), task("ctl", 1_202, 80));
        monday.recording = Some("monday".into());
        tuesday.recording = Some("tuesday".into());
        let text = overview(&model(vec![monday, tuesday]), &Page::default(), false);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(!text.contains("phase"), "{text}");
    }

    #[test]
    fn a_thread_that_is_only_best_effort_was_asked_for() {
        let mut only = best_effort_phase(task("worker", 7, 0));
        only.phase = 0;
        assert!(overview(&model(vec![only]), &Page::default(), false).contains("\nworker "));
    }

    #[test]
    fn no_line_is_wider_than_the_page() {
        let tasks = model(vec![task("timer-sigwait", 1_202, 80), task("a", 1, 1)]);
        for width in [72, 80, 100, 132, 200] {
            let page = Page { width: Some(width), colour: false };
            let text = overview(&tasks, &page, false);
            assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{width}\n{text}");
        }
        let narrow = overview(&tasks, &Page { width: Some(72), colour: false }, false);
        assert!(narrow.contains("(the terminal is too narrow for: TID, Response"), "{narrow}");
        assert!(narrow.contains("timer-sigwait  clock_nanosleep  "), "{narrow}");
    }

    #[test]
    fn colours_only_where_the_page_shows_them() {
        let tasks = model(vec![task("ctl", 1_202, 80)]);
        assert!(!overview(&tasks, &Page::default(), false).contains('\x1b'));
        assert!(overview(&tasks, &Page { width: None, colour: true }, false).contains("\x1b[1m"));
    }

    #[test]
    fn loss_stands_in_the_first_line() {
        let mut lossy = model(vec![task("ctl", 1_202, 80)]);
        assert_eq!(
            summary(&lossy),
            "Observed for 10 s on Linux 6.18.44 (x86_64, 2 processors): 1 task, 12,345 records, nothing lost.\n"
        );
        lossy.observation.lost_records = 3;
        assert!(summary(&lossy).contains("3 records LOST"));
        lossy.observation.stolen_ns = punctual_model::Duration::from_ms(1_230);
        let taken = "The hypervisor took 1.23 s of the processors' time from this machine meanwhile.\n";
        assert!(summary(&lossy).ends_with(taken), "{}", summary(&lossy));
    }

    #[test]
    fn a_model_without_tasks_says_so() {
        assert_eq!(overview(&model(vec![]), &Page::default(), false), "No task was seen.\n");
    }
}
