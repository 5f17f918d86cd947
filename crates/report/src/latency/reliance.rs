//! Why a bound is not to be relied on, although it was computed: the kernel broke a rule that it rests on, or
//! the observation itself was wrong.

use crate::analysed::Analysed;
use crate::number::{agreeing, counted};
use crate::visible;
use punctual_model::latency::SchedulingLatency;

/// The reasons, for the whole section; empty if there are none, or no bound.
pub fn unreliable(processors: &[Analysed<'_>]) -> String {
    let mut bounded = processors.iter().filter(|it| it.bounds.is_ok()).peekable();
    let Some(first) = bounded.peek() else { return String::new() };
    let broken = broken_rules(first.section);
    let negative = bounded.filter(|it| it.processor.negative_durations > 0).map(negative);
    let reasons: Vec<String> = broken.into_iter().chain(negative).collect();
    match reasons.is_empty() {
        true => String::new(),
        false => format!("NOT TO BE RELIED ON: {}.", reasons.join("; ")),
    }
}

/// The reasons that concern the bound of one processor; `None` if there are none, or no bound.
pub(crate) fn unreliable_on(analysis: &Analysed<'_>) -> Option<String> {
    let text = unreliable(std::slice::from_ref(analysis));
    (!text.is_empty()).then_some(text)
}

fn negative(analysis: &Analysed<'_>) -> String {
    let durations = counted(analysis.processor.negative_durations, "duration");
    format!("{durations} came out negative on CPU {}, which is a defect of Punctual", analysis.processor.cpu)
}

fn broken_rules(section: &SchedulingLatency) -> Option<String> {
    let broken = || section.monitors.iter().filter(|it| it.violations > 0);
    let number = broken().map(|it| it.violations).fold(0, u64::saturating_add);
    let rules: Vec<String> = broken()
        .map(|it| {
            let rules: Vec<String> = it.rules.iter().map(|rule| visible(rule)).collect();
            format!("{} ({})", rules.join(" "), visible(&it.name))
        })
        .collect();
    (number > 0).then(|| {
        let violations = agreeing(number, "VIOLATION", "VIOLATIONS");
        let rules = rules.join(", ");
        format!(
            "the kernel's monitors found {number} {violations} OF THE RULES that the bound rests on: {rules}"
        )
    })
}
