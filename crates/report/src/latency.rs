//! Scheduling latency as text: the bound in one sentence, then each processor in tables.

mod json;
mod reliance;
mod threshold;

pub use crate::analysed::Analysed;
use crate::analysed::{measured_name, source_name, thread_name};
pub use json::json;
pub use reliance::unreliable;
pub(crate) use reliance::unreliable_on;
pub use threshold::{Reached, Threshold};

use crate::figures::{BOUNDS, BoundRow, INTERRUPTS, MEASURED, PROCESSORS, VARIABLES, share_of};
use crate::number::{about, agreeing, count, counted};
use crate::{Page, paragraph, table, visible};
use punctual_latency::{Bounds, Cause, InterruptModel, Outcome, Part};
use punctual_model::latency::{
    Culprit, InterruptKind, InterruptSource, Ran, RanKind, SchedulingLatency, Wakeup,
};
use punctual_model::{Duration, Instant, Section};

/// Everything that is known of scheduling latency: how it was observed, the headline, each processor.
pub fn latency(section: &SchedulingLatency, page: &Page) -> String {
    let processors = Analysed::all(section);
    let mut parts = vec![paragraph(&summary(section), page), paragraph(&headline(&processors), page)];
    if processors.len() > 1 {
        parts.push(table::of_figures(PROCESSORS, processors.iter()).text(page));
    }
    parts.extend(processors.iter().map(|processor| details(processor, page)));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// How it was observed, and what was missed.
pub(crate) fn summary(section: &SchedulingLatency) -> String {
    let span = section.processors.iter().map(|cpu| cpu.observed_ns).max().unwrap_or_default();
    let losses = section.losses();
    let lost = match losses.is_empty() {
        true => "nothing lost".to_owned(),
        false => {
            let list = losses.iter().map(|loss| {
                if loss.counter == "damaged_recordings" {
                    let recordings = counted(loss.count, "recording");
                    return format!("what came after {recordings} cut off or damaged");
                }
                let what = loss.counter.replace('_', " ").replace("wakeups", "wake-ups");
                format!("{} {what}", count(loss.count))
            });
            format!("LOST: {}", list.collect::<Vec<_>>().join(", "))
        }
    };
    let observed = format!(
        "Scheduling latency on Linux {} ({}), {} for {}; {lost}.",
        visible(&section.kernel),
        section.preemption.name(),
        counted(section.processors.len() as u64, "processor"),
        about(span),
    );
    match rules(section) {
        rules if rules.is_empty() => observed,
        rules => format!("{observed} {rules}"),
    }
}

/// Which of the rules were watched; nothing where there is no bound that could rest on them.
fn rules(section: &SchedulingLatency) -> String {
    let violations: u64 = section.monitors.iter().map(|it| it.violations).fold(0, u64::saturating_add);
    let watched = section.monitors.iter().filter(|it| !it.watched_ns.is_zero());
    let watched: Vec<String> = watched
        .map(|it| {
            let rules: Vec<String> = it.rules.iter().map(|rule| visible(rule)).collect();
            format!("{} ({}) for {}", rules.join(" "), visible(&it.name), about(it.watched_ns))
        })
        .collect();
    match (watched.is_empty(), violations) {
        (true, 0) if punctual_latency::all_bounds(section).is_empty() => String::new(),
        (true, 0) => "The kernel's own monitors of the rules were not on.".into(),
        (_, 0) => {
            format!(
                "Rules watched by the kernel, none violated: {}.{}",
                watched.join(", "),
                unwatched(section)
            )
        }
        (_, number) => format!(
            "The kernel's monitors found {number} {} OF THE RULES that the bound rests on: it does not hold. \
             Watched: {}.{}",
            agreeing(number, "VIOLATION", "VIOLATIONS"),
            watched.join(", "),
            unwatched(section)
        ),
    }
}

/// Which of the rules R1 to R14 no monitor watched, in a sentence of its own, and why the bound may rest on
/// them; empty if there are none.
fn unwatched(section: &SchedulingLatency) -> String {
    let rules = unwatched_rules(section);
    if rules.is_empty() {
        return String::new();
    }
    let (assumed, others): (Vec<u32>, Vec<u32>) = rules.iter().partition(|rule| matches!(rule, 1..=4 | 13));
    let mut text = format!(" Not watched: {}.", ranges(&rules));
    if !assumed.is_empty() {
        text += &format!(
            " No kernel has monitors of {}; the bound rests on them because the processor ensures them (R1, \
             R4), interrupts and NMIs never call the scheduler (R2, R3), and each call of it ends with the \
             thread of highest priority (R13).",
            ranges(&assumed)
        );
    }
    if !others.is_empty() {
        text += &format!(" No monitor was on for {}; not every kernel has one.", ranges(&others));
    }
    text
}

/// By number.
pub(crate) fn unwatched_rules(section: &SchedulingLatency) -> Vec<u32> {
    let watching = section.monitors.iter().filter(|it| !it.watched_ns.is_zero());
    let watched: Vec<&String> = watching.flat_map(|it| &it.rules).collect();
    (1..=14).filter(|number| !watched.iter().any(|rule| **rule == format!("R{number}"))).collect()
}

/// `R1 to R4, R13`, of ascending numbers.
fn ranges(rules: &[u32]) -> String {
    let runs = rules.chunk_by(|one, next| one + 1 == *next).flat_map(|run| match run {
        [first, _, .., last] => vec![format!("R{first} to R{last}")],
        _ => run.iter().map(|rule| format!("R{rule}")).collect(),
    });
    runs.collect::<Vec<_>>().join(", ")
}

/// The bound of the worst processor, what most of it is, who caused that, and what was measured.
pub fn headline(processors: &[Analysed<'_>]) -> String {
    let bounds: Vec<Bounds<'_>> = processors.iter().filter_map(|it| it.bounds.clone().ok()).collect();
    let Some(worst) = punctual_latency::worst(&bounds) else {
        let reason = processors.iter().find_map(|it| it.bounds.as_ref().err());
        return match reason {
            Some(reason) => format!("No bound: {reason}. {}", measured_headline(processors)),
            None => "No processor was observed.".into(),
        };
    };
    let (cpu, largest) = (worst.processor.cpu, worst.largest());
    let latency = match worst.latency() {
        Outcome::Converged(latency) => {
            let least = if worst.is_at_least() { "at least " } else { "" };
            let horizon = processors.first().map_or(latency, |it| it.section.horizon_ns);
            // Files of older versions have no longer windows.
            let is_pieced =
                worst.processor.interrupts.iter().any(|it| it.curves.long_execution_ns.is_empty());
            let windows = match latency > horizon && is_pieced {
                true => format!(" in windows of {horizon}"),
                false => String::new(),
            };
            format!("Bound: {least}{latency}, on CPU {cpu}, with interrupts as observed{windows}.")
        }
        Outcome::DoesNotConverge if worst.interference_free().ns() == u64::MAX => {
            format!("No bound: on CPU {cpu}, the variables add up to more than can be counted.")
        }
        Outcome::DoesNotConverge => {
            let last = worst.under(InterruptModel::SlidingWindow).windows.last().copied().unwrap_or_default();
            format!("No bound: on CPU {cpu}, interrupts leave no room for threads in windows up to {last}.")
        }
    };
    let doubts = unreliable(processors);
    let doubts = if doubts.is_empty() { doubts } else { doubts + " " };
    let missed = if worst.is_at_least() { " Something was missed that may have been longer." } else { "" };
    format!("{doubts}{latency} Largest part: {}.{missed} {}", part(&largest), measured_headline(processors))
}

/// A part of the bound, and who caused it.
fn part(part: &Part<'_>) -> String {
    match part.cause {
        Cause::Interrupt(interrupt) => format!("{} of {}", part.duration, source_name(&interrupt.source)),
        Cause::Variable(symbol, variable) => {
            let by = variable.culprit.as_ref().map(|culprit| {
                let place =
                    blamed(culprit).map(|place| format!(" in {}", visible(place))).unwrap_or_default();
                format!(", by {}{place}", thread_name(&culprit.thread))
            });
            format!("{symbol}, {}{}", part.duration, by.unwrap_or_default())
        }
    }
}

/// The place in the kernel that made a section long: where it ended, or the innermost frame of its stack, but
/// not a function whose purpose is to begin or end such sections.
fn blamed(culprit: &Culprit) -> Option<&String> {
    const HELPERS: [&str; 7] =
        ["preempt_count_", "preempt_schedule", "schedule", "__schedule", "_raw_", "trace_", "__trace_"];
    let is_helper = |place: &&String| HELPERS.iter().any(|helper| place.starts_with(helper));
    let mut places = culprit.closed.iter().chain(&culprit.stack);
    places.find(|place| !is_helper(place)).or(culprit.stack.first()).or(culprit.closed.as_ref())
}

/// The greatest measured latency, beside its bound; a latency above it loudly.
fn measured_headline(processors: &[Analysed<'_>]) -> String {
    let exceeded = exceeded(processors);
    if !exceeded.is_empty() {
        return exceeded;
    }
    let rank = |it: &&Analysed<'_>| it.processor.measured.iter().map(|measured| measured.max_ns).max();
    let Some(worst) = processors.iter().filter(|it| rank(it).is_some()).max_by_key(rank) else {
        return "No latency was measured.".into();
    };
    let (cpu, greatest) = (worst.processor.cpu, rank(&worst).unwrap_or_default());
    let unseen = unseen(processors);
    let is_whole = unseen.is_empty() && worst.section.damaged_recordings == 0;
    let limit = if is_whole { "at most" } else { "at least" };
    let measured = match (worst.measured_max(), worst.bound()) {
        (Some(measured), Some(bound)) => {
            let share = share_of(measured, bound).unwrap_or_default();
            let percent = format!("{}.{:02}", share / 100, share % 100);
            format!("Measured: {limit} {measured} on CPU {cpu}, {percent} % of its bound{unseen}.")
        }
        _ => format!("Measured: {limit} {greatest}, on CPU {cpu}{unseen}."),
    };
    measured + &from_due(processors) + &latest_timer(processors)
}

/// The greatest time from when a measuring thread was due until it ran; empty where that was not measured.
fn from_due(processors: &[Analysed<'_>]) -> String {
    let each = processors.iter().flat_map(|it| {
        it.processor.measured.iter().filter_map(move |measured| Some((measured.from_due_max_ns?, it)))
    });
    // Of equal ones the first.
    let greatest = each.reduce(|one, other| if other.0 > one.0 { other } else { one });
    greatest.map_or_else(String::new, |(greatest, on)| {
        format!(" From due to user space: at most {greatest}, on CPU {}.", on.processor.cpu)
    })
}

/// How many wake-ups were not seen, of all; empty where all were.
fn unseen(processors: &[Analysed<'_>]) -> String {
    let all = || processors.iter().flat_map(|it| &it.processor.measured);
    let unseen = all().map(|it| it.unmeasured).fold(0, u64::saturating_add);
    let wakeups = all().map(|it| it.wakeups).fold(unseen, u64::saturating_add);
    match unseen {
        0 => String::new(),
        _ => format!(
            "; {} of {} {} not seen",
            count(unseen),
            counted(wakeups, "wake-up"),
            agreeing(unseen, "was", "were")
        ),
    }
}

/// How late the latest timer expired, which is not part of a latency; empty where that was not observed.
fn latest_timer(processors: &[Analysed<'_>]) -> String {
    let observed = processors.iter().filter_map(|it| Some((it, it.processor.timers.as_ref()?)));
    let observed = observed.filter(|(_, timers)| timers.expired > 0);
    let latest = observed.max_by_key(|(_, timers)| timers.lateness.max_ns);
    latest.map_or_else(String::new, |(on, timers)| {
        let late = lateness_of(&timers.lateness);
        format!(" Latest timer: {late} late, on CPU {}.", on.processor.cpu)
    })
}

fn lateness_of(lateness: &punctual_model::latency::Variable) -> String {
    let least = if lateness.at_least { "at least " } else { "" };
    format!("{least}{}", lateness.max_ns)
}

/// What to say of measured latencies above their bound; empty where there are none.
pub fn exceeded(processors: &[Analysed<'_>]) -> String {
    let mut lines = Vec::new();
    let mut least = None;
    for analysis in processors {
        let Ok(bounds) = &analysis.bounds else { continue };
        for measured in bounds.exceeded() {
            let thread = measured_name(measured, bounds.processor.cpu);
            let latency = measured.bounded_max_ns.unwrap_or_default();
            least = Some(least.map_or(latency, |least: Duration| least.min(latency)));
            let worst = measured.worst.first().filter(|it| it.latency_ns == latency && !it.ran.is_empty());
            let what = worst.map_or_else(|| latency.to_string(), |worst| happened(worst, analysis));
            lines.push(format!("{thread} on CPU {}: {what}", bounds.processor.cpu));
        }
    }
    match least {
        None => String::new(),
        Some(least) => format!(
            "MEASURED ABOVE THE BOUND: {}. This is a defect of Punctual, or the kernel broke a rule that the \
             bound rests on. punctual latency --threshold {}us --record DIR keeps every event before such a \
             latency.",
            lines.join("; "),
            least.ns() / 1_000
        ),
    }
}

/// One processor in tables.
fn details(analysis: &Analysed<'_>, page: &Page) -> String {
    let mut parts = vec![title(analysis, page)];
    let mut add = |heading: &str, text: String| parts.push(format!("{heading}\n{text}"));
    let variables = analysis.variables();
    if !variables.is_empty() {
        let table = table::of_figures(VARIABLES, variables.into_iter()).text(page);
        let equation =
            analysis.processor.variables.as_ref().map(|it| paragraph(&interference_free(it), page));
        add("Kernel with preemption or interrupts disabled", table + &equation.unwrap_or_default());
    }
    let interrupts = analysis.interrupts();
    if !interrupts.is_empty() {
        add("Interrupts", table::of_figures(INTERRUPTS, interrupts.into_iter()).text(page));
    }
    if let Ok(bounds) = &analysis.bounds {
        let rows = InterruptModel::ALL.map(|model| BoundRow { bounds, model });
        let table = table::of_figures(BOUNDS, rows.into_iter()).text(page);
        add("Bounds, by how interrupts are taken to interfere", table + &paragraph(&terms(bounds), page));
    }
    if let Some(timers) = &analysis.processor.timers {
        add("Timers", paragraph(&lateness(timers, analysis.section.from_ns), page));
    }
    let measured = analysis.measured();
    if !measured.is_empty() {
        let table = table::of_figures(MEASURED, measured.into_iter()).text(page);
        let all = analysis.processor.measured.iter();
        let worst = all.filter_map(|it| Some((it, it.worst.first()?)));
        let worst = worst.max_by_key(|(_, wakeup)| wakeup.latency_ns);
        let is_seen = analysis.processor.variables.is_none();
        let worst = worst.filter(|(_, wakeup)| is_seen || !wakeup.ran.is_empty());
        let line = worst.map(|(measured, wakeup)| {
            let thread = measured_name(measured, analysis.processor.cpu);
            format!("{thread}: {}", happened(wakeup, analysis))
        });
        add("Measured latencies", table + &line.map(|line| paragraph(&line, page)).unwrap_or_default());
    }
    let stacks = stacks(analysis);
    if !stacks.is_empty() {
        add("Kernel stacks", stacks);
    }
    parts.join("\n")
}

fn title(analysis: &Analysed<'_>, page: &Page) -> String {
    let title = format!("CPU {}", analysis.processor.cpu);
    if page.colour { format!("\x1b[1m{title}\x1b[0m\n") } else { format!("{title}\n") }
}

/// L_IF with its terms. (paper, Lemma 7; Figure 24)
pub(crate) fn interference_free(variables: &punctual_model::latency::Variables) -> String {
    let plain = punctual_latency::Variables::from(variables);
    format!(
        "L_IF = max(D_ST, D_POID) + D_PAIE + D_PSD = max({}, {}) + {} + {} = {}",
        plain.st,
        plain.poid,
        plain.paie,
        plain.psd,
        plain.interference_free()
    )
}

/// The sliding window's terms: what makes the bound up.
pub(crate) fn terms(bounds: &Bounds<'_>) -> String {
    let parts = bounds.under(InterruptModel::SlidingWindow).terms.iter().map(|term| {
        let interrupt = &bounds.processor.interrupts[term.source];
        format!(" + {} {}", source_name(&interrupt.source), term.interference)
    });
    let parts: String = parts.collect();
    let result = match bounds.latency() {
        Outcome::Converged(latency) => format!(" = {latency}"),
        Outcome::DoesNotConverge => {
            let last =
                bounds.under(InterruptModel::SlidingWindow).windows.last().copied().unwrap_or_default();
            format!(", more than any window holds (last tried: {last})")
        }
    };
    format!("Sliding window: L_IF {}{parts}{result}", bounds.interference_free())
}

pub(crate) fn lateness(timers: &punctual_model::latency::Timers, begin: Instant) -> String {
    let mean = timers.total_ns.ns().checked_div(timers.expired).map(Duration::from_ns);
    let latest = timers.lateness.culprit.as_ref().map(|culprit| {
        let at = crate::text::since(culprit.at_ns.since(begin));
        format!(", at {at} while {} ran", thread_name(&culprit.thread))
    });
    format!(
        "{} expired; mean lateness {}, greatest {}{}.",
        counted(timers.expired, "timer"),
        about(mean.unwrap_or_default()),
        lateness_of(&timers.lateness),
        latest.unwrap_or_default()
    )
}

/// What ran during a wake-up, and for how long altogether.
pub(crate) fn happened(wakeup: &Wakeup, analysis: &Analysed<'_>) -> String {
    let mut sums: Vec<(String, Duration, u64)> = Vec::new();
    for ran in &wakeup.ran {
        let name = ran_name(ran, analysis.processor.interrupts.iter().map(|it| &it.source));
        match sums.iter_mut().find(|(known, ..)| *known == name) {
            Some((_, sum, times)) => (*sum, *times) = (*sum + ran.duration_ns, *times + 1),
            None => sums.push((name, ran.duration_ns, 1)),
        }
    }
    let ran = sums.into_iter().map(|(name, sum, times)| match times {
        1 => format!("{name} {sum}"),
        _ => format!("{name} {sum} in {times} times"),
    });
    let rest = wakeup.split.map(|split| split.rest_ns).filter(|rest| !rest.is_zero());
    let ran: Vec<String> = ran.chain(rest.map(|rest| format!("rest {rest}"))).collect();
    let ran = match unknown_ran(wakeup).filter(|_| analysis.processor.variables.is_none()) {
        Some(why) => format!("what ran was not seen: {why}"),
        None if ran.is_empty() => "what ran is not known".to_owned(),
        None => ran.join(", "),
    };
    let begin = analysis.section.from_ns;
    format!("{} at {}: {ran}", wakeup.latency_ns, crate::text::since(wakeup.at_ns.since(begin)))
}

/// Why what ran during a wake-up is not known, on a kernel that does not show the variables; `None` where it
/// is known.
pub fn unknown_ran(wakeup: &Wakeup) -> Option<&'static str> {
    let is_known = wakeup.split.is_some() || !wakeup.ran.is_empty();
    (!is_known).then_some("an event between the wake-up and the thread's first instant reached no program")
}

/// What ran, as tables call it. The sources are those of the interrupts on its processor.
pub fn ran_name<'a>(ran: &Ran, sources: impl IntoIterator<Item = &'a InterruptSource>) -> String {
    let is_it = |it: &&InterruptSource| {
        let kinds = [InterruptKind::Irq, InterruptKind::Vector];
        kinds.contains(&it.kind) && it.name == ran.name && it.number.unwrap_or(0) == ran.number
    };
    let name = visible(&ran.name);
    match ran.kind {
        kind if kind.variable().is_some() => section_name(ran),
        RanKind::Thread => format!("{name} ({})", ran.number),
        RanKind::Softirq => format!("softirq {} {name}", ran.number),
        RanKind::Nmi => "NMI".to_owned(),
        _ if ran.name.is_empty() => "interrupts that were not recorded".to_owned(),
        _ => {
            let known = sources.into_iter().find(is_it);
            known.map_or_else(|| format!("interrupt {} {name}", ran.number), source_name)
        }
    }
}

/// A variable, whose section it was, and where it began; of the scheduler's own, only the variable.
fn section_name(ran: &Ran) -> String {
    let symbol = ran.kind.variable().unwrap_or_default();
    if matches!(ran.kind, RanKind::Psd | RanKind::St) {
        return symbol.to_owned();
    }
    let thread = match ran.number {
        0 => "idle".to_owned(),
        number => format!("{} ({number})", visible(&ran.name)),
    };
    let place = ran.opened.as_ref().map(|place| format!(" from {}", visible(place)));
    let before = ran.before_ns.map(|before| format!(", open for {before} before,"));
    format!("{symbol} of {thread}{}{}", place.unwrap_or_default(), before.unwrap_or_default())
}

/// The kernel stacks of those who caused the greatest variables.
fn stacks(analysis: &Analysed<'_>) -> String {
    let stacks = analysis.variables().into_iter().filter_map(|row| {
        let culprit = row.variable.culprit.as_ref().filter(|culprit| !culprit.stack.is_empty())?;
        let frames = culprit.stack.iter().map(|frame| format!("  {}\n", visible(frame)));
        Some(format!("{}, {}:\n{}", row.symbol, thread_name(&culprit.thread), frames.collect::<String>()))
    });
    stacks.collect()
}

#[cfg(test)]
pub(crate) mod example;
#[cfg(test)]
mod tests;
