//! A processor with its bounds: the rows of its figures, and what its parts are called.

use crate::figures::figure::{Note, some};
use crate::number::agreeing;
use crate::visible;
use punctual_latency::{Bounds, InterruptModel, NoBound, Outcome};
use punctual_model::latency::{
    Interrupt, InterruptKind, InterruptSource, Measured, NoVariables, Processor, SchedulingLatency, ThreadId,
    Variable,
};
use punctual_model::{Duration, Instant};

/// A processor with its bounds, or why it has none.
#[derive(Clone, Debug)]
pub struct Analysed<'a> {
    /// The section that it is of.
    pub section: &'a SchedulingLatency,
    /// The processor.
    pub processor: &'a Processor,
    /// Its bounds.
    pub bounds: Result<Bounds<'a>, NoBound>,
}

impl<'a> Analysed<'a> {
    /// All processors of a section.
    pub fn all(section: &'a SchedulingLatency) -> Vec<Analysed<'a>> {
        let analysed = |processor| Analysed { section, processor, bounds: Bounds::new(section, processor) };
        section.processors.iter().map(analysed).collect()
    }

    /// The bound, where there is one.
    pub fn bound(&self) -> Option<Duration> {
        match self.bounds.as_ref().ok()?.latency() {
            Outcome::Converged(latency) => Some(latency),
            Outcome::DoesNotConverge => None,
        }
    }

    /// The greatest measured latency; where there is a bound, of those that it is for.
    pub fn measured_max(&self) -> Option<Duration> {
        let measured = self.processor.measured.iter();
        match self.bounds {
            Ok(_) => measured.filter_map(|measured| measured.bounded_max_ns).max(),
            Err(_) => measured.filter(|measured| has_latency(measured)).map(|measured| measured.max_ns).max(),
        }
    }

    /// Whether a wake-up was not seen whose latency may have been greater.
    pub fn is_measured_at_least(&self) -> bool {
        self.section.damaged_recordings > 0 || self.processor.measured.iter().any(Measured::is_at_least)
    }

    /// What was missed on it.
    pub fn losses(&self) -> Vec<Note> {
        let cpu = self.processor;
        let count = |number, one, several| (number, agreeing(number, one, several));
        some(&[
            count(cpu.skipped_events, "event missed", "events missed"),
            count(cpu.lost_records, "record lost", "records lost"),
            count(cpu.went_offline, "time offline", "times offline"),
            count(cpu.negative_durations, "negative duration", "negative durations"),
        ])
    }

    /// The variables, each with its row.
    pub(crate) fn variables(&self) -> Vec<VariableRow<'a>> {
        let begin = self.section.from_ns;
        let Some(variables) = &self.processor.variables else { return Vec::new() };
        let rows = variables.each().into_iter().zip(VARIABLE_NAMES);
        rows.map(|((_, variable), (symbol, what))| VariableRow { symbol, what, variable, begin }).collect()
    }

    /// The interrupts, with how much of the bound each is.
    pub(crate) fn interrupts(&self) -> Vec<InterruptRow<'a>> {
        let begin = self.section.from_ns;
        let bound = self.bounds.as_ref().ok().map(|bounds| bounds.under(InterruptModel::SlidingWindow));
        let interference = |source: usize| {
            let bound = bound.filter(|bound| bound.outcome != Outcome::DoesNotConverge)?;
            let term = bound.terms.iter().find(|term| term.source == source);
            Some(term.map_or(Duration::ZERO, |term| term.interference))
        };
        let row = |(index, interrupt)| InterruptRow { interrupt, interference: interference(index), begin };
        self.processor.interrupts.iter().enumerate().map(row).collect()
    }

    /// The measured latencies.
    pub(crate) fn measured(&self) -> Vec<MeasuredRow<'a>> {
        let (begin, cpu, bound) = (self.section.from_ns, self.processor.cpu, self.bound());
        let has_sections = self.processor.variables.is_some();
        let is_damaged = self.section.damaged_recordings > 0;
        let row = |measured: &'a Measured| {
            let at_least = is_damaged || measured.is_at_least();
            MeasuredRow { measured, cpu, bound, begin, has_sections, at_least }
        };
        self.processor.measured.iter().map(row).collect()
    }
}

/// Whether anything is known of its latencies.
pub(crate) fn has_latency(measured: &Measured) -> bool {
    measured.wakeups > 0 || !measured.max_ns.is_zero()
}

/// Whose latencies they are; Punctual's measuring threads are called after their processor.
pub(crate) fn measured_name(measured: &Measured, cpu: u32) -> String {
    measured.thread.as_ref().map_or_else(|| format!("measuring/{cpu}"), |it| thread_name(&it.id))
}

/// Symbols of the variables, and what they stand for, in the order of
/// [`Variables::each`](punctual_model::latency::Variables::each).
const VARIABLE_NAMES: [(&str, &str); 4] = [
    ("D_POID", "preemption or interrupts disabled by a thread"),
    ("D_PSD", "preemption disabled to schedule"),
    ("D_ST", "interrupts disabled by the scheduler, until it returns"),
    ("D_PAIE", "all enabled, although the scheduler is to be called"),
];

/// A thread: `php (25708)`.
pub(crate) fn thread_name(thread: &ThreadId) -> String {
    format!("{} ({})", visible(&thread.name), thread.tid)
}

/// A source of interrupts: `irq 33 nvme0q1`.
pub(crate) fn source_name(source: &InterruptSource) -> String {
    let kind = match source.kind {
        InterruptKind::Nmi => "NMI",
        InterruptKind::Irq => "irq",
        InterruptKind::Vector => "vector",
        InterruptKind::Softirq => "softirq",
    };
    let number = source.number.map(|number| format!(" {number}")).unwrap_or_default();
    match source.name.is_empty() || source.name == kind {
        true => format!("{kind}{number}"),
        false => format!("{kind}{number} {}", visible(&source.name)),
    }
}

/// Why there is no bound, in a table.
pub(crate) fn reason_in_short(reason: NoBound) -> &'static str {
    match (reason.no_variables, reason.preemption) {
        (None, _) => "not a PREEMPT_RT kernel",
        (Some(NoVariables::Unknown), _) => "no variables",
        (Some(NoVariables::Architecture), _) => "not x86-64",
        (Some(NoVariables::KernelVersion), None) => "Linux before 6.12",
        (Some(NoVariables::KernelVersion), Some(_)) => "Linux before 6.12, not a PREEMPT_RT kernel",
        (Some(NoVariables::KernelOptions), None) => "no preemptirq tracepoints",
        (Some(NoVariables::KernelOptions), Some(_)) => "no preemptirq tracepoints, not a PREEMPT_RT kernel",
        (Some(NoVariables::Tracefs), _) => "tracefs not mounted",
        (Some(NoVariables::Privileges), _) => "tracefs not readable",
    }
}

/// One variable of a processor.
#[derive(Clone, Copy, Debug)]
pub struct VariableRow<'a> {
    /// Its symbol.
    pub symbol: &'static str,
    /// What it stands for, in a few words.
    pub what: &'static str,
    /// Its greatest value.
    pub variable: &'a Variable,
    /// When the observation began.
    pub begin: Instant,
}

/// One source of interrupts.
#[derive(Clone, Copy, Debug)]
pub struct InterruptRow<'a> {
    /// The source.
    pub interrupt: &'a Interrupt,
    /// How much of the bound it is; none without a bound.
    pub interference: Option<Duration>,
    /// When the observation began.
    pub begin: Instant,
}

/// The bound under one model of interrupts.
#[derive(Clone, Copy, Debug)]
pub struct BoundRow<'a> {
    /// All bounds of the processor.
    pub bounds: &'a punctual_latency::Bounds<'a>,
    /// The model.
    pub model: InterruptModel,
}

/// Latencies of one thread.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredRow<'a> {
    /// The latencies.
    pub measured: &'a Measured,
    /// The processor.
    pub cpu: u32,
    /// The bound, if there is one.
    pub bound: Option<Duration>,
    /// When the observation began.
    pub begin: Instant,
    /// Whether the kernel shows its own part of latencies.
    pub has_sections: bool,
    /// Whether one may have been greater that was not seen.
    pub at_least: bool,
}
