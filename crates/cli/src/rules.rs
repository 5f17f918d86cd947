//! `punctual rules`: checks and explains access rules, without asking the daemon.

mod args;
mod show;

pub use args::Arguments;

use crate::console;
use crate::failure::{Code, Failure};
use crate::output::print;
use args::{Action, Check, Explain};
use nix::unistd::{Gid, Group, Uid, User};
use punctual_daemon::access::{Domain, Share, Usage, Who};
use punctual_daemon::config::{self, Config};
use punctual_daemon::rules::{self, Explanation, Rules};
use punctual_daemon::text::Problem;
use punctual_protocol::Parameters;
use std::ffi::CString;
use std::path::{Path, PathBuf};

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.action {
        Action::Check(check) => run_check(check),
        Action::Explain(explain) => run_explain(explain),
    }
}

fn run_check(arguments: &Check) -> Result<(), Failure> {
    let config = configuration(arguments.config.as_deref())?;
    let path = arguments
        .file
        .clone()
        .or_else(|| config.as_ref().and_then(|config| config.rules.clone()))
        .unwrap_or_else(usual_place);
    let advice = "punctual rules check FILE checks another file";
    let (rules, warnings) = load(&path, arguments.file.as_deref(), config.as_ref(), advice)?;
    match arguments.json {
        true => print(&show::check_json(&path, &rules, &warnings)),
        false => {
            warn(&warnings);
            print(&show::check(&path, &rules))
        }
    }
}

fn run_explain(arguments: &Explain) -> Result<(), Failure> {
    let config = configuration(arguments.config.as_deref())?;
    let path = arguments
        .rules
        .clone()
        .or_else(|| config.as_ref().and_then(|config| config.rules.clone()))
        .unwrap_or_else(usual_place);
    let advice = "--rules FILE reads another file";
    let (rules, warnings) = load(&path, arguments.rules.as_deref(), config.as_ref(), advice)?;
    let who = who(arguments)?;
    let parameters =
        Some(arguments.declared.parameters(None)).filter(|declared| *declared != Parameters::default());
    let plugins = plugins(arguments.plugin.as_deref(), config.as_ref(), &rules)?;
    let explained: Vec<Explanation> =
        plugins.iter().map(|plugin| rules.explain(&who, plugin, parameters.as_ref(), &Nothing)).collect();
    match arguments.json {
        true => print(&show::explain_json(&who, &explained)),
        false => {
            warn(&warnings);
            print(&show::explain(&who, &explained, parameters.is_some()))
        }
    }
}

/// The named configuration, or the default one; without any, plugin names are unknown.
fn configuration(named: Option<&Path>) -> Result<Option<Config>, Failure> {
    let usual = Path::new(config::DEFAULT_PATH);
    let Some(path) = named.or_else(|| usual.exists().then_some(usual)) else { return Ok(None) };
    // Its own warnings are for punctuald --check-config.
    Config::load(path)
        .map(|(config, _)| Some(config))
        .map_err(|error| Failure::new(Code::File, error.to_string()))
}

fn usual_place() -> PathBuf {
    rules::DEFAULT_PATH.into()
}

/// Reads rules. If there is no file at a path that the user did not name, the error has `advice`.
fn load(
    path: &Path,
    named: Option<&Path>,
    config: Option<&Config>,
    advice: &str,
) -> Result<(Rules, Vec<Problem>), Failure> {
    let names = config.map(Config::plugin_names);
    Rules::load(path, names.as_deref()).map_err(|error| {
        let advice = if named.is_none() && !path.exists() { format!("; {advice}") } else { String::new() };
        Failure::new(Code::File, format!("{error}{advice}"))
    })
}

fn warn(warnings: &[Problem]) {
    for warning in warnings {
        console::message(&format!("warning: {warning}"));
    }
}

/// The requested plugin, otherwise all: those of the configuration or, without one, the built-in ones and
/// those named in rules.
fn plugins(named: Option<&str>, config: Option<&Config>, rules: &Rules) -> Result<Vec<String>, Failure> {
    if let Some(name) = named {
        return match config.filter(|config| !config.plugin_names().contains(&name)) {
            None => Ok(vec![name.to_owned()]),
            Some(config) => {
                let there = config.plugin_names().join(", ");
                Err(Failure::new(
                    Code::Usage,
                    format!("there is no plugin '{name}'; the configuration has {there}"),
                ))
            }
        };
    }
    if let Some(config) = config {
        return Ok(config.plugin_names().into_iter().map(str::to_owned).collect());
    }
    let mut names: Vec<String> = rules.rules().iter().filter_map(|rule| rule.plugin.clone()).collect();
    names.extend(["EDF", "RM", "FP", "RR", "GEDF", "NICE", "TT"].map(str::to_owned));
    names.sort();
    names.dedup();
    Ok(names)
}

/// The credentials that a process of that user, started at login, would have.
fn who(arguments: &Explain) -> Result<Who, Failure> {
    let user = match &arguments.user {
        None => User::from_uid(Uid::effective()).ok().flatten(),
        Some(name) => Some(user(name)?),
    };
    let group = arguments.group.as_deref().map(group).transpose()?;
    match user {
        Some(user) => {
            let groups = CString::new(user.name.as_str())
                .ok()
                .and_then(|name| nix::unistd::getgrouplist(&name, user.gid).ok());
            let groups = groups.unwrap_or_default().into_iter().map(Gid::as_raw).collect();
            Ok(Who { user: user.uid.as_raw(), group: group.unwrap_or(user.gid.as_raw()), groups })
        }
        None => Ok(Who {
            user: Uid::effective().as_raw(),
            group: group.unwrap_or(Gid::effective().as_raw()),
            groups: Vec::new(),
        }),
    }
}

fn user(name: &str) -> Result<User, Failure> {
    let found = User::from_name(name)
        .ok()
        .flatten()
        .or_else(|| User::from_uid(Uid::from_raw(name.parse().ok()?)).ok().flatten());
    found.ok_or_else(|| Failure::new(Code::Target, format!("there is no user '{name}' here")))
}

fn group(name: &str) -> Result<u32, Failure> {
    let found =
        Group::from_name(name).ok().flatten().map(|group| group.gid.as_raw()).or_else(|| name.parse().ok());
    found.ok_or_else(|| Failure::new(Code::Target, format!("there is no group '{name}' here")))
}

/// No admitted specs.
struct Nothing;

impl Usage for Nothing {
    fn share(&self, _: Domain, _: Option<&str>) -> Share {
        Share::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn outcome(line: &str) -> Result<(), Failure> {
        match crate::args::Arguments::try_parse_from(line.split(' ')).expect("a command line").command {
            crate::args::Command::Rules(arguments) => run(&arguments),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn failures_say_what_and_where() {
        let folder = tempfile::tempdir().expect("a directory");
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            path.display().to_string()
        };
        let config = file("p.toml", "[[plugin]]\nname = \"RM\"\nkind = \"RM\"\n");
        let good = file("good.conf", "root RM max_period 9000\n");
        let bad = file("bad.conf", "root EDF max_period 9000\nroot RM max_periods 9000\n");
        outcome(&format!("punctual rules check {good} --config {config}")).expect("fine");
        outcome(&format!("punctual rules explain --user root --rules {good} --config {config} --period 1ms"))
            .expect("fine");
        let failed =
            |line: &str| outcome(line).map_err(|failure| (failure.code, failure.message)).expect_err(line);
        let (code, message) = failed(&format!("punctual rules check {bad} --config {config}"));
        assert_eq!(code, Code::File);
        assert!(
            message.contains("bad.conf:1: there is no plugin 'EDF'")
                && message.contains("bad.conf:2: 'max_periods' is not a property"),
            "{message}"
        );
        let (code, message) =
            failed(&format!("punctual rules explain --user no-such-user --rules {good} --config {config}"));
        assert_eq!((code, message.as_str()), (Code::Target, "there is no user 'no-such-user' here"));
        let (code, message) =
            failed(&format!("punctual rules explain --plugin EDF --rules {good} --config {config}"));
        assert_eq!(
            (code, message.as_str()),
            (Code::Usage, "there is no plugin 'EDF'; the configuration has RM")
        );
        assert_eq!(failed("punctual rules check /no/such/file").0, Code::File);
    }
}
