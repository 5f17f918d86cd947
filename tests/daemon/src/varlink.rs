//! systemd's Varlink client: that of this machine, otherwise that of Debian 13 with its own libraries.

use crate::Table;
use crate::built::root;
use crate::server::{Server, expect_exit};
use punctual_test_support::{Outcome, Result, ensure, skip};
use std::process::Command;

pub const ALL: Table = &[("varlinkctl::introspects_and_calls", introspects)];

/// The words that run it; an error is the reason why it cannot be run.
fn varlinkctl() -> std::result::Result<Vec<String>, String> {
    if Command::new("varlinkctl").arg("--version").output().is_ok() {
        return Ok(vec!["varlinkctl".into()]);
    }
    let arch = match std::env::consts::ARCH {
        "x86_64" => ("amd64", "lib64/ld-linux-x86-64.so.2", "x86_64-linux-gnu"),
        "aarch64" => ("arm64", "lib/ld-linux-aarch64.so.1", "aarch64-linux-gnu"),
        other => return Err(format!("there is no varlinkctl here, and none is fetched for {other}")),
    };
    let mut fetch = Command::new(root().join("scripts/debian"));
    let fetched = fetch.args(["unpack", "--with-dependencies", "trixie", arch.0, "systemd"]).output();
    let fetched = fetched.map_err(|error| format!("scripts/debian cannot be started: {error}"))?;
    if !fetched.status.success() {
        let why = String::from_utf8_lossy(&fetched.stderr);
        return Err(format!(
            "there is no varlinkctl here, and Debian's is not available: {}",
            why.lines().last().unwrap_or_default()
        ));
    }
    let system = String::from_utf8_lossy(&fetched.stdout).trim().to_owned();
    let libraries = ["usr/lib/{}", "usr/lib/{}/systemd", "lib/{}"]
        .map(|folder| format!("{system}/{}", folder.replace("{}", arch.2)));
    let loader = format!("{system}/{}", arch.1);
    let program = format!("{system}/usr/bin/varlinkctl");
    Ok(vec![loader, "--library-path".into(), libraries.join(":"), program])
}

fn introspects() -> Result<Outcome> {
    // It is looked for once: that alone takes seconds where it is Debian's.
    let words = match varlinkctl() {
        Ok(words) => words,
        Err(reason) => return skip(reason),
    };
    let server = Server::start()?;
    let socket = server.socket().display().to_string();
    let ask = |arguments: &[&str]| -> Result<String> {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(arguments);
        Ok(expect_exit(command, 0)?.0)
    };
    let text = ask(&["introspect", &socket, "io.punctual.Scheduler1"])?;
    for word in ["CreateSpec", "NotAdmitted", "accepted_runtime_ns"] {
        ensure!(text.contains(word), "{text}");
    }
    let info = ask(&["info", &socket])?;
    ensure!(info.contains("io.punctual.Scheduler1"), "{info}");
    let plugins = ask(&["call", "--json=short", &socket, "io.punctual.Scheduler1.ListPlugins", "{}"])?;
    ensure!(plugins.contains("\"EDF\""), "{plugins}");
    Ok(Outcome::Completed)
}
