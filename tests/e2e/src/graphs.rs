//! Graphs of probed programs that nobody declared: a join and barriers on one executor, deadlines, lists,
//! parts of a trace, and programs that run already.

use crate::run::{Ended, directory, punctual, run, workload};
use crate::{Outcome, Result, Test, ensure, fail, skip};
use libtest_mimic::Completion;
use punctual_model::TimingModel;
use punctual_model::dataflow::{Connections, Dataflow, Keeps};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub const ALL: &[(&str, Test)] = &[
    ("graphs::connections_are_found", found),
    ("graphs::a_barrier_that_never_completes", silent),
    ("graphs::deadlines", deadlines),
    ("graphs::lists_and_parts", lists),
    ("graphs::a_program_that_runs", running),
    ("graphs::with_its_threads", with_threads),
];

const ROUNDS: u64 = 200;
const CHAINS: [&str; 4] = [
    "cam1 craT navi ter1 log",
    "cam1 craT navi ter2 log",
    "cam2 feaT navi ter1 log",
    "cam2 feaT navi ter2 log",
];

/// The stand-in for the Tasking Framework; `None` where there is no compiler.
fn program() -> Option<String> {
    Some(workload("tasking")).filter(|path| Path::new(path).exists())
}

/// A trace of the paper's program with a barrier, without any declaration.
fn trace(directory: &Path, mode: &[&str]) -> Result<Option<PathBuf>> {
    let Some(program) = program() else { return Ok(None) };
    let folder = directory.join("trace");
    let mut record = punctual(["record", "-q", "--flow-probes", "tasking-framework-1.2", "-o"]);
    record.arg(&folder).arg("--").arg(program).arg(ROUNDS.to_string()).args(mode);
    let ended = run(record)?;
    ended.expect_code(0)?;
    ensure!(ended.stderr.is_empty(), "a right file causes no doubts: {}", ended.all());
    Ok(Some(folder))
}

fn chains(folder: &Path, options: &[&str]) -> Result<Ended> {
    let mut chains = punctual(["chains"]);
    chains.arg(folder).args(options);
    run(chains)
}

fn flow(ended: &Ended) -> Result<Dataflow> {
    let model = TimingModel::from_json(&ended.stdout).or_else(|error| fail(format!("{error}")))?;
    model.dataflow.map_or_else(|| fail(ended.all()), Ok)
}

fn names(flow: &Dataflow) -> Vec<String> {
    let mut names: Vec<String> = flow.chains.iter().map(|chain| chain.tasks.join(" ")).collect();
    // They come in the order in which their tasks were seen.
    names.sort_unstable();
    names
}

fn found() -> Result<Outcome> {
    for policy in ["fifo", "lifo", "priority", "pslot"] {
        let directory = directory()?;
        let Some(folder) = trace(directory.path(), &["graph", policy])? else { return no_compiler() };
        let ended = chains(&folder, &["--json"])?;
        ended.expect_code(0)?;
        let flow = flow(&ended)?;
        ensure!(flow.connections == Some(Connections::Seen), "{:?}", flow.connections);
        ensure!(flow.policy.as_deref() == Some(policy) && flow.executors == Some(1), "{}", ended.all());
        ensure!(names(&flow) == CHAINS, "{:?}", names(&flow));
        for chain in &flow.chains {
            let counts = (chain.sources, chain.lost, chain.incomplete);
            ensure!(counts == (ROUNDS, 0, 0), "{chain:#?}");
            ensure!(chain.end_to_end == Some(true), "{:?}", chain.tasks);
        }
        let channel = |name: &str| flow.channels.iter().find(|channel| channel.name == name);
        let Some(done) = channel("done") else { return fail("no barrier") };
        ensure!(done.barrier && done.pushes == 2 * ROUNDS, "{done:#?}");
        let keeps = |name: &str, task: &str| {
            channel(name)?.activates.iter().find(|it| it.task == task).map(|it| it.keeps)
        };
        ensure!(keeps("crat", "navi") == Some(Some(Keeps::Queue)), "crat: {:#?}", channel("crat"));
        ensure!(keeps("stat", "ter2") == Some(Some(Keeps::Newest)), "stat: {:#?}", channel("stat"));
        let text = chains(&folder, &[])?;
        ensure!(text.stdout.contains("Chains: end-to-end latency"), "{}", text.all());
    }
    Ok(Completion::Completed)
}

fn no_compiler() -> Result<Outcome> {
    skip("there was no compiler for C++ for this machine")
}

/// Who reads the barrier is unknown, so no chain is called end-to-end.
fn silent() -> Result<Outcome> {
    let directory = directory()?;
    let Some(folder) = trace(directory.path(), &["silent"])? else { return no_compiler() };
    let ended = chains(&folder, &["--json"])?;
    let flow = flow(&ended)?;
    ensure!(flow.chains.len() == 4, "{:?}", names(&flow));
    ensure!(flow.chains.iter().all(|chain| chain.end_to_end == Some(false)), "{}", ended.all());
    let text = chains(&folder, &[])?;
    let flat = text.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    ensure!(
        flat.contains("Nobody was seen to read done") && !flat.contains("end-to-end latency"),
        "{}",
        text.all()
    );
    Ok(Completion::Completed)
}

fn deadlines() -> Result<Outcome> {
    let directory = directory()?;
    let Some(folder) = trace(directory.path(), &["graph"])? else { return no_compiler() };
    let kept = chains(&folder, &["--deadline", "cam1..log: reaction<1h, age<2h"])?;
    kept.expect_code(0)?;
    let missed = chains(&folder, &["--deadline", "cam1..log: reaction<1ns"])?;
    missed.expect_code(8)?;
    // Both paths, and every datum.
    let all = format!("deadlines were missed: {} times", 2 * ROUNDS);
    ensure!(missed.stderr.contains(&all), "{}", missed.all());
    ensure!(missed.stdout.contains("reaction time missed by data from +"), "{}", missed.all());
    let none = chains(&folder, &["--deadline", "log..cam1: age<1s"])?;
    none.expect_code(4)?;
    ensure!(none.stderr.contains("no data of log are seen to reach cam1"), "{}", none.all());
    let contract = directory.path().join("rover.toml");
    std::fs::write(
        &contract,
        "[[chain]]\ntasks = [\"cam1\", \"craT\", \"navi\", \"ter1\", \"log\"]\ndata_age = \"1ns\"\n",
    )?;
    let ended = chains(&folder, &["--contract", &contract.display().to_string()])?;
    ended.expect_code(8)?;
    Ok(Completion::Completed)
}

fn lists() -> Result<Outcome> {
    let directory = directory()?;
    let Some(folder) = trace(directory.path(), &["graph"])? else { return no_compiler() };
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (jobs, passages) = (path("jobs.csv"), path("passages.csv"));
    let ended = chains(&folder, &["--json", "--jobs-out", &jobs, "--passages-out", &passages])?;
    ended.expect_code(0)?;
    let whole = flow(&ended)?;
    let lines = |path: &str| std::fs::read_to_string(path).map(|text| text.lines().count() as u64 - 1);
    let instances: u64 = whole.tasks.iter().map(|task| task.executions).sum();
    ensure!(lines(&jobs)? == instances && instances == 8 * ROUNDS, "{instances}");
    // A reaction and an age of each chain's data.
    ensure!(lines(&passages)? == 4 * 2 * ROUNDS, "{}", lines(&passages)?);
    let parquet = path("jobs.parquet");
    chains(&folder, &["-q", "--jobs-out", &parquet])?.expect_code(0)?;
    ensure!(std::fs::read(&parquet)?.starts_with(b"PAR1"), "no Parquet");
    // The part from the middle on has what its own events say.
    let middle = whole.until_ns.since(whole.from_ns).ns() / 2;
    let part = flow(&chains(&folder, &["--json", "--from", &format!("{middle}ns")])?)?;
    ensure!(part.from_ns.since(whole.from_ns).ns() >= middle, "{}", part.from_ns.ns());
    ensure!(part.events < whole.events && part.events > 0, "{}", part.events);
    ensure!(names(&part) == CHAINS, "{:?}", names(&part));
    ensure!(part.missing_events() == 0, "{}", part.missing_events());
    ensure!(part.chains.iter().all(|chain| chain.lost == 0 && chain.sources > 0), "{:#?}", part.chains);
    Ok(Completion::Completed)
}

/// A child that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn running() -> Result<Outcome> {
    let Some(program) = program() else { return no_compiler() };
    let directory = directory()?;
    let child = Command::new(program).args(["forever", "graph"]).stdout(Stdio::null()).spawn()?;
    let mut child = Running(child);
    let folder = directory.path().join("trace");
    let pid = child.0.id().to_string();
    let mut record = punctual(["record", "-q", "--flow-probes", "tasking-framework-1.2", "--for", "1s"]);
    record.args(["--pid", &pid, "-o"]).arg(&folder);
    let ended = run(record)?;
    ended.expect_code(0)?;
    ensure!(ended.stderr.is_empty(), "{}", ended.all());
    ensure!(child.0.try_wait()?.is_none(), "it has been ended");
    let flow = flow(&chains(&folder, &["--json"])?)?;
    ensure!(names(&flow) == CHAINS, "{:?}", names(&flow));
    ensure!(flow.tasks.iter().all(|task| task.incomplete == 0 && task.executions > 0), "{:#?}", flow.tasks);
    let none = punctual(["record", "--flow-probes", "tasking-framework-1.2"]);
    run(none)?.expect_code(2)?;
    Ok(Completion::Completed)
}

fn with_threads() -> Result<Outcome> {
    let Some(program) = program() else { return no_compiler() };
    let directory = directory()?;
    let folder = directory.path().join("both");
    let mut record = punctual(["record", "-q", "--flow-probes", "tasking-framework-1.2"]);
    record.args(["--detail", "switches", "--for", "1s", "-o"]).arg(&folder);
    record.args(["--", &program, "forever", "graph"]);
    run(record)?.expect_code(0)?;
    let ended = chains(&folder, &["--json"])?;
    ended.expect_code(0)?;
    let model = TimingModel::from_json(&ended.stdout).or_else(|error| fail(format!("{error}")))?;
    let tasks = model.dataflow.iter().flat_map(|flow| &flow.tasks);
    let split = tasks.filter(|task| task.by_kernel.as_ref().is_some_and(|it| it.executions > 0)).count();
    ensure!(split == 8, "{split} of 8 tasks are split");
    ensure!(!model.tasks().is_empty(), "no threads");
    let trace = folder.join("flow");
    for command in [&["timeline", "-q"][..], &["report", "-q"], &["replay", "-q", "--json"], &["jobs", "-q"]]
    {
        let mut reading = punctual(command);
        if let "timeline" | "report" = command[0] {
            reading.arg("-o").arg(directory.path().join(command[0]));
        }
        run_of(reading, &folder)?.expect_code(0)?;
    }
    let mut compare = punctual(["compare"]);
    compare.arg(&folder);
    run_of(compare, &trace)?.expect_code(0)?;
    // A part of the trace alone is as short in the timeline.
    let size = |options: &[&str]| -> Result<u64> {
        let file = directory.path().join("part.perfetto-trace");
        let mut timeline = punctual(["timeline", "-q", "--force"]);
        timeline.args(options).arg("-o").arg(&file);
        run_of(timeline, &trace)?.expect_code(0)?;
        Ok(std::fs::metadata(file)?.len())
    };
    let (all, part) = (size(&[])?, size(&["--from", "200ms", "--until", "400ms"])?);
    ensure!(part * 2 < all && part * 20 > all, "a fifth of {all} bytes is {part}");
    Ok(Completion::Completed)
}

fn run_of(mut command: Command, folder: &Path) -> Result<Ended> {
    command.arg(folder);
    run(command)
}
