//! Serves metrics over HTTP, to scrapers that may stall, vanish, or be no scrapers at all.
//!
//! Every connection has a thread of its own, a deadline, and one answer; there are few at a time. No lock is
//! held while anything is sent, so nobody who reads slowly delays who counts.

use super::Metrics;
use super::format::Format;
use crate::error::{Error, ErrorKind, Result, plain_reason};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a connection may take, from the first byte to the last.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most connections at a time; more are closed at once.
const MOST_CONNECTIONS: usize = 8;
/// Longest request.
const MOST_BYTES: usize = 8 << 10;
/// How long accepting pauses when it fails, as without descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// A server of metrics. Dropping it closes its socket; answers under way are finished by threads of their
/// own.
pub struct Endpoint {
    address: SocketAddr,
    is_closed: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Serves metrics at `http://ADDRESS/metrics`.
    pub fn serve(address: SocketAddr, metrics: Arc<Metrics>) -> Result<Endpoint> {
        let failed = |error: &io::Error| {
            let advice = match error.kind() {
                io::ErrorKind::AddrInUse => "something else listens there; choose another port",
                io::ErrorKind::PermissionDenied => "choose a port above 1023",
                _ => "name an address of this machine and a port, such as 127.0.0.1:9464",
            };
            Error::new(ErrorKind::Other, format!("cannot serve metrics at {address}"))
                .because(plain_reason(error))
                .advise(advice)
        };
        let listener = TcpListener::bind(address).map_err(|error| failed(&error))?;
        let address = listener.local_addr().map_err(|error| failed(&error))?;
        let is_closed = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&is_closed);
        let accepting = thread::Builder::new()
            .name("metrics".into())
            .spawn(move || accept(&listener, &metrics, &until))
            .map_err(|error| failed(&error))?;
        Ok(Endpoint { address, is_closed, accepting: Some(accepting) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::Relaxed);
        // Accepting waits for a connection: this is one.
        let reached = TcpStream::connect_timeout(&reachable(self.address), Duration::from_secs(1));
        if let (Ok(_), Some(accepting)) = (reached, self.accepting.take()) {
            let _ = accepting.join();
        }
    }
}

/// A socket on all addresses is reached on the local one.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

fn accept(listener: &TcpListener, metrics: &Arc<Metrics>, is_closed: &AtomicBool) {
    let connections = Arc::new(AtomicUsize::new(0));
    while !is_closed.load(Ordering::Relaxed) {
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(PAUSE);
            continue;
        };
        let place = Place::take(&connections);
        if place.is_too_many() {
            continue;
        }
        let metrics = Arc::clone(metrics);
        // Without a thread, the connection is closed.
        let _ = thread::Builder::new().name("scrape".into()).spawn(move || {
            let _place = place;
            // Whoever has gone needs no answer.
            let _ = answer(stream, &metrics);
        });
    }
}

/// One of the connections at a time.
struct Place {
    connections: Arc<AtomicUsize>,
    before: usize,
}

impl Place {
    fn take(connections: &Arc<AtomicUsize>) -> Place {
        let before = connections.fetch_add(1, Ordering::Relaxed);
        Place { connections: Arc::clone(connections), before }
    }

    fn is_too_many(&self) -> bool {
        self.before >= MOST_CONNECTIONS
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

fn answer(mut stream: TcpStream, metrics: &Metrics) -> io::Result<()> {
    let end = Instant::now() + PATIENCE;
    let (request, is_brief) = request(&mut stream, end)?;
    let (status, content, body) = match request {
        Request::Metrics(format) => ("200 OK", format.content(), format.write(metrics.text())),
        Request::Elsewhere => ("404 Not Found", "text/plain", "metrics are at /metrics\n".into()),
        Request::OtherMethod => ("405 Method Not Allowed", "text/plain", "only GET and HEAD\n".into()),
        Request::Malformed => ("400 Bad Request", "text/plain", "this is not HTTP\n".into()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    send(&mut stream, head.as_bytes(), end)?;
    if is_brief { Ok(()) } else { send(&mut stream, body.as_bytes(), end) }
}

/// What is asked for.
enum Request {
    Metrics(Format),
    Elsewhere,
    OtherMethod,
    Malformed,
}

/// Reads a request without a body; also whether only the answer's head is wanted.
fn request(stream: &mut TcpStream, end: Instant) -> io::Result<(Request, bool)> {
    let mut bytes = Vec::new();
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&bytes) {
            Ok(httparse::Status::Complete(_)) => {
                let path = request.path.and_then(|path| path.split('?').next());
                let what = match (request.method, path) {
                    (Some("GET" | "HEAD"), Some("/metrics")) => {
                        Request::Metrics(Format::accepted(&accepted_types(request.headers)))
                    }
                    (Some("GET" | "HEAD"), _) => Request::Elsewhere,
                    _ => Request::OtherMethod,
                };
                return Ok((what, request.method == Some("HEAD")));
            }
            Ok(httparse::Status::Partial) if bytes.len() < MOST_BYTES => {}
            _ => return Ok((Request::Malformed, false)),
        }
        let mut part = [0; 1024];
        stream.set_read_timeout(Some(left(end)?))?;
        match stream.read(&mut part) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => bytes.extend_from_slice(&part[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The values of all `Accept` headers.
fn accepted_types(headers: &[httparse::Header]) -> String {
    let values = headers.iter().filter(|header| header.name.eq_ignore_ascii_case("accept"));
    values.map(|header| String::from_utf8_lossy(header.value)).collect::<Vec<_>>().join(",")
}

/// Sends everything, unless that takes too long.
fn send(stream: &mut TcpStream, mut bytes: &[u8], end: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(end)?))?;
        match stream.write(bytes) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The time that is left.
fn left(end: Instant) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}
