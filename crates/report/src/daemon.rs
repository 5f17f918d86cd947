//! The state of the daemon: tables, and a sentence.

use crate::figures::Fit;
use crate::number::{about, counted};
use crate::table::{Column, Table, Tone, figures, words};
use crate::{Page, paragraph, visible};
use punctual_client::{Admission, Answer, ClientInfo, Parameters, Plugin, Spec, Status, Used};
use punctual_model::{Duration, Instant};

const SPECS: [Column; 12] = [
    figures("Spec", Fit::Keep),
    words("Name", Fit::Keep),
    words("Plugin", Fit::Keep),
    figures("Processor", Fit::Drop(4)),
    words("Policy", Fit::Drop(5)),
    figures("Period", Fit::Keep),
    figures("Runtime", Fit::Keep),
    figures("Deadline", Fit::Drop(6)),
    figures("User", Fit::Drop(8)),
    figures("Process", Fit::Drop(7)),
    figures("Thread", Fit::Keep),
    words("Notes", Fit::Fold),
];

/// What threads really took, if any is watched: before the notes.
const USED: [Column; 4] = [
    figures("Jobs", Fit::Drop(3)),
    figures("Worst cost", Fit::Drop(1)),
    figures("Overruns", Fit::Drop(2)),
    figures("Misses", Fit::Drop(2)),
];

/// What programs say of their loops themselves, if any does: after [`USED`].
const SAYS: [Column; 1] = [figures("Misses it says", Fit::Drop(2))];

/// Of `ctl stats`, before [`USED`] and the notes.
const STATISTICS: [Column; 5] = [
    figures("Spec", Fit::Keep),
    words("Name", Fit::Keep),
    figures("Thread", Fit::Keep),
    figures("Period", Fit::Keep),
    figures("Runtime", Fit::Keep),
];

const PLUGINS: [Column; 8] = [
    words("Plugin", Fit::Keep),
    words("Kind", Fit::Drop(4)),
    words("Admission", Fit::Drop(3)),
    words("Priorities", Fit::Drop(2)),
    figures("Processor", Fit::Keep),
    figures("Specs", Fit::Keep),
    figures("Utilization", Fit::Keep),
    figures("At most", Fit::Drop(1)),
];

const CLIENTS: [Column; 4] = [
    figures("Process", Fit::Keep),
    figures("User", Fit::Keep),
    figures("Specs", Fit::Keep),
    words("Command", Fit::Fold),
];

fn plain(cells: Vec<String>) -> Vec<(String, Tone)> {
    cells.into_iter().map(|text| (text, Tone::Plain)).collect()
}

/// An admission in a few words, such as for `systemctl status`.
pub fn admission(admission: &Admission, declared: &Parameters) -> String {
    let runtime = admission.accepted_runtime.map_or(String::new(), |runtime| format!(", {runtime}"));
    let period = declared.period.map_or(String::new(), |period| format!(" every {period}"));
    let deadline = declared.deadline.map_or(String::new(), |deadline| format!(" within {deadline}"));
    let place = admission.processor.map_or(String::new(), |processor| format!(" on processor {processor}"));
    let begins = admission.begins_in.map_or(String::new(), |time| format!(" in {time}"));
    format!(
        "spec {} under {}{runtime}{period}{deadline}{place}, {}{begins}",
        admission.spec,
        visible(&admission.plugin),
        policy(admission)
    )
}

/// One line for each spec.
pub fn specs(specs: &[Spec], page: &Page) -> String {
    if specs.is_empty() {
        return "No specs.\n".into();
    }
    let mut table = Table::new(&SPECS);
    table.rows = specs.iter().map(spec).collect();
    let notes = SPECS.len() - 1;
    let mut add = |columns: &[Column], cells: &dyn Fn(&Spec) -> Vec<(String, Tone)>| {
        table.columns.splice(notes..notes, columns.iter().copied());
        for (row, spec) in table.rows.iter_mut().zip(specs) {
            row.splice(notes..notes, cells(spec));
        }
    };
    if say(specs) {
        add(&SAYS, &|spec| vec![says(spec)]);
    }
    if specs.iter().any(|spec| spec.used.is_some() || spec.enforced.is_some()) {
        add(&USED, &|spec| used(spec).into());
    }
    table.text(page)
}

/// How the threads of specs keep to their runtimes: one line for each that is attached, or that the daemon
/// has detached.
pub fn statistics(specs: &[Spec], page: &Page) -> String {
    let is_shown = |spec: &&Spec| spec.thread.is_some() || detached(spec).is_some();
    let attached: Vec<&Spec> = specs.iter().filter(is_shown).collect();
    if attached.is_empty() {
        return "No spec has a thread.\n".into();
    }
    let say = say(specs);
    let own = if say { &SAYS[..] } else { &[] };
    let columns: Vec<Column> = STATISTICS
        .into_iter()
        .chain(USED)
        .chain(own.iter().copied())
        .chain([words("Notes", Fit::Fold)])
        .collect();
    let mut table = Table::new(&columns);
    table.rows = attached.into_iter().map(|spec| statistic(spec, say)).collect();
    table.text(page)
}

/// Whether any program says something of its loop.
fn say(specs: &[Spec]) -> bool {
    specs.iter().any(|spec| spec.says.is_some())
}

/// Missed deadlines of how many jobs, as the program counts them itself.
fn says(spec: &Spec) -> (String, Tone) {
    match &spec.says {
        Some(says) => {
            let tone = if says.misses > 0 { Tone::Warning } else { Tone::Plain };
            (format!("{} of {}", says.misses, says.jobs), tone)
        }
        None => ("–".into(), Tone::Plain),
    }
}

fn statistic(spec: &Spec, say: bool) -> Vec<(String, Tone)> {
    let time = |time: Option<Duration>| time.map_or("–".into(), |time| time.to_string());
    let mut row = plain(vec![
        spec.admission.spec.to_string(),
        visible(spec.name.as_deref().unwrap_or("–")),
        spec.thread.map_or("–".into(), |thread| thread.to_string()),
        time(spec.parameters.period),
        time(spec.admission.accepted_runtime),
    ]);
    row.extend(used(spec));
    row.extend(say.then(|| says(spec)));
    let notes: Vec<String> = detached(spec).into_iter().chain(enforcement(spec)).collect();
    let tone = if notes.is_empty() { Tone::Plain } else { Tone::Warning };
    row.push((notes.join("; "), tone));
    row
}

/// Why the daemon has detached its thread, if it has.
fn detached(spec: &Spec) -> Option<String> {
    let why = spec.thread_is.as_ref()?.strip_prefix("detached")?;
    Some(format!("DETACHED{}", visible(why)))
}

/// What is to be said of how a thread is held to its runtime.
fn enforcement(spec: &Spec) -> Vec<String> {
    let Some(enforced) = &spec.enforced else { return Vec::new() };
    let demoted = enforced.demoted.then(|| match enforced.demoted_for {
        Some(time) => format!("DEMOTED until its next budget, in {time}"),
        None => "DEMOTED until its next budget".to_owned(),
    });
    let problem = enforced.problem.as_ref().map(|why| format!("NOT HELD TO ITS RUNTIME: {}", visible(why)));
    let times = counted(enforced.put_back, "time");
    let put_back = (enforced.put_back > 0).then(|| format!("changed by somebody else and put back {times}"));
    demoted.into_iter().chain(problem).chain(put_back).collect()
}

/// What a thread took: by who watches it, else as the daemon measured it.
fn used(spec: &Spec) -> [(String, Tone); 4] {
    let enforced = spec.enforced.as_ref();
    let measured = enforced.map(|it| Used {
        jobs: it.jobs,
        worst_cost: it.worst_cost,
        overruns: it.overruns,
        misses: Some(it.misses),
    });
    let Some(used) = spec.used.or(measured) else { return [(); 4].map(|()| ("–".into(), Tone::Plain)) };
    let tone = if used.overruns > 0 { Tone::Warning } else { Tone::Plain };
    let overruns = match spec.admission.accepted_runtime {
        Some(_) => used.overruns.to_string(),
        None => "–".into(),
    };
    let jobs = (used.jobs.to_string(), Tone::Plain);
    let misses = used.misses.or(enforced.map(|enforced| enforced.misses));
    let late = if misses > Some(0) { Tone::Warning } else { Tone::Plain };
    let misses = (misses.map_or("–".into(), |misses| misses.to_string()), late);
    [jobs, (used.worst_cost.to_string(), tone), (overruns, tone), misses]
}

fn spec(spec: &Spec) -> Vec<(String, Tone)> {
    let (admission, declared) = (&spec.admission, &spec.parameters);
    let time = |time: Option<Duration>| time.map_or("–".into(), |time| time.to_string());
    let mut notes = Vec::new();
    let detached = detached(spec);
    if spec.thread.is_none() && detached.is_none() {
        notes.push("no thread yet".to_owned());
    }
    if admission.answer == Answer::Partial {
        notes.push("partial: a recommended parameter is missing".into());
    }
    if admission.accepted_runtime != declared.runtime {
        notes.push(format!("asked for {} to {}", time(declared.runtime), time(declared.desired_runtime)));
    }
    let mut row = plain(vec![
        admission.spec.to_string(),
        visible(spec.name.as_deref().unwrap_or("–")),
        visible(&admission.plugin),
        admission.processor.map_or("any".into(), |processor| processor.to_string()),
        policy(admission),
        time(declared.period),
        time(admission.accepted_runtime),
        time(declared.deadline.or(declared.period)),
        spec.user.to_string(),
        spec.process.to_string(),
        spec.thread.map_or("–".into(), |thread| thread.to_string()),
        notes.join("; "),
    ]);
    let otherwise = |is: &String| match is.strip_prefix("without slots") {
        Some(why) => format!("WITHOUT SLOTS{}", visible(why)),
        // So a guest of a table runs between its slots.
        None if is.starts_with("outside its slots") => visible(is),
        None => format!("CHANGED BY SOMEBODY ELSE: its thread is {}", visible(is)),
    };
    let changed = detached.or_else(|| spec.thread_is.as_ref().map(otherwise));
    let ignored = admission.admission_ignored.then(|| "NOT SCHEDULABLE when it was admitted".to_owned());
    let held = enforcement(spec);
    if changed.is_some() || ignored.is_some() || !held.is_empty() {
        let notes: Vec<String> = changed.into_iter().chain(held).chain(ignored).chain(notes).collect();
        row[SPECS.len() - 1] = (notes.join("; "), Tone::Warning);
    }
    row
}

fn policy(admission: &Admission) -> String {
    let priority = admission.policy_priority.map_or(String::new(), |priority| format!(" {priority}"));
    let nice = admission.policy_nice.map_or(String::new(), |nice| format!(" nice {nice}"));
    format!("{}{priority}{nice}", admission.policy.short_name())
}

/// One line for each processor of each plugin, in the order of their turns.
pub fn plugins(plugins: &[Plugin], page: &Page) -> String {
    if plugins.is_empty() {
        return "No plugins: nothing can be admitted.\n".into();
    }
    let mut table = Table::new(&PLUGINS);
    for plugin in plugins {
        let row = |of_processor: [String; 4]| {
            let priorities = match plugin.kind.as_str() {
                // They assign none.
                "EDF" | "GEDF" | "NICE" | "TT" => "–".into(),
                _ => format!("{}–{}", plugin.priority_min, plugin.priority_max),
            };
            let admission = match plugin.kind.as_str() {
                "GEDF" => "sufficient".into(),
                "NICE" => "none".into(),
                "TT" => "slot shifting".into(),
                _ => visible(&plugin.admission),
            };
            let of_plugin = [visible(&plugin.name), visible(&plugin.kind), admission, priorities];
            plain(of_plugin.into_iter().chain(of_processor).collect())
        };
        table.rows.extend(plugin.processors.iter().map(|processor| {
            row([
                processor.number.to_string(),
                processor.specs.to_string(),
                // Never less than it is.
                format!("{:.3}", (processor.utilization * 1e3).ceil() / 1e3),
                format!("{:.3}", plugin.threshold),
            ])
        }));
        if plugin.processors.is_empty() {
            table.rows.push(row(["any", "–", "–", "–"].map(String::from)));
        }
    }
    table.text(page) + &warnings(plugins, page)
}

/// What is to be known before plugins are relied on: nothing, or a paragraph for each.
pub fn warnings(plugins: &[Plugin], page: &Page) -> String {
    let warnings = plugins.iter().filter_map(|plugin| plugin.warning.as_deref());
    warnings.map(|text| paragraph(&format!("Warning: {}.", visible(text)), page)).collect()
}

/// One line for each client.
pub fn clients(clients: &[ClientInfo], page: &Page) -> String {
    if clients.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&CLIENTS);
    table.rows = clients
        .iter()
        .map(|client| {
            plain(vec![
                client.process.to_string(),
                client.user.to_string(),
                client.specs.to_string(),
                visible(&client.command),
            ])
        })
        .collect();
    "\n".to_owned() + &table.text(page)
}

/// The daemon's state in a sentence or two.
pub fn status(status: &Status, now: Instant) -> String {
    let mut text = format!(
        "punctuald {} (process {}) has run for {}: {}, {} with a thread; {}.\n",
        visible(&status.version),
        status.pid,
        about(now.since(status.since)),
        counted(status.specs.into(), "spec"),
        status.attached,
        counted(status.clients.into(), "client"),
    );
    if let Some(error) = &status.last_reload_error {
        text += &format!(
            "The last reload of the configuration failed, so the previous one stays in force: {}\n",
            visible(error)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn a_spec() -> Spec {
        let spec = json!({
            "admission": {
                "spec": 7, "plugin": "EDF", "answer": "ok", "admission_ignored": false, "processor": 1,
                "accepted_runtime_ns": 3_000_000,
                "policy": "deadline"
            },
            "name": "con\u{1b}trol", "parameters": {"period_ns": 10_000_000, "runtime_ns": 2_000_000,
                "desired_runtime_ns": 4_000_000},
            "user": 1000, "process": 12, "thread": 13
        });
        serde_json::from_value(spec).expect("a spec")
    }

    #[test]
    fn a_spec_is_a_line_and_its_accepted_runtime_is_explained() {
        let text = specs(&[a_spec()], &Page::default());
        assert_eq!(text.lines().count(), 2, "{text}");
        for part in ["con\\u{1b}trol", "DEADLINE", "10 ms", "3 ms", "1000", "asked for 2 ms to 4 ms"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn what_threads_took_is_shown_where_it_is_known() {
        let mut watched = a_spec();
        let other = a_spec();
        assert!(!specs(&[a_spec()], &Page::default()).contains("Worst cost"));
        watched.used = Some(punctual_client::Used {
            jobs: 4_711,
            worst_cost: Duration::from_us(3_250),
            overruns: 2,
            misses: Some(1),
        });
        let text = specs(&[watched, other], &Page::default());
        let lines: Vec<&str> = text.lines().collect();
        for part in ["Jobs", "Worst cost", "Overruns"] {
            assert!(lines[0].contains(part), "{part}: {text}");
        }
        assert!(
            lines[1].contains(" 4711 ") && lines[1].contains(" 3.25 ms ") && !lines[2].contains("4711"),
            "{text}"
        );
    }

    #[test]
    fn who_is_held_to_its_runtime_has_statistics() {
        let enforced = json!({"jobs": 12, "worst_cost_ns": 3_250_000, "overruns": 5, "misses": 4,
            "demoted": true, "demoted_for_ns": 2_000_000, "put_back": 1});
        let held = Spec { enforced: serde_json::from_value(enforced).expect("figures"), ..a_spec() };
        for text in
            [statistics(std::slice::from_ref(&held), &Page::default()), specs(&[held], &Page::default())]
        {
            let line = text.lines().nth(1).expect("a line");
            for part in [
                " 12 ",
                " 3.25 ms ",
                " 5 ",
                " 4 ",
                "DEMOTED until its next budget, in 2 ms;",
                "put back 1 time",
            ] {
                assert!(line.contains(part), "{part}: {text}");
            }
        }
        assert_eq!(statistics(&[], &Page::default()), "No spec has a thread.\n");
    }

    #[test]
    fn who_was_detached_keeps_its_figures() {
        let enforced = json!({"jobs": 12, "worst_cost_ns": 3_250_000, "overruns": 3, "misses": 4,
            "demoted": false, "put_back": 0});
        let detached = Spec {
            thread: None,
            thread_is: Some("detached: it took more than its runtime".into()),
            enforced: serde_json::from_value(enforced).expect("figures"),
            ..a_spec()
        };
        for text in [
            statistics(std::slice::from_ref(&detached), &Page::default()),
            specs(&[detached], &Page::default()),
        ] {
            let line = text.lines().nth(1).expect("a line");
            for part in [" 12 ", " 3.25 ms ", " 3 ", " 4 ", "DETACHED: it took more than its runtime"] {
                assert!(line.contains(part), "{part}: {text}");
            }
            assert!(!text.contains("no thread yet") && !text.contains("CHANGED"), "{text}");
        }
    }

    #[test]
    fn what_programs_say_stands_beside_what_was_measured() {
        let says = json!({"jobs": 1000, "misses": 7, "worst_response_ns": 12_000_000});
        let enforced = json!({"jobs": 990, "worst_cost_ns": 1, "overruns": 0, "misses": 4, "demoted": false,
            "put_back": 0});
        let spec = Spec {
            says: serde_json::from_value(says).expect("figures"),
            enforced: serde_json::from_value(enforced).expect("figures"),
            ..a_spec()
        };
        let both = [spec, a_spec()];
        for text in [statistics(&both, &Page::default()), specs(&both, &Page::default())] {
            let lines: Vec<&str> = text.lines().collect();
            assert!(lines[0].contains("Misses  Misses it says"), "{text}");
            assert!(lines[1].contains(" 4       7 of 1000") && !lines[2].contains(" of 1000"), "{text}");
        }
        assert!(!specs(&[a_spec()], &Page::default()).contains("says"));
    }

    #[test]
    fn unschedulable_specs_stand_out() {
        let mut spec = a_spec();
        (spec.admission.admission_ignored, spec.thread) = (true, None);
        let text = specs(&[spec], &Page { width: None, colour: true });
        assert!(
            text.contains("NOT SCHEDULABLE when it was admitted; no thread yet") && text.contains("\x1b["),
            "{text}"
        );
    }

    #[test]
    fn a_thread_changed_by_others_is_reported() {
        let spec = Spec { thread_is: Some("SCHED_OTHER, nice 0".into()), ..a_spec() };
        assert!(
            specs(&[spec], &Page::default())
                .contains("CHANGED BY SOMEBODY ELSE: its thread is SCHED_OTHER, nice 0")
        );
        for (is, shown) in [
            ("outside its slots: SCHED_OTHER, nice 0", "outside its slots: SCHED_OTHER, nice 0"),
            ("without slots: its table has ended", "WITHOUT SLOTS: its table has ended"),
        ] {
            let text = specs(&[Spec { thread_is: Some(is.into()), ..a_spec() }], &Page::default());
            assert!(text.contains(shown) && !text.contains("CHANGED"), "{text}");
        }
    }

    #[test]
    fn a_utilization_is_rounded_up() {
        let plugin = json!({
            "name": "RM", "kind": "rm", "admission": "exact", "priority_min": 1, "priority_max": 50,
            "threshold": 0.95,
            "processors": [{"number": 0, "utilization": 0.50001, "specs": 2},
                {"number": 1, "utilization": 0.0, "specs": 0}]
        });
        let text = plugins(&[serde_json::from_value(plugin).expect("a plugin")], &Page::default());
        assert_eq!(text.lines().count(), 3);
        assert!(text.contains("0.501") && text.contains("0.000") && text.contains("1–50"), "{text}");
    }

    #[test]
    fn a_plugin_without_processors_is_listed() {
        let plugin = json!({"name": "N", "kind": "NICE", "admission": "exact", "priority_min": 1,
            "priority_max": 99, "threshold": 0.95, "processors": []});
        let text = plugins(&[serde_json::from_value(plugin).expect("a plugin")], &Page::default());
        let line = text.lines().nth(1).expect("a line");
        assert!(line.starts_with("N ") && line.contains(" any ") && !line.contains("99"), "{text}");
    }

    #[test]
    fn a_plugin_in_doubt_says_so() {
        let plugin = json!({
            "name": "RM", "kind": "rm", "admission": "exact", "priority_min": 1, "priority_max": 50,
            "threshold": 0.95, "processors": [], "warning": "measured on another kernel"
        });
        let plugins = [serde_json::from_value(plugin).expect("a plugin")];
        assert_eq!(warnings(&plugins, &Page::default()), "Warning: measured on another kernel.\n");
        assert!(super::plugins(&plugins, &Page::default()).ends_with("another kernel.\n"));
    }

    #[test]
    fn empty_lists_are_described_in_words() {
        assert_eq!(specs(&[], &Page::default()), "No specs.\n");
        assert_eq!(plugins(&[], &Page::default()), "No plugins: nothing can be admitted.\n");
        assert_eq!(clients(&[], &Page::default()), "");
    }

    #[test]
    fn a_failed_reload_is_reported() {
        let error = Some("punctuald.toml:3: no such kind".to_owned());
        let since = Instant::from_ns(1_000_000_000);
        let state = Status {
            version: "1".into(),
            pid: 5,
            since,
            specs: 1,
            clients: 2,
            attached: 0,
            last_reload_error: error,
        };
        let text = status(&state, Instant::from_ns(3_000_000_000));
        assert!(text.contains("(process 5) has run for 2 s: 1 spec, 0 with a thread; 2 clients."), "{text}");
        assert!(text.contains("in force: punctuald.toml:3: no such kind"), "{text}");
    }
}
