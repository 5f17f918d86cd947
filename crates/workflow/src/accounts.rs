//! What the threads of punctuald's specs really take, told to the daemon while they are watched.
//!
//! The daemon is asked and told on a thread of its own, once a second, so that the observation never waits
//! for it. Without a daemon nothing happens. It keeps what root says, and what users say of their own specs;
//! which specs those are is for it to decide.

use punctual_client::{Client, Error, Spec, SpecId, Used, default_socket};
use punctual_extract::JobSeen;
use punctual_model::Duration;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// How often the daemon is told.
const TURN: std::time::Duration = std::time::Duration::from_secs(1);

/// Counts jobs of specs, and tells the daemon until it is dropped.
pub(crate) struct Accounts {
    shared: Arc<Shared>,
    teller: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    book: Mutex<Book>,
    stop: AtomicBool,
}

impl Shared {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Accounts {
    /// Begins; without a thread for it, nothing is told.
    pub(crate) fn start() -> Accounts {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let teller = std::thread::Builder::new().name("accounts".into()).spawn(move || tell(&theirs));
        Accounts { shared, teller: teller.ok() }
    }

    /// A job that was judged.
    pub(crate) fn job(&self, seen: &JobSeen<'_>) {
        self.shared.book().job(seen.tid, seen.job.cost, seen.job.least_response());
    }
}

impl Drop for Accounts {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(teller) = self.teller.take() {
            teller.thread().unpark();
            let _ = teller.join();
        }
    }
}

/// Tells the daemon until it is over, and then once more.
fn tell(shared: &Shared) {
    let mut client = None;
    loop {
        let is_over = shared.stop.load(Ordering::Relaxed);
        client = client.or_else(|| Client::connect_within(&default_socket(), Some(TURN)).ok());
        if client.as_mut().is_some_and(|client| turn(client, shared).is_err()) {
            client = None;
        }
        if is_over {
            return;
        }
        std::thread::park_timeout(TURN);
    }
}

/// Looks which specs there are, and tells what is new. An error means that the daemon cannot be reached.
fn turn(client: &mut Client, shared: &Shared) -> Result<(), Error> {
    let specs = client.list_specs()?;
    let reports = shared.book().turn(&specs);
    for (thread, spec, used) in reports {
        match client.report_use(spec, thread, used) {
            // It may have been released meanwhile.
            Ok(()) | Err(Error::Refused(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The threads of specs, by TID.
#[derive(Default)]
struct Book(FxHashMap<u32, Account>);

#[derive(Clone, Copy)]
struct Account {
    spec: SpecId,
    runtime: Option<Duration>,
    deadline: Option<Duration>,
    used: Used,
    /// Whether the daemon has not been told yet.
    is_news: bool,
}

impl Book {
    fn job(&mut self, tid: u32, cost: Duration, response: Duration) {
        let Some(Account { runtime, deadline, used, is_news, .. }) = self.0.get_mut(&tid) else { return };
        *is_news = true;
        used.jobs = used.jobs.saturating_add(1);
        used.worst_cost = used.worst_cost.max(cost);
        if runtime.is_some_and(|runtime| cost > runtime) {
            used.overruns = used.overruns.saturating_add(1);
        }
        if let Some(deadline) = *deadline {
            let misses = used.misses.unwrap_or(0);
            used.misses = Some(misses.saturating_add(u64::from(response > deadline)));
        }
    }

    /// Counts for these specs from now on. Returns what has been counted since the last time.
    fn turn(&mut self, specs: &[Spec]) -> Vec<(u32, SpecId, Used)> {
        let mut before = std::mem::take(&mut self.0);
        let mut news = Vec::new();
        for spec in specs {
            let (Some(thread), number) = (spec.thread, spec.admission.spec) else { continue };
            let known = before.remove(&thread).filter(|account| account.spec == number);
            let used = known.map_or(NOTHING, |account| account.used);
            if known.is_some_and(|account| account.is_news) {
                news.push((thread, number, used));
            }
            let runtime = spec.admission.accepted_runtime;
            let deadline = spec.parameters.deadline.or(spec.parameters.period);
            self.0.insert(thread, Account { spec: number, runtime, deadline, used, is_news: false });
        }
        news
    }
}

const NOTHING: Used = Used { jobs: 0, worst_cost: Duration::ZERO, overruns: 0, misses: None };

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spec(number: u64, runtime_ms: u64, thread: u32) -> Spec {
        let spec = json!({
            "admission": {
                "spec": number, "plugin": "RM", "answer": "ok", "admission_ignored": false, "processor": 0,
                "accepted_runtime_ns": runtime_ms * 1_000_000, "policy": "fifo"
            },
            "parameters": {}, "user": 0, "process": 1, "thread": thread
        });
        serde_json::from_value(spec).expect("a spec")
    }

    #[test]
    fn jobs_count_for_the_spec_that_has_their_thread() {
        let ms = Duration::from_ms;
        let used = |jobs, worst, overruns| Used { jobs, worst_cost: ms(worst), overruns, misses: None };
        let mut book = Book::default();
        book.job(5, ms(9), ms(9));
        assert_eq!(book.turn(&[spec(1, 2, 5), spec(2, 2, 6)]), [], "nothing was known of specs");
        for cost in [1, 2, 3] {
            book.job(5, ms(cost), ms(cost));
        }
        book.job(7, ms(1), ms(1));
        assert_eq!(book.turn(&[spec(1, 4, 5), spec(2, 2, 6)]), [(5, 1, used(3, 3, 1))]);
        assert_eq!(book.turn(&[spec(1, 4, 5), spec(2, 2, 6)]), [], "it was told");
        // Sums go on; its runtime is another one now.
        book.job(5, ms(4), ms(4));
        assert_eq!(book.turn(&[spec(1, 4, 5)]), [(5, 1, used(4, 4, 1))]);
        // The thread is another spec's.
        book.job(5, ms(1), ms(1));
        assert_eq!(book.turn(&[spec(3, 4, 5)]), []);
        book.job(5, ms(1), ms(1));
        assert_eq!(book.turn(&[spec(3, 4, 5)]), [(5, 3, used(1, 1, 0))]);
    }

    #[test]
    fn late_jobs_are_missed_deadlines() {
        let ms = Duration::from_ms;
        let mut book = Book::default();
        let with = |parameters: serde_json::Value| Spec {
            parameters: serde_json::from_value(parameters).expect("parameters"),
            ..spec(1, 2, 5)
        };
        // The deadline is the period where there is no other.
        for (parameters, misses) in [
            (json!({"period_ns": 10_000_000}), 1),
            (json!({"period_ns": 10_000_000, "deadline_ns": 5_000_000}), 3),
        ] {
            book.turn(&[]);
            book.turn(&[with(parameters.clone())]);
            for response in [5, 6, 10, 11] {
                book.job(5, ms(1), ms(response));
            }
            let used = Used { jobs: 4, worst_cost: ms(1), overruns: 0, misses: Some(misses) };
            assert_eq!(book.turn(&[with(parameters)]), [(5, 1, used)]);
        }
    }
}
