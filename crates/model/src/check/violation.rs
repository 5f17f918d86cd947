//! What a checker has to say: which model, which jobs, what was allowed and what was seen.

use crate::job::Segment;
use crate::time::Duration;
use std::fmt;

/// A statement of a model that a job stream breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which statement.
    pub model: Model,
    /// Index of the first job concerned, from 0.
    pub first: usize,
    /// Index of the last job concerned; the same where it is one.
    pub last: usize,
    /// What the model allows.
    pub allowed: Bound,
    /// What was seen, at worst.
    pub seen: Value,
}

/// A statement of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Releases come in the order of their jobs: what all arrival models rest on.
    Order,
    /// Periodic: no release (and no known arrival, where it is measured on arrivals) before the model's
    /// arrival.
    PeriodicEarly,
    /// Periodic: no release (and no known arrival) later than the jitter after the model's arrival.
    PeriodicLate,
    /// Typical: no release that is not left out before its arrival.
    TypicalEarly,
    /// Typical: no release that is not left out later than the jitter after its arrival.
    TypicalLate,
    /// The releases that the typical model leaves out.
    LeftOut,
    /// The count of activations that were skipped.
    Skipped,
    /// The count of releases beyond one per activation.
    Extra,
    /// Where activations were skipped and releases extra.
    Slips,
    /// Sporadic: consecutive releases are far enough apart.
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
    /// Lateness that so many in a thousand releases do not exceed.
    LatenessPercentile(u64),
    /// Processor time that so many in a thousand jobs do not exceed.
    CostPercentile(u64),
    /// Response time that so many in a thousand jobs do not exceed.
    ResponsePercentile(u64),
    /// The count of jobs.
    Jobs,
    /// The count of releases.
    Releases,
    /// The count of releases that are windows.
    UncertainReleases,
}

/// What is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// This or more.
    AtLeast(Value),
    /// This or less.
    AtMost(Value),
    /// Just this.
    Exactly(Value),
    /// What stays below one of so many vectors of the bag that have as many segments.
    Vectors(usize),
}

/// Something seen, or its limit.
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
    /// Nothing at all.
    Nothing,
}

impl Violation {
    pub(super) fn of_job(model: Model, job: usize, allowed: Bound, seen: Value) -> Violation {
        Violation { model, first: job, last: job, allowed, seen }
    }
}

/// `sporadic separation, jobs 3 to 4: 12 µs seen, at least 15 µs allowed`.
impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { model, first, last, allowed, seen } = self;
        if first == last {
            write!(f, "{model}, job {first}: ")?
        } else {
            write!(f, "{model}, jobs {first} to {last}: ")?
        }
        write!(f, "{seen} seen, {allowed} allowed")
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
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::AtLeast(value) => write!(f, "at least {value}"),
            Bound::AtMost(value) => write!(f, "at most {value}"),
            Bound::Exactly(value) => write!(f, "{value}"),
            Bound::Vectors(0) => write!(f, "no job of as many segments"),
            Bound::Vectors(count) => write!(f, "what one of {count} vectors of as many segments bounds"),
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
