//! One line of `<tid>-<version>.events.json`.

use super::super::notes::Notes;
use super::super::thread::{Entry, Leave, Out, Thread};
use punctual_model::{Call, Duration, FileClass, Instant, Object, Policy, Separator};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Enter {
        call: Call,
        object: Object,
        sleep: Option<Sleep>,
    },
    /// Of a call that looked like a separator and is none.
    Pass,
    Exit {
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
    /// When a SCHED_DEADLINE thread gets its budget back.
    Timer {
        expires: Instant,
    },
}

/// For how long, or until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    Until(Instant),
    For(Duration),
}

/// A sleep until a time that is further back than this is not on the clock of the trace: the machine was suspended once.
const SAME_CLOCK: Duration = Duration::from_ms(1000);

/// An event with all fields that are known. Others are counted.
#[derive(Deserialize)]
struct Raw<'a> {
    ts: u64,
    #[serde(borrow)]
    event: Cow<'a, str>,
    cpu: Option<u32>,
    state: Option<i64>,
    ret: Option<i64>,
    clock_id: Option<Value>,
    abs_time: Option<bool>,
    required_ns: Option<u64>,
    fd: Option<i32>,
    sock_fd: Option<i32>,
    epfd: Option<i32>,
    mqd: Option<i32>,
    msqid: Option<i32>,
    sem_id: Option<i32>,
    uaddr: Option<Value>,
    op: Option<u32>,
    expires: Option<u64>,
    #[serde(flatten, borrow)]
    others: BTreeMap<Cow<'a, str>, IgnoredAny>,
}

/// Fields that are known and say nothing that is needed.
const PASSED_OVER: [&str; 9] = ["prio", "preempt", "dest_cpu", "inp", "pfds", "timeout", "sched_policy", "old_policy_num", "affinity_mask"];

impl Event {
    /// Its time, 0 where it has none, and what it is; `None` of one that is not understood or says nothing.
    pub fn parse(text: &[u8], notes: &mut Notes) -> Option<(u64, Event)> {
        let raw: Raw = match serde_json::from_slice(text) {
            Ok(raw) => raw,
            Err(error) => {
                let why = error.to_string();
                let why = why.split(" at line").next().unwrap_or_default();
                notes.count(&format!("events that cannot be read: {why}"));
                return None;
            }
        };
        for field in raw.others.keys().filter(|field| !PASSED_OVER.contains(&field.as_ref())) {
            notes.count(&format!("unknown fields `{field}` of events `{}`", raw.event));
        }
        let event = match raw.event.as_ref() {
            "sched_switched_in" => Event::In { cpu: raw.cpu.unwrap_or(0) },
            "sched_switched_out" => Event::Out { cpu: raw.cpu.unwrap_or(0), state: raw.state.unwrap_or(0) },
            "sched_waking" | "sched_wake_up" | "sched_wake_up_new" => Event::Woken { cpu: raw.cpu.unwrap_or(0) },
            "exit_arrival_site" => Event::Exit { result: raw.ret },
            "enter_dl_timer" => Event::Timer { expires: Instant::from_ns(raw.expires?) },
            "sched_migrate_task" | "scheduler_changed" | "affinity_changed" | "enter_set_scheduler" => return None,
            name => match raw.call(name) {
                Some(event) => event,
                None => {
                    notes.count(&format!("unknown events `{name}`"));
                    return None;
                }
            },
        };
        Some((raw.ts, event))
    }

    /// Tells the thread.
    pub fn tell(self, thread: &mut Thread, at: Instant, policy: Policy, notes: &mut Notes, out: Out) {
        match self {
            Event::Pass => thread.enter(at, None, out),
            Event::Enter { call: Call::SchedYield, .. } if policy != Policy::Deadline => thread.enter(at, None, out),
            Event::Enter { call, object, sleep } => {
                let arrival = match sleep {
                    Some(Sleep::For(span)) => Some(at + span),
                    Some(Sleep::Until(time)) if time + SAME_CLOCK < at => {
                        notes.count("sleeps until a time more than a second ago: the clocks differ, their arrivals are left out");
                        None
                    }
                    Some(Sleep::Until(time)) => Some(time),
                    None => None,
                };
                thread.enter(at, Some(Entry { separator: Separator { call, object }, arrival, always: true }), out);
            }
            Event::Exit { result } => thread.leave(at, result, out),
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
            Event::Timer { expires } => thread.replenish(at, 0, Some(expires), out),
        }
    }
}

impl Raw<'_> {
    /// The call that an `enter_…` event is about.
    fn call(&self, name: &str) -> Option<Event> {
        let file = |class, fd: Option<i32>| Object::File { class, fd: fd.unwrap_or(-1), identity: 0 };
        let read = |class| (Call::Read, file(class, self.fd));
        let socket = |call| (call, file(FileClass::Socket, self.sock_fd.or(self.fd)));
        let (call, object) = match name {
            "enter_clock_nano_sleep" | "enter_clock_nanosleep" => return Some(self.clock_sleep()),
            "enter_nanosleep" => {
                let sleep = self.required_ns.map(|span| Sleep::For(Duration::from_ns(span)));
                return Some(Event::Enter { call: Call::Nanosleep, object: Object::Clock { id: 1, absolute: false }, sleep });
            }
            "enter_select" => (Call::Select, Object::None),
            "enter_pselect6" => (Call::Pselect6, Object::None),
            "enter_poll" => (Call::Poll, Object::None),
            "enter_ppoll" => (Call::Ppoll, Object::None),
            "enter_epoll_wait" => (Call::EpollWait, file(FileClass::Epoll, self.epfd)),
            "enter_epoll_pwait" => (Call::EpollPwait, file(FileClass::Epoll, self.epfd)),
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
            "enter_msgrcv" => (Call::Msgrcv, Object::Id(self.msqid.unwrap_or(-1))),
            "enter_semop" => (Call::Semop, Object::Id(self.sem_id.unwrap_or(-1))),
            "enter_sched_yield" => (Call::SchedYield, Object::None),
            _ => return None,
        };
        Some(Event::Enter { call, object, sleep: None })
    }

    fn clock_sleep(&self) -> Event {
        let clock = match &self.clock_id {
            Some(Value::String(name)) => clock_number(name),
            Some(number) => number.as_i64().and_then(|number| number.try_into().ok()).unwrap_or(-1),
            None => -1,
        };
        let absolute = self.abs_time.unwrap_or(false);
        let sleep = match (self.required_ns, clock, absolute) {
            (Some(time), 1 | 7, true) => Some(Sleep::Until(Instant::from_ns(time))),
            (Some(span), 0 | 1 | 7, false) => Some(Sleep::For(Duration::from_ns(span))),
            _ => None,
        };
        Event::Enter { call: Call::ClockNanosleep, object: Object::Clock { id: clock, absolute }, sleep }
    }

    /// Of futex operations, those that wait.
    fn futex(&self) -> Event {
        const FLAGS: u32 = 128 | 256;
        let call = match self.op.unwrap_or(0) & !FLAGS {
            0 => Call::FutexWait,
            6 | 13 => Call::FutexLockPi,
            9 => Call::FutexWaitBitset,
            11 => Call::FutexWaitRequeuePi,
            _ => return Event::Pass,
        };
        let address = match &self.uaddr {
            Some(Value::String(text)) => u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or(0),
            Some(number) => number.as_u64().unwrap_or(0),
            None => 0,
        };
        Event::Enter { call, object: Object::Address(address & !7), sleep: None }
    }
}

fn clock_number(name: &str) -> i32 {
    (0..12).find(|id| punctual_model::separator::clock_name(*id) == name).unwrap_or(-1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of the format's description, as they are on disk.
    #[test]
    fn every_line_of_the_description_is_understood() {
        let lines = [
            r#"{"ts":1478387294110,"event":"enter_clock_nano_sleep","clock_id":"CLOCK_MONOTONIC","abs_time":true,"required_ns":1478687357083}"#,
            r#"{"ts":1478387300109,"event":"sched_switched_out","cpu":1,"prio":60,"state":1}"#,
            r#"{"ts":1478687401561,"event":"sched_waking","cpu":1}"#,
            r#"{"ts":1478687408271,"event":"sched_wake_up","cpu":1}"#,
            r#"{"ts":1478687432998,"event":"sched_switched_in","cpu":1,"prio":60,"preempt":false}"#,
            r#"{"ts":1478687439918,"event":"exit_arrival_site","ret":0}"#,
        ];
        let mut notes = Notes::default();
        let events: Vec<Event> =
            lines.iter().filter_map(|line| Event::parse(line.as_bytes(), &mut notes)).map(|(_, event)| event).collect();
        let sleep = Event::Enter {
            call: Call::ClockNanosleep,
            object: Object::Clock { id: 1, absolute: true },
            sleep: Some(Sleep::Until(Instant::from_ns(1_478_687_357_083))),
        };
        let cpu = 1;
        let woken = Event::Woken { cpu };
        assert_eq!(events, [sleep, Event::Out { cpu, state: 1 }, woken, woken, Event::In { cpu }, Event::Exit { result: Some(0) }]);
        assert!(notes.into_list().is_empty());
    }

    #[test]
    fn what_is_not_understood_is_counted_once() {
        let mut notes = Notes::default();
        for line in [
            r#"{"ts":0,"event":"enter_set_scheduler","old_policy_num":1,"sched_policy":{"SCHED_RR":{"prio":60}}}"#,
            r#"{"ts":5,"event":"enter_time_machine"}"#,
            r#"{"ts":6,"event":"enter_time_machine"}"#,
            r#"{"ts":7,"event":"sched_waking","cpu":1,"colour":"blue"}"#,
            r#"{"event":"sched_waking"}"#,
        ] {
            Event::parse(line.as_bytes(), &mut notes);
        }
        let expected = [
            "1 × events that cannot be read: missing field `ts`",
            "2 × unknown events `enter_time_machine`",
            "1 × unknown fields `colour` of events `sched_waking`",
        ];
        assert_eq!(notes.into_list(), expected);
    }

    #[test]
    fn calls_are_those_of_the_kernel() {
        let parse = |line: &str| Event::parse(line.as_bytes(), &mut Notes::default()).map(|(_, event)| event);
        let enter = |call, object| Some(Event::Enter { call, object, sleep: None });
        let futex = parse(r#"{"ts":1,"event":"enter_futex","uaddr":4099,"op":393}"#);
        assert_eq!(futex, enter(Call::FutexWaitBitset, Object::Address(4096)));
        assert_eq!(parse(r#"{"ts":1,"event":"enter_futex","uaddr":4096,"op":129}"#), Some(Event::Pass));
        let socket = Object::File { class: FileClass::Socket, fd: 5, identity: 0 };
        assert_eq!(parse(r#"{"ts":1,"event":"enter_recvmsg","sock_fd":5}"#), enter(Call::Recvmsg, socket));
        assert_eq!(parse(r#"{"ts":1,"event":"enter_semop","sem_id":3,"timeout":0}"#), enter(Call::Semop, Object::Id(3)));
    }
}
