//! Cuts the time of a thread into parts.

use crate::event::{Interrupt, Urgency, Wait};
use crate::follow::follow;
use crate::history::History;
use crate::part::{Chain, Culprit, Explanation, Job, Kind, Part, Role};
use crate::processor::{Occupancy, Occupant, Service};
use crate::thread::{Queue, Since, State, Stretch};
use punctual_model::{Duration, Instant};

/// Until a thread that is being woken is in the queue of its processor.
const WAKING: Duration = Duration::from_us(50);

/// Steps from a thread to the one that it waits for.
const MOST_STEPS: u32 = 8;

/// The kernel's account of a thread and the times of events differ by at most this, and one part in a
/// hundred.
const TOLERANCE: Duration = Duration::from_us(50);

impl History {
    /// Cuts the time of a job into parts.
    pub fn explain(&self, job: Job) -> Explanation {
        let own_begin = self.previous_end(&job).max(job.begin).min(job.end);
        let backlog = Part {
            culprit: job.number.checked_sub(1).map(Culprit::Job),
            chain: Some(Box::new(Chain {
                thread: job.thread,
                role: Role::Previous,
                parts: self.cut(job.thread, job.begin, own_begin, MOST_STEPS - 1),
                inversion: false,
            })),
            ..part(Kind::Backlog, job.begin, own_begin)
        };
        let mut parts = Vec::new();
        push(&mut parts, backlog);
        let slept = self.stretch_at(job.thread, own_begin).is_none_or(|sleep| sleep.from <= job.begin);
        let mut stretches = self.of_thread(job.thread, own_begin, job.end);
        // After a loss, even the sleep before the job is not known to be its own.
        if !stretches.first().is_some_and(|first| self.has_loss(first.from, first.until)) {
            stretches = with_release(stretches, &job);
        }
        for mut part in self.cut_stretches(job.thread, stretches, MOST_STEPS) {
            // Asleep since before the job began: its own sleep between two jobs.
            if part.kind == Kind::Blocked && slept && part.from == own_begin {
                part = Part { kind: Kind::LateWakeup, wait: None, culprit: None, chain: None, ..part };
            }
            push(&mut parts, part);
        }
        if let Some(cost) = job.cost {
            parts = without_hidden(parts, cost);
        }
        Explanation { faults: self.faults(job.thread, own_begin, job.end), job, parts }
    }

    /// When the job before had ended. Where that is unknown, as its thread changed within it: when this job
    /// ran, if the thread had work since before this one arrived.
    fn previous_end(&self, job: &Job) -> Instant {
        job.previous_end.unwrap_or_else(|| {
            let before = self.of_thread(job.thread, job.begin, job.start);
            let had_work = before.first().is_some_and(|first| is_at_work(first.state));
            let never_slept = before.iter().all(|it| !matches!(it.state, State::Asleep { .. }));
            if had_work && never_slept { job.start } else { job.begin }
        })
    }

    /// Cuts the time of a thread into parts, which are disjoint and leave no gap. What it waits for is
    /// followed for as many steps.
    pub(crate) fn cut(&self, thread: u32, from: Instant, until: Instant, steps: u32) -> Vec<Part> {
        self.cut_stretches(thread, self.of_thread(thread, from, until), steps)
    }

    fn cut_stretches(&self, thread: u32, stretches: Vec<Stretch>, steps: u32) -> Vec<Part> {
        let mut parts = Vec::new();
        for stretch in stretches {
            let Stretch { from, until, .. } = stretch;
            match stretch.state {
                State::Running { cpu } => {
                    let own = vec![part(Kind::Own, from, until)];
                    parts.extend(self.without_steal(cpu, self.without_interrupts(cpu, own)));
                }
                State::Ready { since: Since::Throttled, .. } => {
                    parts.push(part(Kind::Throttled, from, until))
                }
                State::Ready { queue: Queue::Of(cpu), since } => {
                    let waited = self.cut_by_occupant(cpu, thread, &stretch, since);
                    let waited = self.without_interrupts(cpu, waited);
                    parts.extend(self.without_steal(cpu, waited));
                }
                State::Ready { queue: Queue::Left(cpu), since } => {
                    let mut waited = self.cut_by_occupant(cpu, thread, &stretch, since);
                    // Once its processor is free for it, it may wait for another one.
                    let was_moved = self.has_mover(&waited);
                    let may_be_elsewhere = |it: &Part| may_be_free(it.kind) || (was_moved && it.from > from);
                    let free = waited.iter().position(may_be_elsewhere).unwrap_or(waited.len());
                    parts.extend(waited.drain(..free));
                    let moved = waited.first().map_or(until, |part| part.from);
                    push(&mut parts, part(Kind::Unknown, moved, until));
                }
                State::Ready { queue: Queue::Moved { from, to }, since } => {
                    let waited = self.cut_by_both(from, to, thread, &stretch, since);
                    let waited = self.without_interrupts(to, waited);
                    parts.extend(self.without_steal(to, waited));
                }
                State::Ready { queue: Queue::Next, .. } | State::Unseen | State::Unknown | State::Ended => {
                    parts.push(part(Kind::Unknown, from, until));
                }
                State::Stopped => parts.push(part(Kind::Stopped, from, until)),
                State::Asleep { wait, waker } => {
                    let (culprit, chain) = follow(self, thread, &stretch, wait, waker, steps);
                    parts.push(Part { culprit, wait: Some(wait), chain, ..part(Kind::Blocked, from, until) });
                }
            }
        }
        parts
    }

    /// A ready thread's time, by who had its processor.
    fn cut_by_occupant(&self, cpu: u32, thread: u32, ready: &Stretch, since: Since) -> Vec<Part> {
        self.cut_behind(cpu, thread, ready, since, |occupied, until| self.hides_choices(occupied, until))
    }

    /// The same. Behind a less urgent thread, the reason is unknown where it is not known whether the
    /// scheduler kept the processor for that.
    fn cut_behind(
        &self,
        cpu: u32,
        thread: u32,
        ready: &Stretch,
        since: Since,
        is_unknown: impl Fn(&Occupancy, Instant) -> bool,
    ) -> Vec<Part> {
        let (mut parts, mut reached) = (Vec::new(), ready.from);
        let mut exhausted = false;
        let is_reservation = ready.urgency == Urgency::DEADLINE;
        for occupied in self.occupants(cpu, ready.from, ready.until) {
            let (from, until) = (occupied.from.max(reached), occupied.until.min(ready.until));
            push(&mut parts, part(Kind::Unknown, reached, from));
            let at_once = since == Since::Preempted && occupied.from == ready.from;
            let later = occupied.from > ready.from + WAKING;
            exhausted |= occupied.by == Occupant::Idle && is_exhausted(ready.urgency, since, at_once, later);
            let (kind, culprit) = match occupied.by {
                Occupant::Idle if exhausted => (Kind::Throttled, None),
                Occupant::Idle => (Kind::Dispatch, None),
                Occupant::Thread(other) if other != thread => {
                    let kind = waited_behind(ready.urgency, self.urgency(other, from));
                    let kind = match kind {
                        // The scheduler chose a less urgent thread when this one left, or later: a budget.
                        Kind::Dispatch if at_once || exhausted || later => Kind::Throttled,
                        // Or it had done so before, although another thread wanted the processor.
                        Kind::Dispatch if is_unknown(occupied, until) => Kind::Unknown,
                        Kind::Dispatch if occupied.favour.is_given => Kind::Throttled,
                        kind => kind,
                    };
                    exhausted |= at_once && kind == Kind::Throttled;
                    if kind == Kind::Throttled && later {
                        throttle_last(&mut parts, is_reservation);
                    }
                    // A reservation's own runtime was used up, whoever ran meanwhile.
                    let nobody = kind == Kind::Throttled && is_reservation;
                    let by = (kind != Kind::Unknown && !nobody).then_some(Culprit::Thread(other));
                    (kind, by)
                }
                Occupant::Thread(_) | Occupant::Unseen | Occupant::Unknown => (Kind::Unknown, None),
            };
            push(&mut parts, Part { culprit, ..part(kind, from, until) });
            reached = until;
        }
        push(&mut parts, part(Kind::Unknown, reached, ready.until));
        if self.hides_processors { without_waits_for_nobody(parts) } else { parts }
    }

    /// Whether events were lost that would tell if the scheduler favoured the occupant of a processor over
    /// more urgent threads: from choices before, and from the next one, at `until`.
    fn hides_choices(&self, occupied: &Occupancy, until: Instant) -> bool {
        (occupied.favour.is_given && occupied.favour.is_doubtful)
            || self.has_loss(occupied.favour.known_from, occupied.from)
            || self.has_loss(until, until + Duration::from_ns(1))
    }

    /// The same for one that was moved from one processor to another meanwhile. Where the first one was free
    /// for it, it waited for the second one already, if more urgent threads had that.
    fn cut_by_both(&self, first: u32, second: u32, thread: u32, ready: &Stretch, since: Since) -> Vec<Part> {
        let stayed = self.cut_by_occupant(first, thread, ready, since);
        let waits = self.cut_behind(first, thread, ready, since, |_, _| false);
        let was_moved = self.has_mover(&waits);
        // Reservations are throttled wherever they are.
        let can_be_moved = |part: &&Part| {
            let is_later = was_moved && part.from > ready.from;
            ready.urgency != Urgency::DEADLINE && (may_be_free(part.kind) || is_later)
        };
        let moved = waits.iter().filter(can_be_moved).find_map(|free| {
            let meanwhile = Stretch { from: free.from, until: free.from + free.time, ..*ready };
            let there = self.cut_by_occupant(second, thread, &meanwhile, Since::Woken);
            let waited = there.iter().find(|part| !is_free(part.kind))?;
            Some((waited.from, !is_free(free.kind) || waited.kind == Kind::Unknown))
        });
        let Some((moved, is_unknown)) = moved else { return stayed };
        let mut parts = Vec::new();
        for part in stayed.into_iter().filter(|part| part.from < moved) {
            push(&mut parts, Part { time: part.time.min(moved.since(part.from)), ..part });
        }
        if is_unknown {
            push(&mut parts, part(Kind::Unknown, moved, ready.until));
            return parts;
        }
        let after = Stretch { from: moved, ..*ready };
        for part in self.cut_by_occupant(second, thread, &after, Since::Woken) {
            push(&mut parts, part);
        }
        parts
    }

    /// Whether a thread left its processor to one of the kernel's that move others, even to where these have
    /// to wait.
    fn has_mover(&self, waited: &[Part]) -> bool {
        waited.first().is_some_and(|part| match part.culprit {
            Some(Culprit::Thread(thread)) => self.urgency(thread, part.from) == Urgency::MOST_REAL_TIME,
            _ => false,
        })
    }

    /// How urgent a thread is at a moment.
    pub(crate) fn urgency(&self, thread: u32, at: Instant) -> Urgency {
        self.stretch_at(thread, at).map_or(Urgency::UNKNOWN, |stretch| stretch.urgency)
    }

    /// Takes interrupts out of parts in which the processor was the thread's or nobody's.
    fn without_interrupts(&self, cpu: u32, parts: Vec<Part>) -> Vec<Part> {
        let mut cut = Vec::new();
        for whole in parts {
            if !matches!(whole.kind, Kind::Own | Kind::Dispatch) {
                cut.push(whole);
                continue;
            }
            let (mut reached, end) = (whole.from, whole.from + whole.time);
            for served in self.interrupts(cpu, whole.from, end) {
                // After a loss, they may overlap.
                let (from, until) = (served.from.max(reached).min(end), served.until.min(end));
                push(&mut cut, Part { from: reached, time: from.since(reached), ..whole.clone() });
                push(&mut cut, interrupted(served, from, until));
                reached = until.max(reached);
            }
            push(&mut cut, Part { from: reached, time: end.since(reached), ..whole });
        }
        cut
    }

    /// Takes what a hypervisor took out of parts in which the processor was the thread's or nobody's. Its
    /// amount is known, but not its moment: it is put at the end of the time in which it was.
    fn without_steal(&self, cpu: u32, mut parts: Vec<Part>) -> Vec<Part> {
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return parts };
        let (from, until) = (first.from, last.from + last.time);
        for stolen in self.stolen(cpu, from, until) {
            // Of what may have been stolen outside of these parts, as much as there is room for.
            let outside = from.since(stolen.from) + stolen.until.since(until);
            let mut left = stolen.time.saturating_sub(outside);
            let mut cut = Vec::new();
            for whole in parts.into_iter().rev() {
                let matching = matches!(whole.kind, Kind::Own | Kind::Dispatch) && whole.from < stolen.until;
                let taken = if matching { left.min(whole.time) } else { Duration::ZERO };
                left = left.saturating_sub(taken);
                let kept = whole.time.saturating_sub(taken);
                let steal_from = whole.from + kept;
                let ends = [part(Kind::Steal, steal_from, steal_from + taken), Part { time: kept, ..whole }];
                cut.extend(ends.into_iter().filter(|part| !part.time.is_zero()));
            }
            cut.reverse();
            parts = cut;
        }
        parts
    }
}

/// The first stretches of a job, by what is known of it without events. It ran at its start, so it was not
/// asleep then. Where its wake-up was not seen, its release is known by the kernel's own account of how long
/// threads wait for a processor.
fn with_release(mut stretches: Vec<Stretch>, job: &Job) -> Vec<Stretch> {
    let Some(first) = stretches.first().copied() else { return stretches };
    let sleeps_on = matches!(first.state, State::Asleep { .. }) && first.until > job.start;
    if first.state != State::Unknown && !sleeps_on {
        return stretches;
    }
    let within = |at: Instant| at.max(first.from).min(first.until);
    let Some(release) = job.release else {
        stretches[0].state = State::Unknown;
        return stretches;
    };
    let (earliest, latest) = (within(release.earliest()), within(release.latest()));
    let after = match stretches.get(1).map(|next| next.state) {
        Some(State::Running { cpu }) => State::Ready { queue: Queue::Of(cpu), since: Since::Woken },
        _ => State::Unknown,
    };
    let asleep = State::Asleep { wait: Wait::default(), waker: None };
    let known = [
        Stretch { until: earliest, state: asleep, ..first },
        Stretch { from: earliest, until: latest, state: State::Unknown, ..first },
        Stretch { from: latest, state: after, ..first },
    ];
    stretches.splice(..1, known.into_iter().filter(|stretch| stretch.from < stretch.until));
    stretches
}

/// A thread that ran for longer, as far as events show, than the kernel counted did not run all the time: a
/// switch away and one back were not seen. When that was is not known; it is put at the end of the longest
/// stretches. Interrupts do not count as running: some kernels leave them out of the thread's account.
fn without_hidden(parts: Vec<Part>, cost: Duration) -> Vec<Part> {
    let own = parts.iter().filter(|part| part.kind == Kind::Own);
    let ran = own.fold(Duration::ZERO, |sum, part| sum + part.time);
    let hidden = ran.saturating_sub(cost);
    if hidden <= TOLERANCE + Duration::from_ns(ran.ns() / 100) {
        return parts;
    }
    let mut own: Vec<usize> = (0..parts.len()).filter(|index| parts[*index].kind == Kind::Own).collect();
    own.sort_by_key(|index| std::cmp::Reverse(parts[*index].time));
    let (mut left, mut taken) = (hidden, vec![Duration::ZERO; parts.len()]);
    for index in own {
        taken[index] = left.min(parts[index].time);
        left = left.saturating_sub(taken[index]);
    }
    let mut cut = Vec::new();
    for (whole, taken) in parts.into_iter().zip(taken) {
        let kept = whole.time.saturating_sub(taken);
        let from = whole.from + kept;
        push(&mut cut, Part { time: kept, ..whole });
        push(&mut cut, part(Kind::Unknown, from, from + taken));
    }
    cut
}

/// Whether a thread that may run has no budget, since its processor began to idle. Real-time threads are
/// pulled to an idle processor at once; ordinary ones may wait for long elsewhere.
fn is_exhausted(urgency: Urgency, since: Since, at_once: bool, later: bool) -> bool {
    at_once || (since == Since::Preempted && later && urgency < Urgency::FAIR)
}

/// A thread without a budget at a choice of the scheduler had none when it was woken, either: no thread used
/// it up meanwhile. So it was not slow preemption that kept it waiting.
fn throttle_last(parts: &mut [Part], is_reservation: bool) {
    let last = parts.last_mut().filter(|part| part.kind == Kind::Dispatch && part.culprit.is_some());
    if let Some(last) = last {
        last.kind = Kind::Throttled;
        last.culprit = last.culprit.filter(|_| !is_reservation);
    }
}

/// Where processors are hidden, a ready thread that nobody kept from its processor may have had another one,
/// but for the time that a wake-up takes.
fn without_waits_for_nobody(parts: Vec<Part>) -> Vec<Part> {
    let time = parts.iter().fold(Duration::ZERO, |sum, part| sum + part.time);
    let mut cut = Vec::new();
    for whole in parts {
        let hidden = part(Kind::Unknown, whole.from, whole.from + whole.time);
        let is_kept = match whole.kind {
            Kind::Dispatch => time <= WAKING,
            kind => kind != Kind::Throttled,
        };
        push(&mut cut, if is_kept { whole } else { hidden });
    }
    cut
}

/// Whether a thread has work that it was not just woken for.
fn is_at_work(state: State) -> bool {
    match state {
        State::Running { .. } => true,
        State::Ready { since, .. } => since != Since::Woken,
        _ => false,
    }
}

/// Whether a ready thread waits although its processor has nobody more urgent.
fn is_free(kind: Kind) -> bool {
    matches!(kind, Kind::Dispatch | Kind::Throttled)
}

fn may_be_free(kind: Kind) -> bool {
    is_free(kind) || kind == Kind::Unknown
}

/// Why a ready thread waits behind another that had the processor before.
fn waited_behind(thread: Urgency, other: Urgency) -> Kind {
    if [thread, other].contains(&Urgency::UNKNOWN) {
        return Kind::Unknown;
    }
    match other.cmp(&thread) {
        std::cmp::Ordering::Less => Kind::Preempted,
        std::cmp::Ordering::Equal => Kind::Queued,
        std::cmp::Ordering::Greater => Kind::Dispatch,
    }
}

fn interrupted(served: &Service, from: Instant, until: Instant) -> Part {
    let kind = match served.what {
        Some(Interrupt::Soft(_)) => Kind::Softirq,
        Some(_) => Kind::Interrupt,
        None => Kind::Unknown,
    };
    Part { culprit: served.what.map(Culprit::Interrupt), ..part(kind, from, until) }
}

pub(crate) fn part(kind: Kind, from: Instant, until: Instant) -> Part {
    Part { kind, culprit: None, wait: None, from, time: until.since(from), chain: None }
}

/// Appends a part, to the one before where nothing but time tells them apart.
fn push(parts: &mut Vec<Part>, part: Part) {
    if part.time == Duration::ZERO {
        return;
    }
    match parts.last_mut() {
        Some(last)
            if (last.kind, last.culprit, last.wait) == (part.kind, part.culprit, part.wait)
                && last.chain.is_none()
                && part.chain.is_none() =>
        {
            last.time += part.time
        }
        _ => parts.push(part),
    }
}
