//! The output of `punctual rules`.

use comfy_table::{ContentArrangement, Table, presets};
use nix::unistd::{Gid, Group, Uid, User};
use punctual_daemon::access::{Domain, Who};
use punctual_daemon::rules::{self, Explanation, Property, Rules};
use punctual_daemon::text::Problem;
use serde_json::{Value, json};
use std::path::Path;

/// The number of rules, and whom they allow what.
pub fn check(path: &Path, rules: &Rules) -> String {
    let count = rules.rules().len();
    let mut text = match count {
        0 => format!(
            "{}: no rule that allows anybody anything, so only root may do anything\n",
            path.display()
        ),
        1 => format!("{}: 1 rule\n", path.display()),
        _ => format!("{}: {count} rules\n", path.display()),
    };
    if count > 0 {
        let rows = subjects(rules).into_iter().map(|(domain, plugin, properties)| {
            let limits: Vec<String> =
                properties.iter().map(|(property, polkit)| described(*property, *polkit)).collect();
            [named(domain), plugin.unwrap_or("any").to_owned(), limits.join(", ")]
        });
        text += &format!("\n{}", table(["FOR", "PLUGIN", "AS LONG AS"], rows));
    }
    text
}

pub fn check_json(path: &Path, rules: &Rules, warnings: &[Problem]) -> String {
    let rules: Vec<Value> = rules
        .rules()
        .iter()
        .map(|rule| {
            let (unit, value) = value(rule.property);
            json!({
                "line": rule.line, "for": named(rule.domain), "plugin": rule.plugin,
                "property": rule.property.key(), unit: value, "polkit": rule.polkit
            })
        })
        .collect();
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    format!("{:#}\n", json!({"file": path, "rules": rules, "warnings": warnings}))
}

/// For each plugin: permitted or denied, by which rule, and the limits.
pub fn explain(who: &Who, explained: &[Explanation], declared: bool) -> String {
    let mut text = format!("{}, {}\n", named(Domain::User(who.user)), groups(who));
    if who.is_root() {
        return text + "\nRoot may do everything; rules do not apply.\n";
    }
    for explanation in explained {
        let answer = match &explanation.outcome {
            Ok(_) if declared => "permitted".to_owned(),
            Ok(_) => "permitted, within these limits".to_owned(),
            Err(denied) => format!("denied: {}", denied.reason),
        };
        text += &format!("\n{}: {answer}\n", explanation.plugin);
        if let Err(denied) = &explanation.outcome {
            if let Some(rule) = &denied.rule {
                text += &format!("  by {rule}\n");
            }
        }
        if let Some(rule) = &explanation.polkit {
            text += &format!("  but permitted if Polkit authorises it, by {rule}\n");
        }
        let rows = explanation.limits.iter().map(|limit| {
            [format!("  {}", limit.property.key()), limit.property.to_string(), limit.rule.clone()]
        });
        if !explanation.limits.is_empty() {
            text += &table(["  LIMIT", "VALUE", "BY"], rows);
        }
    }
    text
}

pub fn explain_json(who: &Who, explained: &[Explanation]) -> String {
    let plugins: Vec<Value> = explained
        .iter()
        .map(|explanation| {
            let limits: Vec<Value> = explanation
                .limits
                .iter()
                .map(|limit| {
                    let (unit, value) = value(limit.property);
                    let property = limit.property.key();
                    json!({"property": property, unit: value, "rule": limit.rule, "polkit": limit.polkit})
                })
                .collect();
            let denied = explanation.outcome.as_ref().err();
            json!({
                "plugin": explanation.plugin,
                "permitted": denied.is_none(),
                "reason": denied.map(|denied| &denied.reason),
                "rule": denied.and_then(|denied| denied.rule.as_ref()),
                "polkit": explanation.polkit,
                "limits": limits,
            })
        })
        .collect();
    format!(
        "{:#}\n",
        json!({
            "user": who.user, "group": who.group, "groups": who.groups, "root": who.is_root(),
            "plugins": plugins
        })
    )
}

/// The JSON field of a property's value, and the value: nanoseconds, processors, priorities.
fn value(property: Property) -> (&'static str, Value) {
    match property.value() {
        rules::Value::Share(_) => {
            ("value", property.to_string().parse::<f64>().map_or(Value::Null, |number| json!(number)))
        }
        rules::Value::Time(time) => ("value_ns", json!(time.ns())),
        rules::Value::Priority(priority) => ("value", json!(priority)),
        rules::Value::Nice(nice) => ("value", json!(nice)),
        rules::Value::Flag(flag) => ("value", json!(flag)),
    }
}

/// Whom rules are for, which plugin, and their properties: with whether they are left to Polkit.
type Subject<'a> = (Domain, Option<&'a str>, Vec<(Property, bool)>);

fn described(property: Property, polkit: bool) -> String {
    let polkit = if polkit { " (if Polkit authorises it)" } else { "" };
    format!("{} {property}{polkit}", property.key())
}

/// The subjects of rules with their properties, in the order of the file.
fn subjects(rules: &Rules) -> Vec<Subject<'_>> {
    let mut subjects: Vec<Subject<'_>> = Vec::new();
    for rule in rules.rules() {
        let plugin = rule.plugin.as_deref();
        match subjects.iter_mut().find(|subject| subject.0 == rule.domain && subject.1 == plugin) {
            Some(subject) => subject.2.push((rule.property, rule.polkit)),
            None => subjects.push((rule.domain, plugin, vec![(rule.property, rule.polkit)])),
        }
    }
    subjects
}

fn named(domain: Domain) -> String {
    let or_number = |kind: &str, number: u32, name: Option<String>| match name {
        Some(name) => format!("{kind} {name} ({number})"),
        None => format!("{kind} {number}"),
    };
    match domain {
        Domain::Everyone => "everyone".into(),
        Domain::User(user) => {
            or_number("user", user, User::from_uid(Uid::from_raw(user)).ok().flatten().map(|user| user.name))
        }
        Domain::Group(group) => or_number(
            "group",
            group,
            Group::from_gid(Gid::from_raw(group)).ok().flatten().map(|group| group.name),
        ),
    }
}

fn groups(who: &Who) -> String {
    let names: Vec<String> =
        who.domains().filter(|domain| matches!(domain, Domain::Group(_))).map(named).collect();
    names.join(", ")
}

/// A table without borders.
fn table<const N: usize>(titles: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(titles);
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}
