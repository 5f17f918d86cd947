//! Late jobs as text.

use super::{Explained, LateTask, Limit, Why, advice, words};
use crate::figures::Fit;
use crate::number::{about, at_most, count, counted};
use crate::table::{Column, Table, Tone, figures, words as column};
use crate::{Page, indented, paragraph, text::since};
use punctual_causes::{Culprit, Kind, Part};

const CAUSES: [Column; 4] = [
    figures("JOBS", Fit::Keep),
    figures("TIME", Fit::Keep),
    column("CAUSE", Fit::Fold),
    column("EVIDENCE", Fit::Below),
];

/// Tasks without late jobs that are named.
const MOST_PUNCTUAL: usize = 5;

/// Parts shorter than this part of a job are not drawn.
const SMALL: u64 = 200;

impl Why {
    /// For a terminal.
    pub fn text(&self, page: &Page) -> String {
        let mut text = String::new();
        for task in &self.tasks {
            if !text.is_empty() {
                text.push('\n');
            }
            task.write(&mut text, self, page);
        }
        if self.tasks.is_empty() && self.punctual.is_empty() {
            return paragraph("No real-time thread had jobs: nothing to explain.", page);
        }
        if !self.tasks.is_empty() && !self.punctual.is_empty() {
            text.push('\n');
        }
        for task in self.punctual.iter().take(MOST_PUNCTUAL) {
            let (who, jobs, limit) = (words::thread(&task.who), count(task.jobs), task.limit.words());
            text += &paragraph(&format!("{who}: none of {jobs} jobs {limit}."), page);
        }
        if let Some(more @ 1..) = self.punctual.len().checked_sub(MOST_PUNCTUAL) {
            text += &paragraph(&format!("{} had no late job.", counted(more as u64, "other task")), page);
        }
        for lack in &self.lacks {
            text += &paragraph(&format!("({lack})"), page);
        }
        text
    }
}

impl Limit {
    /// `took longer than the period of 2 ms`.
    fn words(self) -> String {
        match self {
            Limit::Given(time) => format!("took longer than {time}"),
            Limit::Period(time) => format!("took longer than the period of {time}"),
            Limit::Agreed(time) => format!("took longer than the {time} of the contract"),
            Limit::Chosen => "explained".into(),
            Limit::Longest(time) => format!("took longer than {}, the 99th percentile", about(time)),
        }
    }
}

impl LateTask {
    fn write(&self, text: &mut String, why: &Why, page: &Page) {
        let (late, jobs) = (count(self.late), count(self.jobs));
        let limit = self.limit.words();
        let who = words::thread(&self.who);
        let worst = at_most(self.longest);
        *text += &paragraph(&format!("{who}: {late} of {jobs} jobs {limit}; the longest {worst}."), page);
        text.push('\n');
        let mut table = Table::new(&CAUSES);
        for (key, cause) in self.causes() {
            let cells = [
                count(cause.jobs),
                about(cause.time).to_string(),
                words::cause(key, cause, self),
                words::evidence(key, cause),
            ];
            table.rows.push(cells.into_iter().map(|cell| (cell, Tone::Plain)).collect());
        }
        *text += &table.text(page);
        if !self.shown.is_empty() {
            text.push('\n');
        }
        for (place, job) in self.shown.iter().enumerate() {
            let title = if place == 0 { "worst: " } else { "       " };
            *text += &indented(&format!("{title}{}", line(job, why)), 7, page);
        }
        let advice = advice::of(self);
        if !advice.is_empty() {
            text.push('\n');
        }
        for (place, advice) in advice.iter().enumerate() {
            let title = if place == 0 { "What helps: " } else { "            " };
            *text += &indented(&format!("{title}{advice}"), 12, page);
        }
    }
}

/// `job 3150 at +6.325 s, 5.65 ms: own 2.63 ms, preempted by vision (FIFO 90) 3.01 ms`.
fn line(job: &Explained, why: &Why) -> String {
    let Explained { explanation, threads, .. } = job;
    let (of, whole) = (&explanation.job, explanation.job.time());
    let small = whole.ns() / SMALL;
    let shown = |part: &Part| {
        let by = match part.culprit {
            Some(Culprit::Thread(tid)) => threads.get(&tid).map(words::thread),
            Some(Culprit::Interrupt(it)) => Some(words::interrupt(it)),
            Some(Culprit::Job(number)) => Some(format!("job {number}")),
            None => None,
        };
        let link = match part.kind {
            Kind::Preempted => " by ",
            Kind::Blocked => " on ",
            Kind::Queued | Kind::Dispatch | Kind::Throttled => " behind ",
            _ => " ",
        };
        let on = part.wait.and_then(|wait| Some((wait.call?, wait.object)));
        let what = match (part.kind, by, on) {
            (Kind::Interrupt | Kind::Softirq, Some(interrupt), _) => interrupt,
            (Kind::Blocked, Some(by), Some(on)) => {
                format!("blocked on {by} in {}", words::blocked_in(on))
            }
            (kind, Some(by), _) => format!("{}{link}{by}", kind.name()),
            (kind, None, Some(on)) => format!("{} in {}", kind.name(), words::blocked_in(on)),
            (kind, None, None) => kind.name().to_owned(),
        };
        format!("{what} {}", about(part.time))
    };
    let parts: Vec<String> =
        explanation.summed().iter().filter(|part| part.time.ns() >= small).map(shown).collect();
    format!(
        "job {} at {}, {}: {}",
        of.number,
        since(of.begin.since(why.from)),
        at_most(whole),
        parts.join(", ")
    )
}
