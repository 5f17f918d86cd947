//! Reads an input as `punctuald.toml`: problems are reported with their place; a valid configuration can be
//! applied, and written out in full it means the same. Called by the fuzzer and by `tests/fuzz.rs`.

use punctual_daemon::config::{Config, Kind, Machine, PluginConfig, processor_list};
use punctual_daemon::enforce::{Accounting, Changes, Overruns, Policy};
use punctual_daemon::text::Problem;
use punctual_schedule::Limits;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

const PATH: &str = "/etc/punctual/punctuald.toml";

pub fn read(data: &[u8]) {
    // Other files are refused before they are parsed.
    let Ok(text) = std::str::from_utf8(data) else { return };
    processors(text);
    let machine = Machine { processors: vec![0, 1, 2, 3, 5], priorities: (1, 99), ..Machine::default() };
    let parse = |text: &str| Config::parse(text, Path::new(PATH), &machine);
    match parse(text) {
        Err(error) => {
            assert!(!error.0.is_empty());
            error.0.iter().for_each(|problem| check(problem, text));
        }
        Ok((mut config, warnings)) => {
            warnings.iter().for_each(|problem| check(problem, text));
            makes_sense(&config, &machine);
            // Which group has a number is another question.
            config.socket.group = None;
            let full = written(&config);
            let (again, _) = parse(&full).unwrap_or_else(|error| panic!("{error}\n{full}"));
            assert_eq!(again, config, "{full}");
        }
    }
}

/// A problem is one line that names a place in the text.
fn check(problem: &Problem, text: &str) {
    assert!(!problem.message.is_empty() && problem.to_string().starts_with(PATH));
    assert!(!problem.message.contains('\n'), "{problem}");
    if let Some((line, column)) = problem.at {
        let lines: Vec<&str> = text.split('\n').collect();
        assert!((1..=lines.len()).contains(&line), "{problem}");
        assert!((1..=lines[line - 1].chars().count() + 1).contains(&column), "{problem}");
    }
}

fn makes_sense(config: &Config, machine: &Machine) {
    let quotas = config.quotas;
    let all = [quotas.connections, quotas.connections_per_user, quotas.specs, quotas.specs_per_user];
    assert!(all.iter().all(|quota| (1..=65_536).contains(quota)));
    assert!(config.socket.path.as_os_str().len() <= 107 && config.socket.mode <= 0o777);
    assert!((1..=64).contains(&config.plugins.len()));
    let names: BTreeSet<&str> = config.plugin_names().into_iter().collect();
    assert_eq!(names.len(), config.plugins.len(), "a name is there twice");
    for PluginConfig { name, priorities: (least, greatest), processors, threshold, .. } in &config.plugins {
        // A rule for it has one word for it.
        assert!(
            !name.is_empty()
                && name != "-"
                && name.len() <= 31
                && !name.contains(|c: char| c.is_whitespace() || c == '#')
        );
        assert!(machine.priorities.0 <= *least && least <= greatest && *greatest <= machine.priorities.1);
        assert!(!processors.is_empty() && processors.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(processors.iter().all(|processor| machine.processors.contains(processor)));
        assert!(*threshold > 0.0 && *threshold <= 1.0);
    }
    // Any object that is named would be loaded.
    if config.plugins.iter().all(|plugin| matches!(plugin.kind, Kind::BuiltIn(_))) {
        config.plugins(Limits::default()).expect("what was checked can be made");
    }
}

/// A configuration with everything said.
fn written(config: &Config) -> String {
    let Config { socket, state, rules, quotas, plugins, lift_realtime_limit, .. } = config;
    let path = |path: &Path| string(path.to_str().expect("it came from a text"));
    let mut text = format!(
        "socket = {{ path = {}, mode = '{:o}' }}\nstate.directory = {}\n\
         kernel.lift_realtime_limit = {lift_realtime_limit}\n",
        path(&socket.path),
        socket.mode,
        path(state),
    );
    if let Some(rules) = rules {
        let _ = writeln!(text, "rules.file = {}", path(rules));
    }
    let _ = writeln!(
        text,
        "[quotas]\nconnections = {}\nconnections_per_user = {}\nspecs = {}\nspecs_per_user = {}",
        quotas.connections, quotas.connections_per_user, quotas.specs, quotas.specs_per_user
    );
    let _ = writeln!(text, "{}", enforcement(&config.enforcement));
    for plugin in plugins {
        // Where latencies were read from is not kept.
        let PluginConfig {
            name,
            kind,
            priorities: (least, greatest),
            processors,
            threshold,
            test,
            clamps,
            ..
        } = plugin;
        let kind = match kind {
            Kind::BuiltIn(_) | Kind::Table => format!("kind = '{kind}'"),
            Kind::Object(object) => format!("object = {}", path(object)),
        };
        let _ = writeln!(
            text,
            "[[plugin]]\nname = {}\n{kind}\npriorities = [{least}, {greatest}]\n\
             processors = {processors:?}\nutilization = {threshold:?}\nadmission = '{test}'",
            string(name)
        );
        let share = |clamp: u32| f64::from(clamp) / 1024.0;
        for (key, clamp) in [("util_min", clamps.min), ("util_max", clamps.max)] {
            let _ = clamp.map(|clamp| writeln!(text, "{key} = {:?}", share(clamp)));
        }
    }
    text
}

fn enforcement(policy: &Policy) -> String {
    let overruns = match policy.overruns {
        Overruns::Count => "count",
        Overruns::Warn => "warn",
        Overruns::Demote => "demote",
        Overruns::Detach => "detach",
    };
    let changes = match policy.changes {
        Changes::Show => "show",
        Changes::PutBack => "put-back",
        Changes::Detach => "detach",
    };
    let measuring = match (policy.accounting, policy.polls) {
        (Accounting::IfRefused, _) => "auto",
        (Accounting::Always, _) => "accounting",
        (Accounting::Never, false) => "events",
        (Accounting::Never, true) => "polling",
    };
    format!("[enforcement]\noverruns = '{overruns}'\nchanges = '{changes}'\nmeasuring = '{measuring}'")
}

/// As TOML has it: as JSON, which lets one control character stand as it is.
fn string(text: &str) -> String {
    serde_json::to_string(text).expect("a string").replace('\x7f', "\\u007f")
}

/// The list of processors that stands in such a file, and in `/sys`.
fn processors(text: &str) {
    if let Ok(list) = processor_list(text) {
        assert!(!list.is_empty() && list.windows(2).all(|pair| pair[0] < pair[1]));
        let listed: Vec<String> = list.iter().map(u32::to_string).collect();
        assert_eq!(processor_list(&listed.join(",")), Ok(list));
    }
}
