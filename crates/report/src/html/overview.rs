//! The table of all tasks: every column sorts, a text filters.

use super::cell::{cell, head, on_page};
use crate::derived::primary;
use crate::figures::{THREADS, ThreadRow};
use crate::overview::{Fold, fold, hidden, legend, threads};
use crate::text;
use crate::visible;
use crate::{busy, one_job, pool};
use maud::{Markup, html};
use punctual_model::{Task, ThreadIds, TimingModel};

/// Fewer jobs than this say little.
pub(crate) const FEW_JOBS: u64 = 3;

/// The positions of tasks, as they are shown: most urgent first, those that say little last, the phases of a
/// thread together.
pub(crate) fn order(model: &TimingModel) -> Vec<usize> {
    let (ids, urgencies) = threads(model);
    let mut order: Vec<usize> = (0..model.tasks().len()).collect();
    order.sort_by_cached_key(|&position| {
        let task = &model.tasks()[position];
        (brief(task), urgencies[&ids.of(task)], ids.of(task), task.phase)
    });
    order
}

/// The section with the table. What the terminal does not show, the page shows when asked.
pub(crate) fn table(model: &TimingModel, order: &[usize]) -> Markup {
    let all: Vec<&Task> = model.tasks().iter().collect();
    let short: Vec<&Task> =
        all.iter().copied().filter(|task| primary(task).is_none_or(|stream| stream.jobs < 2)).collect();
    let (ids, urgencies) = threads(model);
    let why = |task: &Task| fold(task, urgencies[&ids.of(task)]);
    let folds = |which| all.iter().filter(|task| why(task) == Some(which)).count();
    let hidden = hidden(folds(Fold::FewJobs), folds(Fold::BestEffort), "");
    html! {
        section #tasks aria-labelledby="tasks-title" {
            h2 #tasks-title { "All tasks" }
            @if model.tasks().is_empty() {
                p { "No task was seen." }
            } @else {
                div.controls hidden {
                    label for="filter" { "Filter" }
                    input #filter type="search" autocomplete="off" spellcheck="false" placeholder="name, \
                     TID, policy, call, command …";
                    @if let Some(hidden) = hidden {
                        label { input #folded type="checkbox"; " Show also " (hidden) }
                    }
                    output #shown for="filter" {}
                }
                div.scroll tabindex="0" role="region" aria-labelledby="tasks-title" {
                    table #overview {
                        thead { tr {
                            @for entry in on_page(THREADS) { (head(&entry.figure)) }
                        } }
                        tbody {
                            @for &position in order {
                                @let task = &model.tasks()[position];
                                (row(&ids, task, position, why(task).is_some()))
                            }
                        }
                    }
                }
                @for group in one_job::groups(&short) { p { (one_job::sentence(group)) } }
                @for line in pool::sentences(&all) { p { (line) } }
                @for line in legend(&all) { p.legend { (line) } }
            }
        }
    }
}

/// Whether there are too few jobs to say much, of a task that waits.
pub(crate) fn brief(task: &Task) -> bool {
    primary(task).is_none_or(|stream| stream.jobs < FEW_JOBS) && busy::note(task).is_none()
}

fn row(ids: &ThreadIds<'_>, task: &Task, position: usize, is_folded: bool) -> Markup {
    let row = ThreadRow::new(ids, task);
    let words = format!("{} {}", task.command, task.recording.as_deref().unwrap_or_default());
    html! {
        tr.brief[brief(task)] data-words=(visible(&words)) data-folded[is_folded] {
            @for (index, entry) in on_page(THREADS).iter().enumerate() {
                @if index == 0 {
                    th scope="row" {
                        a href={ "#task-" (position) } { bdi { (text::cell(entry, &row)) } }
                        small { "TID " (task.tid) }
                    }
                } @else {
                    (cell(entry, &row))
                }
            }
        }
    }
}
