//! How long tests take, for whoever lists the slowest of all programs (`make test`).

use libtest_mimic::{Arguments, Conclusion, Trial};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

static TOOK: Mutex<Vec<(Duration, String)>> = Mutex::new(Vec::new());

/// Runs a test and remembers how long it took. What its caller waits for before, such as its turn, is not
/// part of it.
pub fn measured<T>(name: &str, test: impl FnOnce() -> T) -> T {
    let _measuring = Measuring { began: Instant::now(), name };
    test()
}

/// Dropped even if the test panics.
struct Measuring<'a> {
    began: Instant,
    name: &'a str,
}

impl Drop for Measuring<'_> {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        TOOK.lock().unwrap_or_else(PoisonError::into_inner).push((took, self.name.to_owned()));
    }
}

/// Runs the trials. Then prints a line `TIME <seconds> <test>` for each that was measured, the slowest first.
pub fn run_all(arguments: &Arguments, trials: Vec<Trial>) -> Conclusion {
    let conclusion = libtest_mimic::run(arguments, trials);
    let mut took = TOOK.lock().unwrap_or_else(PoisonError::into_inner);
    took.sort_by(|one, other| other.cmp(one));
    for (took, name) in took.iter() {
        println!("TIME {:.2} {name}", took.as_secs_f64());
    }
    conclusion
}
