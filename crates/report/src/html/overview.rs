//! The table of all tasks: every column sorts, a text filters. It shows what the terminal shows, and the rest
//! when asked.

use super::cell::{cell, head, on_page};
use crate::derived::primary;
use crate::figures::{THREADS, ThreadRow};
use crate::overview::{Fold, fold, hidden, legend, threads};
use crate::summed::Summed;
use crate::text;
use crate::visible;
use crate::{busy, one_job, pool};
use maud::{Markup, html};
use punctual_model::{Task, TimingModel};
use std::collections::{HashMap, HashSet};
use std::ptr;

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
    let ordered = || order.iter().map(|&position| &model.tasks()[position]);
    let unfolded: Vec<&Task> = ordered().filter(|task| why(task).is_none()).collect();
    let mut sums = Summed::by_separator(&unfolded, &ids);
    sums.retain(Summed::is_sum);
    let summed: HashSet<*const Task> =
        sums.iter().flat_map(|sum| &sum.tasks).map(|it| ptr::from_ref(*it)).collect();
    let begun: HashMap<*const Task, &Summed<'_>> =
        sums.iter().map(|sum| (ptr::from_ref(sum.tasks[0]), sum)).collect();
    let why =
        |task: &Task| why(task).or_else(|| summed.contains(&ptr::from_ref(task)).then_some(Fold::Summed));
    let number = |which| (which, ordered().filter(|task| why(task) == Some(which)).count());
    let hidden = hidden(&[Fold::FewJobs, Fold::BestEffort, Fold::Summed].map(number), "");
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
                                @if let Some(sum) = begun.get(&ptr::from_ref(task)) {
                                    (row(&sum.row(&ids), position, false))
                                }
                                (row(&ThreadRow::new(&ids, task), position, why(task).is_some()))
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

/// A row that links to the section of the task at this position.
fn row(row: &ThreadRow<'_>, position: usize, is_folded: bool) -> Markup {
    let task = row.task;
    let words = format!("{} {}", task.command, task.recording.as_deref().unwrap_or_default());
    html! {
        tr.brief[brief(task)] data-words=(visible(&words)) data-folded[is_folded] {
            @for (index, entry) in on_page(THREADS).iter().enumerate() {
                @if index == 0 {
                    th scope="row" {
                        a href={ "#task-" (position) } { bdi { (text::cell(entry, row)) } }
                        small { "TID " (task.tid) }
                    }
                } @else {
                    (cell(entry, row))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::example::{best_effort_phase, model, task};
    use crate::overview::{Rows, overview};
    use crate::{Page, html};

    /// As in the terminal: one row for the phases under real-time policies, none for the others.
    #[test]
    fn phases_are_summed_up_until_asked_for() {
        let first = task("toggle", 7, 40);
        let mut phases = vec![first.clone(), best_effort_phase(first.clone())];
        for phase in 2..5 {
            let mut next = first.clone();
            next.phase = phase;
            phases.push(next);
        }
        let model = model(phases.into_iter().chain([task("other", 8, 30)]).collect());
        let page = html::page(&model, None, None, "report");
        let (_, table) = page.split_once("<tbody>").expect("the table");
        let (table, _) = table.split_once("</tbody>").expect("its end");
        let rows: Vec<&str> = table.split("<tr").skip(1).collect();
        let shown: Vec<&&str> = rows.iter().filter(|row| !row.contains("data-folded")).collect();
        assert_eq!((rows.len(), shown.len()), (1 + 5 + 1, 2), "{table}");
        assert!(shown[0].contains("href=\"#task-0\"") && shown[0].contains("4 phases"), "{}", shown[0]);
        assert!(shown[0].contains("data-v=\"8000\""), "the jobs of all: {}", shown[0]);
        let folded = "Show also 1 best-effort phase (of real-time threads), 4 phases (summed up)";
        assert!(page.contains(folded), "{page}");
        let text = overview(&model, &Page::default(), Rows::default());
        assert_eq!(text.lines().filter(|line| line.contains("toggle")).count(), 1, "{text}");
    }
}
