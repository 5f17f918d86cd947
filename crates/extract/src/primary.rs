//! Chooses the separator that explains a task best.
//!
//! A thread waits for its next activation in one place and for other things on the way. The place to show
//! first is where it spends its time asleep, where it returns regularly, and where it names the time of its
//! next job (a sleep until a known time). The sum of the three decides.

use crate::lane::Lane;
use punctual_model::{Duration, Separator};

/// Weight of regular releases, relative to the share of the time asleep.
const REGULARITY: f64 = 0.5;
/// Weight of known arrivals: a call that names the time of the next activation is meant to cause it.
const KNOWN_ARRIVAL: f64 = 0.5;
/// `suspension` explains anything, so it is considered only if the calls explain less than this share of the
/// time asleep.
const EXPLAINED: f64 = 0.5;

/// The separator to show first, and why.
pub struct Choice {
    pub separator: Separator,
    pub reason: String,
}

/// Chooses among a task's lanes. `suspension` is its lane of all sleeps, if that differs from the first;
/// `asleep` is its total time asleep.
pub fn choose(lanes: &[Lane], suspension: Option<&Lane>, asleep: Duration) -> Option<Choice> {
    let share = |lane: &Lane| {
        if asleep == Duration::ZERO { 0.0 } else { lane.waited().ns() as f64 / asleep.ns() as f64 }
    };
    let explained: f64 = lanes.iter().map(share).sum();
    let mut best: Option<(f64, Choice)> = None;
    let mut consider = |lane: &Lane, share: f64| {
        if lane.stream().releases() == 0 {
            return;
        }
        let regularity = lane.stream().regularity();
        let regular = regularity.map_or(0.0, |jitter| 1.0 / (1.0 + jitter));
        let known = if lane.knows_arrivals() { KNOWN_ARRIVAL } else { 0.0 };
        // Two jobs make a stream; one with fewer is only a last resort.
        let score =
            if lane.stream().jobs() >= 2 { 1.0 + share + REGULARITY * regular + known } else { share };
        if best.as_ref().is_none_or(|(least, _)| score > *least) {
            best = Some((
                score,
                Choice { separator: lane.separator(), reason: reason(lane, share, regularity) },
            ));
        }
    };
    for lane in lanes {
        consider(lane, share(lane));
    }
    if let Some(lane) = suspension.filter(|_| explained < EXPLAINED || lanes.is_empty()) {
        consider(lane, 1.0 - explained);
    }
    best.map(|(_, choice)| choice)
}

fn reason(lane: &Lane, share: f64, regularity: Option<f64>) -> String {
    let mut reasons = Vec::new();
    if lane.knows_arrivals() {
        reasons.push("its argument is the time of the next job".to_owned());
    }
    match lane.separator() {
        Separator::SUSPENSION => reasons
            .push(format!("{:.0} % of the time asleep is in no call that separates jobs", share * 100.0)),
        _ => reasons.push(format!("{:.0} % of the time asleep is spent here", share * 100.0)),
    }
    if let Some(jitter) = regularity.filter(|jitter| *jitter < 1.0) {
        reasons.push(format!("jitter is {:.1} % of the period", jitter * 100.0));
    }
    reasons.join("; ")
}
