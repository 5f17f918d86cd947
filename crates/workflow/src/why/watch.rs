//! Explains late jobs of live threads without recording them: the kernel keeps the last moments of all
//! threads, which are read when a job was late.

use super::{Choice, Jobs};
use crate::error::Result;
use crate::filter::RecordFilter;
use crate::live::{Agreement, Live};
use crate::monitor::Monitor;
use crate::watch::{self, Sink, Watch};
use crate::{platform, record};
use punctual_extract::Options as ExtractOptions;
use punctual_model::causes::{Causes, LateTask, Limit};
use punctual_model::{Duration, Task, TimingModel};
use punctual_observe::{Observer, Statistics, Switches};
use punctual_report::counted;
use punctual_trace::{Record, TaskRecord};
use std::sync::atomic::AtomicBool;

/// Whether these jobs can be found while they are watched. For others, all has to be recorded: where jobs
/// end, and which are looked at, is known only afterwards.
pub fn can_watch(choice: &Choice) -> bool {
    matches!(choice.jobs, Jobs::Late | Jobs::LongerThan(_))
}

/// Watches until the limit of time, the end of the target, or `stop`; explains jobs that [`can_watch`]. The
/// timing model, with the section `causes`.
pub fn watch(
    mut watch: Watch,
    choice: &Choice,
    stop: &AtomicBool,
    monitor: &dyn Monitor,
) -> Result<TimingModel> {
    watch.check()?;
    watch.observe.switches = Switches::Kept;
    let options = ExtractOptions { stream: choice.stream, merge_transitions: false };
    let (sink, watched) = watch::run(&watch, stop, monitor, |observer| {
        let mut live = Live::new(options, Box::new(Longer::than(&choice.jobs)));
        live.begin(observer.from(), true);
        live.keeping_causes(choice.worst);
        Ok(Looking { live, threads: choice.threads.records().with_others() })
    })?;
    if let Some(failure) = watched.failure {
        return Err(failure);
    }
    let Looking { mut live, .. } = sink;
    let (until, statistics) = (watched.summary.until, watched.summary.statistics);
    live.count(statistics.records, record::totals(&statistics));
    let mut model = live.model(platform::here(), until);
    choice.threads.select(&mut model, "the observation")?;
    match (model.tasks().is_empty(), choice.threads.is_empty()) {
        (true, true) => watch::hint_nothing_seen(&watch, monitor),
        (true, false) => monitor.hint(&format!("no thread that ran matches {}", choice.threads)),
        _ => {}
    }
    let causes = live.into_causes();
    model.causes = Some(completed(causes, model.tasks()));
    Ok(model)
}

/// Jobs are counted, and threads called, as in the models: while they were watched, it was not known at first
/// which are jobs, and programs name their threads.
fn completed(mut causes: Causes, tasks: &[Task]) -> Causes {
    let is_of = |task: &Task, late: &LateTask| {
        (task.tid, task.policy, task.priority) == (late.tid, late.policy, late.priority)
    };
    for late in &mut causes.tasks {
        let tasks: Vec<&Task> = tasks.iter().filter(|task| is_of(task, late)).collect();
        let jobs = tasks.iter().filter_map(|task| Some(task.streams.get(task.primary?)?.jobs));
        late.jobs = jobs.sum::<u64>().max(late.late);
        if let Some(task) = tasks.last() {
            late.task.clone_from(&task.name);
        }
    }
    causes
}

/// The limit of jobs without a contract.
struct Longer(Option<Duration>);

impl Longer {
    fn than(jobs: &Jobs) -> Longer {
        Longer(match jobs {
            Jobs::LongerThan(time) => {
                Some(Duration::from_ns(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
            }
            _ => None,
        })
    }
}

impl Agreement for Longer {
    fn deadline(&self, _: &TaskRecord, _: Option<&str>) -> Option<Duration> {
        self.0
    }

    fn kind(&self) -> Limit {
        Limit::Given
    }

    fn or_longest(&self) -> bool {
        true
    }
}

struct Looking {
    live: Live,
    threads: RecordFilter,
}

impl Sink for Looking {
    fn record(&mut self, record: &Record) -> Result<()> {
        self.threads.pass(record, |record| self.live.record(record));
        Ok(())
    }

    fn look_back(&mut self, observer: &Observer, has_ended: bool) {
        self.live.refresh(observer.now());
        self.live.explain(observer, has_ended);
    }

    fn tick(&mut self, _: &Statistics) -> Result<()> {
        Ok(())
    }

    fn progress(&self) -> String {
        let (jobs, late) = self.live.jobs();
        format!("{}, {late} late", counted(jobs, "job"))
    }

    fn patience(&self) -> std::time::Duration {
        watch::PROMPT
    }
}
