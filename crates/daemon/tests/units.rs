//! `dist/`: what systemd makes of the units, and whether the capabilities that they leave are enough.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const DIST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist");

const UNITS: [&str; 3] = ["punctuald.service", "punctuald.socket", "punctual-watch@.service"];

/// The units with the daemon that was built, in a folder of their own.
fn units() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in UNITS {
        let text = std::fs::read_to_string(Path::new(DIST).join(name)).unwrap();
        // Whatever is built: the unit's command has to be there.
        let text = text.replace("/usr/local/bin/punctual watch", "/bin/true watch");
        let text = text.replace("/usr/local/bin/punctuald", env!("CARGO_BIN_EXE_punctuald"));
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// What `systemd-analyze` says, or nothing where there is none.
fn analyze(arguments: &[&str], unit: &Path) -> Option<(bool, String)> {
    let Ok(printed) = Command::new("systemd-analyze").args(arguments).arg(unit).output() else {
        eprintln!("SKIPPED: there is no systemd-analyze here");
        return None;
    };
    Some((
        printed.status.success(),
        String::from_utf8_lossy(&[printed.stdout, printed.stderr].concat()).into_owned(),
    ))
}

#[test]
fn systemd_understands_the_units() {
    let folder = units();
    for unit in UNITS.map(|unit| unit.replace('@', "@robot")) {
        let Some((fine, printed)) = analyze(&["verify", "--man=no"], &folder.path().join(&unit)) else {
            return;
        };
        // Units of the machine may be wrong too, which is not ours.
        let ours: Vec<&str> = printed.lines().filter(|line| line.contains("punctual")).collect();
        assert!(fine && ours.is_empty(), "{printed}");
    }
}

#[test]
fn systemd_rates_the_exposure_low() {
    let folder = units();
    // Of 10 (unsafe) to 0. What is left is what the daemon is for; see the unit's comments.
    let arguments = ["security", "--offline=true", "--no-pager", "--threshold=20"];
    for unit in ["punctuald.service", "punctual-watch@robot.service"] {
        let Some((fine, printed)) = analyze(&arguments, &folder.path().join(unit)) else { return };
        if printed.contains("unrecognized option") {
            eprintln!("SKIPPED: this systemd-analyze looks at running units only");
            return;
        }
        assert!(fine, "{printed}");
    }
}

/// The user of the watch is created by what is installed beside it, and the rule for it is one.
#[test]
fn the_watch_has_a_user_and_a_rule() {
    let read = |name: &str| std::fs::read_to_string(Path::new(DIST).join(name)).unwrap();
    let unit = read("punctual-watch@.service");
    let user = unit.lines().find_map(|line| line.strip_prefix("User=")).expect("a user");
    let users = read("punctual-watch.sysusers");
    let created = users.lines().filter_map(|line| line.strip_prefix("u ")?.split_whitespace().next());
    assert_eq!(created.collect::<Vec<_>>(), [user]);
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/daemon.md");
    let document = std::fs::read_to_string(document).unwrap();
    let of_user = |line: &&str| line.split_whitespace().next() == Some(user) && line.contains("observe");
    let rule = document.lines().find(of_user).expect("the rule");
    let commented = read("rules.conf").lines().any(|line| {
        line.strip_prefix('#').is_some_and(|it| it.split_whitespace().eq(rule.split_whitespace()))
    });
    assert!(commented, "{rule}");
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    std::fs::create_dir_all(root.join("etc")).unwrap();
    let users = std::fs::File::open(Path::new(DIST).join("punctual-watch.sysusers")).unwrap();
    let mut sysusers = Command::new("systemd-sysusers");
    sysusers.arg(format!("--root={}", root.display())).arg("-").stdin(users);
    let Ok(made) = sysusers.output() else {
        eprintln!("SKIPPED: there is no systemd-sysusers here");
        return;
    };
    assert!(made.status.success(), "{made:?}");
    let passwd = std::fs::read_to_string(root.join("etc/passwd")).unwrap();
    assert!(passwd.lines().any(|line| line.starts_with(&format!("{user}:"))), "{passwd}");
}

/// Ends with the test.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// A daemon with the capabilities that the unit leaves, and whether it is ready.
fn start(folder: &Path) -> Option<(Daemon, PathBuf)> {
    let unit = std::fs::read_to_string(Path::new(DIST).join("punctuald.service")).unwrap();
    let left = unit.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet=")).unwrap();
    let left: Vec<String> = left
        .split_whitespace()
        .map(|name| format!("+{}", name.strip_prefix("CAP_").unwrap().to_lowercase()))
        .collect();
    let config = folder.join("p.toml");
    std::fs::write(
        &config,
        "[rules]\nfile = \"r.conf\"\n[[plugin]]\nname = \"FP\"\nkind = \"FP\"\npriorities = [1, 3]\n",
    )
    .unwrap();
    std::fs::write(folder.join("r.conf"), "4711 FP max_priority 3\n").unwrap();
    let socket = folder.join("socket");
    let mut daemon = Command::new("setpriv")
        .arg(format!("--bounding-set=-all,{}", left.join(",")))
        .args(["--inh-caps=-all", "--no-new-privs", env!("CARGO_BIN_EXE_punctuald"), "--config"])
        .arg(&config)
        .arg("--socket")
        .arg(&socket)
        .arg("--state")
        .arg(folder.join("state"))
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let mut printed = BufReader::new(daemon.stderr.take().unwrap()).lines();
    let daemon = Daemon(daemon);
    let ready = printed.by_ref().map_while(Result::ok).find(|line| line.contains("is ready at"));
    assert!(ready.is_some(), "the daemon ended");
    // Whoever writes needs a reader.
    std::thread::spawn(move || printed.for_each(drop));
    Some((daemon, socket))
}

fn call(socket: &mut UnixStream, method: &str, parameters: serde_json::Value) -> serde_json::Value {
    let request =
        serde_json::json!({"method": format!("io.punctual.Scheduler1.{method}"), "parameters": parameters});
    socket.write_all(format!("{request}\0").as_bytes()).unwrap();
    let mut reply = Vec::new();
    BufReader::new(&*socket).read_until(0, &mut reply).unwrap();
    reply.pop();
    serde_json::from_slice(&reply).unwrap()
}

#[test]
fn the_capabilities_of_the_unit_suffice_to_serve_other_users() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("SKIPPED: to be other users takes root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).unwrap();
    let Some((_daemon, socket)) = start(folder.path()) else {
        eprintln!("SKIPPED: there is no setpriv here");
        return;
    };
    let client = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_client_of_another_user"])
        .env(ROLE, socket)
        .output();
    let client = client.unwrap();
    assert!(client.status.success(), "{}", String::from_utf8_lossy(&client.stdout));
}

/// Says where the daemon is that the next one asks.
const ROLE: &str = "PUNCTUAL_TEST_SOCKET";

/// What the test before has another process do, which becomes another user: a thread alone would not be one
/// to kernels before 6.5, which tell the daemon the number of the process only.
#[test]
fn a_client_of_another_user() {
    let Some(socket) = std::env::var_os(ROLE) else { return };
    // SAFETY: no memory is involved, and nothing else runs in this process.
    let changed = unsafe {
        libc::setgroups(0, std::ptr::null())
            | libc::setresgid(4711, 4711, 4711)
            | libc::setresuid(4711, 4711, 4711)
    };
    assert_eq!(changed, 0);
    let mut socket = UnixStream::connect(socket).unwrap();
    let priority = |priority: u32| serde_json::json!({"parameters": {"priority": priority}, "name": null});
    let created = call(&mut socket, "CreateSpec", priority(2));
    let denied = call(&mut socket, "CreateSpec", priority(4));
    assert_eq!(denied["error"], "io.punctual.Scheduler1.NotPermitted", "{denied}");
    let rule = denied["parameters"]["rule"].as_str().unwrap_or_else(|| panic!("{denied}"));
    assert!(rule.ends_with("r.conf:1: 4711 FP max_priority 3"), "{rule}");
    // SAFETY: no memory is involved.
    let me = unsafe { libc::syscall(libc::SYS_gettid) };
    let spec = &created["parameters"]["admission"]["spec"];
    let attached = call(&mut socket, "AttachThread", serde_json::json!({"spec": spec, "thread": me}));
    // SAFETY: no memory is involved.
    let policy = unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK;
    assert!(attached.get("error").is_none() && policy == libc::SCHED_FIFO, "{attached}");
}
