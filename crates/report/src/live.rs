//! The live view: what it shows, as values, and how that is drawn on the cells of a terminal.
//!
//! Pure: [`draw`] fills a buffer. Whoever calls it reads keys and owns the terminal.

mod columns;
mod details;
mod draw;
mod help;

pub use columns::Widths;
pub use draw::{draw, lines, rows_on};
pub use help::KEYS;

use crate::shape::Shape;
use crate::{Page, derived, prose, why};
use punctual_model::{Causes, Duration, Policy, Task, TimingModel};
use std::sync::Arc;

/// A thread, as its line shows it.
#[derive(Clone, Debug)]
pub struct LiveTask {
    /// Its number.
    pub tid: u32,
    /// Its process.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Scheduling policy.
    pub policy: Policy,
    /// Real-time priority.
    pub priority: u32,
    /// Nice value, where the policy has one.
    pub nice: Option<i32>,
    /// Whether it has ended.
    pub has_ended: bool,
    /// Its task as extracted a moment ago, with its primary stream alone.
    pub model: Option<Arc<Task>>,
    /// Whether it has run for a while and not waited once: then it has no jobs.
    pub never_waits: bool,
    /// Jobs at its primary separator.
    pub jobs: u64,
    /// Processor time of the last seconds, in hundredths of a percent of a processor.
    pub utilization: Option<u64>,
    /// Response times of its jobs.
    pub response: Times,
    /// Their costs.
    pub cost: Times,
    /// When a job must have ended, after its arrival.
    pub deadline: Option<Duration>,
    /// Jobs that certainly ended later than that.
    pub late: u64,
    /// The proven bound of its response times.
    pub bound: Option<Duration>,
    /// The longest response time of each of the last seconds, the last one last; none where no job ended.
    pub responses: Vec<Option<Duration>>,
    /// The same of costs.
    pub costs: Vec<Option<Duration>>,
}

/// Times of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Of the last job.
    pub last: Option<Duration>,
    /// Of all jobs on average.
    pub mean: Option<Duration>,
    /// The greatest.
    pub max: Option<Duration>,
}

/// A job, as its line shows it.
#[derive(Clone, Copy, Debug)]
pub struct LiveJob {
    /// Which of its stream.
    pub number: u64,
    /// When it was released, since the observation began.
    pub release: Duration,
    /// How late.
    pub lateness: Option<Duration>,
    /// Its response time.
    pub response: Duration,
    /// Its processor time.
    pub cost: Duration,
    /// Its time asleep.
    pub suspended: Duration,
    /// Whether it ended after its deadline.
    pub is_late: bool,
}

/// Which times the lines of threads draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trend {
    /// Response times.
    #[default]
    Response,
    /// Costs.
    Cost,
}

/// How often each time came: the end of each bucket in nanoseconds, and how many, in order.
pub type Counts = Vec<(u64, u64)>;

/// Everything about one thread.
#[derive(Clone, Debug)]
pub struct Details {
    /// Its line.
    pub task: LiveTask,
    /// In words.
    pub description: String,
    /// Why its jobs were late, in words; `None` if that is not observed.
    pub causes: Option<String>,
    /// Its response times.
    pub response: Counts,
    /// The costs of its jobs.
    pub cost: Counts,
    /// How late its jobs were released.
    pub lateness: Counts,
    /// Its last jobs, the last one first.
    pub jobs: Vec<LiveJob>,
}

/// What the head says about the observation.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// What is watched.
    pub target: String,
    /// For how long so far.
    pub observed: Duration,
    /// Threads alive.
    pub threads: u64,
    /// Jobs seen.
    pub jobs: u64,
    /// Records lost.
    pub lost: u64,
    /// Threads that are not watched.
    pub untracked: u64,
    /// Whether what is shown stands still.
    pub is_frozen: bool,
    /// Whether the target has ended.
    pub has_ended: bool,
}

/// The threads, a line each.
#[derive(Clone, Debug)]
pub struct Tasks<'a> {
    /// Those on the screen.
    pub rows: Vec<&'a LiveTask>,
    /// Which of them is selected.
    pub selected: Option<usize>,
    /// By which of the figures they are sorted.
    pub sorted_by: usize,
    /// Whether the greatest comes first.
    pub is_descending: bool,
    /// Which times are drawn.
    pub trend: Trend,
    /// How many threads there are on all pages, those before the screen's, and those that the filter and the
    /// lack of jobs hide.
    pub total: usize,
    /// Threads above the first on the screen.
    pub above: usize,
    /// Threads that have too few jobs to be shown.
    pub without_jobs: usize,
    /// What names must contain; empty for all.
    pub filter: &'a str,
}

/// Pages about one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tab {
    /// How its times are distributed.
    #[default]
    Times,
    /// Its last jobs.
    Jobs,
    /// What is known about it, in words.
    Description,
    /// Why its jobs were late.
    Causes,
}

impl Tab {
    /// All, in order.
    pub const ALL: [Tab; 4] = [Tab::Times, Tab::Jobs, Tab::Description, Tab::Causes];

    const fn title(self) -> &'static str {
        match self {
            Tab::Times => "Times",
            Tab::Jobs => "Recent jobs",
            Tab::Description => "Description",
            Tab::Causes => "Late jobs",
        }
    }
}

/// What the middle of the screen shows.
#[derive(Clone, Debug)]
pub enum Body<'a> {
    /// All threads.
    Tasks(Tasks<'a>),
    /// One thread: a page of it, from this line on.
    Details(&'a Details, Tab, usize),
    /// What keys and figures mean, from this line on.
    Help(usize),
}

/// What the last line says.
#[derive(Clone, Copy, Debug)]
pub enum Foot<'a> {
    /// The most important keys.
    Keys,
    /// What happened.
    Message(&'a str),
    /// What has been typed of a filter.
    Filter(&'a str),
}

/// Everything on the screen.
#[derive(Clone, Debug)]
pub struct Screen<'a> {
    /// About the observation.
    pub head: &'a Head,
    /// What is shown of it.
    pub body: Body<'a>,
    /// The last line.
    pub foot: Foot<'a>,
    /// Whether there are colours.
    pub colour: bool,
}

/// The period of a task's primary stream, where the stream is shown as periodic.
pub fn period(task: &Task) -> Option<Duration> {
    match Shape::new(derived::primary(task)?) {
        Shape::Periodic(periodic) => Some(periodic.period_ns),
        _ => None,
    }
}

/// What `punctual why` prints of late jobs, in lines of this width.
pub fn causes(causes: &Causes, width: u16) -> String {
    why::text(causes, &Page { width: Some(width), ..Page::default() })
}

/// What `punctual show` prints about the threads of a model, in lines of this width.
pub fn description(model: &TimingModel, width: u16) -> String {
    prose::plain(model, width)
}
