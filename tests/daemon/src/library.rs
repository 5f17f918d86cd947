//! `libpunctual.so.1`: its exported symbols, and C programs that use it.

use crate::Table;
use crate::built::{built, root};
use crate::server::{Server, expect_exit};
use punctual_test_support::{Outcome, Result, ensure, run, skip};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

pub const ALL: Table = &[
    ("library::exports_exactly_what_its_headers_declare", shows),
    ("library::headers_are_those_of_every_language", headers),
    ("library::man_page_has_no_errors", manual),
    ("library::uses_the_socket_of_the_daemon", same_socket),
    ("library::behaves_as_punctual_h_documents", promises),
    ("retif::listing_1_of_the_paper", listing),
    ("retif::names_of_the_published_code", published),
    ("retif::without_a_daemon", no_daemon),
    ("retif::rules_apply_to_other_users", another_user),
];

/// EDF lifts `sched_rt_runtime_us`, by which other daemons admit.
pub const ALONE: &[&str] = &["retif::listing_1_of_the_paper"];

fn include() -> PathBuf {
    root().join("crates/client/include")
}

/// Compiles a program of `crates/client/tests/c` with all warnings.
fn compiled(server: &Server, name: &str) -> Result<PathBuf> {
    if let Some(program) = crate::built::compiled(name) {
        return Ok(program);
    }
    let program = server.folder().join(name);
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O2", "-pthread", "-I"])
        .arg(include())
        .arg("-o")
        .arg(&program);
    cc.arg(root().join(format!("crates/client/tests/c/{name}.c")))
        .arg("-L")
        .arg(&built().library)
        .arg("-lpunctual");
    expect_exit(cc, 0)?;
    Ok(program)
}

fn shows() -> Result<Outcome> {
    if crate::built::compiled("").is_some() {
        return skip("what a library shows is the same everywhere");
    }
    let mut nm = Command::new("nm");
    nm.args(["-D", "--defined-only", "--with-symbol-versions"]).arg(built().library.join("libpunctual.so.1"));
    let (symbols, _) = expect_exit(nm, 0)?;
    let shown: BTreeSet<String> =
        symbols.lines().filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect();
    let mut declared = BTreeSet::new();
    for header in ["punctual.h", "retif.h"] {
        let text = std::fs::read_to_string(include().join(header))?;
        // Only prototypes begin in the first column.
        for line in text
            .lines()
            .filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()) && line.contains('('))
        {
            let name = line.split('(').next().unwrap_or_default();
            let name = name.rsplit([' ', '*']).next().unwrap_or_default();
            declared.insert(name.to_owned());
        }
    }
    // Each has the version of the library in which it came.
    let symbols = shown.into_iter().filter(|name| !name.starts_with("PUNCTUAL_"));
    let shown: BTreeSet<String> = symbols
        .map(|symbol| match symbol.split_once("@@PUNCTUAL_") {
            Some((name, version)) if version.parse::<u32>().is_ok() => name.to_owned(),
            _ => format!("{symbol}, without a version"),
        })
        .collect();
    let differ: Vec<&String> = shown.symmetric_difference(&declared).collect();
    ensure!(differ.is_empty(), "either declared or exported, but not both: {differ:?}");
    let mut readelf = Command::new("readelf");
    readelf.arg("-d").arg(built().library.join("libpunctual.so.1"));
    ensure!(expect_exit(readelf, 0)?.0.contains("[libpunctual.so.1]"), "its soname is another one");
    Ok(Outcome::Completed)
}

fn headers() -> Result<Outcome> {
    if crate::built::compiled("").is_some() {
        return skip("there is no compiler here");
    }
    let folder = tempfile::tempdir()?;
    let source = folder.path().join("both.c");
    std::fs::write(
        &source,
        "#include <retif.h>\n#include <punctual.h>\n#include <retif.h>\nstruct rtf_spec s;\n\
         int main(void) { struct rtf_params p = RTF_PARAM_INIT; s = RTF_SPEC_INIT; p = RTF_PARAM_INIT; \
         return (int)p.period; }\n",
    )?;
    for (language, standard) in [("c", "c11"), ("c", "gnu17"), ("c++", "c++17")] {
        let mut cc = Command::new("cc");
        cc.args([
            "-fsyntax-only",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-x",
            language,
            &format!("-std={standard}"),
            "-I",
        ]);
        cc.arg(include()).arg(&source);
        expect_exit(cc, 0)?;
    }
    Ok(Outcome::Completed)
}

fn manual() -> Result<Outcome> {
    let page = root().join("crates/client/man/punctual.3");
    let mut man = Command::new("man");
    man.args(["--warnings", "-l"]).arg(page).env("LC_ALL", "C.UTF-8").env("MANWIDTH", "100");
    if Command::new("man").arg("--version").output().is_err() {
        return skip("there is no man here");
    }
    let (text, warnings) = expect_exit(man, 0)?;
    ensure!(warnings.is_empty(), "{warnings}");
    ensure!(text.contains("punctual_spec_wait_period"), "{text}");
    Ok(Outcome::Completed)
}

fn same_socket() -> Result<Outcome> {
    let (client, daemon) = (punctual_client::DEFAULT_SOCKET, punctual_daemon::config::DEFAULT_SOCKET);
    ensure!(client == daemon, "a client looks at {client}, but the daemon listens at {daemon}");
    Ok(Outcome::Completed)
}

/// Runs a program that checks for itself.
fn checks(name: &str) -> Result<Outcome> {
    let server = Server::start()?;
    let (out, _) = expect_exit(server.program(compiled(&server, name)?), 0)?;
    ensure!(out == "all is so\n", "{out}");
    Ok(Outcome::Completed)
}

fn promises() -> Result<Outcome> {
    checks("library")
}

fn published() -> Result<Outcome> {
    checks("published")
}

/// What `listing1` prints. Where the machine kept it from its processor for as long as its runtime, what it
/// says of its policy means nothing: it runs again, three times at most.
fn undisturbed(listing: impl Fn() -> Command) -> Result<String> {
    for _ in 1..3 {
        let ended = run(listing())?;
        if ended.code != Some(20) {
            ended.expect_code(0)?;
            return Ok(ended.stdout);
        }
        println!("REPEATED: listing1 needed more than its runtime to look at its policy");
    }
    Ok(expect_exit(listing(), 0)?.0)
}

fn listing() -> Result<Outcome> {
    let server = Server::start()?;
    let program = compiled(&server, "listing1")?;
    // SCHED_FIFO is 1, SCHED_DEADLINE 6; the first takes no desired runtime, the second does.
    let cases = [
        ("RM", "5 jobs, 0 with options, accepted 20000, policy 1, after it 0\n"),
        ("EDF", "5 jobs, 5 with options, accepted 30000, policy 6, after it 0\n"),
    ];
    for (plugin, expected) in cases {
        let out = undisturbed(|| {
            let mut command = server.program(&program);
            command.args(["20000", plugin]);
            command
        })?;
        ensure!(out == expected, "under {plugin}: {out}");
    }
    // Longer than the deadline; too long for 64 bits of nanoseconds.
    for runtime in ["50000", "18446744073709551615"] {
        let mut command = server.program(&program);
        command.arg(runtime);
        expect_exit(command, 11)?;
    }
    Ok(Outcome::Completed)
}

/// Users without privileges get real-time scheduling as far as a rule allows, and an error if none does.
fn another_user() -> Result<Outcome> {
    const NOBODY: u32 = 65534;
    if !rustix::process::geteuid().is_root() {
        return skip("another user's programs can be run by root only");
    }
    let mut server = Server::start()?;
    // Everything they need is in a folder they can read: that of the build may be private.
    std::fs::set_permissions(server.folder(), std::fs::Permissions::from_mode(0o755))?;
    let program = compiled(&server, "listing1")?;
    std::fs::copy(built().library.join("libpunctual.so.1"), server.folder().join("libpunctual.so.1"))?;
    let theirs = |server: &Server| {
        let mut command = server.program(&program);
        command
            .args(["20000", "RM"])
            .env("LD_LIBRARY_PATH", server.folder())
            .current_dir("/")
            .uid(NOBODY)
            .gid(NOBODY);
        command
    };
    let out = undisturbed(|| theirs(&server))?;
    ensure!(out == "5 jobs, 0 with options, accepted 20000, policy 1, after it 0\n", "{out}");
    std::fs::write(server.folder().join("rules.conf"), "- EDF max_utilization 8\n")?;
    server.restart()?;
    expect_exit(theirs(&server), 12)?;
    Ok(Outcome::Completed)
}

fn no_daemon() -> Result<Outcome> {
    let server = Server::start()?;
    let program = compiled(&server, "listing1")?;
    let mut command = server.program(program);
    command.env("PUNCTUALD_SOCKET", server.folder().join("none"));
    expect_exit(command, 10)?;
    Ok(Outcome::Completed)
}
