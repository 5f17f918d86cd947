//! Checks models of live threads with `model`'s independent checkers.
//!
//! Jobs are assembled from the kernel side's records in the plainest way, and every model must allow them.

use crate::run::workload;
use crate::{Outcome, Result, Test, ensure, fail};
use punctual_extract::{Extractor, Options as ExtractOptions};
use punctual_model::{
    Disturbance, Duration, Job, RecordedJob, Release, Segment, Separator, Stream, Task, Window, check_stream,
};
use punctual_observe::{Attach, Observer, Options, Output, Switches, Target};
use punctual_trace::{Activation, Record};

pub const ALL: &[(&str, Test)] = &[
    ("conservative::demo", demo),
    ("conservative::back_to_back", back_to_back),
    ("conservative::changing_task", changing_task),
    ("conservative::windows", windows),
];

fn demo() -> Result<Outcome> {
    check(&["demo", "--for", "4"], 4_000)
}

fn back_to_back() -> Result<Outcome> {
    check(&["drivers", "run", "read_back_to_back", "--jobs", "300"], 390)
}

fn changing_task() -> Result<Outcome> {
    check(&["transitions", "policy", "--jobs", "100"], 290)
}

/// At this rate, a virtual machine misses some wake-ups.
fn windows() -> Result<Outcome> {
    check(&["periodic", "--for", "3"], 10_000)
}

fn check(command: &[&str], at_least: usize) -> Result<Outcome> {
    let mut words = vec![workload(command[0]).into()];
    words.extend(command[1..].iter().map(Into::into));
    let target = Target::Command(words);
    let options = Options {
        target,
        include_best_effort: false,
        switches: Switches::None,
        attach: match crate::run::attach().as_deref() {
            Some("fentry") => Attach::Fentry,
            Some("tracepoint") => Attach::Tracepoint,
            _ => Attach::Auto,
        },
        buffer_bytes: 16 << 20,
        command_output: Output::StandardError,
    };
    let mut records = Vec::new();
    let mut extractor = Extractor::new(ExtractOptions::default());
    let mut observer = Observer::start(&options)?;
    let mut keep = |record: &Record| {
        extractor.record(record);
        records.push(record.clone());
    };
    while !observer.target_ended() {
        observer.poll(std::time::Duration::from_millis(100), &mut keep)?;
    }
    let summary = observer.finish(&mut keep)?;
    let tasks = extractor.finish(summary.until);
    ensure!(summary.statistics.lost == 0, "{} records were lost", summary.statistics.lost);

    let mut checked = 0;
    for task in &tasks {
        let own = records_of(task, &records);
        for stream in &task.streams {
            let jobs = check_one(task, stream, &own)?;
            // How often a thread sleeps is up to the machine, but not how often it calls.
            checked += if stream.separator == Separator::SUSPENSION { 0 } else { jobs };
        }
    }
    ensure!(checked >= at_least, "only {checked} jobs were checked, expected {at_least}");
    Ok(Outcome::Completed)
}

/// The activations of one task: those of its thread between its own task record and the next.
fn records_of(task: &Task, records: &[Record]) -> Vec<Activation> {
    let mut phase = None;
    let mut own = Vec::new();
    for record in records {
        match record {
            Record::Task(about) if about.tid == task.tid => {
                phase = Some(phase.map_or(0, |phase: u32| phase + 1))
            }
            Record::Activation(activation) if activation.tid == task.tid && phase == Some(task.phase) => {
                own.push(*activation)
            }
            _ => {}
        }
    }
    own
}

fn check_one(task: &Task, stream: &Stream, own: &[Activation]) -> Result<usize> {
    let (releases, jobs) = jobs(stream.separator, own);
    let counts = (releases.len() as u64, jobs.len() as u64);
    let name = format!("{} phase {}, {}", task.name, task.phase, stream.separator);
    ensure!(
        counts == (stream.releases, stream.jobs),
        "{name}: {counts:?} releases and jobs, the model counts {} and {}",
        stream.releases,
        stream.jobs
    );
    match check_stream(stream, &releases, &jobs).first() {
        None => Ok(jobs.len()),
        Some(violation) => fail(format!("{name}: what was seen breaks its own model: {violation}")),
    }
}

/// A job lasts from one separation at `separator` to the next.
fn jobs(separator: Separator, own: &[Activation]) -> (Vec<Release>, Vec<RecordedJob>) {
    let is_stop = |activation: &Activation| {
        let by_signal =
            activation.resumed.is_some_and(|resumed| resumed.disturbance == Some(Disturbance::Signal));
        activation.separator == Separator::SUSPENSION && by_signal
    };
    let separates = |activation: &Activation| match separator == Separator::SUSPENSION {
        true => activation.slept && !is_stop(activation),
        false => activation.separator.key() == separator.key(),
    };
    let places: Vec<usize> = (0..own.len()).filter(|place| separates(&own[*place])).collect();
    let mut releases: Vec<Release> = Vec::new();
    let mut jobs = Vec::new();
    for (index, place) in places.iter().enumerate() {
        let begin = &own[*place];
        let Some(resumed) = begin.resumed else { break };
        let release = Release { arrival: begin.arrival, window: released(begin, releases.last()) };
        releases.push(release);
        let Some(next) = places.get(index + 1) else { break };
        let end = &own[*next];
        let segments = segments(begin, &own[place + 1..*next], end);
        let start = resumed.start.max(release.window.earliest());
        let cost = end.cpu.saturating_sub(begin.cpu);
        let suspended = segments.iter().fold(Duration::ZERO, |sum, segment| sum + segment.suspended);
        jobs.push((Job { release, start, end: end.stop.max(start), cost, suspended }, segments));
    }
    (releases, jobs)
}

/// The event of a call that did not wait had already happened: at its known arrival, otherwise between the
/// previous release and the call.
fn released(activation: &Activation, before: Option<&Release>) -> Window {
    let floor = before.map(|release| release.window.earliest());
    let seen = activation.resumed.and_then(|resumed| resumed.release);
    let window = match (seen, activation.arrival) {
        (Some(window), _) => window,
        (None, Some(arrival)) => Window::at(arrival.min(activation.stop)),
        (None, None) => Window::new(floor.unwrap_or(activation.stop), activation.stop)
            .unwrap_or(Window::at(activation.stop)),
    };
    let earliest = floor.map_or(window.earliest(), |floor| window.earliest().max(floor));
    Window::new(earliest, window.latest().max(earliest)).unwrap_or(window)
}

/// A new segment begins with each sleep inside the job.
fn segments(begin: &Activation, inside: &[Activation], end: &Activation) -> Vec<Segment> {
    let mut segments = vec![Segment::default()];
    let mut cpu = begin.cpu;
    let mut sleep = |until: Duration, suspended: Duration| {
        if let Some(open) = segments.last_mut() {
            open.cost = until.saturating_sub(cpu);
        }
        cpu = until;
        segments.push(Segment { suspended, cost: Duration::ZERO });
    };
    let after = |activation: &Activation| {
        activation.resumed.map_or(Duration::ZERO, |resumed| resumed.suspended_after)
    };
    if after(begin) > Duration::ZERO {
        sleep(begin.cpu, after(begin));
    }
    for activation in inside {
        if let Some(window) = activation.resumed.and_then(|resumed| resumed.release) {
            sleep(activation.cpu, window.latest().since(activation.stop));
        }
        if after(activation) > Duration::ZERO {
            sleep(activation.cpu, after(activation));
        }
    }
    if let Some(last) = segments.last_mut() {
        last.cost = end.cpu.saturating_sub(cpu);
    }
    segments
}
