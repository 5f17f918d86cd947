//! What users must know about the threads of a model before a command starts: which have no spec, and which
//! cannot be distinguished. One line each.

use super::{Choice, Covered, Need, Needs, Quantile, Reason, Unserved};
use crate::ThreadFilter;

/// This many items of a list are named, the rest are counted.
const NAMED: usize = 6;

/// A name without control characters, which a thread's name may have.
pub fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// `1 thread`, `2 threads`.
pub fn counted(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

fn listed(items: &[String]) -> String {
    match items.len().checked_sub(NAMED) {
        None | Some(0) => items.join(", "),
        Some(more) => format!("{} and {more} more", items[..NAMED].join(", ")),
    }
}

/// Threads without a spec, by reason and name; then names that several threads share.
pub fn remarks(Needs { needs, unserved, recordings }: &Needs, choice: &Choice) -> Vec<String> {
    let mut lines = Vec::new();
    let few: Vec<&Unserved> = unserved.iter().filter(|thread| thread.reason == Reason::FewJobs).collect();
    if !few.is_empty() {
        lines.push(few_jobs(&few, choice.min_jobs));
    }
    let mut groups: Vec<Vec<&Unserved>> = Vec::new();
    for thread in unserved.iter().filter(|thread| thread.reason != Reason::FewJobs) {
        let is_same =
            |group: &&mut Vec<&Unserved>| (group[0].reason, &group[0].name) == (thread.reason, &thread.name);
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(thread),
            None => groups.push(vec![thread]),
        }
    }
    lines.extend(groups.iter().map(|group| unfit(group)));
    lines.extend(needs.iter().filter(|need| need.together > 1).map(several));
    lines.extend(uncovered(needs, choice.margin));
    if choice.quantile < Quantile::ALL {
        lines.extend(without_percentiles(needs));
        lines.extend(with_all_jobs(needs));
    }
    lines.extend(ambiguous(needs, unserved));
    if *recordings > 1 {
        lines.push(format!(
            "the model has {recordings} recordings: a thread that is in several of them gets a spec for each"
        ));
    }
    lines
}

/// The consequence of runtimes that do not cover all jobs.
fn uncovered(needs: &[Need], margin: punctual_model::Percent) -> Option<String> {
    let line = |need: &Need| {
        let covered = need.covered?;
        let percent = covered.permille as f64 / 10.0;
        let (name, runtime) = (printable(&need.name), need.parameters.runtime?);
        let Covered { observed, longest, .. } = covered;
        let margin = match margin.is_zero() {
            true => String::new(),
            false => format!(" with the margin of {margin} %"),
        };
        Some(format!(
            "{name} ({percent} % took at most {observed}, the longest {longest}; runtime{margin}: {runtime})"
        ))
    };
    let threads: Vec<String> = needs.iter().filter_map(line).collect();
    let (get, their) = if threads.len() == 1 { ("gets", "its") } else { ("get", "their") };
    (!threads.is_empty()).then(|| {
        format!(
            "{} {get} a runtime that some of {their} jobs exceed: {}; such jobs wait for the next period \
             under SCHED_DEADLINE and delay less urgent threads under SCHED_FIFO and SCHED_RR; the guarantee \
             does not cover them",
            counted(threads.len(), "thread"),
            listed(&threads)
        )
    })
}

/// The chosen share of few jobs is all of them.
fn with_all_jobs(needs: &[Need]) -> Option<String> {
    let is_so = |need: &&Need| need.has_percentiles && need.covered.is_none();
    let name = |need: &Need| {
        format!(
            "{} ({})",
            printable(&need.name),
            counted(usize::try_from(need.jobs).unwrap_or(usize::MAX), "job")
        )
    };
    let names: Vec<String> = needs.iter().filter(is_so).map(name).collect();
    let (gets, its) = if names.len() == 1 { ("gets", "its") } else { ("get", "their") };
    (!names.is_empty()).then(|| {
        format!(
            "--runtime-quantile excludes no job of {}, which {gets} {its} greatest runtime: {}",
            counted(names.len(), "thread"),
            listed(&names)
        )
    })
}

fn without_percentiles(needs: &[Need]) -> Option<String> {
    let names: Vec<String> =
        needs.iter().filter(|need| !need.has_percentiles).map(|need| printable(&need.name)).collect();
    let (have, their) = if names.len() == 1 { ("has", "gets its") } else { ("have", "get their") };
    (!names.is_empty()).then(|| {
        format!(
            "{} {have} no percentiles in the model and {their} greatest runtime: {}",
            counted(names.len(), "thread"),
            listed(&names)
        )
    })
}

/// One line for all: there may be many, since a shell or a build starts many short programs.
fn few_jobs(threads: &[&Unserved], min_jobs: u64) -> String {
    let mut names: Vec<(&str, usize)> = Vec::new();
    for thread in threads {
        match names.iter_mut().find(|(name, _)| *name == thread.name) {
            Some((_, times)) => *times += 1,
            None => names.push((&thread.name, 1)),
        }
    }
    let times = |(name, times): &(&str, usize)| {
        if *times == 1 { printable(name) } else { format!("{} ({times} times)", printable(name)) }
    };
    let names: Vec<String> = names.iter().map(times).collect();
    let (threads, verb) = (counted(threads.len(), "thread"), if threads.len() == 1 { "gets" } else { "get" });
    format!(
        "{threads} of the model with fewer than {min_jobs} jobs {verb} no spec (--min-jobs): {}",
        listed(&names)
    )
}

fn unfit(threads: &[&Unserved]) -> String {
    let (name, one) = (printable(&threads[0].name), threads.len() == 1);
    let why = match (threads[0].reason, one) {
        (Reason::Bursts, true) => "its jobs come in bursts, which have no period",
        (Reason::Bursts, false) => "their jobs come in bursts, which have no period",
        (Reason::NoRuntime, _) => "no runtime is known",
        (Reason::NoPeriod | Reason::FewJobs, _) => "no period is known",
    };
    let tids: Vec<String> = threads.iter().map(|thread| thread.tid.to_string()).collect();
    match one {
        true => format!("thread {name} (TID {} in the model) gets no spec: {why}", tids[0]),
        false => format!(
            "{} threads named {name} (TIDs {} in the model) get no spec: {why}",
            threads.len(),
            listed(&tids)
        ),
    }
}

/// Extra releases mean several jobs in a period.
fn several(need: &Need) -> String {
    let (name, tid, together) = (printable(&need.name), need.tid, need.together);
    format!(
        "thread {name} (TID {tid} in the model) was released up to {together} times in a period: its runtime \
         is that of {together} jobs"
    )
}

/// What happens if a name does not determine the thread.
fn ambiguous(needs: &[Need], unserved: &[Unserved]) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, need) in needs.iter().enumerate() {
        let alike = |other: &&Need| (&other.name, other.first) == (&need.name, need.first);
        if needs[..at].iter().any(|other| alike(&other)) {
            continue;
        }
        let same: Vec<&Need> = needs.iter().filter(alike).collect();
        let name = printable(&need.name);
        let rest =
            unserved.iter().filter(|thread| (&thread.name, thread.first) == (&need.name, need.first)).count();
        if same.iter().any(|other| other.parameters != need.parameters) {
            let specs: Vec<String> = same.iter().map(|need| need.describe()).collect();
            let specs = match specs.len().checked_sub(NAMED) {
                None | Some(0) => specs.join("; "),
                Some(more) => format!("{}; and {more} more", specs[..NAMED].join("; ")),
            };
            lines.push(format!(
                "{} threads named {name} have different specs, which are assigned in the order in which \
                 threads of that name start: {specs}",
                same.len()
            ));
        }
        if rest > 0 {
            let (number, all) = (same.len(), same.len() + rest);
            let (verb, they) = if number == 1 { ("gets", "gets it") } else { ("get", "get them") };
            lines.push(format!(
                "only {number} of {all} threads named {name} in the model {verb} a spec; the first of that \
                 name to start {they} (--without {} excludes them all)",
                ThreadFilter::literal(&need.name)
            ));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_client::Parameters;
    use punctual_model::Duration;

    fn need(name: &str, tid: u32, period: u64) -> Need {
        let ms = |ms| Some(Duration::from_ms(ms));
        Need {
            name: name.into(),
            tid,
            first: false,
            jobs: 50,
            together: 1,
            covered: None,
            usual: None,
            has_percentiles: true,
            parameters: Parameters { period: ms(period), runtime: ms(1), ..Parameters::default() },
        }
    }

    fn choice() -> Choice {
        Choice {
            margin: punctual_model::Percent::whole(10),
            quantile: Quantile::ALL,
            min_jobs: 10,
            only: ThreadFilter::default(),
            without: ThreadFilter::default(),
            keep_priorities: false,
        }
    }

    fn on_lists(needs: &[Need], unserved: &[Unserved], choice: &Choice) -> Vec<String> {
        remarks(&Needs { needs: needs.to_vec(), unserved: unserved.to_vec(), recordings: 1 }, choice)
    }

    fn unserved(name: &str, tid: u32, reason: Reason) -> Unserved {
        Unserved { name: name.into(), tid, first: false, reason }
    }

    #[test]
    fn threads_without_a_spec_are_summarised() {
        let mut threads: Vec<Unserved> = (1..=4).map(|tid| unserved("sh", tid, Reason::FewJobs)).collect();
        threads.push(unserved("c\nat", 5, Reason::FewJobs));
        threads.extend((10..18).map(|tid| unserved("burst", tid, Reason::Bursts)));
        threads.push(unserved("lone", 20, Reason::NoPeriod));
        assert_eq!(
            on_lists(&[], &threads, &choice()),
            [
                "5 threads of the model with fewer than 10 jobs get no spec (--min-jobs): sh (4 times), \
                 c\u{fffd}at",
                "8 threads named burst (TIDs 10, 11, 12, 13, 14, 15 and 2 more in the model) get no spec: \
                 their jobs come in bursts, which have no period",
                "thread lone (TID 20 in the model) gets no spec: no period is known",
            ]
        );
    }

    #[test]
    fn ambiguous_names_are_pointed_out() {
        assert!(
            on_lists(&[need("a", 1, 10), need("b", 2, 20), need("b", 3, 20)], &[], &choice()).is_empty(),
            "equal specs are interchangeable"
        );
        assert_eq!(
            on_lists(&[need("control", 1, 20), need("other", 2, 5), need("control", 3, 10)], &[], &choice()),
            ["2 threads named control have different specs, which are assigned in the order in which \
                 threads of that name start: period 20 ms, runtime 1 ms; period 10 ms, runtime 1 ms"]
        );
        let remarks = on_lists(&[need("sh", 6, 20)], &[unserved("sh", 1, Reason::FewJobs)], &choice());
        assert_eq!(
            remarks[1],
            "only 1 of 2 threads named sh in the model gets a spec; the first of that name to start gets it \
             (--without sh excludes them all)"
        );
        let first = Unserved { first: true, ..unserved("sh", 1, Reason::FewJobs) };
        assert_eq!(
            on_lists(&[need("sh", 6, 20)], &[first], &choice()).len(),
            1,
            "the first thread of a process is distinguishable"
        );
    }
}
