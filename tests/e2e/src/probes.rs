//! Dataflow programs that were not built for tracing: what probes at their functions see, and the results.

use crate::run::{Ended, binary, directory, punctual, run, workload};
use crate::tool::tool;
use crate::{Outcome, Result, Test, ensure, fail, skip};
use libtest_mimic::Completion;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub const ALL: &[(&str, Test)] = &[
    ("probes::of_the_tasking_framework", tasking_framework),
    ("probes::of_our_own_executor", own_executor),
    ("probes::missing_functions", wrong_symbols),
    ("probes::wrong_offsets", wrong_offsets),
    ("probes::wrong_offsets_that_read_numbers", plausible_offsets),
    ("probes::invalid_names", wrong_names),
    ("probes::a_declared_join", join),
    ("probes::comparing_runs", compared),
    ("probes::shipped_files", files),
    ("probes::a_stop_at_a_return", stop_at_return),
    ("probes::end_when_the_time_is_over", ended_by_time),
    ("probes::with_a_kernel_recording", kernel),
];

fn shipped(name: &str) -> String {
    format!("{}/../../dist/flow-probes/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

/// The program, or why there is none.
fn probed(name: &str) -> std::result::Result<String, Result<Outcome>> {
    let path = workload(name);
    if Path::new(&path).exists() {
        Ok(path)
    } else {
        Err(skip("there was no compiler for C++ for this machine"))
    }
}

fn record(directory: &Path, probes: &[&str], options: &[&str], command: &[&str]) -> Result<(PathBuf, Ended)> {
    let folder = directory.join("trace");
    let mut record = punctual(["record", "-o"]);
    record.arg(&folder);
    for file in probes {
        record.args(["--flow-probes", file]);
    }
    record.args(options).arg("--").args(command);
    Ok((folder, run(record)?))
}

/// The number of events of each kind and object, as babeltrace2 reads them. Checks that event numbers have no
/// gaps.
fn events(folder: &Path) -> Result<Option<BTreeMap<(String, String), u64>>> {
    let Some(mut babeltrace2) = tool("babeltrace2", &[]) else { return Ok(None) };
    babeltrace2.arg(folder);
    let ended = run(babeltrace2)?;
    ended.expect_code(0)?;
    let mut numbers: BTreeMap<(String, String), Vec<u64>> = BTreeMap::new();
    for line in ended.stdout.lines() {
        // `[time] (+time) push: { producer = 0, … }, { number = 7 }, { channel = ( "image" : container = 1 )
        // }`
        let field = |name: &str| Some(line.split_once(name)?.1.split([' ', '"']).next()?.to_owned());
        let kind = line.split(") ").nth(1).and_then(|rest| rest.split(':').next());
        let (Some(kind), Some(number), Some(object)) = (kind, field("number = "), field("( \"")) else {
            return fail(format!("a line that is no event: {line}"));
        };
        let number = number.parse().or_else(|_| fail(format!("no number: {line}")))?;
        numbers.entry((kind.to_owned(), object)).or_default().push(number);
    }
    for (name, numbers) in &mut numbers {
        numbers.sort_unstable();
        let whole = numbers.iter().zip(0..).all(|(number, expected)| *number == expected);
        ensure!(whole, "numbers of {name:?} are not 0 to {}: {numbers:?}", numbers.len());
    }
    Ok(Some(numbers.into_iter().map(|(name, numbers)| (name, numbers.len() as u64)).collect()))
}

fn tasking_framework() -> Result<Outcome> {
    let program = match probed("tasking") {
        Ok(program) => program,
        Err(skipped) => return skipped,
    };
    let directory = directory()?;
    let (folder, ended) = record(directory.path(), &["tasking-framework-1.2"], &[], &[&program, "500"])?;
    ended.expect_code(0)?;
    ensure!(ended.stdout == "1000 pushes, 1000 activations, 1000 executions\n", "{}", ended.all());
    ensure!(ended.stderr.contains(": 4,000 events."), "{}", ended.all());
    let Some(events) = events(&folder)? else { return skip("there is no babeltrace2 here") };
    let all = [("push", "go"), ("push", "img")]
        .into_iter()
        .chain(["activation", "start", "stop"].into_iter().flat_map(|kind| [(kind, "cam1"), (kind, "navi")]));
    let expected: BTreeMap<_, _> =
        all.map(|(kind, object)| ((kind.to_owned(), object.to_owned()), 500)).collect();
    ensure!(events == expected, "{events:?}");
    Ok(Completion::Completed)
}

fn own_executor() -> Result<Outcome> {
    let program = match probed("navigation") {
        Ok(program) => program,
        Err(skipped) => return skipped,
    };
    let directory = directory()?;
    let options = [program.as_str(), "--seconds", "1", "--executors", "2"];
    let (folder, ended) = record(directory.path(), &["punctual-flow"], &[], &options)?;
    ended.expect_code(0)?;
    let Some(events) = events(&folder)? else { return skip("there is no babeltrace2 here") };
    // `instances: cam1 11 cam2 13 …`
    // On a busy machine, a line before it says that the timer was late.
    let Some(printed) = ended.stdout.lines().find_map(|line| line.strip_prefix("instances: ")) else {
        return fail(ended.all());
    };
    let words: Vec<&str> = printed.split_whitespace().collect();
    ensure!(words.len() == 14, "{}", ended.all());
    for pair in words.chunks(2) {
        for kind in ["activation", "start", "stop"] {
            let count = events.get(&(kind.to_owned(), pair[0].to_owned())).copied().unwrap_or_default();
            ensure!(count.to_string() == pair[1], "{count} {kind}s of {}: {}", pair[0], ended.all());
        }
    }
    Ok(Completion::Completed)
}

/// The file of the Tasking Framework with a replacement.
fn altered(directory: &Path, from: &str, to: &str) -> Result<String> {
    let text = std::fs::read_to_string(shipped("tasking-framework-1.2"))?;
    ensure!(text.contains(from), "the file has no {from}");
    write(directory, "altered.toml", &text.replace(from, to))
}

fn write(directory: &Path, name: &str, text: &str) -> Result<String> {
    let path = directory.join(name);
    std::fs::write(&path, text)?;
    Ok(path.display().to_string())
}

fn wrong_symbols() -> Result<Outcome> {
    let program = match probed("tasking") {
        Ok(program) => program,
        Err(skipped) => return skipped,
    };
    let directory = directory()?;
    let file = altered(directory.path(), "_ZN7Tasking7Channel4pushEv", "_ZN7Tasking7Channel5shoveEv")?;
    let (folder, ended) = record(directory.path(), &[&file], &[], &[&program])?;
    ended.expect_code(4)?;
    ensure!(ended.stderr.contains("has no function for: push"), "{}", ended.all());
    ensure!(ended.stdout.is_empty() && !folder.exists(), "it ran: {}", ended.all());
    let ended = run(punctual(["flow-probes", "check", &file, &program]))?;
    ended.expect_code(4)?;
    ensure!(ended.stdout.contains("_ZN7Tasking7Channel5shoveEv: not found"), "{}", ended.all());
    run(punctual(["flow-probes", "check", &shipped("tasking-framework-1.2"), &program]))?.expect_code(0)?;
    Ok(Completion::Completed)
}

/// Reading at wrong offsets does no harm and is reported.
fn wrong_offsets() -> Result<Outcome> {
    let program = match probed("tasking") {
        Ok(program) => program,
        Err(skipped) => return skipped,
    };
    let directory = directory()?;
    // The bytes after the task's pointer are not a pointer.
    let file = altered(directory.path(), "[arg1+0]+8", "[[arg1+0]+8]+8")?;
    let (_, ended) = record(directory.path(), &[&file], &[], &[&program, "50"])?;
    ended.expect_code(4)?;
    ensure!(ended.stdout == "100 pushes, 100 activations, 100 executions\n", "{}", ended.all());
    ensure!(
        ended.stderr.contains("the id could not be read at 100 activations, 100 starts"),
        "{}",
        ended.all()
    );
    ensure!(
        !ended.stderr.contains("are their calls inlined")
            && !ended.stderr.contains("no thread was executing"),
        "what follows is told: {}",
        ended.all()
    );
    Ok(Completion::Completed)
}

/// Wrong offsets with readable values are recognized by the values.
fn plausible_offsets() -> Result<Outcome> {
    let program = match probed("joined") {
        Ok(program) => program,
        Err(skipped) => return skipped,
    };
    let directory = directory()?;
    let ours = std::fs::read_to_string(shipped("punctual-flow"))?;
    let without_names = ours.replace("name = \"string at arg0+8\"\n", "");
    // Of an object: 2 bytes of number, 2 that are always 0, 4 that count its events.
    let rows = [
        (
            &without_names,
            "u16 at arg0+2",
            "all 300 pushes are of one channel, although its id was read at 3 places of memory",
        ),
        (
            &without_names,
            "u32 at arg0+4",
            "what is read as the id of channels changes: 100 numbers at 3 places of memory",
        ),
        (&ours, "u16 at arg0+2", "a channel is called \"map\" and \"image\""),
    ];
    for (number, (text, id, expected)) in rows.into_iter().enumerate() {
        let folder = directory.path().join(number.to_string());
        std::fs::create_dir(&folder)?;
        ensure!(text.contains("id = \"arg0\""), "the file is another one now");
        let file = write(&folder, "wrong.toml", &text.replace("id = \"arg0\"", &format!("id = \"{id}\"")))?;
        let (_, ended) = record(&folder, &[&file], &[], &[&program, "100"])?;
        ended.expect_code(4)?;
        ensure!(ended.stdout == "navi 100, moto 100\n", "{}", ended.all());
        ensure!(
            ended.stderr.contains(expected) && ended.stderr.contains("do not trust the trace"),
            "it does not say {expected:?}: {}",
            ended.all()
        );
    }
    // Other values differ each time, or are the same for all: names reveal that.
    let folder = directory.path().join("argument");
    std::fs::create_dir(&folder)?;
    let push = "symbol = \"punctual_flow_push\"\nid = ";
    let file =
        write(&folder, "wrong.toml", &ours.replace(&format!("{push}\"arg0\""), &format!("{push}\"arg1\"")))?;
    let (_, ended) = record(&folder, &[&file], &[], &[&program, "100"])?;
    ended.expect_code(4)?;
    ensure!(ended.stderr.contains("a channel is called"), "{}", ended.all());
    // It ends if there are too many, and ends the program.
    let folder = directory.path().join("many");
    std::fs::create_dir(&folder)?;
    let file =
        write(&folder, "wrong.toml", &without_names.replace("id = \"arg0\"", "id = \"u32 at arg0+4\""))?;
    let (_, ended) = record(&folder, &[&file], &[], &[&program, "50000"])?;
    ended.expect_code(4)?;
    ensure!(ended.stderr.contains("more than 4096 channels were seen"), "{}", ended.all());
    // Starts have different numbers than their activations.
    let folder = directory.path().join("starts");
    std::fs::create_dir(&folder)?;
    let start = "symbol = \"punctual_flow_start\"\nid = ";
    let file = write(
        &folder,
        "wrong.toml",
        &without_names.replace(&format!("{start}\"arg0\""), &format!("{start}\"u16 at arg0+2\"")),
    )?;
    let (_, ended) = record(&folder, &[&file], &[], &[&program, "100"])?;
    ended.expect_code(4)?;
    ensure!(ended.stderr.contains("200 starts of tasks that were not activated"), "{}", ended.all());
    Ok(Completion::Completed)
}

/// Events are right even without names.
fn wrong_names() -> Result<Outcome> {
    let program = match probed("joined") {
        Ok(program) => program,
        Err(skipped) => return skipped,
    };
    let directory = directory()?;
    let ours = std::fs::read_to_string(shipped("punctual-flow"))?;
    let rows = [
        // The characters of a name are not a pointer.
        ("string at [arg0+8]", "2 names of tasks could not be read; ids are shown instead"),
        // The number of the construction: nothing, 1, 2.
        ("string at arg0", "the name of 2 channels is not UTF-8 text"),
    ];
    for (number, (place, expected)) in rows.into_iter().enumerate() {
        let folder = directory.path().join(number.to_string());
        std::fs::create_dir(&folder)?;
        let file = write(&folder, "wrong.toml", &ours.replace("string at arg0+8", place))?;
        let (_, ended) = record(&folder, &[&file], &[], &[&program, "100"])?;
        ended.expect_code(0)?;
        ensure!(
            ended.stderr.contains(expected) && ended.stderr.contains(": 900 events."),
            "it does not say {expected:?}: {}",
            ended.all()
        );
        ensure!(!ended.stderr.contains("the id could not"), "it is not the id: {}", ended.all());
    }
    Ok(Completion::Completed)
}

const CONNECTIONS: &str = "
[[connection]]
channel = \"map\"
task = \"navi\"
threshold = 1

[[connection]]
channel = \"imgae\"
task = \"navi\"
";

/// The map never arrives last, so no push of it activates anything.
fn join() -> Result<Outcome> {
    let program = match probed("joined") {
        Ok(program) => program,
        Err(skipped) => return skipped,
    };
    let directory = directory()?;
    let of_program = write(directory.path(), "rover.toml", CONNECTIONS)?;
    for (probes, expected) in [(&["punctual-flow"][..], false), (&["punctual-flow", &of_program][..], true)] {
        let (folder, ended) = record(directory.path(), probes, &["--force"], &[&program, "100"])?;
        ended.expect_code(0)?;
        let phrase = "declared but not in the trace: imgae ─► navi (no such channel); channels seen: map, \
                    image, pose\n";
        ensure!(ended.stderr.contains(phrase) == expected, "{}", ended.all());
        let mut chains = punctual(["chains", "--json"]);
        chains.arg(&folder);
        let ended = run(chains)?;
        ended.expect_code(0)?;
        let model = ended.json()?;
        let ends_of = |name: &str| {
            let channels = model["dataflow"]["channels"].as_array().into_iter().flatten();
            channels
                .filter(|channel| channel["name"] == name)
                .flat_map(|channel| channel["activates"].as_array().cloned().unwrap_or_default())
                .collect::<Vec<_>>()
        };
        ensure!(ends_of("image").len() == 1 && ends_of("image")[0]["task"] == "navi", "{}", ended.all());
        let joined = ends_of("map").iter().any(|it| it["task"] == "navi" && it["declared"] == true);
        ensure!(joined == expected, "{}", ended.all());
        let metadata = std::fs::read_to_string(folder.join("metadata"))?;
        ensure!(metadata.contains(" threshold=1 synchronised\"") == expected, "{metadata}");
    }
    Ok(Completion::Completed)
}

/// The declarations in a program's file distinguish its runs.
fn compared() -> Result<Outcome> {
    let program = match probed("joined") {
        Ok(program) => program,
        Err(skipped) => return skipped,
    };
    let directory = directory()?;
    let mut compare = punctual(["compare"]);
    for policy in ["fifo", "lifo"] {
        let folder = directory.path().join(policy);
        std::fs::create_dir(&folder)?;
        let of_program = write(&folder, "run.toml", &format!("policy = \"{policy}\"\nexecutors = 1\n"))?;
        let (trace, ended) = record(&folder, &["punctual-flow", &of_program], &["-q"], &[&program, "100"])?;
        ended.expect_code(0)?;
        ensure!(ended.stderr.is_empty(), "{}", ended.all());
        compare.arg(trace);
    }
    let ended = run(compare)?;
    ended.expect_code(0)?;
    let flat = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    ensure!(
        flat.contains("2 runs in 2 configurations. The same in all: joined, Linux ")
            && flat.contains(", 1 executor."),
        "{}",
        ended.all()
    );
    Ok(Completion::Completed)
}

fn files() -> Result<Outcome> {
    let program = match probed("tasking") {
        Ok(program) => program,
        Err(skipped) => return skipped,
    };
    let directory = directory()?;
    let of_program = write(directory.path(), "rover.toml", &format!("policy = \"fifo\"\n{CONNECTIONS}"))?;
    let check = |words: &[&str]| run(punctual([&["flow-probes", "check"], words].concat()));
    let ended = check(&["tasking-framework-1.2", &of_program, &program])?;
    ended.expect_code(0)?;
    ensure!(
        ended.stdout.contains("  connection map ─► navi: threshold 1, synchronised\n")
            && ended.stdout.contains("  policy     fifo\n"),
        "{}",
        ended.all()
    );
    let rows = [
        (
            ["tasking-framework-1.2.toml", "/there/is/none"],
            4,
            "there is no program /there/is/none; give its path, or check PATH",
        ),
        (
            ["tasking", &program],
            5,
            "cannot read tasking: no such file or directory; punctual-flow, tasking-framework-1.2 come with \
             Punctual",
        ),
        ([&of_program, &program], 5, "give the file of its framework too"),
    ];
    for (words, code, expected) in rows {
        let ended = check(&words)?;
        ended.expect_code(code)?;
        ensure!(
            ended.stderr.contains(expected) && ended.stderr.lines().count() == 1,
            "it does not say {expected:?}: {}",
            ended.all()
        );
    }
    Ok(Completion::Completed)
}

fn stop_at_return() -> Result<Outcome> {
    let program = match probed("tasking") {
        Ok(program) => program,
        Err(skipped) => return skipped,
    };
    let directory = directory()?;
    let stop =
        "symbol = \"_ZN7Tasking8TaskImpl17finalizeExecutionEv\"\nid = \"u32 at [arg0+0]+8\"\nname = \"id\"";
    let file = altered(
        directory.path(),
        stop,
        "symbol = \"_ZNK7Tasking13SchedulerImpl7executeERNS_8TaskImplE\"\nat = \"return\"",
    )?;
    let (folder, ended) = record(directory.path(), &[&file], &[], &[&program, "100"])?;
    ended.expect_code(0)?;
    let Some(events) = events(&folder)? else { return skip("there is no babeltrace2 here") };
    ensure!(events.get(&("stop".into(), "navi".into())) == Some(&100), "{events:?}");
    Ok(Completion::Completed)
}

/// A program that does not end is asked to, and its trace is complete.
fn ended_by_time() -> Result<Outcome> {
    let program = match probed("navigation") {
        Ok(program) => program,
        Err(skipped) => return skipped,
    };
    let directory = directory()?;
    let (folder, ended) =
        record(directory.path(), &["punctual-flow"], &["--for", "1s"], &[&program, "--seconds", "60"])?;
    ended.expect_code(0)?;
    let Some(events) = events(&folder)? else { return skip("there is no babeltrace2 here") };
    ensure!(events.keys().any(|(kind, _)| kind == "stop"), "{events:?}");
    Ok(Completion::Completed)
}

/// A recording with scheduler steps around a trace: what a task's executor did while it executed.
fn kernel() -> Result<Outcome> {
    let program = match probed("navigation") {
        Ok(program) => program,
        Err(skipped) => return skipped,
    };
    let directory = directory()?;
    let (steps, trace) = (directory.path().join("steps"), directory.path().join("trace"));
    let mut both = punctual(["record", "-q", "--detail", "switches", "--include-best-effort", "-o"]);
    both.arg(&steps)
        .arg("--")
        .arg(binary())
        .args(["record", "-q", "--flow-probes", "punctual-flow", "-o"])
        .arg(&trace);
    both.args(["--", &program, "--seconds", "1", "--executors", "2"]);
    run(both)?.expect_code(0)?;
    let mut chains = punctual(["chains", "--json", "--kernel"]);
    chains.arg(&steps).arg(&trace);
    let ended = run(chains)?;
    ended.expect_code(0)?;
    let model = ended.json()?;
    let Some(tasks) = model["dataflow"]["tasks"].as_array().filter(|tasks| tasks.len() == 7) else {
        return fail(ended.all());
    };
    for task in tasks {
        let parts = &task["by_kernel"];
        let time = |part: &str, figure: &str| parts[part][figure].as_u64().unwrap_or(u64::MAX);
        ensure!(parts["executions"].as_u64() > Some(0), "nothing of task {}: {}", task["name"], ended.all());
        // Its tasks compute without waiting.
        ensure!(
            time("running", "min_ns") > 0
                && time("running", "max_ns") <= task["execution"]["max_ns"].as_u64().unwrap_or(0),
            "{task}"
        );
        ensure!(time("suspended", "median_ns") < time("running", "median_ns"), "{task}");
    }
    crate::beside::of_one_time(directory.path(), &steps, &trace)?;
    // A recording without steps does not have that.
    let mut without = punctual(["record", "-q", "--include-best-effort", "-o"]);
    without.arg(directory.path().join("plain")).args(["--", "true"]);
    run(without)?.expect_code(0)?;
    let mut chains = punctual(["chains", "--kernel"]);
    chains.arg(directory.path().join("plain")).arg(&trace);
    let ended = run(chains)?;
    ended.expect_code(2)?;
    ensure!(ended.stderr.contains("--detail switches"), "{}", ended.all());
    Ok(Completion::Completed)
}
