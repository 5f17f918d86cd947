//! `punctuald` from start to end: configuration, socket, journal, signals, the service manager.

use crate::config::Config;
use crate::journal::Journal;
use crate::poll::{Events, Poll};
use crate::registry::{Registry, Setup};
use crate::server::Server;
use crate::socket::SocketFile;
use crate::{log, socket};
use clap::Parser;
use punctual_linux::{scheduling, service_manager};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Admit real-time tasks by their declared needs, and schedule them
#[derive(Debug, Parser)]
#[command(name = "punctuald", version)]
pub struct Options {
    /// The configuration [default: /etc/punctual/punctuald.toml]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Only check configuration and rules; exit 0 if they are right
    #[arg(long)]
    pub check_config: bool,
    /// Listen here instead of where the configuration says
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// The folder of the journal, instead of the configured one
    #[arg(long, value_name = "FOLDER")]
    pub state: Option<PathBuf>,
}

/// Why the daemon cannot run: a message for people, and the exit code.
#[derive(Debug)]
pub struct Failure {
    /// What failed, on what, why, what to do.
    pub message: String,
    /// 2 for the configuration, 1 otherwise.
    pub code: u8,
}

impl Failure {
    fn configuration(error: impl ToString) -> Self {
        Self { message: error.to_string(), code: 2 }
    }

    fn other(message: impl ToString) -> Self {
        Self { message: message.to_string(), code: 1 }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Start,
    Reload,
}

impl Options {
    /// Reads configuration and rules, and makes the plugins: all of it, or an error.
    fn load(&self, when: When) -> Result<(Config, Setup), Failure> {
        let (mut config, mut warnings) = match &self.config {
            Some(path) => Config::load(path),
            None => Config::load_default(),
        }
        .map_err(Failure::configuration)?;
        // At a reload, a missing file of rules is a mistake and must not cost anyone their specs.
        if when == When::Start {
            warnings.extend(config.do_without_rules());
        }
        let (setup, more) = Setup::load(&config, scheduling::limits()).map_err(Failure::configuration)?;
        warnings.iter().chain(&more).for_each(|warning| log::warning(&warning.to_string()));
        if let Some(path) = &self.socket {
            config.socket.path.clone_from(path);
        }
        if let Some(path) = &self.state {
            config.state.clone_from(path);
        }
        Ok((config, setup))
    }
}

/// Runs until a signal ends it.
pub fn run(options: &Options) -> Result<(), Failure> {
    let (config, mut setup) = options.load(When::Start)?;
    if options.check_config {
        return Ok(());
    }
    if !rustix::process::geteuid().is_root() {
        log::warning("not running as root: without CAP_SYS_NICE the kernel refuses to attach threads");
    }
    raise_descriptors();
    let signals = Signals::catch().map_err(|error| Failure::other(format!("catching signals: {error}")))?;
    let (journal, left) = Journal::open(&config.state).map_err(Failure::other)?;
    if let Some(before) = journal.rt_runtime() {
        // An earlier daemon has lifted the limit: the throttle comes back, so it counts.
        scheduling::remember_lifted(Some(before));
        (_, setup) = options.load(When::Start)?;
    }
    // Removes the socket's file at the end.
    let _file: Option<SocketFile>;
    let listener = match service_manager::listener()
        .map_err(|error| Failure::other(format!("the service manager's socket: {error}")))?
    {
        Some(listener) => {
            _file = None;
            listener
        }
        None => {
            let (listener, file) = socket::listen_at(&config.socket).map_err(Failure::other)?;
            _file = Some(file);
            listener
        }
    };
    let watching = |error| Failure::other(format!("watching for events: {error}"));
    let poll = Poll::new().map_err(watching)?;
    let mut registry = Registry::new(setup, scheduling::limits(), journal, poll.clone())
        .map_err(|error| Failure::other(format!("preparing to hold threads to their runtime: {error}")))?;
    registry.recover(left);
    let mut server = Server::new(poll, listener, &signals.pipe, registry).map_err(watching)?;
    server.serve_bus(config.realtimekit.clone());
    notify("READY=1");
    log::info(&format!("version {} is ready at {}", env!("CARGO_PKG_VERSION"), config.socket.path.display()));
    let mut events = Events::default();
    let ended = loop {
        match server.round(&mut events) {
            Ok(false) => {}
            Ok(true) => {
                signals.drain();
                if signals.stop.load(Ordering::Relaxed) {
                    break Ok(());
                }
                if signals.reload.swap(false, Ordering::Relaxed) {
                    reload(options, &config, &mut server);
                }
            }
            Err(error) => break Err(Failure::other(format!("waiting for events: {error}"))),
        }
    };
    notify("STOPPING=1");
    server.registry.stop();
    log::info("stopped; all threads have their earlier scheduling");
    ended
}

/// Notifies the service manager.
fn notify(state: &str) {
    if let Err(error) = service_manager::notify(state) {
        log::warning(&error.to_string());
    }
}

/// Loads the configuration again, or keeps the current one.
fn reload(options: &Options, running: &Config, server: &mut Server) {
    notify(&service_manager::reloading());
    match options.load(When::Reload) {
        Ok((config, setup)) => {
            if (&config.socket, &config.state) != (&running.socket, &running.state) {
                log::warning("another socket or state folder takes effect at the next start only");
            }
            server.registry.reload(setup);
            server.registry.last_reload_error = None;
            server.serve_bus(config.realtimekit);
            log::info("the configuration was read again");
        }
        Err(failure) => {
            log::error(&format!(
                "keeping the current configuration, since the new one is wrong:\n{}",
                failure.message
            ));
            server.registry.last_reload_error = Some(failure.message);
        }
    }
    notify("READY=1");
}

/// Raises the limit of open files: each connection, process and thread takes one.
fn raise_descriptors() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        log::warning(&format!("cannot raise the limit of open files: {error}"));
    }
}

/// Flags that signals set.
struct Signals {
    stop: Arc<AtomicBool>,
    reload: Arc<AtomicBool>,
    /// Becomes readable with each signal.
    pipe: UnixStream,
}

impl Signals {
    fn catch() -> std::io::Result<Self> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let (pipe, write) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        let signals = Self { stop: Arc::default(), reload: Arc::default(), pipe };
        // Flags before the pipe, so that a reader of the pipe finds them set.
        for signal in [SIGTERM, SIGINT] {
            signal_hook::flag::register(signal, signals.stop.clone())?;
        }
        signal_hook::flag::register(SIGHUP, signals.reload.clone())?;
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
        }
        Ok(signals)
    }

    fn drain(&self) {
        let mut buffer = [0; 64];
        while (&self.pipe).read(&mut buffer).is_ok_and(|count| count > 0) {}
    }
}
