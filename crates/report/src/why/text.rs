//! Late jobs as text.

use super::{CauseRow, advice, words};
use crate::figures::CAUSES;
use crate::number::{about, at_most, count, counted};
use crate::{Page, indented, paragraph, table, text::since};
use punctual_model::Duration;
use punctual_model::causes::{Causes, Kind, Lack, LateJob, LateTask, Limit, Part};
use std::cmp::Reverse;

/// Tasks without late jobs that are named.
const MOST_PUNCTUAL: usize = 5;

/// Parts shorter than this part of a job are not drawn.
const SMALL: u64 = 200;

/// For a terminal.
pub fn text(causes: &Causes, page: &Page) -> String {
    let (late, punctual): (Vec<&LateTask>, Vec<&LateTask>) =
        causes.tasks.iter().partition(|task| task.late > 0);
    let mut text = String::new();
    for task in &late {
        if !text.is_empty() {
            text.push('\n');
        }
        write(&mut text, task, causes, page);
    }
    if causes.tasks.is_empty() {
        return paragraph("No real-time thread had jobs: nothing to explain.", page);
    }
    if !late.is_empty() && !punctual.is_empty() {
        text.push('\n');
    }
    for task in punctual.iter().take(MOST_PUNCTUAL) {
        text += &paragraph(&self::late(task), page);
    }
    if let Some(more @ 1..) = punctual.len().checked_sub(MOST_PUNCTUAL) {
        text += &paragraph(&format!("{} had no late job.", counted(more as u64, "other task")), page);
    }
    for it in &causes.lacks {
        text += &paragraph(&format!("({})", lack(*it)), page);
    }
    text
}

/// What an observation did not tell apart.
pub(crate) fn lack(lack: Lack) -> &'static str {
    match lack {
        Lack::OtherThreads => {
            "The recording has switches of watched threads only: preemption by others is unknown. Record \
             with --all-threads."
        }
        Lack::Interrupts => "The recording has no interrupts: they count as what they interrupted.",
    }
}

/// `control (FIFO 80)`.
fn who(task: &LateTask) -> String {
    words::thread(&task.task, Some(task.policy), task.priority)
}

/// `took longer than the period of 2 ms`.
fn limit(task: &LateTask) -> String {
    let time = task.limit_ns;
    match task.limit {
        Limit::Given => format!("took longer than {time}"),
        Limit::Period => format!("took longer than the period of {time}"),
        Limit::Contract => format!("took longer than the {time} of the contract"),
        Limit::None => "explained".into(),
        Limit::Longest => format!("took longer than {}, the 99th percentile", about(time)),
    }
}

/// `control (FIFO 80): 42 of 4,999 jobs took longer than the period of 2 ms; the longest 5.65 ms.`
pub(crate) fn late(task: &LateTask) -> String {
    let (late, jobs) = (count(task.late), count(task.jobs));
    let (who, limit) = (who(task), limit(task));
    let longest = at_most(task.longest_ns);
    let perhaps = format!("{} may have: when they were released is not known exactly", count(task.perhaps));
    let judged = match (task.late, task.perhaps) {
        (0, 0) => format!("{who}: none of {jobs} jobs {limit}."),
        (0, _) => {
            let limit = limit.replacen("took", "is known to have taken", 1);
            format!("{who}: none of {jobs} jobs {limit}; {perhaps}.")
        }
        (_, 0) => format!("{who}: {late} of {jobs} jobs {limit}; the longest {longest}."),
        _ => format!("{who}: {late} of {jobs} jobs {limit}, the longest {longest}; {perhaps}."),
    };
    let cut_off = task.cut_off_ns.map_or_else(String::new, |time| {
        format!(" The thread's end cut off another after {}: it is not judged.", about(time))
    });
    judged + &cut_off
}

fn write(text: &mut String, task: &LateTask, causes: &Causes, page: &Page) {
    *text += &paragraph(&late(task), page);
    text.push('\n');
    *text += &table::of_figures(CAUSES, CauseRow::all(task)).text(page);
    if !task.worst.is_empty() {
        text.push('\n');
    }
    for (place, job) in task.worst.iter().enumerate() {
        let title = if place == 0 { "worst: " } else { "       " };
        *text += &indented(&format!("{title}{}", line(job, causes)), 7, page);
    }
    let advice = advice::of(task);
    if !advice.is_empty() {
        text.push('\n');
    }
    for (place, advice) in advice.iter().enumerate() {
        let title = if place == 0 { "What helps: " } else { "            " };
        *text += &indented(&format!("{title}{advice}"), 12, page);
    }
}

/// `job 3150 at +6.325 s, 5.65 ms: own 2.63 ms, preempted by vision (FIFO 90) 3.01 ms`.
pub(crate) fn line(job: &LateJob, causes: &Causes) -> String {
    let small = job.response_ns.ns() / SMALL;
    let mut sums: Vec<(String, Duration)> = Vec::new();
    for part in &job.parts {
        let words = words_of(part);
        match sums.iter_mut().find(|(known, _)| *known == words) {
            Some((_, sum)) => *sum += part.ns,
            None => sums.push((words, part.ns)),
        }
    }
    sums.sort_by_key(|(_, time)| Reverse(*time));
    let large = sums.iter().filter(|(_, time)| time.ns() >= small);
    let parts: Vec<String> = large.map(|(what, time)| format!("{what} {}", about(*time))).collect();
    let (at, whole) = (since(job.begin_ns.since(causes.from_ns)), at_most(job.response_ns));
    format!("{} at {at}, {whole}: {}", name(job), parts.join(", "))
}

/// `job 3150`, `job 3150 of phase 1`.
pub(super) fn name(job: &LateJob) -> String {
    match job.phase {
        0 => format!("job {}", job.job),
        phase => format!("job {} of phase {phase}", job.job),
    }
}

/// `preempted by vision (FIFO 90)`.
pub(crate) fn words_of(part: &Part) -> String {
    let kind = part.reason.kind;
    let by = words::culprit(&part.reason).or_else(|| part.job.map(|number| format!("job {number}")));
    let link = match kind {
        Kind::Preempted => " by ",
        Kind::Blocked => " on ",
        Kind::Queued | Kind::Dispatch | Kind::Throttled => " behind ",
        _ => " ",
    };
    match (kind, by, words::blocked_in(&part.reason)) {
        (Kind::Interrupt | Kind::Softirq, Some(interrupt), _) => interrupt,
        (Kind::Blocked, Some(by), Some(on)) => format!("blocked on {by} in {on}"),
        (_, Some(by), _) => format!("{}{link}{by}", kind.name()),
        (_, None, Some(on)) => format!("{} in {on}", kind.name()),
        (_, None, None) => kind.name().to_owned(),
    }
}
