//! The events of lttng-modules, by what they mean.

use super::super::table::Machine;
use crate::ctf18::{Class, Event, Field, Reader};
use punctual_model::{Call, Instant};

/// System calls have names in LTTng's traces; their numbers here are those of any machine that has them all.
pub const MACHINE: Machine = Machine::X86;

/// LTTng writes priorities from this on: the kernel's own, less it.
const FIRST_ORDINARY: i64 = 100;

/// LTTng has no names for the system calls that are younger than its list; they come by number. From this one
/// on, numbers mean the same on all machines: below 424, 64-bit Arm has none.
const FIRST_COMMON: i64 = 295;

/// When and where something happened, and in which thread if the session adds that to all events (`lttng
/// add-context -k -t tid`).
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub at: Instant,
    pub cpu: u32,
    pub tid: Option<u32>,
}

/// A thread in a switch: its number, the kernel's priority, and its name.
#[derive(Clone, Debug)]
pub struct Switched {
    pub tid: u32,
    pub priority: i64,
    pub name: String,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Happening {
    Switch {
        from: Option<Switched>,
        state: i64,
        to: Option<Switched>,
    },
    Wake {
        tid: u32,
        is_new: bool,
        /// `sched_waking`, which comes before the others.
        begins: bool,
    },
    Enter(Box<Enter>),
    Leave {
        result: Option<i64>,
    },
    /// To another processor.
    Move {
        tid: u32,
    },
    Lend {
        tid: u32,
        before: i64,
        priority: i64,
    },
    /// The kernel accounts for the time that a thread has run.
    Account {
        tid: u32,
        ran: u64,
    },
    Fork {
        pid: u32,
        tid: u32,
    },
    Exec {
        tid: u32,
        name: String,
    },
    Exit {
        tid: u32,
    },
    Interrupt {
        is_entry: bool,
    },
    /// A thread as it was when the trace began.
    Known {
        pid: u32,
        tid: u32,
        name: String,
    },
}

/// A system call that was entered.
#[derive(Clone, Copy, Debug)]
pub enum Enter {
    /// One that may separate jobs, with its arguments.
    Call {
        number: i64,
        arguments: [u64; 6],
    },
    Restart,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Switch,
    Waking,
    Wake,
    WakeNew,
    Enter(Option<i64>),
    EnterByNumber,
    Restart,
    Leave,
    Move,
    Lend,
    Account,
    Fork,
    Exec,
    Exit,
    InterruptEntry,
    InterruptExit,
    Known,
}

#[derive(Clone, Debug)]
struct Kind {
    name: Name,
    fields: [Option<Field>; 7],
    /// The thread, in its context.
    tid: Option<Field>,
}

/// All kinds of events of the kernel's traces.
pub struct Kinds {
    kinds: Vec<Option<Kind>>,
    names: Vec<String>,
}

/// The names of the parameters of calls that separate jobs, in order: the kernel's, where LTTng has none of
/// its own.
const PARAMETERS: &[(&str, &[&str])] = &[
    ("clock_nanosleep", &["which_clock", "flags", "rqtp", "rmtp"]),
    ("nanosleep", &["rqtp", "rmtp"]),
    ("select", &["n", "inp", "outp", "exp", "tvp"]),
    ("pselect6", &["n", "inp", "outp", "exp", "tvp", "sig"]),
    ("poll", &["ufds", "nfds", "timeout_msecs"]),
    ("ppoll", &["ufds", "nfds", "tsp", "sigmask", "sigsetsize"]),
    ("epoll_wait", &["epfd", "events", "maxevents", "timeout"]),
    ("epoll_pwait", &["epfd", "events", "maxevents", "timeout", "sigmask", "sigsetsize"]),
    ("epoll_pwait2", &["epfd", "events", "maxevents", "timeout", "sigmask", "sigsetsize"]),
    ("read", &["fd", "buf", "count"]),
    ("readv", &["fd", "vec", "vlen"]),
    ("preadv", &["fd", "vec", "vlen", "pos_l", "pos_h"]),
    ("preadv2", &["fd", "vec", "vlen", "pos_l", "pos_h", "flags"]),
    ("accept", &["fd", "upeer_sockaddr", "upeer_addrlen"]),
    ("accept4", &["fd", "upeer_sockaddr", "upeer_addrlen", "flags"]),
    ("recvfrom", &["fd", "ubuf", "size", "flags", "addr", "addr_len"]),
    ("recvmsg", &["fd", "msg", "flags"]),
    ("recvmmsg", &["fd", "mmsg", "vlen", "flags", "timeout"]),
    ("futex", &["uaddr", "op", "val", "utime", "uaddr2", "val3"]),
    ("futex_wait", &["uaddr", "val", "mask", "flags", "timeout", "clockid"]),
    ("futex_waitv", &["waiters", "nr_futexes", "flags", "timeout", "clockid"]),
    ("rt_sigtimedwait", &["uthese", "uinfo", "uts", "sigsetsize"]),
    ("rt_sigsuspend", &["unewset", "sigsetsize"]),
    ("pause", &[]),
    ("mq_timedreceive", &["mqdes", "u_msg_ptr", "msg_len", "u_msg_prio", "u_abs_timeout"]),
    ("msgrcv", &["msqid", "msgp", "msgsz", "msgtyp", "msgflg"]),
    ("semop", &["semid", "tsops", "nsops"]),
    ("semtimedop", &["semid", "tsops", "nsops", "timeout"]),
    ("wait4", &["upid", "stat_addr", "options", "ru"]),
    ("waitid", &["which", "upid", "infop", "options", "ru"]),
    ("sched_yield", &[]),
    ("io_getevents", &["ctx_id", "min_nr", "nr", "events", "timeout"]),
    ("io_pgetevents", &["ctx_id", "min_nr", "nr", "events", "timeout", "usig"]),
    ("io_uring_enter", &["fd", "to_submit", "min_complete", "flags", "argp", "argsz"]),
];

impl Kinds {
    /// Of all events of a reader.
    pub fn new(reader: &Reader) -> Kinds {
        let of_kernel = |class: &Class| reader.env(class.trace, "domain") == Some("kernel");
        let kind = |class: &Class| {
            let (name, fields) = if of_kernel(class) { kind(class) } else { None }?;
            Some(Kind { name, fields, tid: class.context("tid") })
        };
        let names = reader.classes().iter().filter(|class| of_kernel(class)).map(|class| class.name.clone());
        Kinds { kinds: reader.classes().iter().map(kind).collect(), names: names.collect() }
    }

    pub fn has(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    pub fn has_switches(&self) -> bool {
        self.has("sched_switch")
    }

    /// A field that switches need and that theirs lack.
    pub fn missing_field(&self, reader: &Reader) -> Option<&'static str> {
        const NEEDED: [&str; 5] = ["prev_tid", "prev_prio", "prev_state", "next_tid", "next_prio"];
        let classes = reader.classes().iter().zip(&self.kinds);
        let mut switches = classes
            .filter(|(_, kind)| kind.as_ref().is_some_and(|kind| kind.name == Name::Switch))
            .map(|(class, _)| class);
        switches.find_map(|class| NEEDED.into_iter().find(|name| class.field(name).is_none()))
    }

    pub fn has_calls(&self) -> bool {
        self.names.iter().any(|name| name.starts_with("syscall_entry_"))
    }

    /// Whether events of a class may mean something here.
    pub fn is_read(&self, class: usize) -> bool {
        self.kinds[class].is_some()
    }

    /// What an event means; `None` if it says nothing here.
    #[inline]
    pub fn happening(&self, event: &Event<'_>) -> Option<(Seen, Happening)> {
        let kind = self.kinds[event.class].as_ref()?;
        let happening = kind.happening(event)?;
        let tid = event.signed(kind.tid).and_then(|tid| u32::try_from(tid).ok());
        Some((Seen { at: event.at, cpu: event.cpu.unwrap_or(0), tid }, happening))
    }
}

fn kind(class: &Class) -> Option<(Name, [Option<Field>; 7])> {
    let (name, wanted): (Name, &[&str]) = match class.name.as_str() {
        "sched_switch" => (
            Name::Switch,
            &["prev_tid", "prev_prio", "prev_state", "prev_comm", "next_tid", "next_prio", "next_comm"],
        ),
        "sched_waking" => (Name::Waking, &["tid"]),
        "sched_wakeup" => (Name::Wake, &["tid"]),
        "sched_wakeup_new" => (Name::WakeNew, &["tid"]),
        "sched_migrate_task" => (Name::Move, &["tid"]),
        "sched_pi_setprio" => (Name::Lend, &["tid", "oldprio", "newprio"]),
        "sched_stat_runtime" => (Name::Account, &["tid", "runtime"]),
        "sched_process_fork" => (Name::Fork, &["child_pid", "child_tid"]),
        "sched_process_exec" => (Name::Exec, &["tid", "filename"]),
        "sched_process_exit" => (Name::Exit, &["tid"]),
        "irq_handler_entry" | "irq_softirq_entry" | "timer_hrtimer_expire_entry" => {
            (Name::InterruptEntry, &[])
        }
        "irq_handler_exit" | "irq_softirq_exit" | "timer_hrtimer_expire_exit" => (Name::InterruptExit, &[]),
        "lttng_statedump_process_state" => (Name::Known, &["pid", "tid", "name"]),
        other => return call(class, other),
    };
    let mut fields = [None; 7];
    fields.iter_mut().zip(wanted).for_each(|(field, name)| *field = class.field(name));
    Some((name, fields))
}

/// A system call's entry or exit.
fn call(class: &Class, name: &str) -> Option<(Name, [Option<Field>; 7])> {
    let mut fields = [None; 7];
    if name.starts_with("syscall_exit_") {
        fields[0] = class.field("ret");
        return Some((Name::Leave, fields));
    }
    let name = name.strip_prefix("syscall_entry_")?;
    if name == "restart_syscall" {
        return Some((Name::Restart, fields));
    }
    if name == "unknown" {
        let names = ["id", "args.0", "args.1", "args.2", "args.3", "args.4", "args.5"];
        return Some((Name::EnterByNumber, names.map(|name| class.field(name))));
    }
    let parameters = PARAMETERS.iter().find(|(known, _)| *known == name).map(|(_, parameters)| *parameters);
    let Some(parameters) = parameters else { return Some((Name::Enter(None), fields)) };
    fields.iter_mut().zip(parameters).for_each(|(field, name)| *field = class.field(name));
    Some((Name::Enter(number(name)), fields))
}

/// The number of a call by its name.
fn number(name: &str) -> Option<i64> {
    match name {
        "futex" => Some(MACHINE.futex_number()),
        _ => Call::from_name(name)?.number_on_x86_64().map(i64::from),
    }
}

impl Kind {
    fn happening(&self, event: &Event<'_>) -> Option<Happening> {
        let number = |place: usize| event.signed(self.fields[place]);
        let thread =
            |place: usize| number(place).and_then(|tid| u32::try_from(tid).ok()).filter(|tid| *tid > 0);
        let text = |place: usize| event.text(self.fields[place]).unwrap_or_default();
        let switched = |tid: usize, priority: usize, name: usize| {
            let priority = number(priority)? + FIRST_ORDINARY;
            Some(Switched { tid: thread(tid)?, priority, name: text(name) })
        };
        Some(match self.name {
            Name::Switch => {
                Happening::Switch { from: switched(0, 1, 3), state: number(2)?, to: switched(4, 5, 6) }
            }
            Name::Waking => Happening::Wake { tid: thread(0)?, is_new: false, begins: true },
            Name::Wake => Happening::Wake { tid: thread(0)?, is_new: false, begins: false },
            Name::WakeNew => Happening::Wake { tid: thread(0)?, is_new: true, begins: false },
            Name::Enter(None) => Happening::Enter(Box::new(Enter::Other)),
            Name::Enter(Some(call)) => {
                // Which of them LTTng does not write, points somewhere.
                let argument =
                    |place: usize| event.unsigned(self.fields[place]).unwrap_or(u64::from(place > 0));
                let arguments = [0, 1, 2, 3, 4, 5].map(argument);
                Happening::Enter(Box::new(Enter::Call { number: call, arguments }))
            }
            Name::EnterByNumber => {
                let argument = |place: usize| event.unsigned(self.fields[place]).unwrap_or_default();
                let arguments = [1, 2, 3, 4, 5, 6].map(argument);
                let call = number(0).filter(|number| *number >= FIRST_COMMON);
                let entered = call.map_or(Enter::Other, |number| Enter::Call { number, arguments });
                Happening::Enter(Box::new(entered))
            }
            Name::Restart => Happening::Enter(Box::new(Enter::Restart)),
            Name::Leave => Happening::Leave { result: number(0) },
            Name::Move => Happening::Move { tid: thread(0)? },
            Name::Lend => Happening::Lend {
                tid: thread(0)?,
                before: number(1)? + FIRST_ORDINARY,
                priority: number(2)? + FIRST_ORDINARY,
            },
            Name::Account => Happening::Account { tid: thread(0)?, ran: event.unsigned(self.fields[1])? },
            Name::Fork => Happening::Fork { pid: thread(0)?, tid: thread(1)? },
            Name::Exec => {
                let path = text(1);
                let name: String = path.rsplit('/').next().unwrap_or_default().chars().take(15).collect();
                Happening::Exec { tid: thread(0)?, name }
            }
            Name::Exit => Happening::Exit { tid: thread(0)? },
            Name::InterruptEntry => Happening::Interrupt { is_entry: true },
            Name::InterruptExit => Happening::Interrupt { is_entry: false },
            Name::Known => Happening::Known { pid: thread(0)?, tid: thread(1)?, name: text(2) },
        })
    }
}
