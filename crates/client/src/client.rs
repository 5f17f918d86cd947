//! The daemon's methods, as methods.

use crate::connection::{Connection, Fault};
use crate::error::{Error, Refusal};
use crate::told::LoopCounts;
use punctual_protocol::{
    Admission, Admitted, AttachThread, ChangeSpec, ClientInfo, ClientList, Counts, CreateSpec, INTERFACE,
    NoParameters, Parameters, Plugin, PluginList, ReplaceSpecs, Replaced, ReportUse, Spec, SpecId, SpecList,
    SpecNumber, SpecReply, Status, Used,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the daemon is, unless [`SOCKET_VARIABLE`] says otherwise.
pub const DEFAULT_SOCKET: &str = "/run/punctual/io.punctual.Scheduler1";
/// The environment variable with the path of another socket.
pub const SOCKET_VARIABLE: &str = "PUNCTUALD_SOCKET";
/// How long a call waits for its reply by default.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

/// The same for clients whose user may be asked: longer than the daemon waits for an answer.
pub const INTERACTIVE_TIMEOUT: Duration = Duration::from_secs(125);

/// A client of the daemon. Its calls block until the reply or the timeout.
///
/// Specs belong to the process, not to the connection: after a restart of the daemon, the next call
/// reconnects and finds the process's specs unchanged. The first call in a child of `fork(2)` makes a
/// connection of its own.
#[derive(Debug)]
pub struct Client {
    socket: PathBuf,
    timeout: Option<Duration>,
    connection: Option<Connection>,
    /// The process that made the connection.
    process: u32,
    interactive: bool,
    message: Vec<u8>,
}

/// Whether a request can be repeated without effect.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Question,
    Action,
}

/// A reply that is not an error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Success<R> {
    parameters: R,
}

/// Any reply.
#[derive(Deserialize)]
struct Reply<'a> {
    #[serde(borrow, default)]
    error: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    parameters: Option<&'a RawValue>,
}

/// The socket that [`Client::connect`] uses. A program with more privileges than its caller ignores the
/// environment.
pub fn default_socket() -> PathBuf {
    // SAFETY: reads a value that the kernel passed to the process.
    let privileged = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    let other = std::env::var_os(SOCKET_VARIABLE).filter(|path| !privileged && !path.is_empty());
    other.map_or_else(|| DEFAULT_SOCKET.into(), PathBuf::from)
}

impl Client {
    /// Connects to the daemon at [`default_socket`].
    pub fn connect() -> Result<Client, Error> {
        Self::connect_to(&default_socket())
    }

    /// Connects to the daemon at `socket`.
    pub fn connect_to(socket: &Path) -> Result<Client, Error> {
        Self::connect_within(socket, Some(DEFAULT_TIMEOUT))
    }

    /// [`Client::connect_to`] with another timeout than [`DEFAULT_TIMEOUT`] for this and all calls; `None`
    /// waits forever.
    pub fn connect_within(socket: &Path, timeout: Option<Duration>) -> Result<Client, Error> {
        let timeout = timeout.map(at_least_something);
        let mut client = Client {
            socket: socket.to_owned(),
            timeout,
            connection: None,
            process: 0,
            interactive: false,
            message: Vec::new(),
        };
        client.open()?;
        Ok(client)
    }

    /// Changes the timeout of later calls; `None` waits forever.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout.map(at_least_something);
        // The kernel keeps the timeout with the socket.
        self.connection = None;
    }

    /// Whether Polkit may ask the user about later requests to create or change a spec, where the daemon's
    /// rules leave them to Polkit; at first not. Raises the timeout of all later calls to
    /// [`INTERACTIVE_TIMEOUT`] at least.
    pub fn set_interactive(&mut self, interactive: bool) {
        self.interactive = interactive;
        if interactive {
            self.set_timeout(self.timeout.map(|timeout| timeout.max(INTERACTIVE_TIMEOUT)));
        }
    }

    /// The daemon's socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Creates a spec, if the daemon admits it. It schedules no thread yet. The name appears in lists.
    pub fn create_spec(&mut self, parameters: &Parameters, name: Option<&str>) -> Result<Admission, Error> {
        self.create_spec_of(None, parameters, name)
    }

    /// Creates a spec that belongs to another process of the same user and ends with it; as root, of any
    /// user.
    pub fn create_spec_of(
        &mut self,
        process: Option<u32>,
        parameters: &Parameters,
        name: Option<&str>,
    ) -> Result<Admission, Error> {
        let (parameters, name, interactive) = (parameters.clone(), name.map(str::to_owned), self.interactive);
        let request = CreateSpec { parameters, name, process, interactive };
        let reply: Admitted = self.call("CreateSpec", request, Kind::Action)?;
        Ok(reply.admission)
    }

    /// Replaces all parameters of a spec; after an error, none. An attached thread switches at once.
    pub fn change_spec(&mut self, spec: SpecId, parameters: &Parameters) -> Result<Admission, Error> {
        let (parameters, interactive) = (parameters.clone(), self.interactive);
        let request = ChangeSpec { spec, parameters, interactive };
        let reply: Admitted = self.call("ChangeSpec", request, Kind::Action)?;
        Ok(reply.admission)
    }

    /// Releases, changes and creates specs at once: all are admitted together, or nothing changes. Returns
    /// the admissions of the changed specs, then those of the new ones.
    pub fn replace_specs(&mut self, replacement: ReplaceSpecs) -> Result<Vec<Admission>, Error> {
        let reply: Replaced = self.call("ReplaceSpecs", replacement, Kind::Action)?;
        Ok(reply.admissions)
    }

    /// Detaches a spec's thread, if any, and releases the spec.
    pub fn release_spec(&mut self, spec: SpecId) -> Result<(), Error> {
        self.call("ReleaseSpec", SpecNumber { spec }, Kind::Action).map(|NoParameters {}| ())
    }

    /// Schedules a thread as admitted. `thread` is its TID in this PID namespace.
    pub fn attach_thread(&mut self, spec: SpecId, thread: u32) -> Result<Admission, Error> {
        let reply: Admitted = self.call("AttachThread", AttachThread { spec, thread }, Kind::Action)?;
        Ok(reply.admission)
    }

    /// Restores the original scheduling of a spec's thread.
    pub fn detach_thread(&mut self, spec: SpecId) -> Result<(), Error> {
        self.call("DetachThread", SpecNumber { spec }, Kind::Action).map(|NoParameters {}| ())
    }

    /// Tells what a spec's thread (its TID in this PID namespace) really took, for `ctl list`.
    pub fn report_use(&mut self, spec: SpecId, thread: u32, used: Used) -> Result<(), Error> {
        // It replaces what was told before, so that it can be repeated.
        let report = ReportUse { spec, thread, used };
        self.call("ReportUse", report, Kind::Question).map(|NoParameters {}| ())
    }

    /// Memory in which this process counts the jobs of a spec's periodic loop: in lists, it is what the
    /// program says of itself. A restarted daemon has to be asked anew.
    pub fn share_loop(&mut self, spec: SpecId) -> Result<LoopCounts, Error> {
        let memory = self.loop_memory(spec)?;
        LoopCounts::map(&memory).map_err(unmapped)
    }

    /// The same with the memory of an earlier call, which goes on elsewhere if the daemon was restarted.
    pub(crate) fn share_loop_again(&mut self, spec: SpecId, counts: &LoopCounts) -> Result<(), Error> {
        let memory = self.loop_memory(spec)?;
        counts.map_again(&memory).map_err(unmapped)
    }

    fn loop_memory(&mut self, spec: SpecId) -> Result<OwnedFd, Error> {
        self.call("ShareLoop", SpecNumber { spec }, Kind::Question).map(|NoParameters {}| ())?;
        let memory = self.connection.as_mut().and_then(Connection::take_file);
        memory.ok_or_else(|| Error::Protocol("no memory came with the reply".into()))
    }

    /// The current state of a spec.
    pub fn get_spec(&mut self, spec: SpecId) -> Result<Spec, Error> {
        let reply: SpecReply = self.call("GetSpec", SpecNumber { spec }, Kind::Question)?;
        Ok(reply.spec)
    }

    /// The specs of this user; for root, of all users.
    pub fn list_specs(&mut self) -> Result<Vec<Spec>, Error> {
        let reply: SpecList = self.call("ListSpecs", NoParameters {}, Kind::Question)?;
        Ok(reply.specs)
    }

    /// The plugins, in the order in which they are asked.
    pub fn list_plugins(&mut self) -> Result<Vec<Plugin>, Error> {
        let reply: PluginList = self.call("ListPlugins", NoParameters {}, Kind::Question)?;
        Ok(reply.plugins)
    }

    /// The clients of this user; for root, of all users.
    pub fn list_clients(&mut self) -> Result<Vec<ClientInfo>, Error> {
        let reply: ClientList = self.call("ListClients", NoParameters {}, Kind::Question)?;
        Ok(reply.clients)
    }

    /// How many items the lists have for this user.
    pub fn count(&mut self) -> Result<Counts, Error> {
        self.call("Count", NoParameters {}, Kind::Question)
    }

    /// The daemon's status.
    pub fn status(&mut self) -> Result<Status, Error> {
        self.call("GetStatus", NoParameters {}, Kind::Question)
    }

    /// An empty exchange, to measure its cost.
    pub fn ping(&mut self) -> Result<(), Error> {
        self.call("Ping", NoParameters {}, Kind::Question).map(|NoParameters {}| ())
    }

    /// Sends a request. If the connection turns out to be dead, tries again with a new one, unless that could
    /// repeat an action.
    fn call<P: Serialize, R: DeserializeOwned>(
        &mut self,
        method: &'static str,
        parameters: P,
        kind: Kind,
    ) -> Result<R, Error> {
        self.message.clear();
        // These names need no escaping.
        for part in ["{\"method\":\"", INTERFACE, ".", method, "\",\"parameters\":"] {
            self.message.extend_from_slice(part.as_bytes());
        }
        serde_json::to_writer(&mut self.message, &parameters)
            .map_err(|error| Error::Protocol(format!("{method} cannot be written: {error}")))?;
        self.message.extend_from_slice(b"}\0");
        let mut fresh = self.open()?;
        loop {
            let Some(connection) = self.connection.as_mut() else {
                fresh = self.open()?;
                continue;
            };
            let fault = match connection.exchange(&self.message) {
                Ok(answer) => {
                    let read = read(method, answer);
                    if matches!(read, Err(Error::Protocol(_))) {
                        self.connection = None;
                    }
                    return read;
                }
                Err(fault) => fault,
            };
            self.connection = None;
            match fault {
                Fault::Unread if !fresh => {}
                Fault::Unanswered if !fresh && kind == Kind::Question => {}
                Fault::Unread => {
                    let source = io::ErrorKind::ConnectionReset.into();
                    return Err(Error::Unreachable { socket: self.socket.clone(), source });
                }
                Fault::Unanswered => return Err(Error::Lost { method }),
                Fault::TimedOut => {
                    return Err(Error::TimedOut { method, after: self.timeout.unwrap_or_default() });
                }
                Fault::Nonsense(what) => return Err(Error::Protocol(what.into())),
                Fault::Kernel(error) => {
                    return Err(Error::Unreachable { socket: self.socket.clone(), source: error.into() });
                }
            }
        }
    }

    /// Connects if this process has no connection. Returns whether it did.
    fn open(&mut self) -> Result<bool, Error> {
        let process = std::process::id();
        if self.connection.is_some() && self.process == process {
            return Ok(false);
        }
        let opened = Connection::open(&self.socket, self.timeout);
        let opened =
            opened.map_err(|source: io::Error| Error::Unreachable { socket: self.socket.clone(), source })?;
        (self.connection, self.process) = (Some(opened), process);
        Ok(true)
    }
}

fn unmapped(error: io::Error) -> Error {
    Error::Protocol(format!("the memory that came cannot be mapped: {error}"))
}

/// To the kernel, a timeout of zero means none.
fn at_least_something(limit: Duration) -> Duration {
    limit.max(Duration::from_micros(1))
}

fn read<R: DeserializeOwned>(method: &str, answer: &[u8]) -> Result<R, Error> {
    let nonsense =
        |error: serde_json::Error| Error::Protocol(format!("cannot read the reply to {method}: {error}"));
    let answer = std::str::from_utf8(answer)
        .map_err(|error| Error::Protocol(format!("the reply to {method} is not UTF-8: {error}")))?;
    // Nearly every reply can be read at once.
    if answer.starts_with(r#"{"parameters":"#) {
        if let Ok(Success { parameters }) = serde_json::from_str(answer) {
            return Ok(parameters);
        }
    }
    let reply: Reply<'_> = serde_json::from_str(answer).map_err(nonsense)?;
    if let Some(name) = reply.error {
        return Err(match serde_json::from_str::<Refusal>(answer) {
            Ok(refusal) => refusal.into(),
            Err(_) => {
                let about = reply.parameters.map_or("", RawValue::get);
                Error::Protocol(format!(
                    "{method} failed with {name} {about}, which this version does not know"
                ))
            }
        });
    }
    serde_json::from_str(reply.parameters.map_or("{}", RawValue::get)).map_err(nonsense)
}
