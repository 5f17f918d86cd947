//! Figures of scheduling latency: processors, variables, interrupts, bounds, and measured latencies.

use super::figure::Fit::{Drop, Fold, Keep};
use super::figure::{Bound, Entry, Group, Note, Section, Unit, Value, entry, since};
use crate::analysed::{
    Analysed, BoundRow, InterruptRow, MeasuredRow, VariableRow, has_latency, measured_name, reason_in_short,
    source_name, thread_name,
};
use punctual_latency::{Cause, InterruptModel, Outcome};
use punctual_model::Duration;
use punctual_model::latency::RealTimeThread;

/// The processors.
#[derive(Clone, Copy, Debug)]
pub struct Processors;

impl Section for Processors {
    type Row<'a> = &'a Analysed<'a>;
}

/// The variables of a processor.
#[derive(Clone, Copy, Debug)]
pub struct Variables;

impl Section for Variables {
    type Row<'a> = VariableRow<'a>;
}

/// The interrupts of a processor.
#[derive(Clone, Copy, Debug)]
pub struct Interrupts;

impl Section for Interrupts {
    type Row<'a> = InterruptRow<'a>;
}

/// The bounds of a processor.
#[derive(Clone, Copy, Debug)]
pub struct Bounds;

impl Section for Bounds {
    type Row<'a> = BoundRow<'a>;
}

/// Measured latencies of a processor.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredLatencies;

impl Section for MeasuredLatencies {
    type Row<'a> = MeasuredRow<'a>;
}

/// A bound, which may be too small where something was missed.
fn limit(outcome: Outcome, is_at_least: bool) -> Value {
    match outcome {
        Outcome::Converged(latency) if is_at_least => Value::OrMore(latency),
        Outcome::Converged(latency) => Value::Time(latency),
        Outcome::DoesNotConverge => Value::Word("does not converge"),
    }
}

/// The greatest of what was seen, which may be too small where something was not.
fn greatest(max: Duration, is_at_least: bool) -> Value {
    if is_at_least { Value::OrMore(max) } else { Value::Time(max) }
}

/// `part` as a share of `whole`.
fn share(part: Duration, whole: Duration) -> Option<Value> {
    share_of(part, whole).map(Value::Share)
}

/// `part` as a share of `whole`, in hundredths of a percent. Rounded up, so that what is above is shown so.
pub(crate) fn share_of(part: Duration, whole: Duration) -> Option<u64> {
    let hundredths = |whole| (u128::from(part.ns()) * 10_000).div_ceil(whole);
    let whole = Some(u128::from(whole.ns())).filter(|&whole| whole > 0)?;
    u64::try_from(hundredths(whole)).ok()
}

fn missed(is_at_least: bool) -> Option<Value> {
    is_at_least.then(|| Value::Notes(vec![Note::MayBeGreater]))
}

const fn of_processor(
    field: &'static str,
    title: &'static str,
    unit: Unit,
    meaning: &'static str,
    value: for<'a> fn(&&'a Analysed<'a>) -> Option<Value>,
) -> Entry<Processors> {
    entry::<Processors>(field, title, unit, Bound::Exact, meaning, value).page()
}

/// Every figure of a processor.
pub const PROCESSORS: &[Entry<Processors>] = &[
    of_processor("cpu", "CPU", Unit::Words, "The processor.", |row| {
        Some(Value::Id(row.processor.cpu.into()))
    })
    .table(Keep),
    of_processor(
        "interference_free_ns",
        "Without interrupts",
        Unit::Time,
        "L_IF = max(D_ST, D_POID) + D_PAIE + D_PSD: the bound of the latency without interrupts.",
        |row| {
            let bounds = row.bounds.as_ref().ok()?;
            Some(limit(bounds.under(InterruptModel::None).outcome, bounds.is_at_least()))
        },
    )
    .symbol("L_IF")
    .table(Drop(2))
    .compared(Group::SchedulingLatency),
    of_processor(
        "bound_ns",
        "Bound",
        Unit::Time,
        "The bound of the scheduling latency, with interrupts as in the worst observed window of its length \
         (sliding window).",
        |row| {
            let bounds = row.bounds.as_ref().ok()?;
            Some(limit(bounds.latency(), bounds.is_at_least()))
        },
    )
    .symbol("L")
    .table(Keep)
    .key()
    .compared(Group::SchedulingLatency),
    of_processor("largest_ns", "Largest part", Unit::Time, "The largest part of the bound.", |row| {
        Some(Value::Time(row.bounds.as_ref().ok()?.largest().duration))
    })
    .table(Keep),
    of_processor(
        "largest",
        "Caused by",
        Unit::Words,
        "The variable or the interrupt of the largest part, and the thread concerned.",
        |row| {
            let cause = row.bounds.as_ref().ok()?.largest().cause;
            let name = match cause {
                Cause::Variable(symbol, _) => symbol.to_owned(),
                Cause::Interrupt(interrupt) => source_name(&interrupt.source),
            };
            let culprit = cause.culprit().map(|culprit| format!(", {}", thread_name(&culprit.thread)));
            Some(Value::Text(name + &culprit.unwrap_or_default()))
        },
    )
    .table(Fold),
    of_processor(
        "measured_max_ns",
        "Measured",
        Unit::Time,
        "The greatest measured latency. Where there is a bound, of those that it is for: no thread that the \
         scheduler preferred ran meanwhile.",
        |row| Some(greatest(row.measured_max()?, row.is_measured_at_least())),
    )
    .table(Keep)
    .compared(Group::SchedulingLatency),
    of_processor(
        "measured_share",
        "of bound",
        Unit::Share,
        "The greatest measured latency as a share of the bound. More than 100 % is a defect of Punctual, or \
         the kernel broke a rule that the bound rests on.",
        |row| share(row.measured_max()?, row.bound()?),
    )
    .table(Keep),
    of_processor(
        "timer_lateness_ns",
        "Latest timer",
        Unit::Time,
        "How late the latest timer expired.",
        |row| {
            let lateness = &row.processor.timers.as_ref()?.lateness;
            Some(greatest(lateness.max_ns, lateness.at_least))
        },
    )
    .table(Drop(1))
    .compared(Group::SchedulingLatency),
    of_processor("observed_ns", "Observed", Unit::Time, "For how long it was observed.", |row| {
        Some(Value::Time(row.processor.observed_ns))
    }),
    of_processor("no_bound", "No bound", Unit::Words, "Why there is no bound.", |row| {
        row.bounds.as_ref().err().map(|why| Value::Word(reason_in_short(*why)))
    })
    .sparse()
    .table(Fold),
    of_processor("notes", "Notes", Unit::Notes, "What was missed.", |row| {
        Some(Value::Notes(row.losses())).filter(|notes| *notes != Value::Notes(vec![]))
    })
    .sparse()
    .table(Fold),
];

const fn of_variable(
    field: &'static str,
    title: &'static str,
    unit: Unit,
    meaning: &'static str,
    value: for<'a> fn(&VariableRow<'a>) -> Option<Value>,
) -> Entry<Variables> {
    entry::<Variables>(field, title, unit, Bound::Exact, meaning, value).page()
}

/// Every figure of a variable.
pub const VARIABLES: &[Entry<Variables>] = &[
    of_variable("variable", "Variable", Unit::Words, "The variable of the bound.", |row| {
        Some(Value::Word(row.symbol))
    })
    .table(Keep),
    of_variable(
        "max_ns",
        "Greatest",
        Unit::Time,
        "The greatest observed, without interrupts inside.",
        |row| Some(greatest(row.variable.max_ns, row.variable.at_least)),
    )
    .table(Keep),
    of_variable("thread", "Caused by", Unit::Words, "The thread that was running.", |row| {
        Some(Value::Text(thread_name(&row.variable.culprit.as_ref()?.thread)))
    })
    .table(Keep),
    of_variable(
        "at",
        "At",
        Unit::Instant,
        "When it ended, counted from the beginning of the observation.",
        |row| Some(since(row.begin, row.variable.culprit.as_ref()?.at_ns)),
    )
    .table(Drop(1)),
    of_variable("opened", "From", Unit::Words, "Where in the kernel it began.", |row| {
        Some(Value::Text(row.variable.culprit.as_ref()?.opened.clone()?))
    })
    .table(Fold),
    of_variable("closed", "To", Unit::Words, "Where in the kernel it ended.", |row| {
        Some(Value::Text(row.variable.culprit.as_ref()?.closed.clone()?))
    })
    .table(Fold),
    of_variable("meaning", "Meaning", Unit::Words, "What it stands for.", |row| Some(Value::Word(row.what))),
    of_variable("notes", "Notes", Unit::Notes, "What was missed.", |row| missed(row.variable.at_least))
        .sparse()
        .table(Fold),
];

const fn of_interrupt(
    field: &'static str,
    title: &'static str,
    unit: Unit,
    meaning: &'static str,
    value: for<'a> fn(&InterruptRow<'a>) -> Option<Value>,
) -> Entry<Interrupts> {
    entry::<Interrupts>(field, title, unit, Bound::Exact, meaning, value).page()
}

/// Every figure of a source of interrupts.
pub const INTERRUPTS: &[Entry<Interrupts>] = &[
    of_interrupt("interrupt", "Interrupt", Unit::Words, "Its kind, number and handler.", |row| {
        Some(Value::Text(source_name(&row.interrupt.source)))
    })
    .table(Keep),
    of_interrupt("count", "Count", Unit::Count, "How many there were.", |row| {
        Some(Value::Count(row.interrupt.curves.count))
    })
    .table(Keep),
    of_interrupt(
        "wcet_ns",
        "Longest",
        Unit::Time,
        "The greatest execution time, without NMIs inside.",
        |row| Some(Value::Time(row.interrupt.curves.wcet())),
    )
    .symbol("WCET(1)")
    .table(Keep),
    of_interrupt(
        "min_separation_ns",
        "Least separation",
        Unit::Time,
        "The least time from one entry to the next.",
        |row| Some(Value::Time(row.interrupt.curves.min_separation_ns?)),
    )
    .symbol("T")
    .table(Drop(1)),
    of_interrupt("per_ms", "In 1 ms", Unit::Count, "The most in any window of a millisecond.", |row| {
        Some(Value::Count(row.interrupt.curves.arrivals(Duration::from_ms(1))))
    })
    .symbol("η⁺")
    .table(Drop(3)),
    of_interrupt(
        "interference_ns",
        "In the bound",
        Unit::Time,
        "How much of the bound it is: the most of its execution in any window of the bound's length.",
        |row| row.interference.map(Value::Time),
    )
    .symbol("I(L)")
    .table(Keep),
    of_interrupt(
        "longest_at",
        "Longest at",
        Unit::Instant,
        "When the longest ended, counted from the beginning of the observation.",
        |row| Some(since(row.begin, row.interrupt.longest_at_ns?)),
    )
    .table(Drop(2)),
    of_interrupt("notes", "Notes", Unit::Notes, "What was missed.", |row| missed(row.interrupt.at_least))
        .sparse()
        .table(Fold),
];

const fn of_bound(
    field: &'static str,
    title: &'static str,
    unit: Unit,
    meaning: &'static str,
    value: for<'a> fn(&BoundRow<'a>) -> Option<Value>,
) -> Entry<Bounds> {
    entry::<Bounds>(field, title, unit, Bound::Exact, meaning, value).page()
}

/// Every figure of a bound.
pub const BOUNDS: &[Entry<Bounds>] = &[
    of_bound("model", "Interrupts", Unit::Words, "How interrupts are taken to interfere.", |row| {
        Some(Value::Word(row.model.name()))
    })
    .table(Keep),
    of_bound("bound_ns", "Bound", Unit::Time, "The bound of the scheduling latency.", |row| {
        Some(limit(row.bounds.under(row.model).outcome, row.bounds.is_at_least()))
    })
    .symbol("L")
    .table(Keep),
    of_bound(
        "threads_ns",
        "= kernel",
        Unit::Time,
        "L_IF: the part of threads, which the kernel makes.",
        |row| {
            let converges = row.bounds.under(row.model).outcome != Outcome::DoesNotConverge;
            Some(Value::Time(row.bounds.interference_free())).filter(|_| converges)
        },
    )
    .symbol("L_IF")
    .table(Drop(2)),
    of_bound("interrupts_ns", "+ interrupts", Unit::Time, "The part of interrupts and NMIs.", |row| {
        let bound = row.bounds.under(row.model);
        let sum = bound.terms.iter().fold(Duration::ZERO, |sum, term| sum + term.interference);
        Some(Value::Time(sum)).filter(|_| bound.outcome != Outcome::DoesNotConverge)
    })
    .symbol("I(L)")
    .table(Drop(2)),
    of_bound(
        "windows",
        "Window lengths",
        Unit::Words,
        "The steps of the iteration: the interrupts in a window of one length give the next length.",
        |row| {
            let windows = &row.bounds.under(row.model).windows;
            let shown = |window: &Duration| window.to_string();
            Some(Value::Path(match windows.len() {
                0..=SHOWN => windows.iter().map(shown).collect(),
                _ => {
                    let last = windows.last().map(shown);
                    windows[..SHOWN - 1].iter().map(shown).chain(["…".to_owned()]).chain(last).collect()
                }
            }))
        },
    )
    .table(Fold),
];

/// Of a longer iteration, the middle is left out.
const SHOWN: usize = 5;

const fn of_measured(
    field: &'static str,
    title: &'static str,
    unit: Unit,
    meaning: &'static str,
    value: for<'a> fn(&MeasuredRow<'a>) -> Option<Value>,
) -> Entry<MeasuredLatencies> {
    entry::<MeasuredLatencies>(field, title, unit, Bound::Exact, meaning, value).page()
}

/// Every figure of measured latencies.
pub const MEASURED: &[Entry<MeasuredLatencies>] = &[
    of_measured("thread", "Thread", Unit::Words, "The thread that was woken.", |row| {
        Some(Value::Text(measured_name(row.measured, row.cpu)))
    })
    .table(Keep),
    of_measured("cpu", "CPU", Unit::Words, "The processor that it ran on.", |row| {
        Some(Value::Id(row.cpu.into()))
    })
    .table(Keep),
    of_measured("policy", "Policy", Unit::Ranked, "Its policy and priority.", |row| {
        let RealTimeThread { policy, priority, .. } = *row.measured.thread.as_ref()?;
        Some(Value::Policy(policy, priority, None))
    })
    .table(Drop(3)),
    of_measured("wakeups", "Wake-ups", Unit::Count, "Wake-ups of which the latency is known.", |row| {
        Some(Value::Count(row.measured.wakeups))
    })
    .table(Keep),
    of_measured("mean_ns", "Mean", Unit::Time, "The mean latency.", |row| {
        row.measured.mean().map(Value::Time)
    })
    .table(Drop(2)),
    of_measured("max_ns", "Greatest", Unit::Time, "The greatest latency.", |row| {
        has_latency(row.measured).then(|| greatest(row.measured.max_ns, row.at_least))
    })
    .table(Keep),
    of_measured(
        "interrupts_ns",
        "= interrupts",
        Unit::Time,
        "Interrupts and softirqs in the greatest.",
        |row| Some(Value::Time(row.measured.worst.first()?.split?.interrupts_ns)),
    )
    .table(Keep),
    of_measured(
        "preferred_ns",
        "+ threads",
        Unit::Time,
        "In the greatest, threads that the scheduler preferred.",
        |row| Some(Value::Time(row.measured.worst.first()?.split?.threads_ns)),
    )
    .table(Keep),
    of_measured(
        "sections_ns",
        "+ kernel",
        Unit::Time,
        "In the greatest, the kernel with preemption or interrupts disabled, and the scheduler; where the \
         kernel shows that.",
        |row| {
            let sections = row.measured.worst.first()?.split?.sections_ns;
            Some(Value::Time(sections)).filter(|_| row.has_sections)
        },
    )
    .table(Keep),
    of_measured(
        "rest_ns",
        "+ rest",
        Unit::Time,
        "In the greatest, all else. Where the kernel does not show what it takes itself, that is part of it.",
        |row| Some(Value::Time(row.measured.worst.first()?.split?.rest_ns)),
    )
    .table(Keep),
    of_measured("worst_at", "At", Unit::Instant, "When the thread of the greatest became ready.", |row| {
        Some(since(row.begin, row.measured.worst.first()?.at_ns))
    })
    .table(Drop(4)),
    of_measured(
        "bounded_max_ns",
        "Bounded",
        Unit::Time,
        "The greatest of those that the bound is for: no thread that the scheduler preferred ran meanwhile.",
        |row| row.measured.bounded_max_ns.filter(|_| row.bound.is_some()).map(Value::Time),
    )
    .table(Drop(1)),
    of_measured("bound_ns", "Bound", Unit::Time, "The bound of the processor.", |row| {
        row.bound.map(Value::Time)
    })
    .symbol("L")
    .table(Drop(1)),
    of_measured("bound_share", "of bound", Unit::Share, "The greatest as a share of the bound.", |row| {
        share(row.measured.bounded_max_ns?, row.bound?)
    })
    .table(Keep),
    of_measured(
        "from_due_max_ns",
        "From due",
        Unit::Time,
        "The greatest time from when the measuring thread was due until it ran in user space, as cyclictest \
         measures it. It begins before the wake-up, and ends after it, so it may be above the bound.",
        |row| row.measured.from_due_max_ns.map(Value::Time),
    )
    .sparse()
    .table(Keep),
    of_measured("notes", "Notes", Unit::Notes, "Wake-ups that were not seen.", |row| {
        let unseen = super::some(&[(row.measured.unmeasured, "not seen")]);
        Some(Value::Notes(unseen)).filter(|_| row.measured.unmeasured > 0)
    })
    .sparse()
    .table(Fold),
];
