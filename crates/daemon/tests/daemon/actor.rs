//! Clients in processes of their own: this program again, told line by line what to do. So they can be other
//! users, have threads, fork and be killed.

use crate::rig::{Client, PATIENCE};
use serde_json::Value;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};

/// Says that this is not the tests but an actor.
const ROLE: &str = "PUNCTUAL_TEST_ACTOR";

/// Plays the actor if it is one.
pub fn play() -> bool {
    if std::env::var_os(ROLE).is_none() {
        return false;
    }
    let mut client: Option<Client> = None;
    let mut partners = Vec::new();
    let mut threads: HashMap<u32, (Sender<()>, std::thread::JoinHandle<()>)> = HashMap::new();
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let (command, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let answer = match command {
            "connect" => {
                client = Some(Client::connect(Path::new(rest)));
                "connected".to_owned()
            }
            "send" => {
                let client = client.as_mut().unwrap();
                client.send(rest.as_bytes());
                client.send(b"\0");
                "sent".to_owned()
            }
            "call" => {
                let client = client.as_mut().unwrap();
                client.send(rest.as_bytes());
                client.send(b"\0");
                client.receive().map_or_else(|| "null".to_owned(), |reply| reply.to_string())
            }
            // A thread that waits.
            "thread" => {
                let (end, ended) = channel::<()>();
                let (sender, receiver) = channel();
                let thread = std::thread::spawn(move || {
                    sender.send(tid()).unwrap();
                    if ended.recv().is_ok() {
                        panic!(
                            "{}",
                            std::os::unix::process::CommandExt::exec(Command::new("sleep").arg("1000"))
                        );
                    }
                });
                let number = receiver.recv().unwrap();
                threads.insert(number, (end, thread));
                number.to_string()
            }
            // A thread that starts another one at once, which starts a third. They wait, or with "end" only
            // the third does. Returns that one's number.
            "thread-of-threads" => {
                let (sender, receiver) = channel();
                fn begin(left: u32, ends: bool, sender: Sender<u32>) {
                    std::thread::spawn(move || {
                        match left {
                            0 => sender.send(tid()).unwrap(),
                            left => begin(left - 1, ends, sender),
                        }
                        if left == 0 || !ends {
                            std::thread::park();
                        }
                    });
                }
                begin(2, rest == "end", sender);
                receiver.recv().unwrap().to_string()
            }
            // A thread that works for about so many hundredths of every 20 ms, so many times.
            "periodic" => {
                let (share, times) = rest.split_once(' ').unwrap();
                let (share, times): (u32, u32) = (share.parse().unwrap(), times.parse().unwrap());
                let (sender, receiver) = channel();
                std::thread::spawn(move || {
                    sender.send(tid()).unwrap();
                    work(share, times);
                });
                receiver.recv().unwrap().to_string()
            }
            // How many times so many milliseconds its thread has needed for jobs, by the clock on the wall.
            "stretched" => stretched(rest.parse().unwrap()).to_string(),
            // It works for so many milliseconds of its processor time.
            "work" => {
                busy(rest.parse().unwrap());
                "worked".to_owned()
            }
            // It sleeps so many times, shortly.
            "naps" => {
                let nap = std::time::Duration::from_micros(100);
                (0..rest.parse().unwrap()).for_each(|_: u32| std::thread::sleep(nap));
                "awake".to_owned()
            }
            "end" => {
                let (end, thread) = threads.remove(&rest.parse().unwrap()).unwrap();
                drop(end);
                thread.join().unwrap();
                "ended".to_owned()
            }
            "load" => {
                let (count, socket) = rest.split_once(' ').unwrap();
                crate::faults::load(&mut partners, count.parse().unwrap(), Path::new(socket))
            }
            // The thread becomes another program.
            "exec" => {
                let (end, _) = &threads[&rest.parse().unwrap()];
                println!("execs");
                std::io::stdout().flush().unwrap();
                end.send(()).unwrap();
                loop {
                    std::thread::park();
                }
            }
            "tid" => tid().to_string(),
            "become" => {
                let mut ids = rest.split(' ').map(|id| id.parse::<u32>().unwrap());
                let (real, effective) = (ids.next().unwrap(), ids.next().unwrap());
                // SAFETY: no memory is involved.
                let done = unsafe {
                    libc::setgroups(0, std::ptr::null()) == 0
                        && libc::setresgid(real, effective, effective) == 0
                        && libc::setresuid(real, effective, 0) == 0
                };
                done.to_string()
            }
            // A child that holds the connection, and goes on as the actor.
            "fork" => {
                // SAFETY: there are no other threads, by the tests that use it.
                match unsafe { libc::fork() } {
                    0 => "child".to_owned(),
                    -1 => panic!("fork failed"),
                    _ => std::process::exit(0),
                }
            }
            other => panic!("{other}?"),
        };
        println!("{answer}");
    }
    true
}

/// Works for so many milliseconds of its processor time.
fn busy(ms: i64) {
    let taken = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec * 1_000 + time.tv_nsec / 1_000_000
    };
    let end = taken() + ms;
    while taken() < end {}
}

/// How long each job of [`work`] took by the clock on the wall, in ns.
static SPANS: Mutex<Vec<i64>> = Mutex::new(Vec::new());

/// How many times a runtime fits into jobs, each by itself.
fn stretched(runtime_ms: i64) -> i64 {
    SPANS.lock().unwrap().iter().map(|span| span / (runtime_ms * 1_000_000)).sum()
}

/// Works for a share of every 20 ms, in hundredths, measured by its own processor time.
fn work(share: u32, times: u32) {
    use rustix::time::{ClockId, Timespec, clock_gettime};
    const PERIOD: i64 = 20_000_000;
    let now = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    };
    let mut release = now(ClockId::Monotonic);
    let mut woken = release;
    for _ in 0..times {
        let begin = now(ClockId::ThreadCPUTime);
        while now(ClockId::ThreadCPUTime) - begin < PERIOD / 100 * i64::from(share) {}
        let end = now(ClockId::Monotonic);
        SPANS.lock().unwrap().push(end - woken);
        // Late, it begins anew: never twice in a period.
        release = (release + PERIOD).max(end + PERIOD - PERIOD / 100 * i64::from(share));
        let until = Timespec { tv_sec: release / 1_000_000_000, tv_nsec: release % 1_000_000_000 };
        let _ = rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &until);
        // From when it should have: what keeps it from waking up may count as its own already.
        woken = release;
    }
    loop {
        std::thread::park();
    }
}

fn tid() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// Such a process, from outside.
pub struct Actor {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Actor {
    pub fn start() -> Self {
        Self::by(Command::new(std::env::current_exe().unwrap()))
    }

    /// One in a PID namespace of its own.
    pub fn in_namespace() -> Self {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child"]).arg(std::env::current_exe().unwrap());
        Self::by(command)
    }

    fn by(mut command: Command) -> Self {
        let mut child = command.env(ROLE, "1").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, to, from }
    }

    /// One of a user, connected.
    pub fn as_user(user: u32, socket: &Path) -> Self {
        let mut actor = Self::start();
        assert_eq!(actor.tell(&format!("become {user} {user}")), "true");
        actor.tell(&format!("connect {}", socket.display()));
        actor
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Has it do something; what it answers.
    pub fn tell(&mut self, line: &str) -> String {
        self.begin(line);
        self.answer()
    }

    /// Has it do something that takes its time.
    pub fn begin(&mut self, line: &str) {
        writeln!(self.to, "{line}").unwrap();
    }

    /// What it answers to that.
    pub fn answer(&mut self) -> String {
        let mut answer = String::new();
        self.from.read_line(&mut answer).unwrap();
        answer.trim_end().to_owned()
    }

    /// Has it call a method; the whole reply.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        let mut message = crate::rig::message(method, parameters);
        message.pop();
        serde_json::from_str(&self.tell(&format!("call {}", String::from_utf8(message).unwrap()))).unwrap()
    }

    /// Has it call a method that succeeds.
    #[track_caller]
    pub fn ask(&mut self, method: &str, parameters: Value) -> Value {
        let reply = self.call(method, parameters);
        assert!(reply.get("error").is_none(), "{method}: {reply}");
        reply["parameters"].clone()
    }

    /// The error of a call that fails, without its interface.
    #[track_caller]
    pub fn fail(&mut self, method: &str, parameters: Value) -> String {
        let reply = self.call(method, parameters);
        let name = reply["error"].as_str().unwrap_or_else(|| panic!("{method} succeeded: {reply}"));
        name.rsplit('.').next().unwrap().to_owned()
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits until it has ended by itself.
    pub fn wait(&mut self) {
        let begin = std::time::Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(begin.elapsed() < PATIENCE);
            std::thread::yield_now();
        }
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.kill();
    }
}
