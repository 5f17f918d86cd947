//! What an imported trace has, what it lacks, and what that costs.

use std::fmt;

/// What events are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Use {
    /// How long threads ran.
    ExecutionTimes,
    /// When they were made ready.
    Releases,
    /// When they were due to be made ready.
    Arrivals,
    /// Where jobs end, and what threads wait for.
    Jobs,
    /// Policies and priorities.
    Priorities,
    /// Which threads there are: their names, processes, beginnings and ends.
    Threads,
    /// Which callbacks of ROS 2 ran when.
    Callbacks,
    /// Which message went from whom to whom.
    Messages,
    /// Nodes, topics, publishers and subscriptions.
    Graph,
}

impl Use {
    /// Its name in tables and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Use::ExecutionTimes => "execution times",
            Use::Releases => "releases",
            Use::Arrivals => "arrivals",
            Use::Jobs => "jobs",
            Use::Priorities => "priorities",
            Use::Threads => "threads",
            Use::Callbacks => "callbacks",
            Use::Messages => "messages",
            Use::Graph => "graph",
        }
    }
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Events of one kind, or of all system calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Events {
    /// As the tracer names it; `sys_enter_*` of all calls.
    pub name: String,
    /// How many there were.
    pub count: u64,
    /// What they were read for; `None` if they were left out.
    pub used_for: Option<Use>,
}

/// Something that a trace does not tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// What it makes less precise.
    pub of: Use,
    /// Events, or a fact that no event of such a trace has.
    pub what: &'static str,
    /// What that costs.
    pub cost: &'static str,
    /// Whether the tracer could have recorded it.
    pub is_recordable: bool,
}

impl Lack {
    /// Events that were not recorded.
    pub const fn events(of: Use, what: &'static str, cost: &'static str) -> Lack {
        Lack { of, what, cost, is_recordable: true }
    }

    /// A fact that traces of this tracer never have.
    pub const fn fact(of: Use, what: &'static str, cost: &'static str) -> Lack {
        Lack { of, what, cost, is_recordable: false }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the trace lacks {}: {}", self.what, self.cost)
    }
}

/// What a trace had, and what it lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Most frequent first.
    pub events: Vec<Events>,
    /// Events of more kinds than are listed.
    pub others: u64,
    /// By what it makes less precise.
    pub lacks: Vec<Lack>,
    /// The command that records all that is read.
    pub command: &'static str,
}

impl Account {
    /// What could have been recorded.
    pub fn recordable(&self) -> impl Iterator<Item = &Lack> {
        self.lacks.iter().filter(|lack| lack.is_recordable)
    }
}
