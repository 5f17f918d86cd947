//! Which chains are end-to-end, what keeps others from being known to be, and by how much latencies may be
//! wrong where inputs of unknown kind are on the way.

use crate::number::{about, counted};
use crate::visible;
use punctual_model::dataflow::{Alternative, Chain, Channel, Connections, Dataflow, Keeps, Latency, Opening};

/// Most names in a line.
const MOST: usize = 6;

/// The title of chains: only those that are known to be whole are called end-to-end.
pub fn title(flow: &Dataflow) -> &'static str {
    let mut chains = flow.chains.iter();
    match chains.all(|chain| chain.end_to_end == Some(true)) {
        _ if flow.chains.is_empty() => "Chains",
        true => "Chains: end-to-end latency",
        false => "Chains: latency from the first task to the last",
    }
}

/// What may be missing of chains, a line each.
pub fn doubts(flow: &Dataflow) -> Vec<String> {
    let mut lines = Vec::new();
    let unread: Vec<&Channel> = flow.channels.iter().filter(|channel| channel.is_unread()).collect();
    let is_known = matches!(flow.connections, Some(Connections::Declared | Connections::Seen));
    let silent = unread.iter().filter(|channel| channel.barrier).count();
    if !unread.is_empty() && (!is_known || silent > 0) {
        let names = listed(unread.iter().map(|channel| visible(&channel.name)));
        lines.push(format!(
            "Nobody was seen to read {names}, although tasks push there: chains through {} may be missing.",
            if unread.len() == 1 { "it" } else { "them" }
        ));
    }
    lines.extend(assumed(flow));
    lines.extend(flow.openings.iter().map(opening));
    if flow.connections == Some(Connections::Inferred) && !flow.chains.is_empty() {
        lines.push(
            "Connections were inferred from which pushes activated which tasks: an input whose data never \
             arrive last is not found, so a chain may begin earlier or go on. None is known to be \
             end-to-end: declare the connections, or use a probe with event = \"connection\"."
                .into(),
        );
    } else {
        let parts: Vec<&Chain> = flow.chains.iter().filter(|chain| chain.end_to_end == Some(false)).collect();
        if !parts.is_empty() {
            let names = listed(parts.iter().map(|chain| name(chain)));
            let has_guess = flow.channels.iter().flat_map(|it| &it.activates).any(|it| it.assumed);
            let guess = if has_guess { ", or as they rest on what is assumed" } else { "" };
            lines.push(format!(
                "Not end-to-end, as other tasks come, or may come, before or after{guess}: {names}."
            ));
        }
    }
    lines
}

/// Connections that are guesses.
fn assumed(flow: &Dataflow) -> Option<String> {
    let pairs = |channel: &Channel| {
        let readers = channel.activates.iter().filter(|it| it.assumed).map(|it| it.task.clone());
        let readers: Vec<String> = readers.collect();
        let to = move |by: String| readers.clone().into_iter().map(move |reader| (by.clone(), reader));
        channel.pushed_by.iter().map(|by| by.task.clone()).flat_map(to).collect::<Vec<_>>()
    };
    let found = flow.channels.iter().flat_map(pairs);
    let names = listed(found.map(|(from, to)| format!("{} → {}", visible(&from), visible(&to))));
    (!names.is_empty()).then(|| {
        format!(
            "Assumed, and not in the trace: {names}. No chain through such a connection is called \
             end-to-end; punctual import --variable declares what is true."
        )
    })
}

/// Where tasks or connections may be missing, and why.
fn opening(Opening { why, before, behind }: &Opening) -> String {
    let names = |tasks: &[String]| listed(tasks.iter().map(|task| visible(task)));
    let what = match (before.is_empty(), behind.is_empty()) {
        (true, true) => "Chains may be missing.".to_owned(),
        (false, true) => format!("Others may come before {}.", names(before)),
        (true, false) => format!("Others may come after {}.", names(behind)),
        (false, false) if before == behind => format!("Others may come before or after {}.", names(before)),
        (false, false) => format!("Others may come before {}, or after {}.", names(before), names(behind)),
    };
    format!("{}. {what}", visible(why))
}

fn name(chain: &Chain) -> String {
    chain.tasks.iter().map(|task| visible(task)).collect::<Vec<_>>().join(" → ")
}

fn listed(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    let more = match names.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    names[..names.len().min(MOST)].join(", ") + &more
}

/// By how much latencies may be wrong, a line for each that may.
pub fn alternatives(flow: &Dataflow) -> Vec<String> {
    let mut lines = Vec::new();
    for chain in &flow.chains {
        for (kind, latency) in [("reaction", &chain.reaction), ("age", &chain.age)] {
            if let Some(latency) = latency {
                lines.extend(alternative(chain, kind, latency));
            }
        }
    }
    let has_alternatives = |latency: &&Latency| !latency.alternatives.is_empty();
    let all = flow.chains.iter().flat_map(|chain| chain.reaction.iter().chain(&chain.age));
    if lines.is_empty() && all.clone().any(|latency| has_alternatives(&latency)) {
        lines.push("As queues or as newest values, all latencies would be the same.".into());
    }
    if lines.len() > MOST {
        let more = counted((lines.len() - MOST) as u64, "latency").replace("latencys", "latencies");
        lines.truncate(MOST);
        lines.push(format!("{more} more may be others."));
    }
    lines
}

/// What a latency would be, unless that is the same.
fn alternative(chain: &Chain, kind: &str, latency: &Latency) -> Option<String> {
    let here = &latency.distribution;
    let differs = |other: &&Alternative| {
        other.distribution.as_ref().is_none_or(|other| {
            (other.median_ns, other.max_ns, other.count) != (here.median_ns, here.max_ns, here.count)
        })
    };
    let words: Vec<String> = latency
        .alternatives
        .iter()
        .filter(differs)
        .map(|other| {
            let how = match other.keeps {
                Keeps::Queue => "as a queue",
                Keeps::Newest => "as the newest value",
            };
            match &other.distribution {
                None => format!("{how} nothing would have arrived"),
                Some(other) => {
                    format!("{how} median {}, greatest {}", about(other.median_ns), about(other.max_ns))
                }
            }
        })
        .collect();
    let (median, greatest) = (about(here.median_ns), about(here.max_ns));
    (!words.is_empty()).then(|| {
        format!("{kind} of {}: median {median}, greatest {greatest}; {}.", name(chain), words.join("; "))
    })
}
