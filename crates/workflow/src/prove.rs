//! Whether the threads of timing models, and the tasks of contracts, meet their deadlines.

mod agreed;
mod assigned;
mod observed;

use crate::agreement::Agreement;
use crate::error::{Error, Result};
use crate::filter::ThreadFilter;
use crate::model_file::Given;
use agreed::agreed;
use assigned::GREATEST_PRIORITY;
pub use assigned::{Assigned, assign};
use observed::{UNKNOWN_PROCESSORS, task};
pub use punctual_analysis::Proof;
use punctual_analysis::{Bounds, Gap, Platform, Scheduling, System, Task, Thread};
use punctual_model::{self as model, Duration, Percent, Stream, ThreadIds, TimingModel, threads};
use punctual_report::few;

/// What is proven, and under which assumptions.
#[derive(Clone, Debug)]
pub struct Options {
    /// The timing model or contract.
    pub model: Given,
    /// A timing model with the section `latency`, if it is not the same one.
    pub platform: Option<Given>,
    /// Deadlines by patterns of the threads' names; the last one that matches applies. Else the period.
    pub deadlines: Vec<(ThreadFilter, Duration)>,
    /// Percent added to observed costs. What a contract says is taken as it is.
    pub margin: Percent,
    /// Changes to try.
    pub changes: Vec<Change>,
    /// Which threads must meet their deadlines. All others delay them all the same.
    pub threads: ThreadFilter,
    /// Which threads are assumed never to run.
    pub ignored: Option<ThreadFilter>,
    /// Whether to find how far each task may change.
    pub sensitivity: bool,
    /// Whether to find priorities and deadlines of reservations.
    pub assign: bool,
}

impl Options {
    fn ignores(&self, name: &str) -> bool {
        self.ignored.as_ref().is_some_and(|ignored| ignored.matches(name))
    }

    /// The deadline that was declared for a thread.
    fn declared(&self, name: &str) -> Option<Duration> {
        self.deadlines.iter().rev().find(|(threads, _)| threads.matches(name)).map(|it| it.1)
    }
}

/// A change of the threads that a pattern matches.
#[derive(Clone, Debug)]
pub struct Change {
    /// The threads.
    pub thread: ThreadFilter,
    /// What changes.
    pub what: Changed,
    /// The factor, in thousandths of a percent.
    pub parts: u64,
}

/// What a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// Processor time.
    Wcet,
    /// The distances between releases.
    Period,
}

/// Bounds the response times of all real-time threads of a timing model, or of all tasks of a contract.
///
/// # Errors
/// If a file cannot be read, the model has no threads, or a pattern matches none.
pub fn prove(options: &Options) -> Result<Proof> {
    let name = options.model.name();
    let platform = options.platform.as_ref().map(read_platform).transpose()?;
    let known = match options.model.agreement()? {
        Agreement::Model(model) => observed(&model, platform.as_ref(), options, &name)?,
        Agreement::Contract(contract) => {
            agreed::refuse_margin(options)?;
            agreed(&contract, platform.as_ref(), options, &name)?
        }
    };
    let Known { mut system, threads, observed_on, mut remarks, seen, mut late } = known;
    let mut bounds = system.prove();
    let contradictions = contradicted(&mut system, &bounds, &seen);
    let is_same = contradictions.is_empty() && options.changes.is_empty();
    remarks.extend(contradictions);
    remarks.extend(crowded(&system));
    remarks.extend(above_all(&system));
    options.changes.iter().for_each(|change| apply(change, &mut system));
    if !options.changes.is_empty() {
        late.clear();
    }
    if !is_same {
        bounds = system.prove();
    }
    let reserved_deadlines = options.assign.then(|| system.assign_deadlines());
    let deadlines = match &reserved_deadlines {
        Some(Ok(deadlines)) => deadlines.as_slice(),
        _ => &[],
    };
    Ok(Proof {
        bounds,
        rooms: options.sensitivity.then(|| system.sensitivity()),
        priorities: options.assign.then(|| system.with_deadlines(deadlines).assign(GREATEST_PRIORITY)),
        reserved_deadlines,
        system,
        threads,
        late,
        observed_on,
        remarks,
    })
}

/// A timing model that says what the kernel takes.
fn read_platform(given: &Given) -> Result<TimingModel> {
    let platform = given.model()?;
    match platform.latency {
        Some(_) => Ok(platform),
        None => Err(Error::file(format!("{} has no section `latency`", given.name()))
            .advise("punctual latency -o FILE.timing.json makes one")),
    }
}

/// What a file tells the analysis.
struct Known {
    system: System,
    threads: Vec<Thread>,
    observed_on: Vec<model::Platform>,
    remarks: Vec<String>,
    /// The greatest response time that was seen of each task; empty, or `None`, if that is not known.
    seen: Vec<Option<Duration>>,
    /// The same, where it certainly exceeded the task's deadline.
    late: Vec<Option<Duration>>,
}

/// What a timing model tells.
fn observed(
    model: &TimingModel,
    platform: Option<&TimingModel>,
    options: &Options,
    name: &str,
) -> Result<Known> {
    let Some(observed) = &model.threads else {
        return Err(Error::file(format!("{name} has no section `threads`"))
            .advise("punctual extract -o FILE.timing.json makes one"));
    };
    let kernel = platform.unwrap_or(model);
    let (platforms, mut remarks) = platforms(kernel);
    let observed_on = places(model.platform.clone(), kernel.latency_platform());
    if let [threads, latencies] = &observed_on[..] {
        remarks.extend(elsewhere(threads, latencies));
    }
    let chosen = chosen(observed);
    let names: Vec<&str> = chosen.iter().map(|task| task.name.as_str()).collect();
    check_patterns(options, &names)?;
    remarks.extend(several(&chosen, observed));
    let mut system = System { tasks: Vec::new(), platforms };
    let (mut threads, mut seen, mut late) = (Vec::new(), Vec::new(), Vec::new());
    for found in chosen.into_iter().filter(|found| !options.ignores(&found.name)) {
        let task = task(found, options);
        threads.push(Thread { tid: found.tid, policy: Some(found.policy), priority: found.priority });
        let stream = primary(found);
        let longest = |stream: &Stream| stream.response.as_ref().map(|it| it.max_ns);
        let is_late = |response: &Duration| task.deadline.is_some_and(|deadline| *response > deadline);
        seen.push(stream.and_then(longest));
        late.push(stream.and_then(Stream::certain_response).filter(is_late));
        system.tasks.push(task);
    }
    if system.tasks.iter().all(|task| task.gap.is_some()) {
        return Err(without_bounds(&system, name));
    }
    remarks.extend(ignored(options, &names));
    remarks.extend(gaps(&system));
    remarks.extend(losses(model));
    Ok(Known { system, threads, observed_on, remarks, seen, late })
}

/// Tasks of which a longer response was seen than what was proven: something delayed them that the model does
/// not have. Where that was longer than the deadline, there is no verdict.
fn contradicted(system: &mut System, bounds: &Bounds, seen: &[Option<Duration>]) -> Vec<String> {
    let (mut late, mut longer) = (Vec::new(), Vec::new());
    for ((task, bound), seen) in system.tasks.iter_mut().zip(bounds).zip(seen) {
        let (Ok(bound), Some(seen)) = (bound, *seen) else { continue };
        if seen <= bound.response {
            continue;
        }
        let text = format!("{} ({seen}, bound {})", task.name, bound.response);
        if task.deadline.is_some_and(|deadline| seen > deadline) {
            task.gap.get_or_insert(Gap::Seen(format!(
                "it took {seen} once, more than its deadline, though no more than {} of that is explained",
                bound.response
            )));
            late.push(text);
        } else {
            longer.push(text);
        }
    }
    const WHY: &str = "threads that were not observed, real-time throttling, the kernel (--platform), locks \
                       or a hypervisor";
    let of = |than: &str, tasks: Vec<String>| {
        let tasks = Some(tasks.join(", ")).filter(|tasks| !tasks.is_empty())?;
        Some(format!(
            "Longer than the {than} when it was observed, for a reason that is not in the model ({WHY}): \
             {tasks}."
        ))
    };
    of("deadline", late).into_iter().chain(of("bound", longer)).collect()
}

/// Processors on which the kernel may take time from real-time threads for ordinary ones.
fn crowded(system: &System) -> Option<String> {
    const SECOND: u64 = 1_000_000_000;
    let mut cpus = system.processors();
    let takes = |cpu: u32| {
        let here = system.tasks.iter().filter(|task| task.processors.contains(&cpu));
        here.map(|task| task.most_in(SECOND)).try_fold(0u64, |sum, most| sum.checked_add(most?))
    };
    cpus.retain(|cpu| takes(*cpu).is_some_and(|most| most > SECOND / 20 * 19));
    let list: Vec<String> = cpus.iter().map(u32::to_string).collect();
    (!list.is_empty()).then(|| {
        format!(
            "Real-time threads may take more than 950 ms of a second on processor {}. If ordinary threads \
             are ready there, the kernel gives them 50 ms of that (the fair server since Linux 6.12; before, \
             real-time throttling), which the bounds do not contain.",
            list.join(", ")
        )
    })
}

/// Threads of the kernel's stop class beside reservations.
fn above_all(system: &System) -> Option<String> {
    let is_stop = |task: &&Task| {
        let number = task.name.strip_prefix("migration/");
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let stops = system.tasks.iter().filter(is_stop);
    let beside = |stop: &&Task| {
        let is_reserved = |task: &Task| matches!(task.scheduling, Scheduling::Deadline(_));
        let meets = |task: &Task| stop.processors.iter().any(|cpu| task.processors.contains(cpu));
        system.tasks.iter().any(|task| is_reserved(task) && meets(task))
    };
    let names: Vec<&str> = stops.filter(beside).map(|task| task.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "The kernel runs {} before SCHED_DEADLINE, whatever its priority says: bounds of reservations do \
             not contain it (usually some microseconds).",
            names.join(", ")
        )
    })
}

/// Which of these threads are assumed never to run.
fn ignored(options: &Options, names: &[&str]) -> Option<String> {
    let ignored: Vec<&str> = names.iter().copied().filter(|name| options.ignores(name)).collect();
    let is_asked = !ignored.is_empty();
    is_asked.then(|| format!("Assumed never to run, as --ignore says: {}.", ignored.join(", ")))
}

/// No task has a bound: why.
fn without_bounds(system: &System, name: &str) -> Error {
    const NAMED: usize = 4;
    if system.tasks.is_empty() {
        return Error::target(format!("{name} has no real-time thread"))
            .advise("only SCHED_FIFO, SCHED_RR and SCHED_DEADLINE have bounds");
    }
    let mut reasons: Vec<String> = system.tasks.iter().map(reason).collect();
    reasons.dedup();
    let reasons = few(&reasons, NAMED, " and ");
    let error = Error::target(format!("no real-time thread of {name} has a bound: {reasons}"));
    let mut gaps = system.tasks.iter().filter_map(|task| task.gap.as_ref());
    if gaps.clone().any(|gap| gap.text() == UNKNOWN_PROCESSORS) {
        return error.advise(
            "`punctual contract MODEL -o FILE.toml` makes a contract; say there on which processors each \
             task runs (processors = \"0\"), and prove FILE.toml",
        );
    }
    match gaps.all(|gap| matches!(gap, Gap::Evidence(_))) {
        true => error.advise("observe them for longer"),
        false => error,
    }
}

/// A task, and what is not known of it.
fn reason(task: &Task) -> String {
    format!("{} ({})", task.name, task.gap.as_ref().map_or("", Gap::text))
}

/// What is not known of tasks, and what that means for others.
fn gaps(system: &System) -> Vec<String> {
    let list = |is_one: &dyn Fn(&Gap) -> bool| {
        let mut all: Vec<String> =
            system.tasks.iter().filter(|task| task.gap.as_ref().is_some_and(is_one)).map(reason).collect();
        all.dedup();
        all.join(", ")
    };
    let few = list(&|gap| matches!(gap, Gap::Evidence(_)));
    let unbounded = list(&|gap| matches!(gap, Gap::Priority(_) | Gap::Demand(_)));
    let mut remarks = Vec::new();
    if !few.is_empty() {
        remarks.push(format!(
            "Too little was observed for a verdict on {few}. The others are delayed by what was observed: \
             these threads are assumed to have no more jobs than that in any time as long as their \
             observation."
        ));
    }
    if !unbounded.is_empty() {
        remarks.push(format!(
            "Not proven, and neither is any task that may be delayed by it: {unbounded}. If it never runs \
             beside the others, --ignore NAME says so."
        ));
    }
    remarks
}

/// Where threads and kernel were observed, once if that is the same place.
fn places(threads: Option<model::Platform>, latencies: Option<model::Platform>) -> Vec<model::Platform> {
    let mut places: Vec<_> = threads.into_iter().chain(latencies).collect();
    places.dedup();
    places
}

/// Says that latencies are of another platform than the threads.
fn elsewhere(threads: &model::Platform, latencies: &model::Platform) -> Option<String> {
    let difference = latencies.differs_from(threads)?;
    Some(format!(
        "What the kernel takes was measured elsewhere than where the threads were observed, where it may \
         take longer: {difference}."
    ))
}

fn platforms(model: &TimingModel) -> (Vec<Platform>, Vec<String>) {
    let Some(latency) = &model.latency else {
        let remark = "The kernel is assumed to take no time: no section `latency` is given \
                      (`punctual latency -o FILE`, `--platform FILE`).";
        return (Vec::new(), vec![remark.into()]);
    };
    let known: Vec<Platform> =
        latency.processors.iter().filter_map(|cpu| Platform::observed(cpu, latency.horizon_ns)).collect();
    let mut remarks = Vec::new();
    if known.len() < latency.processors.len() {
        remarks.push(
            "The kernel is assumed to take no time on processors without a latency bound: their kernel lacks \
             the tracepoints."
                .into(),
        );
    }
    if known.iter().any(|it| it.at_least) {
        remarks.push("What the kernel takes may be longer: events were missed when it was observed.".into());
    }
    (known, remarks)
}

/// Of each real-time thread, all phases with jobs: each has a policy, priority and processors of its own, and
/// may come again. Of one without any, the last.
fn chosen(observed: &threads::Threads) -> Vec<&threads::Task> {
    let ids = ThreadIds::new(&observed.tasks);
    let mut chosen: Vec<&threads::Task> = Vec::new();
    for task in observed.tasks.iter().filter(|task| task.policy.is_real_time()) {
        match chosen.iter_mut().rev().find(|it| ids.of(it) == ids.of(task)) {
            Some(other) if jobs(other) == 0 => *other = task,
            Some(_) if jobs(task) == 0 => {}
            _ => chosen.push(task),
        }
    }
    chosen
}

/// Threads that are several tasks here.
fn several(chosen: &[&threads::Task], observed: &threads::Threads) -> Option<String> {
    let ids = ThreadIds::new(&observed.tasks);
    let phases = |task| chosen.iter().filter(|it| ids.of(it) == ids.of(task)).count();
    let mut names: Vec<String> = chosen
        .iter()
        .filter(|task| phases(task) > 1)
        .map(|task| format!("{} ({})", task.name, task.tid))
        .collect();
    names.dedup();
    (!names.is_empty()).then(|| {
        format!(
            "These threads changed their policy, priority or processors, and may do so again, so each is \
             several tasks: {}.",
            names.join(", ")
        )
    })
}

fn primary(task: &threads::Task) -> Option<&Stream> {
    task.streams.get(task.primary?)
}

fn jobs(task: &threads::Task) -> u64 {
    primary(task).map_or(0, |stream| stream.jobs)
}

fn check_patterns(options: &Options, names: &[&str]) -> Result<()> {
    let deadlines = options.deadlines.iter().map(|(threads, _)| threads);
    let changes = options.changes.iter().map(|change| &change.thread);
    let mut all = deadlines.chain(changes).chain([&options.threads]).chain(&options.ignored);
    match all.find_map(|threads| threads.unmatched(names.iter().copied())) {
        Some(pattern) => Err(Error::target(format!("no real-time thread of the model matches '{pattern}'"))),
        None => Ok(()),
    }
}

fn apply(change: &Change, system: &mut System) {
    for task in system.tasks.iter_mut().filter(|task| change.thread.matches(&task.name)) {
        match change.what {
            Changed::Wcet => *task = task.with_cost_scaled(change.parts, Percent::WHOLE),
            Changed::Period => *task = task.with_distances_scaled(change.parts, Percent::WHOLE),
        }
    }
}

/// What the observation missed.
fn losses(model: &TimingModel) -> Option<String> {
    let losses = model.losses();
    (!losses.is_empty()).then(|| {
        let list: Vec<String> = losses
            .iter()
            .map(|(_, loss)| format!("{} {}", loss.count, loss.counter.replace('_', " ")))
            .collect();
        format!("The observation missed something that may change the bounds: {}.", list.join(", "))
    })
}
