//! A daemon of its own for each test: its socket, its state folder, its configuration in a temporary folder.

use punctual_linux::scheduling::{self, Processors, Scheduling};
use punctual_schedule::AssignedPolicy;
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// How long anything may take that takes no time.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Three plugins on processor 0. Users may do all but what a test forbids.
pub const PLUGINS: &str = r#"
[quotas]
connections = 4000
connections_per_user = 3000
specs_per_user = 2000
[rules]
file = "rules.conf"
[[plugin]]
name = "RM"
kind = "RM"
priorities = [1, 20]
processors = "0"
admission = "utilization"
[[plugin]]
name = "FP"
kind = "FP"
priorities = [21, 40]
processors = "0"
admission = "utilization"
"#;

/// As [`PLUGINS`], with EDF.
pub const WITH_EDF: &str = r#"
[rules]
file = "rules.conf"
[[plugin]]
name = "EDF"
kind = "EDF"
processors = "0"
admission = "utilization"
[[plugin]]
name = "FP"
kind = "FP"
priorities = [21, 40]
processors = "0"
admission = "utilization"
"#;

const RULES: &str = "- - max_priority 99\n- - ignore_adm_test true\n";

/// A daemon that runs, or was killed.
pub struct Daemon {
    folder: TempDir,
    notified: UnixDatagram,
    environment: Vec<(&'static str, String)>,
    wrapper: Vec<String>,
    child: Option<Child>,
}

impl Daemon {
    pub fn start(config: &str) -> Self {
        Self::with_rules(config, RULES)
    }

    pub fn with_rules(config: &str, rules: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        // Other users are to reach the socket.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let notified = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        notified.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut daemon = Self { folder, notified, environment: Vec::new(), wrapper: Vec::new(), child: None };
        daemon.write("rules.conf", rules);
        daemon.write("punctuald.toml", config);
        daemon.run();
        daemon
    }

    /// In its environment, when it is started the next time.
    pub fn set(&mut self, name: &'static str, value: String) {
        self.environment.push((name, value));
    }

    /// Started by another program, the next time.
    pub fn wrap(&mut self, wrapper: &[&str]) {
        self.wrapper = wrapper.iter().map(|&word| word.to_owned()).collect();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn socket(&self) -> PathBuf {
        self.path("socket")
    }

    /// Writes a file beside the configuration.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), Permissions::from_mode(0o644)).unwrap();
    }

    /// How the daemon is started.
    pub fn command(&self) -> Command {
        let mut words = self.wrapper.iter().map(String::as_str).chain([env!("CARGO_BIN_EXE_punctuald")]);
        let mut command = Command::new(words.next().unwrap());
        command
            .args(words)
            .arg("--config")
            .arg(self.path("punctuald.toml"))
            .arg("--socket")
            .arg(self.socket())
            .arg("--state")
            .arg(self.path("state"));
        command
            .env("NOTIFY_SOCKET", self.path("notify"))
            .env_remove("JOURNAL_STREAM")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stderr(fs::File::options().append(true).create(true).open(self.path("log")).unwrap());
        command
    }

    /// Starts it, and does not wait.
    pub fn begin(&mut self) {
        self.child = Some(self.command().spawn().unwrap());
    }

    /// Starts it, and waits until it says that it is ready.
    pub fn run(&mut self) {
        self.begin();
        self.wait_for("READY=1");
    }

    /// Waits until the daemon tells its manager that.
    pub fn wait_for(&self, state: &str) {
        let mut buffer = [0; 256];
        loop {
            match self.notified.recv(&mut buffer) {
                Ok(count) if buffer[..count].starts_with(state.as_bytes()) => return,
                Ok(_) => {}
                // By SIGCHLD: a child ended while the thread that started it had blocked signals to start
                // another one.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("the daemon did not say {state}: {error}; its log:\n{}", self.log()),
            }
        }
    }

    /// Lets it go before the threads that it schedules, so that it answers at once however busy the
    /// processors are.
    pub fn hurry(&self) {
        scheduling::schedule(self.pid(), &Scheduling::from_policy(AssignedPolicy::Fifo(50))).unwrap();
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: no memory is involved; the number is that of a child that was not waited for.
        assert_eq!(unsafe { libc::kill(self.pid() as i32, signal) }, 0);
    }

    /// Kills it, as hard as can be.
    pub fn kill(&mut self) {
        let mut child = self.child.take().expect("it runs");
        child.kill().unwrap();
        child.wait().unwrap();
        // What it said before is no news of the next one.
        self.notified.set_nonblocking(true).unwrap();
        while self.notified.recv(&mut [0; 256]).is_ok() {}
        self.notified.set_nonblocking(false).unwrap();
    }

    /// Asks it to end, and waits for that.
    pub fn stop(&mut self) -> ExitStatus {
        self.signal(libc::SIGTERM);
        self.child.take().expect("it runs").wait().unwrap()
    }

    /// Another configuration; whatever comes of it.
    pub fn reload(&self, config: &str) {
        self.write("punctuald.toml", config);
        self.signal(libc::SIGHUP);
        self.wait_for("RELOADING=1");
        self.wait_for("READY=1");
    }

    pub fn connect(&self) -> Client {
        Client::connect(&self.socket())
    }

    /// Whether it has no specs, no threads in its books, and soon no utilization: what has ended keeps its
    /// room for a period.
    #[track_caller]
    pub fn assert_empty(&self) {
        let mut client = self.connect();
        let status = client.ask("GetStatus", json!({}));
        assert_eq!((&status["specs"], &status["attached"]), (&json!(0), &json!(0)));
        until("no utilization", || {
            let listed = client.ask("ListPlugins", json!({}));
            let plugins = listed["plugins"].as_array().unwrap();
            let mut processors = plugins.iter().flat_map(|it| it["processors"].as_array().unwrap());
            processors.all(|it| (&it["specs"], &it["utilization"]) == (&json!(0), &json!(0.0)))
        });
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
            if std::thread::panicking() {
                eprintln!("the daemon's log:\n{}", self.log());
            }
        }
    }
}

/// A connection, by hand: what goes over the wire is what is tested.
pub struct Client {
    pub stream: UnixStream,
    received: Vec<u8>,
}

impl Client {
    pub fn connect(path: &std::path::Path) -> Self {
        Self::from_stream(UnixStream::connect(path).unwrap())
    }

    pub fn from_stream(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream, received: Vec::new() }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        match self.stream.write_all(bytes) {
            // The daemon has closed it, and said why perhaps.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            written => written.unwrap(),
        }
    }

    /// The next reply; `None` when the daemon has closed the connection.
    pub fn receive(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.received.iter().position(|&byte| byte == 0) {
                let reply = serde_json::from_slice(&self.received[..end]).expect("replies are JSON");
                self.received.drain(..=end);
                return Some(reply);
            }
            let mut buffer = [0; 65536];
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("no reply: {error}"),
            }
        }
    }

    /// Calls a method; the whole reply, or nothing where the daemon is gone.
    pub fn try_call(&mut self, method: &str, parameters: Value) -> Option<Value> {
        self.send(&message(method, parameters));
        self.receive()
    }

    /// Calls a method; the whole reply.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.send(&message(method, parameters));
        self.receive().expect("a reply")
    }

    /// Calls a method that succeeds; its parameters.
    #[track_caller]
    pub fn ask(&mut self, method: &str, parameters: Value) -> Value {
        let reply = self.call(method, parameters);
        assert!(reply.get("error").is_none(), "{method}: {reply}");
        reply["parameters"].clone()
    }

    /// Calls a method that fails; the error's name without its interface, and its parameters.
    #[track_caller]
    pub fn fail(&mut self, method: &str, parameters: Value) -> (String, Value) {
        let reply = self.call(method, parameters);
        let name = reply["error"].as_str().unwrap_or_else(|| panic!("{method} succeeded: {reply}"));
        (name.rsplit('.').next().unwrap().to_owned(), reply["parameters"].clone())
    }

    /// Creates a spec; its number.
    #[track_caller]
    pub fn create(&mut self, parameters: Value) -> u64 {
        self.ask("CreateSpec", json!({ "parameters": parameters }))["admission"]["spec"].as_u64().unwrap()
    }

    /// Creates one and attaches a thread to it.
    #[track_caller]
    pub fn schedule(&mut self, parameters: Value, thread: u32) -> u64 {
        let spec = self.create(parameters);
        self.ask("AttachThread", json!({ "spec": spec, "thread": thread }));
        spec
    }
}

/// A call, with its NUL.
pub fn message(method: &str, parameters: Value) -> Vec<u8> {
    let method =
        if method.contains('.') { method.to_owned() } else { format!("io.punctual.Scheduler1.{method}") };
    let mut bytes = json!({ "method": method, "parameters": parameters }).to_string().into_bytes();
    bytes.push(0);
    bytes
}

/// A process that sleeps until it is killed.
pub struct Sleeper(pub Child);

impl Sleeper {
    /// Until it sleeps: what it takes before would be taken of its spec's budget.
    pub fn start() -> Self {
        let it = Self(Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap());
        until("its sleep", || waits_in("nanosleep", it.tid(), it.tid()));
        it
    }

    pub fn tid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How the kernel says that a thread is scheduled, by `/proc`: policy, real-time priority, nice, processors.
pub fn seen(thread: u32) -> (u32, u32, i32, String) {
    let stat = fs::read_to_string(format!("/proc/{thread}/task/{thread}/stat")).expect("the thread is there");
    let fields: Vec<&str> = stat[stat.rfind(')').unwrap() + 2..].split(' ').collect();
    let status = fs::read_to_string(format!("/proc/{thread}/task/{thread}/status")).unwrap();
    let processors =
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_owned();
    (fields[38].parse().unwrap(), fields[37].parse().unwrap(), fields[16].parse().unwrap(), processors)
}

/// Policies as `/proc` has them.
pub const OTHER: u32 = libc::SCHED_OTHER as u32;
pub const FIFO: u32 = libc::SCHED_FIFO as u32;
pub const DEADLINE: u32 = libc::SCHED_DEADLINE as u32;

/// A priority above that of every spec of these tests, so that a busy thread that the scheduler put beside
/// this one does not keep it from seeing what is so only while that thread runs; and another processor than
/// theirs, as looking takes time. What it starts is an ordinary process.
struct Watching {
    before: Option<Processors>,
}

impl Watching {
    const PRIORITY: i32 = 90;

    fn begin() -> Self {
        Self::set(libc::SCHED_FIFO, Self::PRIORITY);
        let before = scheduling::processors(0).ok();
        // There may be one alone.
        let moves = Processors::one(1).is_some_and(|it| scheduling::pin(0, &it).is_ok());
        Self { before: before.filter(|_| moves) }
    }

    fn set(policy: i32, priority: i32) {
        let parameter = libc::sched_param { sched_priority: priority };
        // SAFETY: it reads the parameter.
        let set =
            unsafe { libc::sched_setscheduler(0, policy | libc::SCHED_RESET_ON_FORK, &raw const parameter) };
        assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        Self::set(libc::SCHED_OTHER, 0);
        if let Some(before) = &self.before {
            let _ = scheduling::pin(0, before);
        }
    }
}

/// Waits for something that comes by itself.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = std::time::Instant::now();
    let _watching = Watching::begin();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "{what} does not come");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Makes an attempt, and another one where the machine was too slow for what it asks: three at most.
pub fn in_time(mut attempt: impl FnMut() -> Result<(), String>) {
    for _ in 1..3 {
        match attempt() {
            Ok(()) => return,
            Err(why) => println!("REPEATED: {why}"),
        }
    }
    attempt().unwrap_or_else(|why| panic!("{why}: three times"));
}

/// Starts a program and all that it starts above the threads of these tests, so that it answers however busy
/// the processors are.
pub fn spawn_urgently(command: &mut Command) -> Child {
    let set = || {
        let parameter = libc::sched_param { sched_priority: 50 };
        // SAFETY: it reads the parameter.
        match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: a system call is all that the new process does, and its error needs no memory.
    unsafe { std::os::unix::process::CommandExt::pre_exec(command, set) }.spawn().unwrap()
}

/// Whether a thread of a process waits in a function of the kernel with this word in its name.
pub fn waits_in(word: &str, process: u32, thread: u32) -> bool {
    let function = format!("/proc/{process}/task/{thread}/wchan");
    fs::read_to_string(function).is_ok_and(|function| function.contains(word))
}

/// `sched_rt_runtime_us` now.
pub fn rt_runtime() -> i64 {
    scheduling::rt_runtime().unwrap()
}
