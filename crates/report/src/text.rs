//! Values as text, for the terminal and the page alike.

use crate::figures::{Entry, Note, Rounding, Section, Value};
use crate::number::{about, at_least, at_most, count, counted, period, three_digits};
use crate::{modes, visible};
use punctual_model::{Duration, Object, Policy, Separator};

/// A value, rounded.
pub(crate) fn value(value: &Value, rounding: Rounding) -> String {
    match value {
        Value::Time(time) => rounded(*time, rounding).to_string(),
        Value::Between(least, time, greatest) => {
            // Rounded ends must not lie inside of what is rounded less.
            let (least, greatest) = (at_least(*least), at_most(*greatest));
            rounded(*time, rounding).clamp(least, greatest).to_string()
        }
        Value::OrMore(time) => format!("≥ {}", rounded(*time, rounding)),
        Value::Exactly(time) => time.to_string(),
        Value::Period(periodic) => period(periodic),
        Value::Modes(modes, begin) => modes::short(modes, *begin),
        Value::Burst(jobs, span) => format!("≤ {jobs} in {}", at_least(*span)),
        Value::Apart(separation) => format!("≥ {} apart", at_least(*separation)),
        Value::Since(span) => since(*span),
        Value::Count(number) => count(*number),
        Value::CountOrMore(number) => format!("≥ {}", count(*number)),
        Value::Number(number) => format!("#{}", count(*number)),
        Value::Id(number) => number.to_string(),
        Value::Share(hundredths) => format!("{}.{:02} %", hundredths / 100, hundredths % 100),
        Value::Text(text) => visible(text),
        Value::Word(word) => (*word).into(),
        Value::Path(names) => names.iter().map(|name| visible(name)).collect::<Vec<_>>().join(" → "),
        Value::Separator(separator) => short(separator),
        Value::Policy(policy, priority, nice) => self::policy(*policy, *priority, *nice),
        Value::Notes(notes) => notes.iter().map(note).collect::<Vec<_>>().join(", "),
    }
}

/// The text of a figure's cell in a row.
pub(crate) fn cell<S: Section>(entry: &Entry<S>, row: &S::Row<'_>) -> String {
    match (entry.value)(row) {
        Some(value) => self::value(&value, entry.figure.rounding),
        None if entry.figure.sparse => String::new(),
        None => "–".into(),
    }
}

/// A time as it is displayed.
pub(crate) fn rounded(time: Duration, rounding: Rounding) -> Duration {
    match rounding {
        Rounding::Up => at_most(time),
        Rounding::Down => at_least(time),
        Rounding::Nearest => about(time),
        Rounding::ThreeDigits => three_digits(time),
        Rounding::None => time,
    }
}

/// A time since the observation began, in seconds to the microsecond: `+3.214000 s`.
pub(crate) fn since(span: Duration) -> String {
    let us = span.ns() / 1_000;
    format!("+{}.{:06} s", us / 1_000_000, us % 1_000_000)
}

/// Without the `SCHED_` that all of them share: `FIFO 80`, `DEADLINE`, `OTHER nice 5`.
pub(crate) fn policy(policy: Policy, priority: u32, nice: Option<i32>) -> String {
    let name = policy.short_name();
    if policy.has_priority() {
        return format!("{name} {priority}");
    }
    nice.filter(|nice| *nice != 0 && policy.has_nice())
        .map_or(name.into(), |nice| format!("{name} nice {nice}"))
}

/// A separator without the clock that nearly all sleeps use.
pub(crate) fn short(separator: &Separator) -> String {
    match separator.object {
        Object::Clock { id: 1, absolute } => {
            format!("{} {}", separator.call, if absolute { "absolute" } else { "relative" })
        }
        _ => visible(&separator.to_string()),
    }
}

/// A caveat in a few words.
pub(crate) fn note(note: &Note) -> String {
    match note {
        Note::Phase { number, phases } => format!("phase {number} of {phases}"),
        Note::Phases { phases, policies } => {
            let policies =
                if *policies > 1 { format!(" ({} policies)", count(*policies)) } else { String::new() };
            format!("{}{policies}", counted(*phases, "phase"))
        }
        Note::Recording(name) => format!("from {}", visible(name)),
        Note::NeverWaits { percent, processor: Some(cpu) } => {
            format!("never waits, {percent} % of CPU {cpu}")
        }
        Note::Awake(time) => format!("has been awake for the last {}", about(*time)),
        Note::Changes(number) => format!("{} merged", counted(*number, "change")),
        Note::NeverWaits { percent, processor: None } => format!("never waits, {percent} % of a CPU"),
        Note::EndedByLoss => "ended by loss".into(),
        Note::SeparatorsCapped => "separators capped".into(),
        Note::Skipped(number) => format!("{} skipped", count(*number)),
        Note::Extra(number) => format!("{} extra", count(*number)),
        Note::LeftOut(number) => format!("{} left out", count(*number)),
        Note::Windows(number) => counted(*number, "window"),
        Note::BackToBack(number) => format!("{} back to back", count(*number)),
        Note::Approximate => "jitter approximate".into(),
        Note::MayBeGreater => "may be greater".into(),
        Note::AtLeast(number, what) => format!("≥ {} {what}", count(*number)),
        Note::Some(number, what) => format!("{} {what}", count(*number)),
        Note::About(task, note) => format!("of {} itself {}", visible(task), self::note(note)),
    }
}
