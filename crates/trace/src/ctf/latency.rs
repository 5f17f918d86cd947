//! Events of a measurement of scheduling latency: encoded into a packet, and decoded.

use super::fields::{Fields, TOO_EARLY};
use super::layout::*;
use super::packet::Packet;
use crate::latency::*;
use punctual_model::latency::{
    Culprit, InterruptKind, InterruptSource, Monitor, NoVariables, Preemption, Ran, RanKind, RealTimeThread,
    Split, ThreadId, Timers, Variable as Greatest, Wakeup,
};
use punctual_model::{Duration, Instant, Policy};

const PREEMPTIONS: [Preemption; 6] = [
    Preemption::None,
    Preemption::Voluntary,
    Preemption::Full,
    Preemption::Lazy,
    Preemption::Rt,
    Preemption::Unknown,
];
/// Whether there are variables, or why not.
const VARIABLES: [Option<NoVariables>; 7] = [
    Some(NoVariables::Unknown),
    None,
    Some(NoVariables::Architecture),
    Some(NoVariables::KernelVersion),
    Some(NoVariables::KernelOptions),
    Some(NoVariables::Tracefs),
    Some(NoVariables::Privileges),
];
const KINDS: [InterruptKind; 4] =
    [InterruptKind::Nmi, InterruptKind::Irq, InterruptKind::Vector, InterruptKind::Softirq];
const RAN: [RanKind; 8] = [
    RanKind::Thread,
    RanKind::Interrupt,
    RanKind::Softirq,
    RanKind::Nmi,
    RanKind::Poid,
    RanKind::Psd,
    RanKind::St,
    RanKind::Paie,
];

/// Most bytes of an event, as [`Packet::latency`] writes it.
pub fn most_bytes(record: &Latency) -> usize {
    let short = |text: &str| text.len().min(MAX_SHORT_TEXT) + 1;
    let shorts = |texts: &[String]| texts.iter().take(MOST_ENTRIES).map(|text| short(text)).sum::<usize>();
    let culprit = |culprit: &Option<Culprit>| {
        let Some(culprit) = culprit else { return 0 };
        let places = [&culprit.opened, &culprit.closed].map(|place| place.as_deref().map_or(0, short));
        short(&culprit.thread.name) + places[0] + places[1] + shorts(&culprit.stack)
    };
    LATENCY_MOST
        + match record {
            Latency::Source(source) => short(&source.source.name) + source.row.as_deref().map_or(0, short),
            Latency::Maximum(maximum) => culprit(&maximum.culprit),
            Latency::Thread(thread) => short(&thread.thread.id.name),
            Latency::Wakeup(wakeup) => {
                let ran = wakeup.wakeup.ran.iter().take(MOST_ENTRIES);
                let opened = |ran: &Ran| ran.opened.as_deref().map_or(0, short);
                ran.map(|ran| RAN_BYTES + short(&ran.name) + opened(ran)).sum()
            }
            Latency::Timers { timers, .. } => culprit(&timers.lateness.culprit),
            Latency::Counted { row, .. } => short(row),
            Latency::Monitor(monitor) => short(&monitor.name) + shorts(&monitor.rules),
            Latency::Witnessed(event) => event.place.as_deref().map_or(0, short),
            _ => 0,
        }
}

impl Packet {
    /// Adds an event; the packet has room.
    pub fn latency(&mut self, record: &Latency, at_ns: u64) {
        match record {
            Latency::Interrupt(interrupt) => self.interrupt(interrupt, at_ns),
            Latency::Scope(scope) => {
                let preemption = number(&PREEMPTIONS, scope.preemption);
                self.begin(SCOPE, at_ns)
                    .u8(preemption)
                    .u64(scope.horizon.ns())
                    .u8(number(&VARIABLES, scope.no_variables));
            }
            Latency::Processor(processor) => {
                let Processor { cpu, skipped_events, negative_durations, is_partial } = *processor;
                let event = self.begin(PROCESSOR, at_ns).u32(cpu).u64(skipped_events);
                event.u64(negative_durations).flag(is_partial);
            }
            Latency::Source(source) => {
                let InterruptSource { kind, number: own, name } = &source.source;
                let event = self.begin(SOURCE, at_ns).u32(source.number).u8(number(&KINDS, *kind));
                event.flag(own.is_some()).u32(own.unwrap_or(0)).short(name).place(&source.row);
            }
            Latency::Lost { cpu, count } => {
                self.begin(INTERRUPTS_LOST, at_ns).u32(*cpu).u64(*count);
            }
            Latency::Missed { cpu, source } => {
                self.begin(INTERRUPT_MISSED, at_ns).u32(*cpu).u32(*source);
            }
            Latency::Offline { cpu } => {
                self.begin(OFFLINE, at_ns).u32(*cpu);
            }
            Latency::Maximum(maximum) => {
                let event = self.begin(MAXIMUM, at_ns).u32(maximum.cpu).u8(maximum.variable as u8);
                event.u64(maximum.duration.ns()).culprit(&maximum.culprit);
            }
            Latency::Thread(thread) => self.thread(thread, at_ns),
            Latency::Wakeup(wakeup) => self.wakeup(wakeup, at_ns),
            Latency::FromDue { cpu, max } => {
                self.begin(FROM_DUE, at_ns).u32(*cpu).u64(max.ns());
            }
            Latency::Timers { cpu, timers } => {
                let event = self.begin(TIMERS, at_ns).u32(*cpu).u64(timers.expired);
                let event = event.u64(timers.total_ns.ns()).u64(timers.lateness.max_ns.ns());
                event.flag(timers.lateness.at_least).culprit(&timers.lateness.culprit);
            }
            Latency::Counted { cpu, row, count } => {
                self.begin(INTERRUPTS_COUNTED, at_ns).u32(*cpu).u64(*count).short(row);
            }
            Latency::Monitor(monitor) => {
                let event = self.begin(MONITOR, at_ns).u64(monitor.watched_ns.ns()).u64(monitor.violations);
                event.short(&monitor.name).shorts(&monitor.rules);
            }
            Latency::Witnessed(witnessed) => {
                let (kind, detail) = witnessed_number(witnessed.kind);
                let event =
                    self.begin(WITNESSED, at_ns).u32(witnessed.cpu).u64(witnessed.at.ns()).u32(witnessed.tid);
                event.u8(kind).u32(detail).place(&witnessed.place);
            }
        }
    }

    /// In the compact layout if it fits.
    #[inline]
    fn interrupt(&mut self, interrupt: &Interrupt, at_ns: u64) {
        let before = u32::try_from(at_ns.wrapping_sub(interrupt.exit.ns())).ok();
        let is_whole =
            interrupt.entry.ns().checked_add(interrupt.execution.ns()) == Some(interrupt.exit.ns());
        let execution = u32::try_from(interrupt.execution.ns()).ok().filter(|_| is_whole);
        match (before, execution, u16::try_from(interrupt.cpu)) {
            (Some(before), Some(execution), Ok(cpu)) => {
                let event = self.begin(INTERRUPT, at_ns).u16(cpu).u32(interrupt.source);
                event.u32(before).u32(execution);
            }
            _ => {
                let event = self.begin(INTERRUPT_WIDE, at_ns).u32(interrupt.cpu).u32(interrupt.source);
                event.u64(interrupt.entry.ns()).u64(interrupt.exit.ns()).u64(interrupt.execution.ns());
            }
        }
    }

    fn thread(&mut self, latencies: &Thread, at_ns: u64) {
        let RealTimeThread { id, policy, priority } = &latencies.thread;
        let event = self.begin(THREAD_LATENCIES, at_ns).u32(latencies.cpu).u32(id.tid).u32(id.pid);
        let event = event.u8(policy.number() as u8).u32(*priority).flag(latencies.is_measuring);
        let event = event
            .u64(latencies.wakeups)
            .u64(latencies.unmeasured)
            .u64(latencies.total.ns())
            .u64(latencies.max.ns());
        let event =
            event.flag(latencies.bounded_max.is_some()).u64(latencies.bounded_max.map_or(0, Duration::ns));
        event.short(&id.name);
    }

    /// In the layout with sections if there are any.
    fn wakeup(&mut self, record: &ThreadWakeup, at_ns: u64) {
        let Wakeup { at_ns: ready, latency_ns, split, ran } = &record.wakeup;
        let parts = split.unwrap_or_default();
        let has_sections = !parts.sections_ns.is_zero() || ran.iter().any(is_section);
        let kind = if has_sections { WAKEUP_SECTIONS } else { WAKEUP };
        let event =
            self.begin(kind, at_ns).u32(record.cpu).u32(record.tid).u32(record.policy).u32(record.priority);
        let event = event.u64(ready.ns()).u64(latency_ns.ns()).flag(split.is_some());
        let event = event.u64(parts.interrupts_ns.ns()).u64(parts.threads_ns.ns()).u64(parts.rest_ns.ns());
        if has_sections {
            event.u64(parts.sections_ns.ns());
        }
        let event = event.u8(ran.len().min(MOST_ENTRIES) as u8);
        for ran in ran.iter().take(MOST_ENTRIES) {
            let event = event.u8(number(&RAN, ran.kind)).u32(ran.number);
            event.u64(ran.from_ns.ns()).u64(ran.duration_ns.ns()).short(&ran.name);
            if has_sections {
                event.place(&ran.opened).u64(ran.before_ns.map_or(0, Duration::ns));
            }
        }
    }

    pub(super) fn begin(&mut self, event: u8, at_ns: u64) -> &mut Self {
        self.put(at_ns, event, &[]);
        self
    }

    pub(super) fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes.push(value);
        self
    }

    fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn flag(&mut self, value: bool) -> &mut Self {
        self.u8(value.into())
    }

    pub(super) fn short(&mut self, text: &str) -> &mut Self {
        self.text(text, MAX_SHORT_TEXT);
        self
    }

    /// An empty text means that there is none.
    fn place(&mut self, text: &Option<String>) -> &mut Self {
        self.short(text.as_deref().unwrap_or_default())
    }

    fn shorts(&mut self, texts: &[String]) -> &mut Self {
        self.u8(texts.len().min(MOST_ENTRIES) as u8);
        texts.iter().take(MOST_ENTRIES).fold(self, |event, text| event.short(text))
    }

    fn culprit(&mut self, culprit: &Option<Culprit>) -> &mut Self {
        let none = Culprit::default();
        let Culprit { at_ns, thread, opened, closed, stack } = culprit.as_ref().unwrap_or(&none);
        let event = self.flag(culprit.is_some()).u64(at_ns.ns()).u32(thread.tid).u32(thread.pid);
        event.short(&thread.name).place(opened).place(closed).shorts(stack)
    }
}

/// The record of an event of this kind.
#[inline(never)]
pub fn record(event: u8, now: u64, fields: &mut Fields<'_>) -> Result<Latency, &'static str> {
    Ok(match event {
        SCOPE => Latency::Scope(Scope {
            preemption: fields.one_of(&PREEMPTIONS, "a preemption model that is not known")?,
            horizon: fields.duration(),
            no_variables: fields.one_of(&VARIABLES, "a reason for no variables that is not known")?,
        }),
        PROCESSOR => Latency::Processor(Processor {
            cpu: fields.u32(),
            skipped_events: fields.u64(),
            negative_durations: fields.u64(),
            is_partial: fields.flag(),
        }),
        SOURCE => Latency::Source(Box::new(source(fields)?)),
        INTERRUPT | INTERRUPT_WIDE => Latency::Interrupt(interrupt(event, now, fields)?),
        INTERRUPTS_LOST => Latency::Lost { cpu: fields.u32(), count: fields.u64() },
        INTERRUPT_MISSED => Latency::Missed { cpu: fields.u32(), source: fields.u32() },
        OFFLINE => Latency::Offline { cpu: fields.u32() },
        MAXIMUM => Latency::Maximum(Box::new(Maximum {
            cpu: fields.u32(),
            variable: fields.one_of(&Variable::ALL, "a variable that is not known")?,
            duration: fields.duration(),
            culprit: culprit(fields)?,
        })),
        THREAD_LATENCIES => Latency::Thread(Box::new(thread(fields)?)),
        WAKEUP | WAKEUP_SECTIONS => Latency::Wakeup(Box::new(wakeup(event == WAKEUP_SECTIONS, fields)?)),
        FROM_DUE => Latency::FromDue { cpu: fields.u32(), max: fields.duration() },
        TIMERS => Latency::Timers { cpu: fields.u32(), timers: Box::new(timers(fields)?) },
        INTERRUPTS_COUNTED => {
            let (cpu, count) = (fields.u32(), fields.u64());
            Latency::Counted { cpu, row: fields.text()?, count }
        }
        MONITOR => {
            let (watched_ns, violations) = (fields.duration(), fields.u64());
            let (name, rules) = (fields.text()?, fields.texts()?);
            Latency::Monitor(Box::new(Monitor { name, rules, watched_ns, violations }))
        }
        WITNESSED => {
            let (cpu, at, tid) = (fields.u32(), fields.instant(), fields.u32());
            let kind = witnessed(fields.u8(), fields.u32())
                .ok_or("an event of the flight recorder that is not known")?;
            Latency::Witnessed(Box::new(Witnessed { cpu, at, tid, kind, place: fields.place()? }))
        }
        _ => return Err("an event that is not known"),
    })
}

fn source(fields: &mut Fields<'_>) -> Result<Source, &'static str> {
    let number = fields.u32();
    let kind = fields.one_of(&KINDS, "a kind of interrupt that is not known")?;
    let (is_numbered, own) = (fields.flag(), fields.u32());
    let source = InterruptSource { kind, number: is_numbered.then_some(own), name: fields.text()? };
    Ok(Source { number, source, row: fields.place()? })
}

fn interrupt(event: u8, now: u64, fields: &mut Fields<'_>) -> Result<Interrupt, &'static str> {
    if event == INTERRUPT_WIDE {
        return Ok(Interrupt {
            cpu: fields.u32(),
            source: fields.u32(),
            entry: fields.instant(),
            exit: fields.instant(),
            execution: fields.duration(),
        });
    }
    let (cpu, source) = (fields.u16().into(), fields.u32());
    let exit = now.checked_sub(fields.u32().into()).ok_or(TOO_EARLY)?;
    let execution = u64::from(fields.u32());
    let entry = exit.checked_sub(execution).ok_or(TOO_EARLY)?;
    let (entry, exit) = (Instant::from_ns(entry), Instant::from_ns(exit));
    Ok(Interrupt { cpu, source, entry, exit, execution: Duration::from_ns(execution) })
}

fn culprit(fields: &mut Fields<'_>) -> Result<Option<Culprit>, &'static str> {
    let is_known = fields.flag();
    let (at_ns, tid, pid) = (fields.instant(), fields.u32(), fields.u32());
    let thread = ThreadId { name: fields.text()?, pid, tid };
    let (opened, closed, stack) = (fields.place()?, fields.place()?, fields.texts()?);
    Ok(is_known.then_some(Culprit { at_ns, thread, opened, closed, stack }))
}

fn thread(fields: &mut Fields<'_>) -> Result<Thread, &'static str> {
    let (cpu, tid, pid) = (fields.u32(), fields.u32(), fields.u32());
    let policy = Policy::from_number(fields.u8().into()).ok_or("a scheduling policy that is not known")?;
    let (priority, is_measuring) = (fields.u32(), fields.flag());
    let (wakeups, unmeasured) = (fields.u64(), fields.u64());
    let (total, max) = (fields.duration(), fields.duration());
    let (is_bounded, bounded) = (fields.flag(), fields.duration());
    let id = ThreadId { name: fields.text()?, pid, tid };
    let thread = RealTimeThread { id, policy, priority };
    let bounded_max = is_bounded.then_some(bounded);
    Ok(Thread { cpu, thread, is_measuring, wakeups, unmeasured, total, max, bounded_max })
}

fn wakeup(has_sections: bool, fields: &mut Fields<'_>) -> Result<ThreadWakeup, &'static str> {
    let (cpu, tid, policy, priority) = (fields.u32(), fields.u32(), fields.u32(), fields.u32());
    let (at_ns, latency_ns) = (fields.instant(), fields.duration());
    let is_split = fields.flag();
    let [interrupts_ns, threads_ns, rest_ns] = [(); 3].map(|()| fields.duration());
    let sections_ns = if has_sections { fields.duration() } else { Duration::ZERO };
    let split = is_split.then_some(Split { interrupts_ns, threads_ns, sections_ns, rest_ns });
    let count = fields.u8();
    let ran = (0..count).map(|_| ran(has_sections, fields)).collect::<Result<_, _>>()?;
    Ok(ThreadWakeup { cpu, tid, policy, priority, wakeup: Wakeup { at_ns, latency_ns, split, ran } })
}

fn ran(has_sections: bool, fields: &mut Fields<'_>) -> Result<Ran, &'static str> {
    let kind = fields.one_of(&RAN, "a kind of work that is not known")?;
    let (number, from_ns, duration_ns) = (fields.u32(), fields.instant(), fields.duration());
    let ran = Ran { kind, name: fields.text()?, number, from_ns, duration_ns, ..Ran::default() };
    if !has_sections {
        return Ok(ran);
    }
    let opened = fields.place()?;
    let before_ns = Some(fields.duration()).filter(|before| !before.is_zero());
    Ok(Ran { opened, before_ns, ..ran })
}

/// Whether only the layout with sections holds it.
fn is_section(ran: &Ran) -> bool {
    ran.kind.variable().is_some() || ran.opened.is_some() || ran.before_ns.is_some()
}

fn timers(fields: &mut Fields<'_>) -> Result<Timers, &'static str> {
    let (expired, total_ns, max_ns) = (fields.u64(), fields.duration(), fields.duration());
    let at_least = fields.flag();
    Ok(Timers { expired, total_ns, lateness: Greatest { max_ns, at_least, culprit: culprit(fields)? } })
}

impl Fields<'_> {
    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    pub(super) fn flag(&mut self) -> bool {
        self.u8() != 0
    }

    pub(super) fn duration(&mut self) -> Duration {
        Duration::from_ns(self.u64())
    }

    pub(super) fn instant(&mut self) -> Instant {
        Instant::from_ns(self.u64())
    }

    fn one_of<T: Copy>(&mut self, all: &[T], unknown: &'static str) -> Result<T, &'static str> {
        all.get(usize::from(self.u8())).copied().ok_or(unknown)
    }

    fn place(&mut self) -> Result<Option<String>, &'static str> {
        Ok(Some(self.text()?).filter(|text| !text.is_empty()))
    }

    fn texts(&mut self) -> Result<Vec<String>, &'static str> {
        (0..self.u8()).map(|_| self.text()).collect()
    }
}

/// The place of a value in the list of all.
fn number<T: PartialEq>(all: &[T], value: T) -> u8 {
    all.iter().position(|one| *one == value).unwrap_or_default() as u8
}

const WITNESSED_KINDS: [WitnessedKind; 10] = [
    WitnessedKind::IrqsOff,
    WitnessedKind::IrqsOn,
    WitnessedKind::InterruptEntry,
    WitnessedKind::InterruptSource(0),
    WitnessedKind::InterruptExit,
    WitnessedKind::PreemptOff,
    WitnessedKind::PreemptOn,
    WitnessedKind::SchedulerEntry,
    WitnessedKind::SchedulerExit,
    WitnessedKind::Wakeup(0),
];

/// The number of a kind, and its detail.
fn witnessed_number(kind: WitnessedKind) -> (u8, u32) {
    let (kind, detail) = match kind {
        WitnessedKind::InterruptSource(source) => (WitnessedKind::InterruptSource(0), source),
        WitnessedKind::Wakeup(tid) => (WitnessedKind::Wakeup(0), tid),
        other => (other, 0),
    };
    (number(&WITNESSED_KINDS, kind), detail)
}

fn witnessed(kind: u8, detail: u32) -> Option<WitnessedKind> {
    Some(match *WITNESSED_KINDS.get(usize::from(kind))? {
        WitnessedKind::InterruptSource(_) => WitnessedKind::InterruptSource(detail),
        WitnessedKind::Wakeup(_) => WitnessedKind::Wakeup(detail),
        other => other,
    })
}
