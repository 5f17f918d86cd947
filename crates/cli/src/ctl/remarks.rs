//! What a user has to know of a model's threads before a command is run by it: which have no spec, and which
//! cannot be told apart. A line each.

use super::model::{Choice, Need, Quantile, Why, Without};

/// So many of a list are named, the rest is counted.
const NAMED: usize = 6;

/// Text from a file or of a thread, on a line and for a terminal: whoever names a thread may use any
/// character.
pub fn shown(name: &str) -> String {
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

/// Those without a spec, by reason and name; then the names that more than one thread has.
pub fn on(needs: &[Need], without: &[Without], choice: &Choice) -> Vec<String> {
    let mut lines = Vec::new();
    let few: Vec<&Without> = without.iter().filter(|thread| thread.why == Why::FewJobs).collect();
    if !few.is_empty() {
        lines.push(few_jobs(&few, choice.min_jobs));
    }
    let mut groups: Vec<Vec<&Without>> = Vec::new();
    for thread in without.iter().filter(|thread| thread.why != Why::FewJobs) {
        match groups.iter_mut().find(|group| (group[0].why, &group[0].name) == (thread.why, &thread.name)) {
            Some(group) => group.push(thread),
            None => groups.push(vec![thread]),
        }
    }
    lines.extend(groups.iter().map(|group| unfit(group)));
    lines.extend(needs.iter().filter(|need| need.together > 1).map(several));
    lines.extend(uncovered(needs));
    if choice.quantile < Quantile::ALL {
        lines.extend(without_percentiles(needs));
    }
    lines.extend(ambiguous(needs, without));
    lines
}

/// What it means that a runtime does not cover all jobs.
fn uncovered(needs: &[Need]) -> Option<String> {
    let line = |need: &Need| {
        let covered = need.covered?;
        let percent = covered.permille as f64 / 10.0;
        let (name, runtime) = (shown(&need.name), need.parameters.runtime?);
        Some(format!("{name} ({percent} % take at most {runtime}, the longest {})", covered.greatest))
    };
    let threads: Vec<String> = needs.iter().filter_map(line).collect();
    let (get, their) = if threads.len() == 1 { ("gets", "its") } else { ("get", "their") };
    (!threads.is_empty()).then(|| {
        format!(
            "{} {get} a runtime that not all of {their} jobs keep to: {}; under SCHED_DEADLINE the others wait \
             for their next period, under SCHED_FIFO and SCHED_RR they delay what is less urgent: the \
             guarantee does not cover that",
            counted(threads.len(), "thread"),
            listed(&threads)
        )
    })
}

fn without_percentiles(needs: &[Need]) -> Option<String> {
    let names: Vec<String> =
        needs.iter().filter(|need| !need.has_percentiles).map(|need| shown(&need.name)).collect();
    let (have, their) = if names.len() == 1 { ("has", "gets its") } else { ("have", "get their") };
    (!names.is_empty()).then(|| {
        format!(
            "{} {have} no percentiles in the model and {their} greatest runtime: {}",
            counted(names.len(), "thread"),
            listed(&names)
        )
    })
}

/// Often there are many, since a shell or a build starts programs that come and go: one line for all.
fn few_jobs(threads: &[&Without], min_jobs: u64) -> String {
    let mut names: Vec<(&str, usize)> = Vec::new();
    for thread in threads {
        match names.iter_mut().find(|(name, _)| *name == thread.name) {
            Some((_, times)) => *times += 1,
            None => names.push((&thread.name, 1)),
        }
    }
    let times = |(name, times): &(&str, usize)| {
        if *times == 1 { shown(name) } else { format!("{} ({times} times)", shown(name)) }
    };
    let names: Vec<String> = names.iter().map(times).collect();
    let (threads, verb) = (counted(threads.len(), "thread"), if threads.len() == 1 { "gets" } else { "get" });
    format!(
        "{threads} of the model with fewer than {min_jobs} jobs {verb} no spec (--min-jobs): {}",
        listed(&names)
    )
}

fn unfit(threads: &[&Without]) -> String {
    let (name, one) = (shown(&threads[0].name), threads.len() == 1);
    let why = match (threads[0].why, one) {
        (Why::Bursts, true) => "its jobs come in bursts, which no period describes",
        (Why::Bursts, false) => "their jobs come in bursts, which no period describes",
        (Why::NoRuntime, _) => "no runtime is known",
        (Why::NoPeriod | Why::FewJobs, _) => "no period is known",
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

/// Extra releases in a period are more jobs than one.
fn several(need: &Need) -> String {
    let (name, tid, together) = (shown(&need.name), need.tid, need.together);
    format!(
        "thread {name} (TID {tid} in the model) was released up to {together} times in a period: its runtime is that of {together} jobs"
    )
}

/// What will happen where a name does not say which thread is meant.
fn ambiguous(needs: &[Need], without: &[Without]) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, need) in needs.iter().enumerate() {
        let alike = |other: &&Need| (&other.name, other.first) == (&need.name, need.first);
        if needs[..at].iter().any(|other| alike(&other)) {
            continue;
        }
        let same: Vec<&Need> = needs.iter().filter(alike).collect();
        let name = shown(&need.name);
        let bare =
            without.iter().filter(|thread| (&thread.name, thread.first) == (&need.name, need.first)).count();
        if same.iter().any(|other| other.parameters != need.parameters) {
            let told: Vec<String> = same.iter().map(|need| need.told()).collect();
            let told = match told.len().checked_sub(NAMED) {
                None | Some(0) => told.join("; "),
                Some(more) => format!("{}; and {more} more", told[..NAMED].join("; ")),
            };
            lines.push(format!(
                "{} threads named {name} need different things; they get their specs in the order in which they start: {told}",
                same.len()
            ));
        }
        if bare > 0 {
            let (number, all) = (same.len(), same.len() + bare);
            let (verb, whoever) = if number == 1 { ("gets", "that one") } else { ("get", "those") };
            lines.push(format!(
                "just {number} of {all} threads named {name} in the model {verb} a spec; the first of that name to start will be taken for {whoever} \
                 (--without {name} leaves all of them out)"
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
            has_percentiles: true,
            parameters: Parameters { period: ms(period), runtime: ms(1), ..Parameters::default() },
        }
    }

    fn choice() -> Choice {
        Choice { margin: 10, quantile: Quantile::ALL, min_jobs: 10, only: Vec::new(), without: Vec::new() }
    }

    fn without(name: &str, tid: u32, why: Why) -> Without {
        Without { name: name.into(), tid, first: false, why }
    }

    #[test]
    fn threads_without_a_spec_are_told_in_few_lines() {
        let mut threads: Vec<Without> = (1..=4).map(|tid| without("sh", tid, Why::FewJobs)).collect();
        threads.push(without("c\nat", 5, Why::FewJobs));
        threads.extend((10..18).map(|tid| without("burst", tid, Why::Bursts)));
        threads.push(without("lone", 20, Why::NoPeriod));
        assert_eq!(
            on(&[], &threads, &choice()),
            [
                "5 threads of the model with fewer than 10 jobs get no spec (--min-jobs): sh (4 times), c\u{fffd}at",
                "8 threads named burst (TIDs 10, 11, 12, 13, 14, 15 and 2 more in the model) get no spec: their jobs come in bursts, which no period describes",
                "thread lone (TID 20 in the model) gets no spec: no period is known",
            ]
        );
    }

    #[test]
    fn names_that_do_not_tell_threads_apart_are_told() {
        assert!(
            on(&[need("a", 1, 10), need("b", 2, 20), need("b", 3, 20)], &[], &choice()).is_empty(),
            "whichever is which"
        );
        assert_eq!(
            on(&[need("control", 1, 20), need("other", 2, 5), need("control", 3, 10)], &[], &choice()),
            [
                "2 threads named control need different things; they get their specs in the order in which they start: period 20 ms, runtime 1 ms; \
                 period 10 ms, runtime 1 ms"
            ]
        );
        let said = on(&[need("sh", 6, 20)], &[without("sh", 1, Why::FewJobs)], &choice());
        assert_eq!(
            said[1],
            "just 1 of 2 threads named sh in the model gets a spec; the first of that name to start will be taken for that one (--without sh leaves all of them out)"
        );
        let first = Without { first: true, ..without("sh", 1, Why::FewJobs) };
        assert_eq!(
            on(&[need("sh", 6, 20)], &[first], &choice()).len(),
            1,
            "a process's first thread is no other"
        );
    }
}
