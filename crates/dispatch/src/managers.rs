//! Where punctuald asks for guarantees: a socket of this dispatcher's own, for the same user only.

use punctual_protocol::dispatcher::{FOLDER, Reply, Request, SUFFIX};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A longer line is not a request.
const LONGEST: usize = 1 << 16;

/// Connections at one time.
const MOST: usize = 16;

/// Listens, and keeps connections.
#[derive(Debug)]
pub struct Managers {
    listener: UnixListener,
    connections: Vec<Connection>,
    known: u64,
}

#[derive(Debug)]
struct Connection {
    number: u64,
    stream: UnixStream,
    received: Vec<u8>,
}

impl Managers {
    /// Where this process would listen.
    pub fn path() -> PathBuf {
        Path::new(FOLDER).join(format!("{}{SUFFIX}", std::process::id()))
    }

    /// Listens there. The file has to be removed at the end.
    pub fn start() -> io::Result<Managers> {
        fs::create_dir_all(FOLDER)?;
        let path = Managers::path();
        // Of a process that had this number before.
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        Ok(Managers { listener, connections: Vec::new(), known: 0 })
    }

    /// Waits until somebody asks, or for a while. Whether somebody may have asked.
    pub fn wait(&self, time: Duration) -> bool {
        let streams = self.connections.iter().map(|connection| &connection.stream);
        let mut watched: Vec<PollFd<'_>> = vec![PollFd::new(&self.listener, PollFlags::IN)];
        watched.extend(streams.map(|stream| PollFd::new(stream, PollFlags::IN)));
        let timeout = Timespec { tv_sec: time.as_secs() as _, tv_nsec: time.subsec_nanos().into() };
        // A signal ends it as well; whoever waits looks at what there is.
        poll(&mut watched, Some(&timeout)) != Ok(0)
    }

    /// Answers all requests that have come. Returns the numbers of connections that have ended.
    pub fn serve<E>(
        &mut self,
        mut answer: impl FnMut(u64, Request) -> Result<Reply, E>,
    ) -> Result<Vec<u64>, E> {
        self.accept();
        let mut ended = Vec::new();
        for connection in &mut self.connections {
            let is_open = connection.receive();
            while let Some(line) = connection.line() {
                let reply = match serde_json::from_slice(&line) {
                    Ok(request) => answer(connection.number, request)?,
                    Err(error) => Reply::Failed { reason: format!("not a request: {error}") },
                };
                connection.send(&reply);
            }
            if !is_open || connection.received.len() > LONGEST {
                ended.push(connection.number);
            }
        }
        self.connections.retain(|connection| !ended.contains(&connection.number));
        Ok(ended)
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            let is_ours = socket_peercred(&stream).is_ok_and(|peer| peer.uid == rustix::process::geteuid());
            if is_ours && self.connections.len() < MOST && stream.set_nonblocking(true).is_ok() {
                self.known += 1;
                self.connections.push(Connection { number: self.known, stream, received: Vec::new() });
            }
        }
    }
}

impl Connection {
    /// Reads what there is. False once it has ended.
    fn receive(&mut self) -> bool {
        let mut buffer = [0; 4096];
        while self.received.len() <= LONGEST {
            match self.stream.read(&mut buffer) {
                Ok(0) => return false,
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        true
    }

    fn line(&mut self) -> Option<Vec<u8>> {
        let end = self.received.iter().position(|byte| *byte == b'\n')?;
        let mut line: Vec<u8> = self.received.drain(..=end).collect();
        line.pop();
        Some(line)
    }

    /// One reply for each request fits the socket's buffer. Who asks more without reading loses replies, and
    /// is closed when its end is noticed.
    fn send(&mut self, reply: &Reply) {
        if let Ok(mut text) = serde_json::to_vec(reply) {
            text.push(b'\n');
            if self.stream.write_all(&text).is_err() {
                let _ = self.stream.shutdown(std::net::Shutdown::Both);
            }
        }
    }
}
