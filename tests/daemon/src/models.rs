//! `punctual ctl run --model`: which thread gets which spec, and messages about those that get none.

use crate::Table;
use crate::built::{built, compiled, root};
use crate::ctl::{policy, specs};
use crate::server::{Server, expect_exit};
use punctual_test_support::{Outcome, Result, ensure, run, skip, wait_until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

pub const ALL: Table = &[
    ("models::run_schedules_threads_by_name", by_name),
    ("models::run_takes_a_contract_as_it_is", by_contract),
    ("models::threads_of_one_name_get_specs_in_order_of_start", by_start),
    ("models::a_first_thread_is_not_mistaken_for_one_it_starts", first_threads),
    ("models::threads_without_a_spec_are_listed", surplus),
    ("models::threads_are_chosen_by_name_and_by_jobs", chosen),
    ("models::a_model_without_threads_names_the_remedy", empty),
    ("models::run_forwards_signals", signals),
];

/// Nothing takes this long unless it hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// A program with threads of given names (see its source), which runs until its standard input ends.
fn program(server: &Server) -> Result<PathBuf> {
    if let Some(program) = compiled("named") {
        return Ok(program);
    }
    let program = server.folder().join("named");
    let mut cc = Command::new("cc");
    cc.args(["-D_GNU_SOURCE", "-pthread", "-o"]).arg(&program).arg(root().join("tests/daemon/c/named.c"));
    expect_exit(cc, 0)?;
    Ok(program)
}

/// The model of the repository's recording, as text. It is replayed once.
fn recorded() -> Result<&'static str> {
    static RECORDED: OnceLock<std::result::Result<String, String>> = OnceLock::new();
    let recorded = RECORDED.get_or_init(|| {
        let mut replay = Command::new(&built().punctual);
        replay.args(["replay", "--quiet", "--json"]).arg(root().join("tests/recordings/demo"));
        expect_exit(replay, 0).map(|(text, _)| text).map_err(|failure| failure.message)
    });
    Ok(recorded.as_ref()?)
}

/// A model with threads of these names, periods (in ms) and numbers of jobs. None is the first of its
/// process; otherwise all are like one in the repository's recording.
fn model(server: &Server, threads: &[(&str, u64, u64)]) -> Result<String> {
    let file = server.folder().join("named.timing.json");
    let mut model: Value = serde_json::from_str(recorded()?)?;
    let tasks = model["threads"]["tasks"].as_array().into_iter().flatten();
    let like: Vec<Value> =
        tasks.filter(|task| task["name"] == "sleep-abs" && task["policy"] == "SCHED_FIFO").cloned().collect();
    let [like] = &like[..] else { return Err(format!("{} tasks are named sleep-abs", like.len()).into()) };
    let primary = like["primary"].as_u64().unwrap_or(0) as usize;
    let tasks = threads.iter().enumerate().map(|(at, (name, period, jobs))| {
        let mut task = like.clone();
        (task["name"], task["pid"], task["tid"]) = ((*name).into(), 100.into(), (101 + at).into());
        let stream = &mut task["streams"][primary];
        (stream["jobs"], stream["releases"], stream["uncertain_releases"]) =
            ((*jobs).into(), (*jobs).into(), 0.into());
        stream["arrival"]["periodic"]["period_ns"] = (period * 1_000_000).into();
        task
    });
    model["threads"]["tasks"] = tasks.collect();
    std::fs::write(&file, model.to_string())?;
    Ok(file.display().to_string())
}

/// `punctual ctl run --model`, with a program that ends when this is dropped.
struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    fn start(server: &Server, options: &[&str], model: &str, names: &[&str]) -> Result<Running> {
        let mut command = server.ctl(&["run", "--model", model]);
        command.args(options).arg("--").arg(program(server)?).args(names);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let Some(stderr) = child.stderr.take() else { return Err("no standard error".into()) };
        Ok(Running { child, lines: lines(stderr) })
    }

    /// Lets a thread take its name.
    fn send_line(&mut self) -> Result {
        let Some(stdin) = &mut self.child.stdin else { return Err("no standard input".into()) };
        stdin.write_all(b"\n")?;
        Ok(stdin.flush()?)
    }

    /// The lines up to one with these words.
    fn until(&self, words: &str) -> Result<String> {
        let mut lines = Vec::new();
        while lines.last().is_none_or(|line: &String| !line.contains(words)) {
            match self.lines.recv_timeout(LIMIT) {
                Ok(line) => lines.push(line),
                Err(error) => return Err(format!("no line has {words:?} ({error}): {lines:?}").into()),
            }
        }
        Ok(lines.join("\n"))
    }

    /// Ends the program. Returns the remaining lines.
    fn end(mut self) -> Result<String> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        let output = self.lines.iter().collect::<Vec<_>>().join("\n");
        ensure!(status.code() == Some(9), "{status}: {output}");
        Ok(output)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It ends with its program, which ends with its standard input.
        let _ = self.child.wait();
    }
}

fn lines(stderr: ChildStderr) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        BufReader::new(stderr).lines().map_while(|line| line.ok()).try_for_each(|line| sender.send(line))
    });
    receiver
}

/// Waits until this many threads have specs. Returns the period in ms, TID and name of each, ordered by TID.
fn attached(server: &Server, wanted: usize) -> Result<Vec<(u64, u64, String)>> {
    let mut found = Vec::new();
    for _ in 0..2_000 {
        let thread = |spec: &Value| {
            let period = spec["parameters"]["period_ns"].as_u64()? / 1_000_000;
            Some((period, spec["thread"].as_u64()?, spec["name"].as_str()?.to_owned()))
        };
        found = specs(server)?.iter().filter_map(thread).collect();
        if found.len() == wanted {
            found.sort_by_key(|(_, thread, _)| *thread);
            return Ok(found);
        }
    }
    Err(format!("there never were: {found:?}").into())
}

fn name_of(thread: u64) -> Result<String> {
    Ok(std::fs::read_to_string(format!("/proc/{thread}/comm"))?.trim().to_owned())
}

fn by_name() -> Result<Outcome> {
    let server = Server::start()?;
    let model =
        model(&server, &[("control", 5, 50), ("audio", 8, 50), ("audio", 20, 50), ("missing", 25, 50)])?;
    let running = Running::start(
        &server,
        &["--margin", "50%"],
        &model,
        &["main", "control", "audio", "audio", "unknown"],
    )?;
    let threads = attached(&server, 3)?;
    for (_, thread, name) in &threads {
        ensure!(name_of(*thread)? == *name, "{threads:?}");
        // One that was still on its way to sleep may have exceeded its runtime: until its next period.
        wait_until("its policy", || policy(*thread, *thread) == Some(1))?;
    }
    let periods: Vec<u64> = threads.iter().map(|(period, ..)| *period).collect();
    ensure!(periods == [5, 8, 20] && specs(&server)?.len() == 4, "{threads:?}");
    let output = running.end()?;
    let ambiguous = "2 threads named audio have different specs, which are assigned in the order in which \
                     threads of that name start: period 8 ms,";
    ensure!(output.starts_with(&format!("punctual: {ambiguous}")), "{output}");
    ensure!(output.contains("no thread named missing appeared; its spec was not used"), "{output}");
    ensure!(!output.contains("unknown") && !output.contains("keeps its scheduling"), "{output}");
    ensure!(specs(&server)?.is_empty(), "specs stayed");
    Ok(Outcome::Completed)
}

fn by_contract() -> Result<Outcome> {
    let server = Server::start()?;
    let contract = server.folder().join("named.contract.toml");
    let text = "[[task]]\nname = \"control\"\nperiod = \"5ms\"\nwcet = \"1ms\"\ndeadline = \"4ms\"\n\
                [[task]]\nname = \"sound\"\nthread = { comm = \"audio\" }\nthreads = 2\n\
                separation = \"8ms\"\nwcet = \"10us\"\n\
                [[task]]\nname = \"unfinished\"\nperiod = \"1ms\"\n";
    std::fs::write(&contract, text)?;
    let contract = contract.display().to_string();
    let running = Running::start(&server, &[], &contract, &["main", "control", "audio", "audio"])?;
    let threads = attached(&server, 3)?;
    let found: Vec<(u64, &str)> = threads.iter().map(|(period, _, name)| (*period, name.as_str())).collect();
    ensure!(found == [(5, "control"), (8, "audio"), (8, "audio")], "{threads:?}");
    let parameters: Vec<Value> = specs(&server)?.iter().map(|spec| spec["parameters"].clone()).collect();
    let control = json!({"runtime_ns": 1_000_000, "period_ns": 5_000_000, "deadline_ns": 4_000_000});
    let audio = json!({"runtime_ns": 10_000, "period_ns": 8_000_000});
    ensure!(parameters == [control, audio.clone(), audio], "{parameters:?}");
    let output = running.end()?;
    ensure!(output.contains("task unfinished gets no spec: its wcet is not agreed on"), "{output}");
    Ok(Outcome::Completed)
}

fn by_start() -> Result<Outcome> {
    let server = Server::start()?;
    let model = model(&server, &[("control", 20, 50), ("control", 10, 50)])?;
    // The first to start gets its name last.
    let mut running = Running::start(&server, &[], &model, &["main", ":control", "control"])?;
    let one = attached(&server, 1)?;
    running.send_line()?;
    running.until("runs under RM, period 10 ms")?;
    let both = attached(&server, 2)?;
    let periods: Vec<u64> = both.iter().map(|(period, ..)| *period).collect();
    ensure!(periods == [20, 10] && both[1].1 == one[0].1, "{one:?}, then {both:?}");
    running.end()?;
    Ok(Outcome::Completed)
}

fn first_threads() -> Result<Outcome> {
    let server = Server::start()?;
    let model = model(&server, &[("control", 5, 50)])?;
    let mut running = Running::start(&server, &[], &model, &["control", ":control"])?;
    running.until("keeps its scheduling: it is the first thread of its process")?;
    ensure!(specs(&server)?.iter().all(|spec| spec["thread"].is_null()), "the first thread is scheduled");
    running.send_line()?;
    running.until("thread control (")?;
    let threads = attached(&server, 1)?;
    ensure!(process_of(threads[0].1)? != threads[0].1, "{threads:?} is the first of its process");
    running.end()?;
    Ok(Outcome::Completed)
}

/// The process of a thread.
fn process_of(thread: u64) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status"))?;
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    Ok(process.unwrap_or_default().trim().parse()?)
}

fn surplus() -> Result<Outcome> {
    let server = Server::start()?;
    let model = model(&server, &[("audio", 8, 50)])?;
    let running = Running::start(&server, &["--quiet"], &model, &["main", "audio", "audio", "audio"])?;
    let output = running.until("audio (")?;
    let surplus = "keeps its scheduling: the model's only spec for audio is taken";
    ensure!(output.ends_with(surplus), "{output}");
    attached(&server, 1)?;
    let output = running.end()?;
    ensure!(!output.contains("keeps its scheduling"), "reported more than once: {output}");
    Ok(Outcome::Completed)
}

fn chosen() -> Result<Outcome> {
    let server = Server::start()?;
    let threads = [
        ("control", 5, 50),
        ("sh", 20, 2),
        ("sh", 20, 3),
        ("vision", 40, 50),
        ("twin", 50, 50),
        ("twin", 50, 9),
    ];
    let model = model(&server, &threads)?;
    // Threads that were waited for had a spec.
    let run_with = |options: &[&str], expected: &[&str]| -> Result<String> {
        let mut command = server.ctl(&["run", "--model", &model]);
        command.args(options).args(["--", "true"]);
        let (_, err) = expect_exit(command, 0)?;
        let waited =
            err.lines().filter_map(|line| line.strip_prefix("punctual: no thread named ")?.split_once(' '));
        let waited: Vec<&str> = waited.map(|(name, _)| name).collect();
        ensure!(waited == expected, "{options:?}: {err}");
        Ok(err)
    };
    let err = run_with(&[], &["control", "twin", "vision"])?;
    let few = "punctual: 3 threads of the model with fewer than 10 jobs get no spec (--min-jobs): sh (2 \
               times), twin\n";
    ensure!(
        err.starts_with(few) && err.contains("only 1 of 2 threads named twin in the model gets a spec"),
        "{err}"
    );
    run_with(&["--min-jobs", "3"], &["control", "sh", "twin", "vision"])?;
    run_with(&["--thread", "c*", "--thread", "vision"], &["control", "vision"])?;
    run_with(&["--without", "control", "--without", "tw??"], &["vision"])?;
    run_with(&["--thread", "control", "--plugin", "FP", "--keep-priorities"], &["control"])?;
    let fails = |options: &[&str], code: i32, words: &str| -> Result {
        let mut command = server.ctl(&["run", "--model", &model]);
        command.args(options).args(["--", "true"]);
        let (_, err) = expect_exit(command, code)?;
        ensure!(err.contains(words) && err.lines().count() == 1, "{options:?}: {err}");
        Ok(())
    };
    fails(&["--without", "nobody"], 4, "has no thread that matches 'nobody'; punctual show ")?;
    fails(
        &["--thread", "sh"],
        5,
        "has no thread that gets a spec: 2 threads of the model with fewer than 10 jobs get no spec \
         (--min-jobs): sh (2 times)",
    )?;
    fails(&["--thread", "sh", "--without", "sh"], 5, "--thread and --without leave none")?;
    fails(&["--thread", "vision", "--plugin", "XY"], 6, "nothing was started; --without vision excludes it")?;
    fails(
        &["--thread", "vision", "--plugin", "FP"],
        6,
        "FP: needs a declared priority; nothing was started; --keep-priorities declares the priorities of \
         the model",
    )?;
    ensure!(specs(&server)?.is_empty(), "specs stayed");
    Ok(Outcome::Completed)
}

fn empty() -> Result<Outcome> {
    let server = Server::start()?;
    let model = model(&server, &[])?;
    let (_, err) = expect_exit(server.ctl(&["run", "--model", &model, "--", "true"]), 5)?;
    let advice = "has no threads; if the program is not real-time yet, make the model with punctual extract \
                  --include-best-effort";
    ensure!(err.contains(advice) && err.lines().count() == 1, "{err}");
    Ok(Outcome::Completed)
}

fn signals() -> Result<Outcome> {
    let server = Server::start()?;
    let model = model(&server, &[("control", 5, 50)])?;
    let mut command = server.ctl(&["run", "--quiet", "--model", &model, "--", "sh", "-c"]);
    command.arg("trap 'exit 5' USR1; echo ready; while :; do sleep 0.01; done");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut line = String::new();
    let Some(stdout) = child.stdout.take() else { return Err("no output".into()) };
    BufReader::new(stdout).read_line(&mut line)?;
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::USR1)?;
    let status = child.wait()?;
    ensure!(status.code() == Some(5), "it ended with {status}");
    let killed = run(server.ctl(&["run", "--quiet", "--model", &model, "--", "sh", "-c", "kill -KILL $$"]))?;
    killed.expect_code(128 + 9)?;
    if std::fs::metadata("/proc/thread-self/children").is_err() {
        return skip("this kernel does not list the children of threads");
    }
    Ok(Outcome::Completed)
}
