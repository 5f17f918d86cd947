//! Bad input and bad circumstances: one line of advice, the documented exit code, and no half-written files.

use crate::run::{Ended, directory, punctual, run, workload};
use crate::shared::DEMO;
use crate::tool::tool;
use crate::{Outcome, Result, Test, ensure, skip};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

pub const ALL: &[(&str, Test)] = &[
    ("circumstances::no_privileges", no_privileges),
    ("circumstances::root_of_a_user_namespace", user_namespace),
    ("circumstances::doctor_without_privileges", doctor_without_privileges),
    ("circumstances::no_type_information", no_type_information),
    ("circumstances::no_such_process", no_such_process),
    ("circumstances::no_such_cgroup", no_such_cgroup),
    ("circumstances::command_not_found", command_not_found),
    ("circumstances::command_not_executable", command_not_executable),
    ("circumstances::output_exists", output_exists),
    ("circumstances::output_directory_missing", output_directory_missing),
    ("circumstances::output_not_writable", output_not_writable),
    ("circumstances::disk_full", disk_full),
    ("circumstances::show_truncated", show_truncated),
    ("circumstances::show_other_version", show_other_version),
    ("circumstances::show_not_json", show_nonsense),
    ("circumstances::show_wrong_value", show_wrong_value),
    ("circumstances::show_unknown_task", show_unknown_task),
    ("circumstances::usage", usage),
    ("circumstances::symbols_are_in_a_file_of_their_own", symbols),
];

const USAGE: i32 = 2;
const KERNEL: i32 = 3;
const TARGET: i32 = 4;
const FILE: i32 = 5;

/// Expects one line with all of `mentioned`, nothing on standard output, and this exit code.
fn expect_error(ended: &Ended, code: i32, mentioned: &[&str]) -> Result {
    ended.expect_code(code)?;
    ensure!(ended.stdout.is_empty(), "an error, but there is output: {}", ended.all());
    ensure!(ended.stderr.lines().count() == 1, "expected one line: {}", ended.all());
    for word in mentioned {
        ensure!(
            ended.stderr.to_lowercase().contains(&word.to_lowercase()),
            "the message does not mention {word:?}: {}",
            ended.all()
        );
    }
    Ok(())
}

fn is_empty(directory: &Path) -> Result {
    let left: Vec<_> = fs::read_dir(directory)?.flatten().map(|entry| entry.file_name()).collect();
    ensure!(left.is_empty(), "something was left behind: {left:?}");
    Ok(())
}

/// A copy of the command that any user can run, wherever it was built.
pub fn for_anyone(directory: &Path) -> Result<String> {
    let copy = directory.join("punctual");
    // Copied by another process: a program that another test starts while this one has the copy open would
    // inherit it, and a file that is open for writing cannot be run.
    let copied = Command::new("cp").arg(crate::run::binary()).arg(&copy).status()?;
    ensure!(copied.success(), "cp failed: {copied}");
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755))?;
    Ok(copy.to_string_lossy().into_owned())
}

pub const NOBODY: [&str; 5] =
    ["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"];

fn no_privileges() -> Result<Outcome> {
    let directory = directory()?;
    let Some(mut command) = tool("setpriv", &NOBODY) else { return skip("no setpriv here") };
    let marker = directory.path().join("started");
    command.arg(for_anyone(directory.path())?).args(["extract", "--for", "1s", "--", "touch"]).arg(&marker);
    expect_error(&run(command)?, KERNEL, &["root"])?;
    ensure!(!marker.exists(), "the command was started although it cannot be observed");
    Ok(Outcome::Completed)
}

fn user_namespace() -> Result<Outcome> {
    let directory = directory()?;
    let Some(mut probe) = tool("unshare", &["--user", "--map-root-user", "true"]) else {
        return skip("no unshare here");
    };
    if !probe.status()?.success() {
        return skip("no user namespaces here");
    }
    let Some(mut command) = tool("unshare", &["--user", "--map-root-user"]) else {
        return skip("no unshare here");
    };
    command.arg(for_anyone(directory.path())?).args(["extract", "--for", "1s", "--", "true"]);
    expect_error(&run(command)?, KERNEL, &[])?;
    Ok(Outcome::Completed)
}

fn doctor_without_privileges() -> Result<Outcome> {
    let directory = directory()?;
    let Some(mut command) = tool("setpriv", &NOBODY) else { return skip("no setpriv here") };
    command.arg(for_anyone(directory.path())?).arg("doctor");
    let ended = run(command)?;
    ended.expect_code(KERNEL)?;
    let all = ended.all();
    ensure!(all.contains("root") || all.contains("CAP_BPF"), "it does not say what to do: {all}");
    Ok(Outcome::Completed)
}

/// Runs a shell script in a mount namespace of its own.
fn in_mount_namespace(script: &str, arguments: &[&str]) -> Option<Command> {
    let mut command = tool("unshare", &["--mount", "sh", "-c", script, "sh"])?;
    command.args(arguments);
    Some(command)
}

fn can_mount() -> bool {
    let probe = in_mount_namespace("mount -t tmpfs -o size=64k tmpfs /mnt", &[]);
    probe
        .and_then(|mut command| command.stderr(std::process::Stdio::null()).status().ok())
        .is_some_and(|status| status.success())
}

fn no_type_information() -> Result<Outcome> {
    if !can_mount() || !Path::new("/sys/kernel/btf").exists() {
        return skip("/sys/kernel/btf cannot be hidden here");
    }
    let directory = directory()?;
    let file = directory.path().join("x.timing.json");
    let script = r#"mount -t tmpfs tmpfs /sys/kernel/btf && exec "$@""#;
    let binary = crate::run::binary();
    let arguments =
        [&*binary.to_string_lossy(), "extract", "--for", "1s", "-o", &file.to_string_lossy(), "--", "true"];
    let Some(command) = in_mount_namespace(script, &arguments) else { return skip("no unshare here") };
    expect_error(&run(command)?, KERNEL, &["BTF"])?;
    is_empty(directory.path())?;
    Ok(Outcome::Completed)
}

fn no_such_process() -> Result<Outcome> {
    let directory = directory()?;
    let file = directory.path().join("x.timing.json");
    // A PID that was just freed is the last to be reused.
    let mut gone = Command::new("true").spawn()?;
    gone.wait()?;
    let mut extract = punctual(["extract", "--for", "1s", "--pid"]);
    extract.arg(gone.id().to_string()).arg("-o").arg(&file);
    expect_error(&run(extract)?, TARGET, &[&gone.id().to_string()])?;
    is_empty(directory.path())?;
    Ok(Outcome::Completed)
}

fn no_such_cgroup() -> Result<Outcome> {
    let ended =
        run(punctual(["extract", "--for", "1s", "--cgroup", "/sys/fs/cgroup/punctual-e2e-is-not-there"]))?;
    expect_error(&ended, TARGET, &["punctual-e2e-is-not-there"])?;
    Ok(Outcome::Completed)
}

fn cannot_be_started(program: &str) -> Result<Outcome> {
    let directory = directory()?;
    let file = directory.path().join("x.timing.json");
    let mut extract = punctual(["extract", "-o"]);
    extract.arg(&file).args(["--", program, "argument"]);
    expect_error(&run(extract)?, TARGET, &[program])?;
    is_empty(directory.path())?;
    Ok(Outcome::Completed)
}

fn command_not_found() -> Result<Outcome> {
    cannot_be_started("/nowhere/punctual-e2e-is-not-there")
}

fn command_not_executable() -> Result<Outcome> {
    cannot_be_started("/proc/self/status")
}

fn output_exists() -> Result<Outcome> {
    let directory = directory()?;
    let file = directory.path().join("x.timing.json");
    let marker = directory.path().join("started");
    fs::write(&file, "precious")?;
    let extract = |force: bool| {
        let mut extract = punctual(["extract", "--quiet", "-o"]);
        extract.arg(&file).args(force.then_some("--force")).args(["--", "touch"]).arg(&marker);
        run(extract)
    };
    expect_error(&extract(false)?, FILE, &["x.timing.json", "--force"])?;
    ensure!(fs::read_to_string(&file)? == "precious", "the file that was there was touched");
    // Before observing: after an hour it would be too late.
    ensure!(!marker.exists(), "the command ran although its models cannot be written");

    extract(true)?.expect_code(0)?;
    crate::model::read(&file)?;
    ensure!(marker.exists(), "the command did not run");
    let left = fs::read_dir(directory.path())?.count();
    ensure!(left == 2, "a temporary file was left behind");
    Ok(Outcome::Completed)
}

fn cannot_be_written(file: &str) -> Result<Outcome> {
    let directory = directory()?;
    let marker = directory.path().join("started");
    let mut extract = punctual(["extract", "-o", file, "--", "touch"]);
    extract.arg(&marker);
    expect_error(&run(extract)?, FILE, &[file])?;
    ensure!(!marker.exists(), "the command ran although its models cannot be written");
    Ok(Outcome::Completed)
}

fn output_directory_missing() -> Result<Outcome> {
    cannot_be_written("/nowhere/at/all/x.timing.json")
}

fn output_not_writable() -> Result<Outcome> {
    // Root can write anywhere the kernel itself does not refuse it.
    cannot_be_written("/proc/x.timing.json")
}

fn disk_full() -> Result<Outcome> {
    if !can_mount() {
        return skip("nothing can be mounted here");
    }
    let script = r#"
        mount -t tmpfs -o size=64k tmpfs "$1" && cd "$1" || exit 99
        head -c 1000000 /dev/zero > filler 2> /dev/null
        shift
        "$@"
        code=$?
        [ "$(ls -A)" = filler ] || { ls -lA >&2; exit 98; }
        exit $code"#;
    let directory = directory()?;
    let binary = crate::run::binary();
    let mount = directory.path().to_string_lossy();
    let drivers = workload("drivers");
    let arguments = [
        &*mount,
        &*binary.to_string_lossy(),
        "extract",
        "--quiet",
        "-o",
        "x.timing.json",
        "--",
        &drivers,
        "run",
        "read_pipe",
        "--jobs",
        "20",
    ];
    let Some(command) = in_mount_namespace(script, &arguments) else { return skip("no unshare here") };
    let ended = run(command)?;
    ended.expect_code(FILE)?;
    ensure!(
        ended.stderr.lines().count() == 1 && ended.stderr.contains("x.timing.json"),
        "expected one line: {}",
        ended.all()
    );
    Ok(Outcome::Completed)
}

/// A valid model.
fn good_model() -> Result<String> {
    Ok(fs::read_to_string(DEMO.get()?.model())?.trim_end().to_owned())
}

/// `show` of a file with these contents fails with one line that names the file.
fn show_fails(contents: &[u8], mentioned: &[&str]) -> Result {
    let directory = directory()?;
    let file = directory.path().join("bad.timing.json");
    fs::write(&file, contents)?;
    for more in [&[][..], &["--json"], &["--task", "drv"]] {
        let mut show = punctual(["show"]);
        show.arg(&file).args(more);
        let ended = run(show)?;
        expect_error(&ended, FILE, &["bad.timing.json"])?;
        expect_error(&ended, FILE, mentioned)?;
    }
    Ok(())
}

fn show_truncated() -> Result<Outcome> {
    let whole = good_model()?;
    for length in [0, 1, whole.len() / 3, whole.len() - 1] {
        show_fails(&whole.as_bytes()[..length], &[])?;
    }
    Ok(Outcome::Completed)
}

fn show_other_version() -> Result<Outcome> {
    let mut model: serde_json::Value = serde_json::from_str(&good_model()?)?;
    model["version"] = 3.into();
    show_fails(model.to_string().as_bytes(), &["version", "3"])?;
    Ok(Outcome::Completed)
}

fn show_nonsense() -> Result<Outcome> {
    for contents in [
        &b"nonsense"[..],
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe\x00",
        b"{\"format\": \"another\", \"version\": 1}",
    ] {
        show_fails(contents, &[])?;
    }
    let directory = directory()?;
    let nowhere = directory.path().join("nowhere.timing.json");
    for path in [directory.path(), &nowhere] {
        let ended = run(punctual(["show".as_ref(), path.as_os_str()]))?;
        expect_error(&ended, FILE, &[&path.to_string_lossy()])?;
    }
    Ok(Outcome::Completed)
}

fn show_wrong_value() -> Result<Outcome> {
    let good: serde_json::Value = serde_json::from_str(&good_model()?)?;
    let mut without = good.clone();
    without["threads"]["tasks"][0].as_object_mut().map(|task| task.remove("policy"));
    show_fails(without.to_string().as_bytes(), &["threads.tasks[0]", "policy"])?;
    let mut negative = good.clone();
    negative["threads"]["tasks"][0]["from_ns"] = (-1).into();
    show_fails(negative.to_string().as_bytes(), &["threads.tasks[0].from_ns"])?;
    let mut zero = good;
    let stream = zero["threads"]["tasks"][0]["streams"]
        .as_array()
        .and_then(|streams| streams.iter().position(|s| !s["arrival"]["periodic"].is_null()));
    let Some(stream) = stream else { return crate::fail("the observed model has no period") };
    zero["threads"]["tasks"][0]["streams"][stream]["arrival"]["periodic"]["period_ns"] = 0.into();
    show_fails(zero.to_string().as_bytes(), &["period_ns"])?;
    Ok(Outcome::Completed)
}

fn show_unknown_task() -> Result<Outcome> {
    let directory = directory()?;
    let file = directory.path().join("good.timing.json");
    fs::write(&file, good_model()?)?;
    let mut show = punctual(["show", "--task", "nobody-of-this-name"]);
    show.arg(&file);
    let ended = run(show)?;
    ensure!(
        ended.code.is_some_and(|code| code != 0),
        "a task that is not in the file was shown: {}",
        ended.all()
    );
    ensure!(
        ended.stderr.contains("nobody-of-this-name"),
        "the message does not name the task: {}",
        ended.all()
    );
    Ok(Outcome::Completed)
}

fn usage() -> Result<Outcome> {
    let wrong: &[&[&str]] = &[
        &["--no-such-option"],
        &["no-such-command"],
        &["extract", "--for", "soon"],
        &["extract", "--for", "-1s"],
        &["extract", "--pid", "many"],
        &["extract", "--pid", "1", "--all-rt"],
        &["extract", "--all-rt", "--", "true"],
        &["show"],
        &["replay", ".", "--jobs", "0"],
    ];
    for arguments in wrong {
        let ended = run(punctual(*arguments))?;
        ended.expect_code(USAGE)?;
        ensure!(!ended.stderr.is_empty() && ended.stdout.is_empty(), "{arguments:?}: {}", ended.all());
    }
    for right in [&["--help"][..], &["--version"], &["help"], &["help", "show"]] {
        run(punctual(right))?.expect_code(0)?;
    }
    Ok(Outcome::Completed)
}

/// Programs that are installed are stripped, and say which file has the symbols.
fn symbols() -> Result<Outcome> {
    let (Some(mut readelf), Some(_)) = (tool("readelf", &["-SW"]), tool("cc", &[])) else {
        return skip("there is no readelf or no cc here");
    };
    let directory = directory()?;
    // A small program, which is stripped like the large ones.
    let program = directory.path().join("program");
    fs::copy(workload("getppid"), &program)?;
    let mut strip = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/strip"));
    strip.arg(&program);
    run(strip)?.expect_code(0)?;
    readelf.arg(&program);
    let sections = run(readelf)?;
    sections.expect_code(0)?;
    for unwanted in [".symtab", ".debug_info"] {
        ensure!(!sections.stdout.contains(unwanted), "the program still has {unwanted}: {}", sections.all());
    }
    ensure!(sections.stdout.contains(".gnu_debuglink"), "no link to the symbols: {}", sections.all());
    let symbols = program.with_extension("debug");
    ensure!(symbols.is_file(), "{} is missing", symbols.display());
    Ok(Outcome::Completed)
}
