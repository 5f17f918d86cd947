//! `punctual ctl`; `run --model` is in `models.rs`.

use crate::Table;
use crate::built::built;
use crate::server::{Server, expect_exit};
use punctual_test_support::{Outcome, Result, ensure};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub const ALL: Table = &[
    ("ctl::lists_plugins_specs_and_clients", tells),
    ("ctl::exit_codes_tell_kinds_of_failure", failures),
    ("ctl::run_makes_an_unmodified_program_real_time", runs),
    ("ctl::run_starts_nothing_that_is_not_admitted", refuses),
    ("ctl::run_survives_a_kill_of_the_daemon", survives),
    ("ctl::list_tells_what_a_watched_thread_really_took", watched),
];

fn json(command: Command) -> Result<Value> {
    Ok(serde_json::from_str(&expect_exit(command, 0)?.0)?)
}

pub fn specs(server: &Server) -> Result<Vec<Value>> {
    Ok(json(server.ctl(&["list", "--json"]))?["specs"].as_array().cloned().unwrap_or_default())
}

fn tells() -> Result<Outcome> {
    let server = Server::start()?;
    let status = json(server.ctl(&["status", "--json"]))?;
    ensure!(
        status["status"]["specs"] == 0
            && status["clients"].as_array().is_some_and(|clients| clients.len() == 1),
        "{status}"
    );
    let plugins = json(server.ctl(&["plugins", "--json"]))?;
    let names: Vec<&str> = plugins["plugins"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|plugin| plugin["name"].as_str())
        .collect();
    ensure!(names == ["RM", "FP", "RR", "EDF"], "{plugins}");
    for (what, word) in [("status", "has run for"), ("plugins", "EDF"), ("list", "No specs")] {
        let (out, _) = expect_exit(server.ctl(&[what]), 0)?;
        ensure!(out.contains(word), "{out}");
    }
    Ok(Outcome::Completed)
}

fn failures() -> Result<Outcome> {
    let server = Server::start()?;
    let expect = |arguments: &[&str], code: i32, words: &str| -> Result {
        let (_, err) = expect_exit(server.ctl(arguments), code)?;
        ensure!(err.contains(words) && err.lines().count() == 1, "{arguments:?}: {err}");
        Ok(())
    };
    expect(&["release", "4711"], 6, "there is no spec 4711")?;
    expect(&["status", "--socket", "/nowhere"], 7, "cannot be reached at /nowhere")?;
    expect(&["run", "--", "true"], 2, "--period")?;
    expect(&["run", "--priority", "5", "--", "/nowhere/at/all"], 4, "/nowhere/at/all cannot be started")?;
    expect(&["run", "--model", "/nowhere", "--", "true"], 5, "/nowhere")?;
    expect(&["run", "--period", "10ms", "--plugin", "XY", "--", "true"], 6, "XY")?;
    ensure!(specs(&server)?.is_empty(), "a spec stayed");
    Ok(Outcome::Completed)
}

/// The policy of a thread in `/proc/<pid>/stat`.
pub fn policy(process: u64, thread: u64) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/task/{thread}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(38)?.parse().ok()
}

fn runs() -> Result<Outcome> {
    let server = Server::start()?;
    // Seconds, of which the shell takes some milliseconds: who exceeds it is demoted.
    let mut command =
        server.ctl(&["run", "--period", "10s", "--runtime", "5s", "--name", "mine", "--", "sh", "-c"]);
    // The 41st field of stat is the policy; a program that the shell starts does not inherit it.
    command.arg(
        "read stat < /proc/$$/stat; set -- $stat; echo $$ ${41}; read stat < /proc/self/stat; \
         cut -d ' ' -f 41 /proc/self/stat; exit 7",
    );
    let (out, _) = expect_exit(command, 7)?;
    let lines: Vec<&str> = out.lines().collect();
    ensure!(lines.len() == 2 && lines[0].ends_with(" 1") && lines[1] == "0", "{out}");
    ensure!(specs(&server)?.is_empty(), "its spec did not end with it");
    Ok(Outcome::Completed)
}

fn refuses() -> Result<Outcome> {
    let server = Server::start()?;
    let mark = server.folder().join("it ran");
    let touch = mark.display().to_string();
    let (_, err) =
        expect_exit(server.ctl(&["run", "--period", "10ms", "--runtime", "9.9ms", "--", "touch", &touch]), 2)
            .or_else(|_| {
                expect_exit(
                    server.ctl(&["run", "--period", "10000us", "--runtime", "9900us", "--", "touch", &touch]),
                    6,
                )
            })?;
    ensure!(!mark.exists() && err.contains("punctual: "), "{err}");
    Ok(Outcome::Completed)
}

fn survives() -> Result<Outcome> {
    let mut server = Server::start()?;
    let mut command =
        server.ctl(&["run", "--priority", "5", "--plugin", "FP", "--", "sh", "-c", "echo $$; read end"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    let Some(stdout) = child.stdout.take() else { return Err("no output".into()) };
    BufReader::new(stdout).read_line(&mut line)?;
    let process: u64 = line.trim().parse()?;
    let before = specs(&server)?;
    server.restart()?;
    let after = specs(&server)?;
    let scheduled = policy(process, process);
    drop(child.stdin.take());
    child.wait()?;
    ensure!(before.len() == 1 && before == after, "{before:?} became {after:?}");
    ensure!(scheduled == Some(1), "its policy is {scheduled:?}");
    Ok(Outcome::Completed)
}

/// A program that is killed when this is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A thread that was admitted with too short a runtime, by a contract that lets it take an hour.
fn watched() -> Result<Outcome> {
    let server = Server::start()?;
    let contract = server.folder().join("a.contract.toml");
    std::fs::write(&contract, "[[task]]\nname = \"perl\"\nwcet = \"1h\"\n")?;
    let mut program =
        server.ctl(&["run", "--period", "10ms", "--runtime", "1us", "--name", "a", "--", "perl"]);
    program.args(["-e", "select(undef, undef, undef, 0.01) while 1"]);
    let program = Killed(program.stdin(Stdio::null()).spawn()?);
    await_use(&server, |used| used.is_null())?;
    let mut watch = server.program(&built().punctual);
    watch.args(["watch", "--quiet", "--no-journal"]).arg(&contract);
    watch.args(["--pid", &program.0.id().to_string()]);
    let watch = Killed(watch.stdout(Stdio::null()).spawn()?);
    await_use(&server, |used| used["jobs"].as_u64() > Some(10))?;
    let used = await_use(&server, |used| used["overruns"].as_u64() > Some(0))?;
    ensure!(used["worst_cost_ns"].as_u64() > Some(1_000), "{used}");
    // Its deadline is its period: what misses that depends on this machine.
    ensure!(used["misses"].as_u64() <= used["jobs"].as_u64() && used["misses"].is_u64(), "{used}");
    let (text, _) = expect_exit(server.ctl(&["stats", "--openmetrics"]), 0)?;
    ensure!(text.contains("punctual_spec_observed_misses_total{"), "{text}");
    let (text, _) = expect_exit(server.ctl(&["list"]), 0)?;
    ensure!(text.contains("Worst cost"), "{text}");
    drop((watch, program));
    Ok(Outcome::Completed)
}

/// Waits until what the only spec used is as expected.
fn await_use(server: &Server, expected: impl Fn(&Value) -> bool) -> Result<Value> {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let specs = specs(server)?;
        let used = specs.first().filter(|spec| spec["thread"].is_u64()).map(|spec| spec["used"].clone());
        match used {
            Some(used) if expected(&used) => return Ok(used),
            _ if Instant::now() > end => return Err(format!("{specs:#?}").into()),
            _ => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}
