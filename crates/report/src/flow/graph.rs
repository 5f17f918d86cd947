//! The graph as a table: one line for each channel.

use crate::figures::Fit;
use crate::number::{count, counted};
use crate::table::{Column, Table, Tone, figures, words};
use crate::{Page, visible};
use punctual_model::dataflow::{Activates, Channel, Dataflow};

const COLUMNS: [Column; 5] = [
    words("From", Fit::Fold),
    words("Channel", Fit::Keep),
    figures("Pushes", Fit::Keep),
    words("To", Fit::Fold),
    words("Notes", Fit::Fold),
];

pub fn graph(flow: &Dataflow, page: &Page) -> String {
    let mut table = Table::new(&COLUMNS);
    table.rows = flow.channels.iter().map(row).collect();
    if table.rows.is_empty() { String::new() } else { table.text(page) }
}

fn row(channel: &Channel) -> Vec<(String, Tone)> {
    let mut from: Vec<String> = channel.pushed_by.iter().map(|pushed_by| visible(&pushed_by.task)).collect();
    if channel.from_outside > 0 {
        from.push("(outside)".into());
    }
    if channel.from_unknown > 0 {
        from.push("(unknown)".into());
    }
    let to: Vec<String> = channel.activates.iter().map(|activates| visible(&activates.task)).collect();
    let dash = |text: String| if text.is_empty() { "–".to_owned() } else { text };
    vec![
        (dash(from.join(", ")), Tone::Plain),
        (visible(&channel.name), Tone::Plain),
        (count(channel.pushes), Tone::Plain),
        (dash(to.join(", ")), Tone::Plain),
        (notes(channel).join("; "), if channel.missing_pushes > 0 { Tone::Warning } else { Tone::Plain }),
    ]
}

/// What a reader must know of a channel. Numbers are known modulo 2¹⁴ alone: of a long gap, more may be
/// missing.
fn notes(channel: &Channel) -> Vec<String> {
    let mut notes = Vec::new();
    if channel.missing_pushes > 0 {
        notes.push(format!("at least {} missing", counted(channel.missing_pushes, "push")));
    }
    if channel.is_unread() {
        notes.push(if channel.barrier { "its count was never complete" } else { "no reader seen" }.into());
    }
    notes.extend(channel.activates.iter().filter(|activates| is_never_last(activates, channel)).map(
        |activates| {
            let task = visible(&activates.task);
            format!("never activates {task}")
        },
    ));
    notes
}

/// An input that the program declares, and whose data never came last.
pub fn is_never_last(activates: &Activates, channel: &Channel) -> bool {
    activates.declared && activates.activations == 0 && channel.pushes > 0
}
