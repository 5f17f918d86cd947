//! What an imported trace had, what was left out, and what the trace lacks.

use crate::figures::Fit;
use crate::table::{Table, Tone, words};
use crate::{Page, paragraph, visible};
use punctual_trace::import::{Account, Events, Use};
use serde_json::{Value, json};

/// Kinds of events in one row.
const NAMED: usize = 6;

/// The table, and the command that records what is missing.
pub fn account(account: &Account, page: &Page) -> String {
    let of_use = |used_for| named(account, used_for, page);
    let mut table = Table::new(&[
        words("for", Fit::Keep),
        words("events", Fit::Fold),
        words("missing", Fit::Fold),
        words("effect", Fit::Fold),
    ]);
    let mut uses: Vec<Use> = account.events.iter().filter_map(|events| events.used_for).collect();
    uses.extend(account.lacks.iter().map(|lack| lack.of));
    uses.sort_unstable();
    uses.dedup();
    for of in uses {
        let mut first = Some((of.name().to_owned(), of_use(Some(of))));
        let lacks: Vec<_> = account.lacks.iter().filter(|lack| lack.of == of).collect();
        for lack in &lacks {
            let (of, events) = first.take().unwrap_or_default();
            table
                .rows
                .push(row([of, events, lack.what.to_owned(), lack.cost.to_owned()], lack.is_recordable));
        }
        table.rows.extend(first.map(|(of, events)| row([of, events, String::new(), String::new()], false)));
    }
    let unread = of_use(None);
    if !unread.is_empty() {
        table.rows.push(row(["not read".to_owned(), unread, String::new(), String::new()], false));
    }
    let mut text = table.text(page);
    if account.lacks.iter().any(|lack| lack.is_recordable) {
        text += &paragraph(&format!("To record what is missing: {}", account.command), page);
    }
    text
}

/// A row; what a better recording would have has the colour of a warning.
fn row(cells: [String; 4], is_recordable: bool) -> Vec<(String, Tone)> {
    let tone = |place: usize| if is_recordable && place == 2 { Tone::Warning } else { Tone::Plain };
    cells.into_iter().enumerate().map(|(place, cell)| (cell, tone(place))).collect()
}

/// Events that are used for this, or for nothing, most frequent first. Where lines are folded, a name and its
/// number stay together.
fn named(account: &Account, used_for: Option<Use>, page: &Page) -> String {
    let space = if page.width.is_some() { '\u{a0}' } else { ' ' };
    let all: Vec<&Events> = account.events.iter().filter(|events| events.used_for == used_for).collect();
    let rest = all.iter().skip(NAMED).fold(0_u64, |sum, events| sum.saturating_add(events.count));
    let rest = rest.saturating_add(if used_for.is_none() { account.others } else { 0 });
    let named =
        all.iter().take(NAMED).map(|events| format!("{}{space}{}", visible(&events.name), events.count));
    let others = (rest > 0).then(|| format!("others{space}{rest}"));
    named.chain(others).collect::<Vec<_>>().join(", ")
}

/// The same for programs.
pub fn account_json(account: &Account) -> Value {
    let events = account.events.iter().map(|events| {
        json!({ "name": events.name, "count": events.count, "used_for": events.used_for.map(Use::name) })
    });
    let lacks = account.lacks.iter().map(|lack| {
        json!({
            "of": lack.of.name(), "what": lack.what, "cost": lack.cost, "recordable": lack.is_recordable,
        })
    });
    json!({
        "events": events.collect::<Vec<_>>(), "other_events": account.others,
        "missing": lacks.collect::<Vec<_>>(), "command": account.command,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_trace::import::Lack;

    #[test]
    fn each_use_has_its_events_and_what_they_lack() {
        let events = |name: &str, count, used_for| Events { name: name.into(), count, used_for };
        let account = Account {
            events: vec![
                events("sched_switch", 40, Some(Use::ExecutionTimes)),
                events("timer_start", 9, None),
                events("sys_exit", 8, Some(Use::Jobs)),
                events("sys_enter", 8, Some(Use::Jobs)),
            ],
            others: 3,
            lacks: vec![
                Lack::fact(Use::ExecutionTimes, "interrupts", "too high"),
                Lack::events(Use::ExecutionTimes, "sched_stat_runtime", "sums"),
                Lack::events(Use::Releases, "sched_waking", "windows"),
            ],
            command: "tool record all",
        };
        assert_eq!(
            super::account(&account, &Page::default()),
            "\
for              events                   missing             effect
execution times  sched_switch 40          interrupts          too high
                                          sched_stat_runtime  sums
releases                                  sched_waking        windows
jobs             sys_exit 8, sys_enter 8
not read         timer_start 9, others 3
To record what is missing: tool record all
"
        );
        let json = account_json(&account);
        assert_eq!(json["events"][1], json!({ "name": "timer_start", "count": 9, "used_for": null }));
        assert_eq!((&json["missing"][2]["recordable"], &json["other_events"]), (&json!(true), &json!(3)));
        let whole = Account { lacks: Vec::new(), ..account };
        assert!(!super::account(&whole, &Page::default()).contains("To record"));
    }
}
