//! The bounds of a whole processor, what they are made of, and whether a measured latency exceeds them.

use crate::bound::{Bound, InterruptModel, Outcome, bound};
use crate::variables::Variables;
use punctual_model::latency::{
    Culprit, Interrupt, InterruptKind, Measured, NoVariables, Preemption, Processor, SchedulingLatency,
    Variable,
};
use punctual_model::{Duration, latency};
use std::fmt;

/// Why there is no bound for a processor: at least one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoBound {
    /// The variables were not observed, for this reason.
    pub no_variables: Option<NoVariables>,
    /// The rules that it rests on are those of PREEMPT_RT, and the kernel has this other preemption model.
    pub preemption: Option<Preemption>,
}

impl fmt::Display for NoBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(reason) = self.no_variables {
            f.write_str(no_variables(reason))?;
        }
        let Some(model) = self.preemption else { return Ok(()) };
        let and = if self.no_variables.is_some() { ", and " } else { "" };
        let built = match model {
            Preemption::Unknown => "how this one is built is not known".to_owned(),
            model => format!("this one is built with {}", model.name()),
        };
        write!(f, "{and}the rules that the bound rests on are those of PREEMPT_RT kernels, and {built}")
    }
}

fn no_variables(reason: NoVariables) -> &'static str {
    match reason {
        NoVariables::Unknown => {
            "the variables that it is made of were not observed, and the file does not say why (punctual \
             doctor says what this machine lacks)"
        }
        NoVariables::Architecture => "the variables that it is made of can be observed on x86-64 only",
        NoVariables::KernelVersion => {
            "the kernel lacks the tracepoints sched_entry_tp and sched_exit_tp, which Linux 6.12 and newer \
             have"
        }
        NoVariables::KernelOptions => {
            "the kernel lacks the tracepoints preemptirq:* (CONFIG_PREEMPTIRQ_TRACEPOINTS, which \
             CONFIG_IRQSOFF_TRACER and CONFIG_PREEMPT_TRACER switch on)"
        }
        NoVariables::Tracefs => {
            "tracefs, which shows what it is made of, was not mounted (mount -t tracefs tracefs \
             /sys/kernel/tracing)"
        }
        NoVariables::Privileges => {
            "tracefs, which shows what it is made of, could not be read with the privileges of the \
             measurement (root may; or mount it for a group with -o gid=GROUP,mode=750)"
        }
    }
}

/// The bounds of one processor, one for each model of interrupts.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds<'a> {
    /// The processor.
    pub processor: &'a Processor,
    /// In the order of [`InterruptModel::ALL`]. Sources of terms are indices into the processor's interrupts.
    pub all: [Bound; 6],
    /// The variables in them.
    pub variables: &'a latency::Variables,
}

/// A part of a bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part<'a> {
    /// What it is for.
    pub cause: Cause<'a>,
    /// How much of the bound it is.
    pub duration: Duration,
}

/// What a part of a bound is for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cause<'a> {
    /// A variable: its symbol, and its greatest value.
    Variable(&'static str, &'a Variable),
    /// A source of interrupts.
    Interrupt(&'a Interrupt),
}

impl<'a> Cause<'a> {
    /// Who caused the greatest value of a variable.
    pub fn culprit(&self) -> Option<&'a Culprit> {
        match self {
            Cause::Variable(_, variable) => variable.culprit.as_ref(),
            Cause::Interrupt(_) => None,
        }
    }
}

impl<'a> Bounds<'a> {
    /// The bounds of a processor of `section`, where there can be any.
    pub fn new(section: &SchedulingLatency, processor: &'a Processor) -> Result<Bounds<'a>, NoBound> {
        let variables = processor.variables.as_ref();
        let preemption = Some(section.preemption).filter(|&model| model != Preemption::Rt);
        let (Some(variables), None) = (variables, preemption) else {
            let reason = section.no_variables.unwrap_or(NoVariables::Unknown);
            return Err(NoBound { no_variables: variables.is_none().then_some(reason), preemption });
        };
        let all = InterruptModel::ALL.map(|model| {
            // Under PREEMPT_RT, softirqs run in threads.
            let indexed = processor.interrupts.iter().enumerate();
            let (indices, sources): (Vec<_>, Vec<_>) = indexed
                .filter(|(_, it)| it.source.kind != InterruptKind::Softirq)
                .map(|(index, it)| (index, (it.source.kind == InterruptKind::Nmi, &it.curves)))
                .unzip();
            let mut bound = bound(&Variables::from(variables), &sources, model, section.horizon_ns);
            bound.terms.iter_mut().for_each(|term| term.source = indices[term.source]);
            bound
        });
        Ok(Bounds { processor, all, variables })
    }

    /// The bound under one model of interrupts.
    pub fn under(&self, model: InterruptModel) -> &Bound {
        &self.all[model as usize]
    }

    /// L_IF: the bound without interrupts. (paper, Lemma 7)
    pub fn interference_free(&self) -> Duration {
        Variables::from(self.variables).interference_free()
    }

    /// The bound itself: with interrupts as observed in the worst window of its length.
    pub fn latency(&self) -> Outcome {
        self.under(InterruptModel::SlidingWindow).outcome
    }

    /// Whether something was missed that may have made the bound greater.
    pub fn is_at_least(&self) -> bool {
        let Processor { skipped_events, lost_records, went_offline, interrupts, .. } = self.processor;
        // Files of others may tell of losses without saying what they concern.
        [skipped_events, lost_records, went_offline].iter().any(|missed| **missed > 0)
            || self.variables.each().iter().any(|(_, variable)| variable.at_least)
            || interrupts.iter().any(|it| it.at_least)
    }

    /// What a bound is made of: the variables in it, then its interrupts. The durations sum up to the last
    /// window that was tried, or where it does not converge, to more than the horizon.
    pub fn parts(&self, model: InterruptModel) -> Vec<Part<'a>> {
        let latency::Variables { poid, psd, st, paie } = self.variables;
        let first = if poid.max_ns >= st.max_ns { ("D_POID", poid) } else { ("D_ST", st) };
        let variables = [first, ("D_PAIE", paie), ("D_PSD", psd)];
        let variables = variables.into_iter().map(|(symbol, variable)| Part {
            cause: Cause::Variable(symbol, variable),
            duration: variable.max_ns,
        });
        let interrupts = self.under(model).terms.iter().map(|term| Part {
            cause: Cause::Interrupt(&self.processor.interrupts[term.source]),
            duration: term.interference,
        });
        variables.chain(interrupts).collect()
    }

    /// The largest part of the bound; of equal ones the first.
    pub fn largest(&self) -> Part<'a> {
        let parts = self.parts(InterruptModel::SlidingWindow);
        let larger = |one: Part<'a>, other: Part<'a>| if other.duration > one.duration { other } else { one };
        parts.into_iter().reduce(larger).expect("the variables are always parts")
    }

    /// Measured latencies above the bound: a defect of the observation, or the kernel broke a rule.
    pub fn exceeded(&self) -> impl Iterator<Item = &'a Measured> + use<'a> {
        let limit = match self.latency() {
            Outcome::Converged(limit) => Some(limit),
            Outcome::DoesNotConverge => None,
        };
        let measured = self.processor.measured.iter();
        measured.filter(move |it| limit.is_some_and(|limit| it.bounded_max_ns > Some(limit)))
    }
}

/// The bounds of all processors that have any.
pub fn all_bounds(section: &SchedulingLatency) -> Vec<Bounds<'_>> {
    section.processors.iter().filter_map(|cpu| Bounds::new(section, cpu).ok()).collect()
}

/// Of these, the ones with the greatest bound: the first that does not converge, else the greatest.
pub fn worst<'a, 'b>(bounds: &'b [Bounds<'a>]) -> Option<&'b Bounds<'a>> {
    let rank = |bounds: &Bounds<'_>| match bounds.latency() {
        Outcome::Converged(latency) => latency,
        Outcome::DoesNotConverge => Duration::from_ns(u64::MAX),
    };
    bounds.iter().reduce(|one, other| if rank(other) > rank(one) { other } else { one })
}
