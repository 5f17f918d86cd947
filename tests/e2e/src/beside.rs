//! Threads and a dataflow program together: in one model, on one page, in one timeline.

use crate::chains::{expect_error, make_trace};
use crate::model::{parse, read};
use crate::run::{Ended, directory, punctual, run};
use crate::{Outcome, Result, Test, ensure, fail};
use punctual_model::TimingModel;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

pub const ALL: &[(&str, Test)] = &[
    ("chains::beside_the_threads_of_a_model", model),
    ("chains::a_task_and_a_thread_of_one_name", one_name),
    ("chains::models_that_cannot_be_combined", refused),
    ("chains::a_trace_has_a_page", page),
    ("chains::a_trace_instead_of_a_model", expected),
];

/// The repository's recording of threads.
fn recording() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../recordings/demo")
}

fn punctually<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Result<Ended> {
    let ended = run(punctual(arguments))?;
    ended.expect_code(0)?;
    Ok(ended)
}

/// The model of that recording's threads.
fn threads(directory: &Path) -> Result<PathBuf> {
    let file = directory.join("threads.timing.json");
    punctually([
        OsStr::new("replay"),
        recording().as_os_str(),
        OsStr::new("-q"),
        OsStr::new("-o"),
        file.as_os_str(),
    ])?;
    Ok(file)
}

/// Adds the program to the threads of a model, in a file that is replaced.
fn join(trace: &Path, model: &Path, file: &Path, more: &[&str]) -> Result<(TimingModel, Ended)> {
    let mut chains = punctual(["chains", "--force", "--model"]);
    chains.arg(model).arg("-o").arg(file).arg(trace).args(more);
    let ended = run(chains)?;
    ended.expect_code(0)?;
    Ok((read(file)?, ended))
}

/// The threads stay unchanged, and the program's section has its own span.
fn model() -> Result<Outcome> {
    let directory = directory()?;
    let (trace, alone) = (make_trace(directory.path())?, threads(directory.path())?);
    let file = directory.path().join("both.timing.json");
    let (both, ended) = join(&trace, &alone, &file, &[])?;
    let of_threads = read(&alone)?;
    let of_program =
        parse(&punctually([OsStr::new("chains"), trace.as_os_str(), OsStr::new("--json")])?.stdout)?;
    ensure!(
        (&both.threads, &both.platform) == (&of_threads.threads, &of_threads.platform),
        "the threads are others: {}",
        ended.all()
    );
    ensure!(both.dataflow == of_program.dataflow, "the program is another: {}", ended.all());
    let spans = both.spans();
    ensure!(spans.len() == 2 && spans[0].1 != spans[1].1, "{spans:?}");
    ensure!(
        ended.stderr.contains("at another time"),
        "it does not say that these are of two times: {}",
        ended.all()
    );
    // Once more: the program in the file is replaced, with its chains.
    let (again, ended) = join(&trace, &file, &file, &["--chain", "cam,navi"])?;
    let chains = again
        .dataflow
        .iter()
        .flat_map(|flow| &flow.chains)
        .map(|chain| chain.tasks.join(" "))
        .collect::<Vec<_>>();
    ensure!(
        chains == ["cam navi"] && ended.stderr.contains("is replaced by that of"),
        "{chains:?}: {}",
        ended.all()
    );
    ensure!(again.threads == both.threads, "the threads are others: {}", ended.all());
    join(&trace, &file, &file, &[])?;
    // All readers of models show both.
    let shown = punctually([OsStr::new("show"), file.as_os_str()])?.stdout;
    for expected in [
        "Observed for 6.007 s on Linux",
        "sleep-abs",
        "Dataflow program rover",
        "650 events in 49.57 ms",
        "+0.049300 s",
    ] {
        ensure!(shown.contains(expected), "show does not say {expected:?}: {shown}");
    }
    let html = directory.path().join("both.html");
    let mut pages = Vec::new();
    for paths in [[&file, &trace, &recording()], [&recording(), &trace, &file]] {
        let mut report = punctual(["report", "-q", "--force", "-o"]);
        report.arg(&html).args(paths);
        run(report)?.expect_code(0)?;
        pages.push(fs::read_to_string(&html)?);
    }
    let page = &pages[0];
    ensure!(*page == pages[1], "in another order it is another page");
    for expected in [
        "id=\"overview\"",
        "id=\"dataflow\"",
        "Release raster",
        "around the worst reaction time",
        "Observed</dt><dd>for 6.007 s",
    ] {
        ensure!(page.contains(expected), "the page lacks {expected:?}");
    }
    let compared = punctually([OsStr::new("compare"), file.as_os_str(), trace.as_os_str()])?.stdout;
    ensure!(compared.contains("cam → navi → moto"), "{compared}");
    Ok(Outcome::Completed)
}

/// Both are shown, as text and as JSON.
fn one_name() -> Result<Outcome> {
    let directory = directory()?;
    let (trace, alone) = (make_trace(directory.path())?, threads(directory.path())?);
    let file = directory.path().join("both.timing.json");
    // A thread of the name of a task.
    fs::write(&alone, fs::read_to_string(&alone)?.replace("\"name\": \"sleep-abs\"", "\"name\": \"navi\""))?;
    join(&trace, &alone, &file, &[])?;
    let show = |name: &str, more: &[&str]| {
        let mut show = punctual(["show", "--task", name]);
        show.args(more).arg(&file);
        run(show)
    };
    let navi = show("navi", &[])?.stdout;
    for expected in [
        "navi (thread ",
        "navi (task 1 of dataflow program rover)",
        "cam → navi → moto  reaction",
        "queued 20 µs, executed 150 µs",
    ] {
        ensure!(navi.contains(expected), "it does not say {expected:?}: {navi}");
    }
    let cam = show("cam", &[])?.stdout;
    ensure!(
        cam.starts_with("cam (task 0 of dataflow program rover)\n") && !cam.contains("(thread "),
        "{cam}"
    );
    for (name, threads, tasks) in [("navi", 1, 1), ("cam", 0, 1), ("suspending", 1, 0)] {
        let model = parse(&show(name, &["--json"])?.stdout)?;
        let found = (model.tasks().len(), model.dataflow.as_ref().map_or(0, |flow| flow.tasks.len()));
        ensure!(found == (threads, tasks), "{name}: {found:?}");
    }
    expect_error(&show("nobody", &[])?, 4, &["has no thread or dataflow task named 'nobody'"])?;
    Ok(Outcome::Completed)
}

fn refused() -> Result<Outcome> {
    let directory = directory()?;
    let (trace, alone) = (make_trace(directory.path())?, threads(directory.path())?);
    let chains = |more: &[&OsStr]| {
        let mut chains = punctual(["chains"]);
        chains.arg(&trace).args(more);
        run(chains)
    };
    // Without steps of the scheduler, a recording cannot split execution times.
    expect_error(&chains(&["--kernel".as_ref(), recording().as_os_str()])?, 2, &["--detail switches"])?;
    expect_error(&chains(&["--model".as_ref(), recording().as_os_str()])?, 5, &["it is a folder"])?;
    // The file is there.
    let mut twice = punctual(["chains", "--model"]);
    twice.arg(&alone).arg("-o").arg(&alone).arg(&trace);
    expect_error(&run(twice)?, 5, &["it exists; --force replaces it"])?;
    let mut of_another_clock: serde_json::Value = serde_json::from_str(&fs::read_to_string(&alone)?)?;
    of_another_clock["clock"] = "CLOCK_BOOTTIME".into();
    fs::write(&alone, of_another_clock.to_string())?;
    expect_error(
        &chains(&["--model".as_ref(), alone.as_os_str()])?,
        2,
        &["uses CLOCK_BOOTTIME, the trace CLOCK_MONOTONIC"],
    )?;
    expect_error(
        &chains(&["--chain".as_ref(), "cam,,moto".as_ref()])?,
        2,
        &["--chain \"cam,,moto\" has an empty task name"],
    )?;
    expect_error(&chains(&["--no-such-option".as_ref()])?, 2, &["see punctual chains --help"])?;
    let elsewhere = crate::run::directory()?;
    let other = make_trace(elsewhere.path())?;
    for command in ["report", "timeline"] {
        let mut two = punctual([command, "-o", "-"]);
        two.arg(&other).arg(&trace);
        expect_error(&run(two)?, 2, &["are both traces of dataflow programs"])?;
    }
    let (file, other) =
        (directory.path().join("one.timing.json"), directory.path().join("other.timing.json"));
    punctually(["chains".as_ref(), trace.as_os_str(), "-q".as_ref(), "-o".as_ref(), file.as_os_str()])?;
    fs::copy(&file, &other)?;
    let mut report = punctual(["report", "-o", "-"]);
    report.arg(&file).arg(&trace).arg(&other);
    expect_error(&run(report)?, 2, &["are both files; a page shows one timing model"])?;
    let mut timeline = punctual(["timeline", "-o", "-"]);
    timeline.arg(&trace).arg(&file);
    expect_error(&run(timeline)?, 5, &["is a timing model; a timeline is made of recordings and traces"])?;
    Ok(Outcome::Completed)
}

/// Alone, and together with threads.
fn page() -> Result<Outcome> {
    let directory = directory()?;
    let trace = make_trace(directory.path())?;
    let page = |folders: &[&Path]| -> Result<String> {
        let mut report = punctual(["report", "-o", "-"]);
        report.args(folders);
        let ended = run(report)?;
        ended.expect_code(0)?;
        Ok(ended.stdout)
    };
    let alone = page(&[&trace])?;
    for expected in [
        "Dataflow program rover",
        "Chains: latency from the first task to the last",
        "cam → navi → moto",
        "around the worst reaction time",
        "570 µs",
    ] {
        ensure!(alone.contains(expected), "the page lacks {expected:?}");
    }
    ensure!(!alone.contains("id=\"overview\""), "a program alone has no threads");
    for folders in [[&*trace, &recording()], [&*recording(), &trace]] {
        let both = page(&folders)?;
        for expected in [
            "id=\"overview\"",
            "sleep-abs",
            "Release raster",
            "cam → navi → moto",
            "around the worst reaction time",
        ] {
            ensure!(both.contains(expected), "the page of {folders:?} lacks {expected:?}");
        }
    }
    // By itself it stands beside what it is of.
    let mut report = punctual(["report", "-q"]);
    report.arg(&trace).current_dir(directory.path());
    run(report)?.expect_code(0)?;
    ensure!(directory.path().join("rover.trace.html").is_file(), "there is no rover.trace.html");
    let mut report = punctual(["report", "-q", "."]);
    report.current_dir(&trace);
    run(report)?.expect_code(0)?;
    ensure!(trace.join("rover.trace.html").is_file(), "the page of . has another name");
    // Both are shown, though far from each other.
    let mut timeline = punctual(["timeline", "-o"]);
    timeline.arg(directory.path().join("both.perfetto-trace")).arg(&trace).arg(recording());
    let ended = run(timeline)?;
    ended.expect_code(0)?;
    ensure!(ended.stderr.contains("at another time"), "{}", ended.all());
    Ok(Outcome::Completed)
}

fn expected() -> Result<Outcome> {
    let directory = directory()?;
    let mut show = punctual(["show"]);
    show.arg(make_trace(directory.path())?);
    expect_error(
        &run(show)?,
        5,
        &["it is the trace of a dataflow program, not a timing model; punctual chains "],
    )?;
    Ok(Outcome::Completed)
}

/// What `punctual` makes of a recording of the kernel's steps and a trace of the same time.
pub fn of_one_time(directory: &Path, steps: &Path, trace: &Path) -> Result {
    let mut chains = punctual(["chains", "--json", "--kernel"]);
    chains.arg(steps).arg(trace);
    let ended = run(chains)?;
    ended.expect_code(0)?;
    ensure!(!ended.stderr.contains("at another time"), "{}", ended.all());
    let both = parse(&ended.stdout)?;
    let mut replay = punctual(["replay", "--json"]);
    replay.arg(steps);
    let threads = parse(&run(replay)?.stdout)?;
    ensure!(
        both.threads == threads.threads && !both.tasks().is_empty(),
        "the threads are not those of the recording: {}",
        ended.all()
    );
    ensure!(both.platform == threads.platform, "{}", ended.all());
    let [(_, seen), (_, traced)] = both.spans()[..] else { return fail(ended.all()) };
    ensure!(seen.from_ns <= traced.from_ns && traced.until_ns <= seen.until_ns, "{:?}", both.spans());
    // A page made of both is split by the kernel too.
    let mut report = punctual(["report", "-o", "-"]);
    report.arg(trace).arg(steps);
    let page = run(report)?;
    page.expect_code(0)?;
    for expected in ["id=\"overview\"", "id=\"flow-kernel\"", "Release raster"] {
        ensure!(page.stdout.contains(expected), "the page lacks {expected:?}: {}", page.stderr);
    }
    let file = directory.join("both.perfetto-trace");
    for folders in [[steps, trace], [trace, steps]] {
        let mut timeline = punctual(["timeline", "--force", "-o"]);
        timeline.arg(&file).args(folders);
        let ended = run(timeline)?;
        ended.expect_code(0)?;
        let names_both = [" scheduler events; ", " executions, ", " through chains"]
            .iter()
            .all(|part| ended.stderr.contains(part));
        ensure!(names_both, "it does not say that it shows both: {}", ended.all());
        let bytes = fs::read(&file)?;
        let has = |name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
        // What runs where no thread does, a group of rows of the program, and the way of its data.
        ensure!(
            has(b"swapper") && has(b"Executors") && has(": reaction".as_bytes()),
            "{} bytes, which are not of both",
            bytes.len()
        );
    }
    Ok(())
}
