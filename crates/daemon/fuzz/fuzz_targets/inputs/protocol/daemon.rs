//! The daemon's server, with the other ends of its connections.

use super::books::{self, Seen, Thresholds};
use super::setup;
use punctual_daemon::journal::Journal;
use punctual_daemon::poll::{Events, Poll};
use punctual_daemon::protocol::{About, Answered, answer, parse};
use punctual_daemon::registry::{Caller, Registry};
use punctual_daemon::server::Server;
use punctual_daemon::server::connection::LONGEST_MESSAGE;
use punctual_daemon::server::peer::Peer;
use punctual_schedule::Limits;
use rustix::event::{EventfdFlags, eventfd};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use serde_json::{Value, json};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::rc::Rc;

pub const CLIENTS: usize = 3;
/// Less than the daemon receives at once, so that a round serves one message of a connection.
const PIECE: usize = 32 << 10;
/// An error repeats of a message what is wrong with it, and says some more.
const LONGEST_REPLY: usize = LONGEST_MESSAGE + (8 << 10);

struct Client {
    socket: UnixStream,
    received: Vec<u8>,
    /// NULs sent, less replies received.
    owed: usize,
    deaf: bool,
    /// The last reply was an error.
    refused: bool,
    closed: bool,
}

impl Drop for Client {
    /// Closing the socket may not end the connection at once: a child process that another test has just
    /// forked holds a copy of it until it executes its program.
    fn drop(&mut self) {
        // Fails if the daemon has closed the connection.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

pub struct Daemon {
    server: Server,
    events: Events,
    clients: Vec<Client>,
    setup: u8,
    /// Somebody did not read: then more may happen in a round than one reply tells.
    blurred: bool,
    reloaded: bool,
    thresholds: Thresholds,
    _open: (UnixStream, OwnedFd),
}

impl Daemon {
    pub fn start(number: u8) -> Self {
        let poll = Poll::new().expect("an epoll");
        let registry =
            Registry::new(setup::setup(number), Limits::default(), journal(), poll.clone()).unwrap();
        // Nobody ever connects: connections are handed over. The signal is always there, so that the server
        // never waits.
        let (listener, theirs) = UnixStream::pair().expect("sockets");
        let signal = eventfd(1, EventfdFlags::CLOEXEC).expect("an eventfd");
        let server = Server::new(poll, listener.into(), &signal, registry).expect("a server");
        let mut daemon = Self {
            server,
            events: Events::default(),
            clients: Vec::new(),
            setup: number,
            blurred: false,
            reloaded: false,
            thresholds: Thresholds::default(),
            _open: (theirs, signal),
        };
        daemon.thresholds.note(&daemon.server.registry);
        for at in 0..CLIENTS {
            let client = daemon.connect(at);
            daemon.clients.push(client);
        }
        daemon
    }
    fn connect(&mut self, at: usize) -> Client {
        let (socket, theirs) = UnixStream::pair().expect("sockets");
        for end in [&socket, &theirs] {
            end.set_nonblocking(true).expect("a socket");
        }
        let peer = Peer { who: setup::who(at), process: Some(setup::process(at)) };
        self.server.admit(theirs.into(), peer).expect("room for a connection");
        Client { socket, received: Vec::new(), owed: 0, deaf: false, refused: false, closed: false }
    }

    /// Bytes come from a client, in one piece where it is not too long for that. Who was sent away comes
    /// again.
    pub fn receive(&mut self, at: usize, piece: &[u8]) {
        if self.clients[at].closed && !piece.is_empty() {
            self.close(at);
        }
        for part in piece.chunks(PIECE) {
            let client = &mut self.clients[at];
            // What the daemon does not take, since its replies are not read, is lost.
            let sent = send(&client.socket, part, SendFlags::NOSIGNAL).unwrap_or(0);
            let messages = part[..sent].iter().filter(|byte| **byte == 0).count();
            client.owed += messages;
            self.rounds(messages + 2);
        }
    }

    fn rounds(&mut self, count: usize) {
        for _ in 0..count {
            let before = Seen::new(&self.server.registry);
            self.server.round(&mut self.events).expect("a round");
            let refused: usize = (0..self.clients.len()).map(|at| self.read(at)).sum();
            if refused > 0 && !self.blurred {
                assert_eq!(
                    before,
                    Seen::new(&self.server.registry),
                    "what was refused has changed something"
                );
            }
        }
        books::add_up(&self.server.registry, &self.thresholds);
    }

    /// Takes the replies to a client; how many of them were errors.
    fn read(&mut self, at: usize) -> usize {
        let client = &mut self.clients[at];
        if client.deaf || client.closed {
            return 0;
        }
        let mut buffer = [0; 16 << 10];
        loop {
            match recv(&client.socket, &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => client.closed = true,
                Ok((length, _)) => {
                    client.received.extend_from_slice(&buffer[..length]);
                    continue;
                }
                Err(rustix::io::Errno::CONNRESET) => client.closed = true,
                Err(error) => assert_eq!(error, rustix::io::Errno::AGAIN),
            }
            break;
        }
        let mut refused = 0;
        while let Some(end) = client.received.iter().position(|byte| *byte == 0) {
            let reply: Value = serde_json::from_slice(&client.received[..end]).expect("a reply is JSON");
            assert!(end <= LONGEST_REPLY, "a reply of {end} bytes");
            client.received.drain(..=end);
            let fields: Vec<&str> =
                reply.as_object().expect("a reply is an object").keys().map(String::as_str).collect();
            client.refused = fields == ["error", "parameters"];
            refused += usize::from(client.refused);
            assert!(client.refused || fields == ["parameters"], "{reply}");
            // A message without an end is answered too, once it is too long.
            assert!(
                client.owed > 0 || reply["error"] == json!("io.punctual.Scheduler1.TooMany"),
                "nobody asked for {reply}"
            );
            client.owed = client.owed.saturating_sub(1);
        }
        assert!(!client.closed || client.received.is_empty(), "half a reply");
        assert!(
            !client.closed || client.refused || self.blurred,
            "a connection was closed and nobody was told why"
        );
        refused
    }

    /// A message that says in vain that one reply is enough is read in another way, and means the same. Asked
    /// by nobody, so that nothing changes.
    pub fn reads_alike(&mut self, message: &[u8]) {
        let nobody = Caller::new(Rc::new(setup::who(0)), None);
        let about = About::now();
        let mut answers = |message: &[u8]| {
            let mut reply = Vec::new();
            let answered = answer(message, &nobody, &about, &mut self.server.registry, &mut reply);
            let goes_on = !matches!(answered, Answered::NotVarlink);
            assert_eq!(goes_on, parse(message).is_ok());
            reply
        };
        let plain = answers(message);
        let Some(at) = message.iter().position(|byte| *byte == b'{') else { return };
        // It may say so already, perhaps in other letters.
        let says = message.contains(&b'\\') || message.windows(4).any(|word| word == b"more");
        if parse(message).is_ok() && !says {
            let longer = [&message[..=at], b"\"more\":false,", &message[at + 1..]].concat();
            assert_eq!(
                String::from_utf8(plain),
                String::from_utf8(answers(&longer)),
                "{}",
                String::from_utf8_lossy(message)
            );
        }
    }

    /// A client closes its connection, and connects again.
    pub fn close(&mut self, at: usize) {
        let client = self.connect(at);
        self.clients[at] = client;
        self.rounds(2);
        assert!(self.server.connections() <= CLIENTS);
    }

    /// A client stops reading, or goes on.
    pub fn deafen(&mut self, at: usize) {
        self.clients[at].deaf ^= true;
        self.blurred = true;
        self.rounds(2);
    }

    /// The next configuration.
    pub fn reload(&mut self) {
        self.setup = self.setup.wrapping_add(1);
        self.reloaded = true;
        self.server.registry.reload(setup::setup(self.setup));
        self.thresholds.note(&self.server.registry);
        books::add_up(&self.server.registry, &self.thresholds);
    }

    /// The process of the first spec ends, but for its connections.
    pub fn end_process(&mut self) {
        let first = self.server.registry.list(&books::ROOT).first().map(|spec| spec.process);
        if let Some(process) = first {
            self.server.registry.process_ended(process);
            books::add_up(&self.server.registry, &self.thresholds);
            assert!(self.server.registry.list(&books::ROOT).iter().all(|spec| spec.process != process));
        }
    }

    /// Everybody goes. What is left then can be released, and leaves nothing.
    pub fn end(mut self) {
        // What waits is served still, a message a round.
        let most: usize = self.clients.drain(..).map(|client| client.owed + 2).sum();
        self.rounds(most);
        assert_eq!(self.server.connections(), 0);
        if !self.reloaded {
            self.declare_again();
        }
        self.server.registry.stop();
        books::empty(&self.server.registry);
        self.declare_afresh();
    }

    fn ask(&mut self, caller: &Caller, method: &str, parameters: &Value) -> Value {
        let message =
            json!({ "method": format!("io.punctual.Scheduler1.{method}"), "parameters": parameters })
                .to_string();
        let mut reply = Vec::new();
        answer(message.as_bytes(), caller, &About::now(), &mut self.server.registry, &mut reply);
        serde_json::from_slice(reply.strip_suffix(&[0]).expect("a reply ends with NUL"))
            .expect("a reply is JSON")
    }

    /// What is shown of a spec is what was declared, and it could be admitted again in its own place: where
    /// all others were tested, too.
    fn declare_again(&mut self) {
        let listed = self.server.registry.list(&books::ROOT);
        if listed.iter().any(|spec| spec.admission.offer.ignored) {
            return;
        }
        let ids: Vec<_> = listed
            .iter()
            .filter(|spec| books::is_tested(&self.server.registry, spec))
            .map(|spec| spec.id)
            .collect();
        for id in ids {
            let spec = self.server.registry.get(&books::ROOT, id).expect("it was listed");
            let (declared, caller) =
                (spec.parameters.clone(), Caller::new(spec.who.clone(), Some(spec.process)));
            let shown = self.ask(&caller, "GetSpec", &json!({ "spec": id.0 }));
            let call = json!({ "spec": id.0, "parameters": shown["parameters"]["spec"]["parameters"] });
            let reply = self.ask(&caller, "ChangeSpec", &call);
            assert!(reply.get("error").is_none(), "{call}: {reply}");
            assert_eq!(
                self.server.registry.get(&books::ROOT, id).expect("it was changed").parameters,
                declared
            );
            books::add_up(&self.server.registry, &self.thresholds);
        }
    }

    /// Both users get what they would have got at the beginning: to the first the rules may allow no more
    /// than this.
    fn declare_afresh(&mut self) {
        for (client, runtime_ns) in [(0, 15_000_000), (CLIENTS - 1, 3_000_000)] {
            let (number, pidfd) = setup::process(client);
            let who = setup::who(client);
            let process = self.server.registry.connected(number, pidfd, who.user).expect("a process");
            let parameters = json!({ "plugin": "RM", "runtime_ns": runtime_ns, "period_ns": 20_000_000 });
            let call = json!({ "parameters": parameters });
            let reply = self.ask(&Caller::new(Rc::new(who), Some(process)), "CreateSpec", &call);
            assert!(reply.get("error").is_none(), "{call}: {reply}");
        }
    }
}

/// A journal that nobody finds afterwards: its file has no name any more. In memory, as the daemon's own.
fn journal() -> Journal {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    Journal::open(folder.expect("a folder").path()).expect("a journal").0
}
