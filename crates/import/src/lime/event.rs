//! One line of `<tid>-<version>.events.json`.

use super::super::notes::Notes;
use super::super::thread::{Entry, Leave, Out, Thread};
use punctual_model::{Call, Duration, FileClass, Instant, Object, Policy, Separator};
use punctual_trace::account::Use;
use serde::Deserialize;
use serde::de::{Deserializer, Visitor};
use serde_ignored::Path;
use std::borrow::Cow;
use std::fmt;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Enter {
        call: Call,
        object: Object,
        sleep: Option<Sleep>,
    },
    /// Into a call that separates nothing.
    Pass,
    Leave {
        result: Option<i64>,
    },
    Out {
        cpu: u32,
        state: i64,
    },
    In {
        cpu: u32,
    },
    Woken {
        cpu: u32,
    },
    /// The timer goes off that gives a SCHED_DEADLINE thread its budget back.
    Timer {
        expires: Instant,
    },
    Exec,
    Exit,
    /// What happens from here on was not recorded, or cannot be read.
    Gap,
}

/// For how long, or until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    For(Duration),
    Until(Instant),
}

/// A time that is further back than this when it is asked for is not on the clock of the trace: the machine
/// was suspended once.
const SAME_CLOCK: Duration = Duration::from_ms(1000);

/// EXIT_DEAD, EXIT_ZOMBIE and TASK_DEAD.
const DEAD: i64 = 0x10 | 0x20 | 0x80;

/// A number, or a text where LiME writes a name or hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Word<'a> {
    Number(i64),
    Text(Cow<'a, str>),
}

/// An event with all fields that are needed. Each belongs to few events.
#[derive(Deserialize)]
struct Raw<'a> {
    ts: u64,
    #[serde(borrow)]
    event: Cow<'a, str>,
    cpu: Option<u32>,
    state: Option<i64>,
    ret: Option<i64>,
    #[serde(borrow)]
    clock_id: Option<Word<'a>>,
    abs_time: Option<bool>,
    required_ns: Option<i64>,
    fd: Option<i64>,
    sock_fd: Option<i64>,
    epfd: Option<i64>,
    mqd: Option<i64>,
    msqid: Option<i64>,
    sem_id: Option<i64>,
    #[serde(borrow)]
    uaddr: Option<Word<'a>>,
    op: Option<u32>,
    expires: Option<u64>,
    #[serde(borrow)]
    pfds: Option<Word<'a>>,
    timeout_nsec: Option<i64>,
}

/// Fields that are known and say nothing that is needed.
const NOT_NEEDED: [&str; 16] = [
    "prio",
    "preempt",
    "dest_cpu",
    "pid",
    "inp",
    "timeout",
    "timeout_usec",
    "tvp_null",
    "tsp_null",
    "sched_policy",
    "policy",
    "old_policy_num",
    "cpumask",
    "process_info",
    "signo",
    "si_code",
];

/// Events that say what is in the infos, or what was done about the recording.
const PASSED_OVER: [&str; 22] = [
    "sched_migrate_task",
    "sched_set_scheduler",
    "sched_process_fork",
    "enter_set_scheduler",
    "enter_sched_set_affinity",
    "scheduler_change",
    "scheduler_change_failed",
    "scheduler_changed",
    "sched_params_change",
    "sched_params_changed",
    "affinity_change",
    "affinity_change_failed",
    "affinity_changed",
    "sched_policy_update",
    "affinity_update",
    "process_info_update",
    "rt_sig_delivered",
    "enter_rt_sigreturn",
    "raw_scheduler_change",
    "lime_throttle_release",
    "lime_start_of_trace",
    "lime_end_of_trace",
];

/// What a line comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// At this time; 0 where it has none.
    Event(u64, Event),
    /// Nothing that matters.
    Nothing,
    /// It is not an event, for this reason.
    Broken(String),
}

impl Event {
    /// Reads one object.
    pub fn parse(text: &[u8], notes: &mut Notes) -> Line {
        let mut unknown: Vec<String> = Vec::new();
        let mut ignored = |path: Path| match path {
            Path::Map { key, .. } if NOT_NEEDED.contains(&key.as_str()) => {}
            path => unknown.push(path.to_string()),
        };
        let mut json = serde_json::Deserializer::from_slice(text);
        let raw: Raw = match serde_ignored::deserialize(&mut json, &mut ignored) {
            Ok(raw) => raw,
            Err(error) => {
                // The place inside this one line says nothing.
                let why = error.to_string();
                return Line::Broken(why.split(" at line").next().unwrap_or_default().to_owned());
            }
        };
        for field in unknown {
            notes.count(&format!("unknown fields `{field}` of events `{}`", raw.event));
        }
        Self::from_raw(&raw, notes)
    }

    fn from_raw(raw: &Raw, notes: &mut Notes) -> Line {
        let cpu = raw.cpu.unwrap_or(0);
        let event = match raw.event.as_ref() {
            "sched_switched_in" => Event::In { cpu },
            "sched_switched_out" => match raw.state {
                // Its last: the thread is dead.
                Some(state) if state & DEAD != 0 => Event::Exit,
                Some(state) => Event::Out { cpu, state },
                None => return Line::Broken("missing field `state`".to_owned()),
            },
            "sched_waking" | "sched_wake_up" | "sched_wake_up_new" => Event::Woken { cpu },
            "exit_arrival_site" => Event::Leave { result: raw.ret },
            "enter_dl_timer" => match raw.expires {
                Some(expires) => Event::Timer { expires: Instant::from_ns(expires) },
                None => return Line::Broken("missing field `expires`".to_owned()),
            },
            "sched_process_exec" => Event::Exec,
            "sched_process_exit" => Event::Exit,
            "lime_throttle" => {
                notes.count(
                    "times at which LiME stopped to record a thread that did too much: its task ends there",
                );
                Event::Gap
            }
            name if PASSED_OVER.contains(&name) => return Line::Nothing,
            name => match raw.call(name) {
                Some(event) => event,
                None => {
                    notes.count(&format!("unknown events `{name}`"));
                    // A call of whatever kind is at least another one than the one before.
                    if !name.starts_with("enter_") {
                        return Line::Nothing;
                    }
                    Event::Pass
                }
            },
        };
        Line::Event(raw.ts, event)
    }

    /// What it is called in an account, and what it is read for.
    pub fn kind(&self) -> (&'static str, Option<Use>) {
        match self {
            Event::Enter { .. } | Event::Pass => ("enter_*", Some(Use::Jobs)),
            Event::Leave { .. } => ("exit_arrival_site", Some(Use::Jobs)),
            Event::Out { .. } => ("sched_switched_out", Some(Use::ExecutionTimes)),
            Event::In { .. } => ("sched_switched_in", Some(Use::ExecutionTimes)),
            Event::Woken { .. } => ("sched_wake_up", Some(Use::Releases)),
            Event::Timer { .. } => ("enter_dl_timer", Some(Use::Arrivals)),
            Event::Exec => ("sched_process_exec", Some(Use::Threads)),
            Event::Exit => ("sched_process_exit", Some(Use::Threads)),
            Event::Gap => ("what cannot be read", None),
        }
    }

    /// Tells the thread.
    pub fn tell(self, thread: &mut Thread, at: Instant, policy: Policy, notes: &mut Notes, out: Out) {
        match self {
            Event::Pass => thread.enter(at, None, out),
            Event::Enter { call: Call::SchedYield, .. } if policy != Policy::Deadline => {
                thread.enter(at, None, out)
            }
            Event::Enter { call, object, sleep } => {
                let arrival = match sleep {
                    Some(Sleep::For(span)) => Some(at + span),
                    Some(Sleep::Until(time)) if time + SAME_CLOCK < at => {
                        notes.count(
                            "sleeps until a time more than a second ago: the clocks differ, their \
                            arrivals are left out",
                        );
                        None
                    }
                    Some(Sleep::Until(time)) => Some(time),
                    None => None,
                };
                thread.enter(
                    at,
                    Some(Entry { separator: Separator { call, object }, arrival, always: true }),
                    out,
                );
            }
            Event::Leave { result } => thread.leave(at, result, out),
            Event::Out { cpu, state } => {
                // A budget that is given back stops the thread though it remains ready.
                let yields = state == 0 && policy == Policy::Deadline && thread.is_in(Call::SchedYield);
                let leave = match state {
                    0 if !yields => Leave::Preempted,
                    state => Leave::Asleep { interruptible: yields || state & 1 == 1 },
                };
                thread.switch_out(at, cpu, leave, out);
            }
            Event::In { cpu } => thread.switch_in(at, cpu, out),
            Event::Woken { cpu } => thread.wake(at, cpu, 0, out),
            Event::Timer { expires } => {
                let arrival = Some(expires).filter(|expires| *expires + SAME_CLOCK >= at && *expires <= at);
                thread.replenish(at, 0, arrival, out);
            }
            Event::Gap => thread.lose(),
            Event::Exec | Event::Exit => {}
        }
    }
}

impl Raw<'_> {
    /// The call that an `enter_…` event is about.
    fn call(&self, name: &str) -> Option<Event> {
        let number = |number: Option<i64>| number.and_then(|number| i32::try_from(number).ok()).unwrap_or(-1);
        let file = |class, fd| Object::File { class, fd: number(fd), identity: 0 };
        let read = |class| (Call::Read, file(class, self.fd));
        let socket = |call| (call, file(FileClass::Socket, self.sock_fd.or(self.fd)));
        let (call, object) = match name {
            "enter_clock_nano_sleep" | "enter_clock_nanosleep" => return Some(self.clock_sleep()),
            "enter_nanosleep" => {
                let sleep = self.required_ns.and_then(duration).map(Sleep::For);
                return Some(Event::Enter {
                    call: Call::Nanosleep,
                    object: Object::Clock { id: 1, absolute: false },
                    sleep,
                });
            }
            "enter_select" => (Call::Select, Object::None),
            "enter_pselect6" => (Call::Pselect6, Object::None),
            "enter_poll" => {
                // Of nothing at all: a sleep.
                let of_nothing = self.pfds.as_ref().is_some_and(|address| address.address() == 0);
                let sleep = self
                    .timeout_nsec
                    .filter(|time| of_nothing && *time > 0)
                    .and_then(duration)
                    .map(Sleep::For);
                return Some(Event::Enter { call: Call::Poll, object: Object::None, sleep });
            }
            "enter_ppoll" => (Call::Ppoll, Object::None),
            "enter_epoll_wait" => (Call::EpollWait, file(FileClass::Epoll, self.epfd)),
            "enter_epoll_pwait" | "enter_epoll_p_wait" => {
                (Call::EpollPwait, file(FileClass::Epoll, self.epfd))
            }
            "enter_read_sock" => read(FileClass::Socket),
            "enter_read_fifo" => read(FileClass::Pipe),
            "enter_read_blk" => read(FileClass::BlockDevice),
            "enter_read_chr" => read(FileClass::CharacterDevice),
            "enter_accept" => socket(Call::Accept),
            "enter_recv" | "enter_recvfrom" => socket(Call::Recvfrom),
            "enter_recvmsg" => socket(Call::Recvmsg),
            "enter_recvmmsg" => socket(Call::Recvmmsg),
            "enter_futex" => return Some(self.futex()),
            "enter_pause" => (Call::Pause, Object::None),
            "enter_rt_sigsuspend" => (Call::RtSigsuspend, Object::None),
            "enter_sig_timed_wait" | "enter_rt_sigtimedwait" => (Call::RtSigtimedwait, Object::None),
            "enter_mq_timedreceive" => (Call::MqTimedreceive, file(FileClass::MessageQueue, self.mqd)),
            "enter_msgrcv" => (Call::Msgrcv, Object::Id(number(self.msqid))),
            "enter_semop" => (Call::Semop, Object::Id(number(self.sem_id))),
            "enter_sched_yield" => (Call::SchedYield, Object::None),
            _ => return None,
        };
        Some(Event::Enter { call, object, sleep: None })
    }

    fn clock_sleep(&self) -> Event {
        let clock = match &self.clock_id {
            Some(Word::Text(name)) => clock_number(name),
            Some(Word::Number(number)) => i32::try_from(*number).unwrap_or(-1),
            None => -1,
        };
        let absolute = self.abs_time.unwrap_or(false);
        let sleep = match (self.required_ns.and_then(duration), clock, absolute) {
            (Some(time), 1 | 7, true) => Some(Sleep::Until(Instant::from_ns(time.ns()))),
            // A relative sleep on CLOCK_REALTIME is timed on CLOCK_MONOTONIC.
            (Some(span), 0 | 1 | 7, false) => Some(Sleep::For(span)),
            _ => None,
        };
        Event::Enter { call: Call::ClockNanosleep, object: Object::Clock { id: clock, absolute }, sleep }
    }

    /// Of futex operations, those that wait.
    fn futex(&self) -> Event {
        let Some(call) = self.op.and_then(Call::from_futex_operation) else { return Event::Pass };
        let address = self.uaddr.as_ref().map_or(0, Word::address);
        Event::Enter { call, object: Object::address(address & !7), sleep: None }
    }
}

fn duration(ns: i64) -> Option<Duration> {
    u64::try_from(ns).ok().map(Duration::from_ns)
}

fn clock_number(name: &str) -> i32 {
    (0..12).find(|id| punctual_model::separator::clock_name(*id) == name).unwrap_or(-1)
}

impl Word<'_> {
    fn address(&self) -> u64 {
        match self {
            Word::Number(number) => *number as u64,
            Word::Text(digits) => u64::from_str_radix(digits.trim_start_matches("0x"), 16).unwrap_or(0),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Word<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Word<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a text")
            }
            fn visit_i64<E>(self, number: i64) -> Result<Word<'de>, E> {
                Ok(Word::Number(number))
            }
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Word<'de>, E> {
                // Addresses may take all bits.
                Ok(Word::Number(number as i64))
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Word<'de>, E> {
                Ok(Word::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Word<'de>, E> {
                Ok(Word::Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(line: &str, notes: &mut Notes) -> Option<Event> {
        match Event::parse(line.as_bytes(), notes) {
            Line::Event(_, event) => Some(event),
            Line::Nothing => None,
            Line::Broken(why) => panic!("{why}: {line}"),
        }
    }

    /// The events of the format's description, as they are on disk.
    #[test]
    fn every_line_of_the_description_is_understood() {
        let lines = [
            concat!(
                r#"{"ts":1478387294110,"event":"enter_clock_nano_sleep","clock_id":"CLOCK_MONOTONIC","#,
                r#""abs_time":true,"required_ns":1478687357083}"#
            ),
            r#"{"ts":1478387300109,"event":"sched_switched_out","cpu":1,"prio":60,"state":1}"#,
            r#"{"ts":1478687401561,"event":"sched_waking","cpu":1}"#,
            r#"{"ts":1478687408271,"event":"sched_wake_up","cpu":1}"#,
            r#"{"ts":1478687432998,"event":"sched_switched_in","cpu":1,"prio":60,"preempt":false}"#,
            r#"{"ts":1478687439918,"event":"exit_arrival_site","ret":0}"#,
        ];
        let mut notes = Notes::default();
        let events: Vec<Event> = lines.iter().filter_map(|line| event(line, &mut notes)).collect();
        let sleep = Event::Enter {
            call: Call::ClockNanosleep,
            object: Object::Clock { id: 1, absolute: true },
            sleep: Some(Sleep::Until(Instant::from_ns(1_478_687_357_083))),
        };
        let cpu = 1;
        let woken = Event::Woken { cpu };
        assert_eq!(
            events,
            [
                sleep,
                Event::Out { cpu, state: 1 },
                woken,
                woken,
                Event::In { cpu },
                Event::Leave { result: Some(0) }
            ]
        );
        assert!(notes.into_list().is_empty());
    }

    #[test]
    fn unknown_lines_are_counted_once() {
        let mut notes = Notes::default();
        for line in [
            concat!(
                r#"{"ts":0,"event":"enter_set_scheduler","old_policy_num":1,"#,
                r#""sched_policy":{"SCHED_RR":{"prio":60}}}"#
            ),
            r#"{"ts":5,"event":"enter_time_machine"}"#,
            r#"{"ts":6,"event":"enter_time_machine"}"#,
            r#"{"ts":7,"event":"sched_waking","cpu":1,"colour":"blue"}"#,
        ] {
            Event::parse(line.as_bytes(), &mut notes);
        }
        let expected = [
            "2 × unknown events `enter_time_machine`",
            "1 × unknown fields `colour` of events `sched_waking`",
        ];
        assert_eq!(notes.into_list(), expected);
    }

    #[test]
    fn calls_match_the_kernels_table() {
        let parse = |line: &str| event(line, &mut Notes::default());
        let enter = |call, object| Some(Event::Enter { call, object, sleep: None });
        let futex = parse(r#"{"ts":1,"event":"enter_futex","uaddr":4099,"op":393}"#);
        assert_eq!(futex, enter(Call::FutexWaitBitset, Object::address(4096)));
        assert_eq!(parse(r#"{"ts":1,"event":"enter_futex","uaddr":4096,"op":129}"#), Some(Event::Pass));
        let socket = Object::File { class: FileClass::Socket, fd: 5, identity: 0 };
        assert_eq!(parse(r#"{"ts":1,"event":"enter_recvmsg","sock_fd":5}"#), enter(Call::Recvmsg, socket));
        assert_eq!(
            parse(r#"{"ts":1,"event":"enter_semop","sem_id":3,"timeout":0}"#),
            enter(Call::Semop, Object::Id(3))
        );
    }

    /// As LiME's own program writes them: names and numbers in its own spelling.
    #[test]
    fn all_events_of_lime_are_known() {
        let mut notes = Notes::default();
        let mut parse = |line: &str| event(line, &mut notes);
        let sleep = |span| Some(Sleep::For(Duration::from_ns(span)));
        let poll = Event::Enter { call: Call::Poll, object: Object::None, sleep: sleep(5_000_000) };
        assert_eq!(parse(r#"{"ts":1,"event":"enter_poll","pfds":"0x0","timeout_nsec":5000000}"#), Some(poll));
        let poll = Event::Enter { call: Call::Poll, object: Object::None, sleep: None };
        assert_eq!(
            parse(r#"{"ts":1,"event":"enter_poll","pfds":"0x7ffc01020304","timeout_nsec":5000000}"#),
            Some(poll)
        );
        let epoll = Object::File { class: FileClass::Epoll, fd: 4, identity: 0 };
        let epoll = Event::Enter { call: Call::EpollPwait, object: epoll, sleep: None };
        assert_eq!(parse(r#"{"ts":1,"event":"enter_epoll_p_wait","epfd":4}"#), Some(epoll));
        let select = Event::Enter { call: Call::Pselect6, object: Object::None, sleep: None };
        assert_eq!(
            parse(r#"{"ts":1,"event":"enter_pselect6","inp":"0x1","timeout_nsec":0,"tsp_null":true}"#),
            Some(select)
        );
        let nanosleep = Event::Enter {
            call: Call::Nanosleep,
            object: Object::Clock { id: 1, absolute: false },
            sleep: sleep(7),
        };
        assert_eq!(parse(r#"{"ts":1,"event":"enter_nanosleep","required_ns":7}"#), Some(nanosleep));
        let wrong = Event::Enter {
            call: Call::Nanosleep,
            object: Object::Clock { id: 1, absolute: false },
            sleep: None,
        };
        assert_eq!(parse(r#"{"ts":1,"event":"enter_nanosleep","required_ns":-7}"#), Some(wrong));
        assert_eq!(
            parse(
                r#"{"ts":1,"event":"enter_clock_nano_sleep","clock_id":7,"abs_time":true,"required_ns":9}"#
            )
            .map(|event| matches!(
                event,
                Event::Enter {
                    object: Object::Clock { id: 7, absolute: true },
                    sleep: Some(Sleep::Until(_)),
                    ..
                }
            )),
            Some(true)
        );
        assert_eq!(
            parse(r#"{"ts":1,"event":"enter_futex","uaddr":18446744073709551608,"op":128}"#),
            Some(Event::Enter { call: Call::FutexWait, object: Object::address(!7), sleep: None })
        );
        assert_eq!(parse(r#"{"ts":1,"event":"sched_process_exit"}"#), Some(Event::Exit));
        assert_eq!(parse(r#"{"ts":1,"event":"rt_sig_delivered","signo":34,"si_code":-2}"#), None);
        assert_eq!(
            parse(r#"{"ts":1,"event":"scheduler_change","sched_policy":{"SCHED_FIFO":{"prio":60}}}"#),
            None
        );
        assert_eq!(
            parse(
                r#"{"ts":1,"event":"process_info_update","process_info":{"ppid":1,"comm":"x","cmd":null}}"#
            ),
            None
        );
        assert!(notes.into_list().is_empty());
    }

    #[test]
    fn invalid_events_are_explained() {
        let broken = |line: &str| match Event::parse(line.as_bytes(), &mut Notes::default()) {
            Line::Broken(why) => why,
            line => panic!("{line:?}"),
        };
        assert_eq!(broken(r#"{"event":"sched_waking"}"#), "missing field `ts`");
        assert_eq!(broken(r#"{"ts":1,"event":"sched_switched_out","cpu":1}"#), "missing field `state`");
        assert!(broken(r#"{"ts":"1","event":"sched_waking"}"#).starts_with("invalid type"));
    }
}
