//! Whether a measurement reached its threshold, and what did.

use crate::analysed::thread_name;
use crate::visible;
use punctual_model::latency::ThreadId;
use punctual_model::{Duration, Instant};
use serde_json::{Value, json};

/// A threshold, and what was the first to be as long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// Its length.
    pub length: Duration,
    /// What reached it; `None` if nothing did.
    pub reached: Option<Reached>,
}

/// What reached a threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// On which processor.
    pub cpu: u32,
    /// The variable, as `D_POID`; `None`: the latency of a woken thread.
    pub variable: Option<&'static str>,
    /// How long it was.
    pub duration: Duration,
    /// When it ended.
    pub until: Instant,
    /// The thread that was woken, or that caused it; `None` where that is not known.
    pub thread: Option<ThreadId>,
    /// Where in the kernel the variable began, where that is known.
    pub opened: Option<String>,
    /// Where it ended.
    pub closed: Option<String>,
}

impl Threshold {
    /// In words, of a measurement from `begin` to `end`.
    pub fn text(&self, begin: Instant, end: Instant) -> String {
        let length = self.length;
        match &self.reached {
            Some(reached) => format!(
                "Threshold of {length} reached {}. The observation ended at {}; the tables cover all of it.",
                reached.text(begin),
                crate::text::since(end.since(begin))
            ),
            None => format!("Threshold of {length} not reached."),
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "threshold_ns": self.length.ns(),
            "reached": self.reached.is_some(),
            "by": self.reached.as_ref().map(Reached::json),
        })
    }
}

impl Reached {
    fn text(&self, begin: Instant) -> String {
        let Reached { cpu, duration, .. } = self;
        let until = crate::text::since(self.until.since(begin));
        let thread = self.thread.as_ref().map(thread_name);
        let Some(symbol) = self.variable else {
            let thread = thread.unwrap_or_else(|| "a thread".into());
            return format!("on CPU {cpu}: {thread} ran {duration} after its wake-up, at {until}");
        };
        let by = thread.map_or_else(String::new, |thread| format!(", by {thread}"));
        let place = |word: &str, place: &Option<String>| {
            place.as_ref().map_or_else(String::new, |place| format!(" {word} {}", visible(place)))
        };
        let places = place("from", &self.opened) + &place("to", &self.closed);
        format!("on CPU {cpu}: {symbol} was {duration}{by}{places}, until {until}")
    }

    fn json(&self) -> Value {
        json!({
            "cpu": self.cpu,
            "variable": self.variable,
            "duration_ns": self.duration.ns(),
            "until_ns": self.until.ns(),
            "thread": self.thread,
            "opened": self.opened,
            "closed": self.closed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached() -> Threshold {
        let thread = ThreadId { name: "php".into(), pid: 96, tid: 97 };
        let reached = Reached {
            cpu: 1,
            variable: Some("D_POID"),
            duration: Duration::from_ns(78_100),
            until: Instant::from_ns(512_000_000),
            thread: Some(thread),
            opened: Some("_raw_spin_lock_irqsave+0x3b".into()),
            closed: Some("do_syscall_64+0x81".into()),
        };
        Threshold { length: Duration::from_ns(60_000), reached: Some(reached) }
    }

    #[test]
    fn the_text_says_what_reached_it() {
        let (begin, end) = (Instant::from_ns(12_000_000), Instant::from_ns(541_000_000));
        let mut threshold = reached();
        assert_eq!(
            threshold.text(begin, end),
            "Threshold of 60 µs reached on CPU 1: D_POID was 78.1 µs, by php (97) from \
             _raw_spin_lock_irqsave+0x3b to do_syscall_64+0x81, until +0.500000 s. The \
             observation ended at +0.529000 s; the tables cover all of it."
        );
        threshold.reached.as_mut().expect("reached").variable = None;
        assert_eq!(
            threshold.text(begin, end),
            "Threshold of 60 µs reached on CPU 1: php (97) ran 78.1 µs after its wake-up, at +0.500000 s. \
             The observation ended at +0.529000 s; the tables cover all of it."
        );
        threshold.reached = None;
        assert_eq!(threshold.text(begin, end), "Threshold of 60 µs not reached.");
    }

    #[test]
    fn programs_see_whether_it_was_reached() {
        let mut threshold = reached();
        let json = threshold.json();
        assert_eq!(json["reached"], true);
        assert_eq!(json["by"]["variable"], "D_POID");
        assert_eq!(json["by"]["thread"]["name"], "php");
        threshold.reached = None;
        let json = threshold.json();
        assert_eq!((&json["reached"], &json["by"]), (&Value::Bool(false), &Value::Null));
    }
}
