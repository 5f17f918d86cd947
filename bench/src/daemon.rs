//! What requests to the daemon cost: create, attach, change and release with 0 to 1,024 specs admitted, for
//! each plugin, on one and two processors, next to an exchange of the same size that does nothing and to the
//! direct system call. The daemon, the client and the echo run at SCHED_FIFO 99 on one processor.

use punctual_bench::{Error, document, measure};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const ROUNDS: &str = "300";
const SIZES: [u32; 4] = [0, 128, 512, 1024];
const CASES: [(&str, &str); 8] = [
    ("EDF", "utilization"),
    ("EDF", "exact"),
    ("RM", "utilization"),
    ("RM", "exact"),
    ("FP", "utilization"),
    ("FP", "exact"),
    ("RR", "utilization"),
    ("RR", "exact"),
];
const PROCESSORS: [(&str, &str); 2] = [("1", "1"), ("2", "0-1")];
const KINDS: [&str; 6] = ["create", "attach", "hold", "change", "release", "ping"];

/// Medians in nanoseconds, by the number of specs and what was measured.
type Medians = BTreeMap<(u32, String), f64>;

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

fn medians(plugin: &str, admission: &str, processors: &str) -> Result<Medians, Error> {
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

    let mut daemon = urgent(&measure::built("punctuald"));
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
    let libraries = measure::target().join("client");
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

fn main() -> Result<(), Error> {
    let mut rows = Vec::new();
    for (plugin, admission) in CASES {
        for (count, processors) in PROCESSORS {
            let medians = medians(plugin, admission, processors)?;
            let median = |specs: u32, what: &str| {
                medians.get(&(specs, what.to_owned())).copied().ok_or(format!("no {what} was measured"))
            };
            for what in KINDS {
                let mut row = vec![format!("{plugin}, {admission}"), count.to_owned(), what.to_owned()];
                for specs in SIZES {
                    row.push(format!("{:.1}", median(specs, what)? / 1e3));
                }
                let direct = if what == "attach" { median(0, "direct")? } else { 0.0 };
                let least = median(0, "exchange")? + direct;
                row.push(format!("{:.1}", least / 1e3));
                row.push(format!("{:.2}", median(0, what)? / least));
                row.push(format!("{:.2}", median(1024, what)? / median(0, what)?));
                rows.push(<[String; 10]>::try_from(row).map_err(|_| "a row of another length")?);
            }
        }
    }
    let head = [
        "plugin, admission test",
        "processors",
        "request",
        "0 specs, µs",
        "128",
        "512",
        "1,024",
        "exchange (+ direct call), µs",
        "ratio to that",
        "1,024 specs to 0",
    ];
    document::publish("daemon", "make bench-daemon", &head, &rows)
}
