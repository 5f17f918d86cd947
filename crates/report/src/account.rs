//! What an imported trace had, what was left out, and what the trace lacks.

use crate::figures::Fit;
use crate::table::{Table, Tone, words};
use crate::{Page, paragraph, visible};
use punctual_trace::account::{Account, Events, Use};
use serde_json::{Value, json};
use textwrap::core::display_width;

/// Kinds of events in one row.
const NAMED: usize = 6;

/// The table, and the command that records what is missing.
pub fn account(account: &Account, page: &Page) -> String {
    let beside = table(account, page, Layout::Beside).text(page);
    let fits = |width: u16| beside.lines().all(|line| display_width(line) <= usize::from(width));
    let mut text = match page.width.is_none_or(fits) {
        true => beside,
        false => table(account, page, Layout::Below).text(page),
    };
    if account.lacks.iter().any(|lack| lack.is_recordable) {
        text += &paragraph(&format!("To record what is missing: {}", account.command), page);
    }
    text
}

/// Where it stands what is missing, and what that costs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Beside,
    /// On narrow terminals.
    Below,
}

fn table(account: &Account, page: &Page, layout: Layout) -> Table {
    let of_use = |used_for| named(account, used_for, page);
    let columns = [words("for", Fit::Keep), words("events", Fit::Fold)];
    let lacking: &[_] = match layout {
        Layout::Beside => &[words("missing", Fit::Fold), words("effect", Fit::Fold)],
        Layout::Below => &[words("missing", Fit::Below)],
    };
    let mut table = Table::new(&[&columns, lacking].concat());
    let row = |cells, is_recordable| row(cells, is_recordable, layout);
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
    table
}

/// A row; what a better recording would have has the colour of a warning.
fn row([of, events, what, cost]: [String; 4], is_recordable: bool, layout: Layout) -> Vec<(String, Tone)> {
    let lacking = match layout {
        Layout::Beside => vec![what, cost],
        Layout::Below if what.is_empty() => vec![what],
        Layout::Below => vec![format!("missing: {what}: {cost}")],
    };
    let tone = |place: usize| if is_recordable && place == 2 { Tone::Warning } else { Tone::Plain };
    let cells = [of, events].into_iter().chain(lacking).enumerate();
    cells.map(|(place, cell)| (cell, tone(place))).collect()
}

/// Events that are used for this, or for nothing, most frequent first. Where lines are folded, a name and its
/// number stay together.
fn named(account: &Account, used_for: Option<Use>, page: &Page) -> String {
    // Names have up to 25 letters, and uses 15.
    let space = if page.width.is_some_and(|width| width >= 50) { '\u{a0}' } else { ' ' };
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
    use punctual_trace::account::Lack;

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
        for width in 36..120 {
            let text = super::account(&account, &Page { width: Some(width), colour: false });
            assert!(text.lines().all(|line| display_width(line) <= usize::from(width)), "{width}\n{text}");
        }
        let narrow = super::account(&account, &Page { width: Some(44), colour: false });
        let both = "\n    missing: interrupts: too high\n    missing: sched_stat_runtime: sums\n";
        assert!(narrow.contains(both), "{narrow}");
        let json = account_json(&account);
        assert_eq!(json["events"][1], json!({ "name": "timer_start", "count": 9, "used_for": null }));
        assert_eq!((&json["missing"][2]["recordable"], &json["other_events"]), (&json!(true), &json!(3)));
        let whole = Account { lacks: Vec::new(), ..account };
        assert!(!super::account(&whole, &Page::default()).contains("To record"));
    }
}
