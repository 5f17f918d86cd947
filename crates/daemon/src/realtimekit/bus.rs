//! The connection to the bus: `org.freedesktop.RealtimeKit1`, its methods and properties.

use super::credentials::{identify, rttime_limit};
use super::{Counter, Desk, Refusal, Request, Wish};
use crate::bus::Slot;
use crate::config::RealtimeKit;
use crate::log;
use crate::poll::Poll;
use std::collections::HashMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use zbus::blocking::{self, MessageIterator, connection};
use zbus::message::Header;
use zbus::{Connection, fdo};

const NAME: &str = "org.freedesktop.RealtimeKit1";
const PATH: &str = "/org/freedesktop/RealtimeKit1";
/// How long the bus may take to reply.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two attempts to reach the bus, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// Requests of a user, in how long.
const BURST: (usize, Duration) = (25, Duration::from_secs(20));

/// The service; ends when it is dropped.
#[derive(Debug)]
pub struct Service {
    /// Compared at a reload.
    pub kit: RealtimeKit,
    /// Dropped first: who waits for an answer then gets an error.
    counter: Counter,
    slot: Arc<Slot<blocking::Connection>>,
    _stop: Sender<()>,
}

impl Service {
    /// Connects to the bus, now or when it is there.
    pub fn start(kit: RealtimeKit, poll: &Poll) -> io::Result<Service> {
        let (counter, desk) = Counter::open(poll)?;
        let (stop, stopped) = channel();
        let slot = Arc::new(Slot::new());
        let (theirs, shared) = (slot.clone(), Arc::new(kit.clone()));
        thread::Builder::new()
            .name("realtimekit".into())
            .spawn(move || serve(&shared, &desk, &theirs, &stopped))?;
        Ok(Service { kit, counter, slot, _stop: stop })
    }

    /// The event loop's end.
    pub fn counter(&self) -> &Counter {
        &self.counter
    }
}

/// Its thread waits for messages, or for the next attempt: both end.
impl Drop for Service {
    fn drop(&mut self) {
        if let Some(connection) = self.slot.end() {
            // Not here: the bus may wait for an answer of this thread.
            thread::spawn(move || connection.close());
        }
    }
}

fn serve(kit: &Arc<RealtimeKit>, desk: &Desk, slot: &Slot<blocking::Connection>, stopped: &Receiver<()>) {
    let (mut wait, mut told) = (RETRY.0, None);
    loop {
        match connect(kit, desk) {
            Ok(connection) => {
                (wait, told) = (RETRY.0, None);
                let messages = MessageIterator::from(&connection);
                if let Err(connection) = slot.put(connection) {
                    // With it, the name is given back.
                    let _ = connection.close();
                    return;
                }
                log::info(&format!("serving {NAME}"));
                // Until the connection ends.
                for _ in messages.take_while(Result::is_ok) {}
                slot.clear();
            }
            Err(error) => {
                let message = match error {
                    zbus::Error::NameTaken => format!("{NAME} is served by someone else (rtkit-daemon?)"),
                    error => format!("{NAME} cannot be served: {error}"),
                };
                if told.as_ref() != Some(&message) {
                    log::warning(&format!("{message}; trying again"));
                    told = Some(message);
                }
            }
        }
        match stopped.recv_timeout(wait) {
            Err(RecvTimeoutError::Timeout) => wait = (wait * 2).min(RETRY.1),
            _ => return,
        }
    }
}

fn connect(kit: &Arc<RealtimeKit>, desk: &Desk) -> zbus::Result<blocking::Connection> {
    let builder = match &kit.bus {
        Some(address) => connection::Builder::address(address.as_str())?,
        None => connection::Builder::system()?,
    };
    let bursts = Mutex::new(HashMap::new());
    let interface = Interface { kit: kit.clone(), desk: desk.clone(), bursts };
    // A bus that does not reply is told of, and tried again.
    builder.method_timeout(PATIENCE).serve_at(PATH, interface)?.name(NAME)?.build()
}

/// The object on the bus.
struct Interface {
    kit: Arc<RealtimeKit>,
    desk: Desk,
    /// How many requests users have had, and since when.
    bursts: Mutex<HashMap<u32, (Instant, usize)>>,
}

impl Interface {
    async fn schedule(
        &self,
        process: Option<u64>,
        thread: u64,
        wish: Wish,
        header: &Header<'_>,
        connection: &Connection,
    ) -> fdo::Result<()> {
        self.check_limits(wish)?;
        let number = |number: u64| {
            u32::try_from(number).map_err(|_| fdo::Error::Failed(format!("there is no thread {number}")))
        };
        let (process, thread) = (process.map(number).transpose()?, number(thread)?);
        let client = identify(connection, header).await?;
        self.check_burst(client.who.user)?;
        if let Wish::Realtime(_) = wish {
            self.check_rttime(process.unwrap_or(client.process))?;
        }
        let kit = self.kit.clone();
        let request = Request::Schedule { client, process, thread, wish, kit };
        self.desk.ask(request).map_err(error)
    }

    fn check_limits(&self, wish: Wish) -> fdo::Result<()> {
        match wish {
            Wish::Realtime(priority) if !(1..=99).contains(&priority) => {
                Err(fdo::Error::Failed(format!("priority {priority} is none: expected 1 to 99")))
            }
            Wish::Realtime(priority) if priority > self.kit.max_realtime_priority => {
                let most = self.kit.max_realtime_priority;
                Err(fdo::Error::AccessDenied(format!("priority {priority} is above the greatest, {most}")))
            }
            Wish::HighPriority(nice) if !(-20..=19).contains(&nice) => {
                Err(fdo::Error::Failed(format!("nice level {nice} is none: expected -20 to 19")))
            }
            Wish::HighPriority(nice) if nice < self.kit.min_nice_level => {
                let least = self.kit.min_nice_level;
                Err(fdo::Error::AccessDenied(format!("nice level {nice} is below the least, {least}")))
            }
            _ => Ok(()),
        }
    }

    fn check_burst(&self, user: u32) -> fdo::Result<()> {
        let (most, span) = BURST;
        let mut bursts = self.bursts.lock().unwrap_or_else(PoisonError::into_inner);
        bursts.retain(|_, (since, _)| since.elapsed() < span);
        let (_, count) = bursts.entry(user).or_insert_with(|| (Instant::now(), 0));
        *count += 1;
        if user != 0 && *count > most {
            return Err(fdo::Error::AccessDenied(format!(
                "more than {most} requests of user {user} in {span:?}"
            )));
        }
        Ok(())
    }

    fn check_rttime(&self, process: u32) -> fdo::Result<()> {
        let most = self.kit.rttime_usec_max;
        let limit = rttime_limit(process)
            .map_err(|error| fdo::Error::Failed(format!("the limits of process {process}: {error}")))?;
        match limit {
            Some(limit) if limit <= most => Ok(()),
            limit => {
                let limit = limit.map_or("no limit".into(), |limit| format!("{limit} µs"));
                Err(fdo::Error::AccessDenied(format!(
                    "process {process} must set its hard RLIMIT_RTTIME to at most {most} µs first; it has \
                     {limit}"
                )))
            }
        }
    }

    async fn reset(&self, all: bool, header: &Header<'_>, connection: &Connection) -> fdo::Result<()> {
        let client = identify(connection, header).await?;
        if !client.who.is_root() {
            return Err(fdo::Error::AccessDenied("only root may reset threads of others".into()));
        }
        self.desk.ask(Request::Reset { all }).map_err(error)
    }
}

fn error(refusal: Refusal) -> fdo::Error {
    match refusal {
        Refusal::Denied(why) => fdo::Error::AccessDenied(why),
        Refusal::Failed(why) => fdo::Error::Failed(why),
    }
}

#[zbus::interface(name = "org.freedesktop.RealtimeKit1")]
impl Interface {
    async fn make_thread_realtime(
        &self,
        thread: u64,
        priority: u32,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<()> {
        self.schedule(None, thread, Wish::Realtime(priority), &header, connection).await
    }

    #[zbus(name = "MakeThreadRealtimeWithPID")]
    async fn make_thread_realtime_with_pid(
        &self,
        process: u64,
        thread: u64,
        priority: u32,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<()> {
        self.schedule(Some(process), thread, Wish::Realtime(priority), &header, connection).await
    }

    async fn make_thread_high_priority(
        &self,
        thread: u64,
        priority: i32,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<()> {
        self.schedule(None, thread, Wish::HighPriority(priority), &header, connection).await
    }

    #[zbus(name = "MakeThreadHighPriorityWithPID")]
    async fn make_thread_high_priority_with_pid(
        &self,
        process: u64,
        thread: u64,
        priority: i32,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<()> {
        self.schedule(Some(process), thread, Wish::HighPriority(priority), &header, connection).await
    }

    async fn reset_known(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<()> {
        self.reset(false, &header, connection).await
    }

    async fn reset_all(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<()> {
        self.reset(true, &header, connection).await
    }

    async fn exit(&self) -> fdo::Result<()> {
        Err(fdo::Error::NotSupported("punctuald is ended by its service manager".into()))
    }

    #[zbus(property(emits_changed_signal = "const"), name = "RTTimeUSecMax")]
    fn rttime_usec_max(&self) -> i64 {
        i64::try_from(self.kit.rttime_usec_max).unwrap_or(i64::MAX)
    }

    #[zbus(property(emits_changed_signal = "const"))]
    fn max_realtime_priority(&self) -> i32 {
        self.kit.max_realtime_priority as i32
    }

    #[zbus(property(emits_changed_signal = "const"))]
    fn min_nice_level(&self) -> i32 {
        self.kit.min_nice_level
    }
}
