//! Chromium, controlled by the DevTools protocol over a pipe: messages are JSON, each followed by a NUL.
//!
//! A page is a session of the protocol; what it can be asked is in `browser.rs`.

use crate::{Result, ensure, fail};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time limit of each call and of each wait for an event, far longer than anything takes.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Chromium takes commands from descriptor 3 and answers on 4. A shell puts the pipes of its standard input
/// and output there, since the standard library passes on these two only.
const WITH_PIPES: &str = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null"#;

const FLAGS: &[&str] = &[
    "--headless=new",
    "--remote-debugging-pipe",
    // Root has no sandbox.
    "--no-sandbox",
    "--disable-gpu",
    // Containers have a small /dev/shm.
    "--disable-dev-shm-usage",
    // Pages look the same on every machine.
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    // Nothing but the page asks for anything, and nothing but the tests acts on it.
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    "--password-store=basic",
    // Pages run at full speed whether or not they are in front.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-ipc-flooding-protection",
    "--disable-renderer-backgrounding",
];

/// The program: `CHROMIUM`, otherwise the one on the path.
pub fn installed() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("CHROMIUM") {
        return Some(named.into());
    }
    let folders = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&folders)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|path| path.is_file())
}

/// A running browser with a temporary profile. Dropping it ends all its processes and deletes the profile.
pub struct Chromium {
    process: Child,
    connection: Mutex<Connection>,
    _profile: tempfile::TempDir,
}

impl Chromium {
    /// Starts it. It also ends when this process does, since its pipes are closed then.
    pub fn start() -> Result<Self> {
        let program = installed().ok_or("there is no Chromium")?;
        let profile = tempfile::tempdir()?;
        let mut process = Command::new("/bin/sh")
            .args(["-c", WITH_PIPES])
            .arg(program)
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            // A browser that is killed leaves what it keeps elsewhere.
            .env("TMPDIR", profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let pipes = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        let (Some(commands), Some(messages), Some(stderr)) = pipes else { return fail("no pipes") };
        let connection = Connection {
            commands,
            messages: read_messages(messages),
            stderr: read_whole(stderr),
            last_id: 0,
            events: Vec::new(),
        };
        let chromium = Chromium { process, connection: Mutex::new(connection), _profile: profile };
        chromium.call(None, "Browser.getVersion", json!({}))?;
        Ok(chromium)
    }

    /// Calls a method, of a session or of the browser, and waits for its result.
    pub fn call(&self, session: Option<&str>, method: &str, parameters: Value) -> Result<Value> {
        self.connection().call(session, method, parameters)
    }

    /// Waits until a session has had an event for which `is_it` holds.
    pub fn wait_for(&self, session: &str, what: &str, is_it: impl Fn(&Event) -> bool) -> Result {
        self.connection().wait_for(session, what, is_it)
    }

    /// All events of a session before the last answer or awaited event, in order.
    pub fn events(&self, session: &str) -> Vec<Event> {
        self.connection().events.iter().filter(|event| event.session == session).cloned().collect()
    }

    /// Closes a page and forgets its events.
    pub fn close(&self, target: &str, session: &str) -> Result {
        let mut connection = self.connection();
        let closed = connection.call(None, "Target.closeTarget", json!({ "targetId": target }));
        connection.events.retain(|event| event.session != session);
        closed.map(|_| ())
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.process), Signal::KILL);
        let _ = self.process.wait();
        // Every process of the browser holds this pipe. When all have ended, none writes to the profile while
        // it is being deleted.
        let _ = self.connection().stderr.recv_timeout(PATIENCE);
    }
}

/// Something that happened in a session.
#[derive(Clone)]
pub struct Event {
    session: String,
    /// Domain and name, such as `Page.lifecycleEvent`.
    pub method: String,
    /// As the protocol defines them for this event.
    pub parameters: Value,
}

/// Both ends of the pipe.
struct Connection {
    commands: ChildStdin,
    messages: Receiver<serde_json::Result<Value>>,
    /// Everything from standard error, once that is closed.
    stderr: Receiver<String>,
    last_id: u64,
    events: Vec<Event>,
}

impl Connection {
    fn call(&mut self, session: Option<&str>, method: &str, parameters: Value) -> Result<Value> {
        self.last_id += 1;
        let mut command = json!({ "id": self.last_id, "method": method, "params": parameters });
        if let Some(session) = session {
            command["sessionId"] = session.into();
        }
        // The pipe is empty, as every command waits for its answer: writing does not block. If the browser
        // has ended, reading says why.
        let _ = self.commands.write_all(format!("{command}\0").as_bytes());
        let end = Instant::now() + PATIENCE;
        loop {
            let Some(mut answer) = self.receive(end, session, &format!("an answer to {method}"))? else {
                continue;
            };
            // Others are answers to calls that were given up.
            if answer["id"] == self.last_id {
                ensure!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return Ok(answer["result"].take());
            }
        }
    }

    fn wait_for(&mut self, session: &str, what: &str, is_it: impl Fn(&Event) -> bool) -> Result {
        let end = Instant::now() + PATIENCE;
        let mut seen = 0;
        while !self.events[seen..].iter().any(|event| event.session == session && is_it(event)) {
            seen = self.events.len();
            self.receive(end, Some(session), what)?;
        }
        Ok(())
    }

    /// Receives a message. Events are kept, anything else is returned. Fails if the page of `session`
    /// crashed, since it answers nothing any more.
    fn receive(&mut self, end: Instant, session: Option<&str>, what: &str) -> Result<Option<Value>> {
        let left = end.saturating_duration_since(Instant::now());
        let mut message = match self.messages.recv_timeout(left) {
            Ok(message) => message?,
            Err(RecvTimeoutError::Timeout) => {
                return fail(format!("waited {} s for {what}", PATIENCE.as_secs()));
            }
            Err(RecvTimeoutError::Disconnected) => {
                let stderr = self.stderr.recv_timeout(PATIENCE).unwrap_or_default();
                let lines: Vec<&str> = stderr.lines().collect();
                let last = lines[lines.len().saturating_sub(10)..].join("\n");
                return fail(format!("waited for {what}, but Chromium has ended:\n{last}"));
            }
        };
        let Some(method) = message["method"].as_str().map(str::to_owned) else { return Ok(Some(message)) };
        let of = message["sessionId"].as_str().unwrap_or_default().to_owned();
        ensure!(
            method != "Inspector.targetCrashed" || session != Some(&of),
            "waited for {what}, but the page has crashed"
        );
        self.events.push(Event { session: of, method, parameters: message["params"].take() });
        Ok(None)
    }
}

/// Reads messages until the pipe is closed.
fn read_messages(pipe: impl Read + Send + 'static) -> Receiver<serde_json::Result<Value>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut message = Vec::new();
        // What a browser leaves unfinished ends without a NUL.
        while pipe.read_until(0, &mut message).is_ok() && message.pop() == Some(0) {
            if sender.send(serde_json::from_slice(&message)).is_err() {
                break;
            }
            message.clear();
        }
    });
    receiver
}

/// Reads until the pipe is closed.
fn read_whole(mut pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut all = Vec::new();
        let _ = pipe.read_to_end(&mut all);
        sender.send(String::from_utf8_lossy(&all).into_owned())
    });
    receiver
}
