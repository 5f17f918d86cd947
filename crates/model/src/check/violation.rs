//! The findings of the checkers: which model, which jobs, what was allowed and what was observed.

use crate::job::Segment;
use crate::time::Duration;
use std::fmt;

/// A violated statement of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The statement.
    pub model: Model,
    /// Index of the first job concerned, from 0.
    pub first: usize,
    /// Index of the last job concerned; the same if there is only one.
    pub last: usize,
    /// What the model allows.
    pub allowed: Bound,
    /// The worst observation.
    pub seen: Value,
}

/// A statement of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Releases are in the order of their jobs, which all arrival models assume.
    Order,
    /// Periodic: no release (and no known arrival, if measured on arrivals) before the model's arrival.
    PeriodicEarly,
    /// Periodic: no release (and no known arrival) more than the jitter after the model's arrival.
    PeriodicLate,
    /// Typical: no release before its arrival, except those left out.
    TypicalEarly,
    /// Typical: no release more than the jitter after its arrival, except those left out.
    TypicalLate,
    /// The releases that the typical model leaves out.
    LeftOut,
    /// The count of skipped activations.
    Skipped,
    /// The count of extra releases.
    Extra,
    /// The list of slips.
    Slips,
    /// Modes: every release is in the time of one.
    Modes,
    /// Modes: every release has an activation of a source.
    Sources,
    /// Sporadic: least separation of consecutive releases.
    Sporadic,
    /// δ⁻ of this many releases.
    DeltaMin(u64),
    /// δ⁺ of this many releases.
    DeltaMax(u64),
    /// η⁺ of an interval of this length.
    EtaMax(Duration),
    /// η⁻ of an interval of this length.
    EtaMin(Duration),
    /// WCET of this many consecutive jobs.
    Wcet(u64),
    /// Dynamic self-suspension.
    DynamicSuspension,
    /// Segmented self-suspension.
    SegmentedSuspension,
    /// Response time.
    Response,
    /// Lateness that this many in a thousand releases do not exceed.
    LatenessPercentile(u64),
    /// Processor time that this many in a thousand jobs do not exceed.
    CostPercentile(u64),
    /// Response time that this many in a thousand jobs do not exceed.
    ResponsePercentile(u64),
    /// The count of jobs.
    Jobs,
    /// The count of releases.
    Releases,
    /// The count of releases that are windows.
    UncertainReleases,
    /// The count of late jobs.
    Late,
}

/// What is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// This or more.
    AtLeast(Value),
    /// This or less.
    AtMost(Value),
    /// Exactly this.
    Exactly(Value),
    /// At most, in every segment, one of this many vectors with as many segments.
    Vectors(usize),
}

/// An observation, or its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A span of time.
    Span(Duration),
    /// An instant on the observation's clock, in nanoseconds (a model's may lie before the clock's zero).
    At(i128),
    /// A number of jobs or releases.
    Count(u64),
    /// Segments of a job.
    Segments(Vec<Segment>),
    /// Nothing.
    Nothing,
}

impl Violation {
    pub(super) fn at_job(model: Model, job: usize, allowed: Bound, seen: Value) -> Violation {
        Violation { model, first: job, last: job, allowed, seen }
    }
}

/// `sporadic separation, jobs 3 to 4: observed 12 µs, allowed at least 15 µs`.
impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { model, first, last, allowed, seen } = self;
        if first == last {
            write!(f, "{model}, job {first}: ")?
        } else {
            write!(f, "{model}, jobs {first} to {last}: ")?
        }
        write!(f, "observed {seen}, allowed {allowed}")
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Model::Order => write!(f, "order of releases"),
            Model::PeriodicEarly => write!(f, "periodic arrival"),
            Model::PeriodicLate => write!(f, "periodic jitter"),
            Model::TypicalEarly => write!(f, "typical arrival"),
            Model::TypicalLate => write!(f, "typical jitter"),
            Model::LeftOut => write!(f, "releases left out"),
            Model::Skipped => write!(f, "count of skipped activations"),
            Model::Extra => write!(f, "count of extra releases"),
            Model::Slips => write!(f, "list of slips"),
            Model::Modes => write!(f, "time of the modes"),
            Model::Sources => write!(f, "activations of the sources"),
            Model::Sporadic => write!(f, "sporadic separation"),
            Model::DeltaMin(n) => write!(f, "δ⁻({n})"),
            Model::DeltaMax(n) => write!(f, "δ⁺({n})"),
            Model::EtaMax(span) => write!(f, "η⁺({span})"),
            Model::EtaMin(span) => write!(f, "η⁻({span})"),
            Model::Wcet(n) => write!(f, "WCET({n})"),
            Model::DynamicSuspension => write!(f, "dynamic suspension"),
            Model::SegmentedSuspension => write!(f, "segmented suspension"),
            Model::Response => write!(f, "response time"),
            Model::LatenessPercentile(permille) => write!(f, "lateness of {permille} in 1000"),
            Model::CostPercentile(permille) => write!(f, "cost of {permille} in 1000"),
            Model::ResponsePercentile(permille) => write!(f, "response time of {permille} in 1000"),
            Model::Jobs => write!(f, "count of jobs"),
            Model::Releases => write!(f, "count of releases"),
            Model::UncertainReleases => write!(f, "count of uncertain releases"),
            Model::Late => write!(f, "count of late jobs"),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::AtLeast(value) => write!(f, "at least {value}"),
            Bound::AtMost(value) => write!(f, "at most {value}"),
            Bound::Exactly(value) => write!(f, "{value}"),
            Bound::Vectors(0) => write!(f, "no job with this many segments"),
            Bound::Vectors(count) => write!(f, "at most one of {count} vectors with this many segments"),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Span(span) => write!(f, "{span}"),
            Value::At(ns) => write!(f, "{ns} ns"),
            Value::Count(count) => write!(f, "{count}"),
            Value::Nothing => write!(f, "nothing"),
            Value::Segments(segments) => {
                f.write_str("⟨")?;
                for (index, Segment { suspended, cost }) in segments.iter().enumerate() {
                    write!(f, "{}({suspended}, {cost})", if index > 0 { "; " } else { "" })?;
                }
                f.write_str("⟩")
            }
        }
    }
}
