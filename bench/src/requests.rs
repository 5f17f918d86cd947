//! Measures requests to a daemon. The daemon, the client and the echo run at SCHED_FIFO 99 on one processor.

use crate::{Error, measure};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const ROUNDS: &str = "300";

/// Medians in nanoseconds, by the number of specs and what was measured.
pub type Medians = BTreeMap<(u32, String), f64>;

/// A process that is ended when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // SAFETY: the child has not been waited for, so its number is its own.
        unsafe { libc::kill(self.0.id() as i32, libc::SIGTERM) };
        let _ = self.0.wait();
    }
}

/// A command at SCHED_FIFO 99 on the first processor, ended by force after a minute.
fn urgent(program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["60", "taskset", "-c", "0", "chrt", "-f", "99"]).arg(program);
    command
}

/// Medians of each kind of request to a daemon with one plugin.
pub fn medians(daemon: &Path, plugin: &str, admission: &str, processors: &str) -> Result<Medians, Error> {
    let folder = std::env::temp_dir().join(format!("punctual-bench-daemon-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    let path = |name: &str| folder.join(name);
    let priorities = if plugin == "EDF" { "" } else { "priorities = [1, 49]\n" };
    let admission = format!("admission = \"{admission}\"\n");
    let plugin_table = format!(
        "[[plugin]]\nname = \"{plugin}\"\nkind = \"{plugin}\"\n{priorities}{admission}processors \
            = \"{processors}\"\n"
    );
    std::fs::write(path("punctuald.toml"), format!("[rules]\nfile = \"rules.conf\"\n{plugin_table}"))?;
    std::fs::write(path("rules.conf"), "")?;

    let mut daemon = urgent(daemon);
    daemon
        .arg("--config")
        .arg(path("punctuald.toml"))
        .arg("--socket")
        .arg(path("socket"))
        .arg("--state")
        .arg(path("state"));
    let mut daemon = Running(daemon.stderr(Stdio::piped()).spawn()?);
    let printed = BufReader::new(daemon.0.stderr.take().ok_or("no standard error")?);
    let mut lines = printed.lines();
    if !lines.by_ref().map_while(Result::ok).any(|line| line.contains(" is ready at ")) {
        return Err("punctuald does not start".into());
    }
    // It must never wait for a reader.
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));

    let client = measure::target().join("bench-daemon-client");
    let libraries = measure::built("client");
    let mut echo =
        Running(urgent(&client).arg("echo").arg(path("echo")).env("LD_LIBRARY_PATH", &libraries).spawn()?);
    while !path("echo").exists() {
        if echo.0.try_wait()?.is_some() {
            return Err("the echo does not start: see above".into());
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let mut asking = urgent(&client);
    asking.arg("measure").arg(path("echo")).args([plugin, ROUNDS]);
    asking.env("PUNCTUALD_SOCKET", path("socket")).env("LD_LIBRARY_PATH", &libraries);
    let mut asking = asking.stdout(Stdio::piped()).spawn()?;
    let mut text = String::new();
    asking.stdout.take().ok_or("no output")?.read_to_string(&mut text)?;
    if !asking.wait()?.success() {
        return Err(format!("measuring {plugin} failed: see above").into());
    }
    std::fs::remove_dir_all(&folder)?;
    let mut medians = Medians::new();
    for line in text.lines() {
        let [specs, what, ns] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err(format!("unexpected: {line}").into());
        };
        medians.insert((specs.parse()?, what.to_owned()), ns.parse()?);
    }
    Ok(medians)
}
