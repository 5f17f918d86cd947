//! The plugin `TT`: guarantees in the slack of time-triggered tables that are being dispatched.
//!
//! It decides nothing itself. The dispatcher of a table has the one copy of its intervals and spare
//! capacities; its acceptance test is the admission test, and it schedules the threads. See
//! `punctual_protocol::dispatcher`.

use punctual_linux::socket::connect_within;
use punctual_model::Duration;
use punctual_protocol::dispatcher::{Confirmed, FOLDER, GuestId, Place, Reply, Request, Reservation, SUFFIX};
use punctual_schedule::{
    Answer, AssignedPolicy, Assignment, Load, Offer, Parameters, Plugin, Refusal, SpecId,
};
use rustix::net::RecvFlags;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A dispatcher that does not reply for so long is not asked any more. It looks at least every 20 ms.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);

/// The plugin.
#[derive(Debug)]
pub struct Dispatched {
    name: String,
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By process.
    dispatchers: BTreeMap<u32, Connection>,
    /// What the last `consider` has reserved.
    reserved: Option<Guest>,
    guests: BTreeMap<SpecId, Guest>,
    /// Whether guests of an earlier daemon that nobody has claimed were released.
    is_settled: bool,
}

/// A guest of a dispatcher.
#[derive(Clone, Copy, Debug)]
struct Guest {
    dispatcher: u32,
    place: Place,
    utilization: f64,
}

/// A connection to a dispatcher.
#[derive(Debug)]
struct Connection(BufReader<UnixStream>);

impl Connection {
    fn open(path: &Path) -> io::Result<Connection> {
        let stream = connect_within(path, PATIENCE)?;
        // Whoever else could make a socket there is not to be believed.
        let peer = rustix::net::sockopt::socket_peercred(&stream)?;
        if peer.uid != rustix::process::geteuid() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(Connection(BufReader::new(stream)))
    }

    /// Whether its process has not ended.
    fn is_open(&mut self) -> bool {
        let mut byte = [0];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        match rustix::net::recv(self.0.get_ref(), &mut byte[..], flags) {
            Ok((_, length)) => length > 0,
            Err(error) => error == rustix::io::Errno::AGAIN,
        }
    }

    fn call(&mut self, request: &Request) -> io::Result<Reply> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.0.get_mut().write_all(&line)?;
        line.clear();
        match self.0.read_until(b'\n', &mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(serde_json::from_slice(&line)?),
        }
    }
}

impl State {
    /// Connects to dispatchers that are new.
    fn find(&mut self) {
        let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(SUFFIX)?.parse().ok());
            let Some(number) = number.filter(|number| !self.dispatchers.contains_key(number)) else {
                continue;
            };
            // Nobody listens at what was left by one that was killed.
            if let Ok(connection) = Connection::open(&entry.path()) {
                self.dispatchers.insert(number, connection);
            }
        }
    }

    /// Whether a dispatcher's table has not ended. One that did not answer in time is asked anew.
    fn is_there(&mut self, dispatcher: u32) -> bool {
        for _ in 0..2 {
            if self.dispatchers.get_mut(&dispatcher).is_some_and(Connection::is_open) {
                return true;
            }
            self.dispatchers.remove(&dispatcher);
            self.find();
        }
        false
    }

    /// Asks a dispatcher. One that cannot be asked is gone: its table has ended.
    fn ask(&mut self, dispatcher: u32, request: &Request) -> Result<Reply, String> {
        let gone = || format!("the table that process {dispatcher} dispatched has ended");
        let connection = self.dispatchers.get_mut(&dispatcher).ok_or_else(gone)?;
        connection.call(request).map_err(|error| {
            // A later reply would be taken for that to another request.
            self.dispatchers.remove(&dispatcher);
            match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => format!(
                    "process {dispatcher}, which dispatches the table, did not decide within {} s: it is \
                     stopped, or has too much to decide (a smaller least common multiple of the periods \
                     makes that easier)",
                    PATIENCE.as_secs()
                ),
                _ => gone(),
            }
        })
    }

    fn tell(&mut self, guest: &Guest, request: impl Fn(GuestId) -> Request) -> Result<(), String> {
        match self.ask(guest.dispatcher, &request(guest.place.guest))? {
            Reply::Done => Ok(()),
            Reply::Failed { reason } => Err(reason),
            other => Err(format!("process {} replied {other:?}", guest.dispatcher)),
        }
    }

    fn release(&mut self, guest: &Guest) {
        // One that is gone has given back everything.
        let _ = self.tell(guest, |guest| Request::Release { guest });
    }

    /// Guests of an earlier daemon that this one has not claimed.
    fn orphans(&mut self) -> Vec<(u32, Confirmed)> {
        self.find();
        let dispatchers: Vec<u32> = self.dispatchers.keys().copied().collect();
        let mut orphans = Vec::new();
        for dispatcher in dispatchers {
            if let Ok(Reply::Guests { guests }) = self.ask(dispatcher, &Request::List) {
                orphans.extend(guests.into_iter().map(|guest| (dispatcher, guest)));
            }
        }
        orphans
    }

    fn claim(&mut self, spec: SpecId, guest: Guest) {
        if self.tell(&guest, |guest| Request::Confirm { guest, spec: spec.0 }).is_ok() {
            self.guests.insert(spec, guest);
        }
    }
}

impl Dispatched {
    /// Asks every dispatcher that it finds.
    pub fn new(name: String) -> Dispatched {
        Dispatched { name, state: RefCell::default() }
    }

    /// The first dispatcher's place, or each one's reason.
    fn reserve(&self, asked: &Reservation) -> Result<(u32, Place), Vec<String>> {
        let mut state = self.state.borrow_mut();
        state.dispatchers.retain(|_, connection| connection.is_open());
        state.find();
        let dispatchers: Vec<u32> = state.dispatchers.keys().copied().collect();
        let mut reasons = Vec::new();
        for &dispatcher in &dispatchers {
            let reason = match state.ask(dispatcher, &Request::Reserve(asked.clone())) {
                Ok(Reply::Reserved(place)) => return Ok((dispatcher, place)),
                Ok(Reply::Refused { reason, .. } | Reply::Failed { reason }) => reason,
                Ok(other) => format!("process {dispatcher} replied {other:?}"),
                Err(reason) => reason,
            };
            let whose = || format!("the table of process {dispatcher}: ");
            let whose = if dispatchers.len() > 1 { whose() } else { String::new() };
            reasons.push(whose + &reason);
        }
        Err(reasons)
    }
}

impl Plugin for Dispatched {
    fn name(&self) -> &str {
        &self.name
    }

    /// Reserves what it offers: slots pass before it is admitted. The next call gives it back.
    fn consider(&self, parameters: &Parameters, _replacing: Option<SpecId>) -> Answer {
        let before = self.state.borrow_mut().reserved.take();
        before.into_iter().for_each(|guest| self.state.borrow_mut().release(&guest));
        let Some(runtime) = parameters.runtime else { return Answer::No(Refusal::Lacks("runtime")) };
        let Some(window) = parameters.relative_deadline() else {
            return Answer::No(Refusal::Lacks("deadline"));
        };
        let asked = Reservation {
            runtime_ns: runtime,
            deadline_ns: parameters.deadline,
            period_ns: parameters.period,
            offset_ns: parameters.offset.unwrap_or_default(),
        };
        match self.reserve(&asked) {
            Ok((dispatcher, place)) => {
                let utilization = utilization(runtime, window);
                self.state.borrow_mut().reserved = Some(Guest { dispatcher, place, utilization });
                let processor = place.processor;
                Answer::Ok(Offer { processor, accepted_runtime: Some(runtime), ignored: false })
            }
            Err(reasons) if reasons.is_empty() => {
                let none = "no table is being dispatched that takes guests (punctual tt run)";
                Answer::No(Refusal::Unschedulable(none.into()))
            }
            Err(reasons) => Answer::No(Refusal::Unschedulable(reasons.join("; "))),
        }
    }

    fn admit(&mut self, spec: SpecId, _parameters: &Parameters, _offer: Offer) {
        let state = self.state.get_mut();
        if let Some(guest) = state.reserved.take() {
            state.claim(spec, guest);
        }
    }

    /// A guest that an earlier daemon has confirmed is still there, or over.
    fn restore(&mut self, spec: SpecId, parameters: &Parameters, _offer: Offer, _was: Assignment) {
        let state = self.state.get_mut();
        let orphans = state.orphans();
        let Some(&(dispatcher, Confirmed { place, .. })) = orphans.iter().find(|it| it.1.spec == spec.0)
        else {
            return;
        };
        let (runtime, window) = (parameters.runtime, parameters.relative_deadline());
        let utilization = runtime.zip(window).map_or(0.0, |(runtime, window)| utilization(runtime, window));
        state.claim(spec, Guest { dispatcher, place, utilization });
    }

    fn release(&mut self, spec: SpecId) {
        let state = self.state.get_mut();
        if let Some(guest) = state.guests.remove(&spec) {
            state.release(&guest);
        }
    }

    fn assignment(&self, spec: SpecId) -> Option<Assignment> {
        let state = self.state.borrow();
        let Place { processor, priority, .. } = state.guests.get(&spec)?.place;
        Some(Assignment { processor, policy: AssignedPolicy::Dispatched { priority } })
    }

    /// Assignments never change. The first call comes when all specs of an earlier daemon are there again:
    /// guests that none of them has claimed are released.
    fn shifted(&mut self) -> bool {
        let state = self.state.get_mut();
        if !std::mem::replace(&mut state.is_settled, true) {
            for (dispatcher, Confirmed { place, .. }) in state.orphans() {
                state.release(&Guest { dispatcher, place, utilization: 0.0 });
            }
        }
        false
    }

    fn attached(&mut self, spec: SpecId, thread: u32) -> Result<(), String> {
        let state = self.state.get_mut();
        let guest = *state.guests.get(&spec).ok_or("it has no slots")?;
        state.tell(&guest, |guest| Request::Bind { guest, thread })
    }

    fn let_go(&mut self, spec: SpecId) {
        let state = self.state.get_mut();
        if let Some(guest) = state.guests.get(&spec).copied() {
            // One that is gone has put the thread back.
            let _ = state.tell(&guest, |guest| Request::Unbind { guest });
        }
    }

    fn lost(&self, spec: SpecId) -> Option<String> {
        let mut state = self.state.borrow_mut();
        let number = match state.guests.get(&spec) {
            Some(guest) => guest.dispatcher,
            None => return Some("it has none in a table".into()),
        };
        let is_there = state.is_there(number);
        (!is_there).then(|| format!("the table that process {number} dispatched has ended"))
    }

    fn loads(&self) -> Vec<Load> {
        let state = self.state.borrow();
        let mut loads: BTreeMap<u32, Load> = BTreeMap::new();
        for guest in state.guests.values() {
            let processor = guest.place.processor;
            let load = loads.entry(processor).or_insert(Load { processor, ..Load::default() });
            (load.utilization, load.specs) = (load.utilization + guest.utilization, load.specs + 1);
        }
        loads.into_values().collect()
    }
}

/// The share of a processor that a job, or each job of a task, takes of its window.
fn utilization(runtime: Duration, window: Duration) -> f64 {
    runtime.ns() as f64 / (window.ns().max(1)) as f64
}
