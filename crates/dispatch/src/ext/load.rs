//! The scheduler in the kernel: loading it, and what is written to and read from its maps.

use super::interface::{self, NONE, Plain, Record, Task};
use super::lane::{Lane, Placed};
use super::skeleton::{OpenTtSkel, TtSkel, TtSkelBuilder};
use super::timer::Seen;
use crate::clock::Readable as _;
use crate::error::{Error, ErrorKind};
use libbpf_rs::btf::types::{Enum, Enum64, Func};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Btf, Link, MapCore, MapFlags, MapHandle, PrintLevel, RingBuffer, RingBufferBuilder};
use punctual_linux::scheduling::{self, Processors};
use punctual_model::{Duration, Instant};
use punctual_tables::guests;
use punctual_tables::rows::COMING;
use punctual_tables::{Clock, OnOverrun, Plan, Turn};
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::rc::Rc;

/// Room for the turns that may wait to be read, for each processor.
const RING_BYTES: u32 = 1 << 20;
const MOST_RING_BYTES: u32 = 1 << 26;

/// After this time without having run, the kernel takes a ready thread for forgotten, and ejects the
/// scheduler. It is the longest that the kernel allows.
pub const WATCHDOG_MS: u32 = 30_000;

/// Only threads that ask for it are the scheduler's, and all of them are, always: by default, the kernel
/// itself lets the last ready one run on, and one that ends.
const OPERATIONS: [&str; 3] = ["SCX_OPS_SWITCH_PARTIAL", "SCX_OPS_ENQ_LAST", "SCX_OPS_ENQ_EXITING"];

/// The same for one that it interrupts where it may not leave its processor: on PREEMPT_RT wherever it has a
/// lock, on other kernels hardly ever. The first kernels with sched_ext do not have it.
const MIGRATION_DISABLED: &str = "SCX_OPS_ENQ_MIGRATION_DISABLED";

/// What timers of perf events call.
const TIMED: &str = "perf_swevent_hrtimer";

/// The kernel's flags of which the scheduler makes use.
pub struct Flags {
    /// SCX_ENQ_IMMED; 0 before Linux 7.1.
    immediately: u64,
    operations: u64,
    /// Whether the program on timers can be loaded.
    has_timers: bool,
}

/// The scheduler, and what it says. Dropping it takes it out of the kernel: its threads are SCHED_OTHER then.
pub struct Loaded {
    skeleton: TtSkel<'static>,
    link: Option<Link>,
    timers: Option<Link>,
    ring: RingBuffer<'static>,
    inbox: Rc<RefCell<Vec<Record>>>,
}

/// Why the kernel has ended the scheduler.
pub type Ejected = String;

fn refused(what: &str, error: &libbpf_rs::Error) -> Error {
    Error::unsupported(&format!("sched_ext: {what}"), error)
}

impl Flags {
    /// Reads them from the kernel's own description.
    pub fn read() -> Result<Flags, String> {
        let btf = Btf::from_vmlinux()
            .map_err(|error| format!("this kernel has no type information (BTF): {error}"))?;
        let value = |all: &str, name: &str| {
            let is_it = |found: Option<&std::ffi::OsStr>| found.is_some_and(|found| found == name);
            if let Some(all) = btf.type_by_name::<Enum64<'_>>(all) {
                let member = all.iter().find(|member| is_it(member.name))?;
                return u64::try_from(member.value).ok();
            }
            let all = btf.type_by_name::<Enum<'_>>(all)?;
            let member = all.iter().find(|member| is_it(member.name))?;
            u64::try_from(member.value).ok()
        };
        let operation = |name: &str| value("scx_ops_flags", name);
        let operations = OPERATIONS.into_iter().map(operation).try_fold(0, |all, one| Some(all | one?));
        let operations =
            operations.ok_or("this kernel is built without sched_ext (CONFIG_SCHED_CLASS_EXT)")?;
        let migration_disabled = match operation(MIGRATION_DISABLED) {
            None if scheduling::is_preempt_rt() => {
                return Err(format!(
                    "this kernel's sched_ext lacks {MIGRATION_DISABLED}, without which threads that hold \
                     locks keep their processor on PREEMPT_RT"
                ));
            }
            found => found.unwrap_or(0),
        };
        let operations = operations | migration_disabled;
        let immediately = value("scx_enq_flags", "SCX_ENQ_IMMED").unwrap_or(0);
        let has_timers = btf.type_by_name::<Func<'_>>(TIMED).is_some();
        Ok(Flags { immediately, operations, has_timers })
    }
}

impl Loaded {
    /// Loads it for a table. It schedules nothing yet.
    pub fn new(plan: &Plan, flags: &Flags) -> Result<Loaded, Error> {
        let show = std::env::var_os("PUNCTUAL_LIBBPF_LOG").is_some();
        libbpf_rs::set_print(show.then_some((PrintLevel::Debug, |_, text| eprint!("{text}"))));
        // A process loads one or two, so its handle may live as long as it.
        let storage = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = TtSkelBuilder::default()
            .open(storage)
            .map_err(|error| refused("reading the scheduler", &error))?;
        set(&mut open, plan, flags)?;
        open.progs.tt_timer.set_autoload(flags.has_timers);
        open.progs.tt_cpu_release.set_autoload(flags.immediately == 0);
        let skeleton = open.load().map_err(|error| refused("loading the scheduler", &error))?;
        let inbox = Rc::new(RefCell::new(Vec::new()));
        let into = Rc::clone(&inbox);
        let mut ring = RingBufferBuilder::new();
        let take = move |bytes: &[u8]| {
            into.borrow_mut().extend(Record::read(bytes));
            0
        };
        ring.add(&skeleton.maps.records, take).map_err(|error| refused("mapping its records", &error))?;
        let ring = ring.build().map_err(|error| refused("mapping its records", &error))?;
        let loaded = Loaded { skeleton, link: None, timers: None, ring, inbox };
        loaded.write_plan(plan)?;
        Ok(loaded)
    }

    fn write_plan(&self, plan: &Plan) -> Result<(), Error> {
        let maps = &self.skeleton.maps;
        for ((number, lane), first) in plan.lanes.iter().enumerate().zip(firsts(plan)) {
            self.write_turns(first, &lane.turns)?;
            let idle = interface::Lane { until: u64::MAX, cpu: lane.processor, ..interface::Lane::default() };
            write(&maps.lanes, number as u32, idle.bytes())?;
            write(&maps.lane_of, lane.processor, &(number as u32 + 1).to_ne_bytes())?;
        }
        (0..tasks(plan)).try_for_each(|task| self.write_task(plan, task, 0, 0))
    }

    fn write_turns(&self, first: u32, turns: &[Turn]) -> Result<(), Error> {
        (first..).zip(turns).try_for_each(|(at, turn)| {
            let turn = interface::Turn {
                from: turn.from,
                to: turn.to,
                task: turn.job.map_or(NONE, |job| job.task),
                job: turn.job.map_or(0, |job| job.number),
                is_last: turn.job.is_some_and(|job| job.is_last).into(),
            };
            write(&self.skeleton.maps.turns, at, turn.bytes())
        })
    }

    /// Its processors, as they are kept here.
    pub fn lanes(&self, plan: &Plan) -> Vec<Lane> {
        let room = |number| Lane::room(plan, number);
        let mut free = plan.lanes.iter().map(|lane| lane.turns.len() as u32).sum();
        let lane = |(number, first)| {
            let from = free;
            free += room(number);
            Lane::new(plan, number, first, from..free)
        };
        firsts(plan).enumerate().map(lane).collect()
    }

    /// Changes of a lane's rows that it has not come to.
    pub fn under_way(&self, number: usize, published: u64) -> u64 {
        published.saturating_sub(self.lane(number).taken)
    }

    /// Writes rows for a lane, which does not know of them until [`Loaded::announce`].
    pub fn offer(&self, number: usize, published: u64, placed: &Placed) -> Result<(), Error> {
        placed.turns.iter().try_for_each(|(first, turns)| self.write_turns(*first, turns))?;
        let place = number * COMING + (published % COMING as u64) as usize;
        write(&self.skeleton.maps.offers, place as u32, placed.rows.bytes())
    }

    /// Has a lane know that so many changes of its rows are published.
    pub fn announce(&self, number: usize, published: u64) -> Result<(), Error> {
        write(&self.skeleton.maps.published, number as u32, &published.to_ne_bytes())
    }

    /// Lets the thread of a task that it is taken from run in idle slots until it is gone; `None`: no more.
    pub fn let_leave(&mut self, task: Option<usize>) {
        if let Some(shared) = self.skeleton.maps.bss_data.as_deref_mut() {
            let number = task.map_or(0, |task| task as u32 + 1);
            // SAFETY: a valid, aligned word in memory that is shared with the scheduler, which only reads it.
            unsafe { (&raw mut shared.leaving).write_volatile(number) };
        }
    }

    /// Gives a task its thread, which has used so much processor time; 0: none.
    pub fn write_task(&self, plan: &Plan, number: usize, tid: u32, used: u64) -> Result<(), Error> {
        // Guests end with their slots.
        let skips = plan.tasks.get(number).is_some_and(|task| task.on_overrun == OnOverrun::Skip).into();
        let task = Task { tid, skips, holder: NONE, is_new: 1, used, ended: used, ..Task::default() };
        write(&self.skeleton.maps.tasks, number as u32, task.bytes())
    }

    /// The first slot of the turn in which a task's thread slept last, if it has.
    pub fn slept(&self, task: usize) -> Option<u64> {
        let found = self.skeleton.maps.tasks.lookup(&(task as u32).to_ne_bytes(), MapFlags::ANY);
        let task = found.ok().flatten().and_then(|bytes| Task::read(&bytes))?;
        task.slept.checked_sub(1)
    }

    /// Names the task of a thread.
    pub fn know(&self, tid: u32, task: usize) -> Result<(), Error> {
        let map = &self.skeleton.maps.task_of;
        map.update(&tid.to_ne_bytes(), &(task as u32).to_ne_bytes(), MapFlags::ANY)
            .map_err(|error| refused("naming a thread", &error))
    }

    /// Forgets a thread.
    pub fn forget(&self, tid: u32) {
        // One that is not there is forgotten.
        let _ = self.skeleton.maps.task_of.delete(&tid.to_ne_bytes());
    }

    /// Whether a thread that is no task's has wholly been started; asked once for each.
    pub fn has_started(&self, tid: u32) -> bool {
        self.skeleton.maps.others.delete(&tid.to_ne_bytes()).is_ok()
    }

    /// Makes it the scheduler of SCHED_EXT.
    pub fn attach(&mut self) -> Result<(), Error> {
        let link = self.skeleton.maps.punctual_tt.attach_struct_ops();
        self.link = Some(link.map_err(|error| refused("enabling the scheduler", &error))?);
        Ok(())
    }

    /// What the kernel program reports of each lane's timer; empty where timers cannot be traced.
    pub fn trace_timers(&mut self, lanes: usize) -> Vec<Seen> {
        let Ok(link) = self.skeleton.progs.tt_timer.attach() else { return Vec::new() };
        self.timers = Some(link);
        let seen = |lane| Some(Seen::new(MapHandle::try_from(&self.skeleton.maps.timers).ok()?, lane));
        (0..lanes as u32).map_while(seen).collect()
    }

    /// Has it carry out the table from `start` on.
    pub fn begin(&mut self, plan: &Plan, lanes: &mut [Lane], start: Instant) -> Result<(), Error> {
        let now = plan.clock.now();
        for (number, lane) in lanes.iter_mut().enumerate() {
            let first = plan.decision(number, plan.next(number, now, start), start);
            let begun = interface::Lane {
                until: first.at.ns(),
                end: first.slot,
                rows: lane.table(),
                index: NONE,
                cpu: plan.lanes[number].processor,
                ..interface::Lane::default()
            };
            write(&self.skeleton.maps.lanes, number as u32, begun.bytes())?;
            // Nobody is to carry out the turns before.
            lane.unread.skip_to(first.slot);
        }
        let shared = self.skeleton.maps.bss_data.as_deref_mut().ok_or_else(lacks)?;
        // SAFETY: valid, aligned words in memory that is shared with the scheduler, which only reads them;
        // it reads `start` after it has seen `is_going`.
        unsafe {
            (&raw mut shared.start).write_volatile(start.ns());
            std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
            (&raw mut shared.is_going).write_volatile(true);
        }
        Ok(())
    }

    /// Hands on the records so far, those of each processor in order.
    pub fn drain(&mut self, each: impl FnMut(Record)) -> Result<(), Error> {
        self.ring.consume().map_err(|error| refused("reading its records", &error))?;
        self.inbox.borrow_mut().drain(..).for_each(each);
        Ok(())
    }

    fn lane(&self, number: usize) -> interface::Lane {
        let found = self.skeleton.maps.lanes.lookup(&(number as u32).to_ne_bytes(), MapFlags::ANY);
        found.ok().flatten().and_then(|bytes| interface::Lane::read(&bytes)).unwrap_or_default()
    }

    /// Records of a lane for which there was no room.
    pub fn lost(&self, number: usize) -> u64 {
        self.lane(number).lost
    }

    /// Whether the kernel has ended it, and why.
    pub fn ejected(&self) -> Option<Ejected> {
        let ending = &self.skeleton.maps.bss_data.as_deref()?.ending;
        // SAFETY: a valid, aligned word; the scheduler writes it last.
        let kind = unsafe { (&raw const ending.kind).read_volatile() };
        (kind != 0).then(|| {
            let said = [text(&ending.reason), text(&ending.message)];
            said.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(": ")
        })
    }

    /// Takes it out of the kernel.
    ///
    /// First the scheduler, then what traces timers: before Linux 7, the second waits until every thread has
    /// blocked or returned from the kernel, and with the scheduler some get no turn.
    pub fn detach(&mut self) {
        self.link = None;
        self.timers = None;
    }
}

/// Tells the timer of a lane from those of others.
pub fn mark(lane: usize) -> u64 {
    (u64::from(std::process::id()) << 32) + lane as u64
}

/// So long after a turn the kernel ends it, if nothing else has.
const AFTER_TURN: u64 = 4_000_000;

/// In ns.
fn longest_turn(plan: &Plan) -> u64 {
    let turns = plan.lanes.iter().flat_map(|lane| &lane.turns);
    turns.map(|turn| u64::from(turn.to - turn.from) * plan.slot.ns()).max().unwrap_or(0)
}

/// So long before they begin, turns are handed over at most, and the processor waits: on 7.2-rt the timer's
/// interrupt and the choice of the next thread take 5 µs in instructions.
const HANDOVER: u64 = 6_000;

/// The same for a table: never more than a small part of a slot.
pub fn handover(plan: &Plan) -> Duration {
    Duration::from_ns(HANDOVER.min(plan.slot.ns() / 16))
}

/// Writes the settings, and makes room.
fn set(open: &mut OpenTtSkel<'_>, plan: &Plan, flags: &Flags) -> Result<(), Error> {
    let settings = open.maps.rodata_data.as_deref_mut().ok_or_else(lacks)?;
    settings.slot_ns = plan.slot.ns();
    settings.task_count = tasks(plan) as u32;
    settings.is_tai = plan.clock == Clock::Tai;
    settings.longest_ns = longest_turn(plan).saturating_add(AFTER_TURN);
    settings.immediately = flags.immediately;
    settings.handover_ns = handover(plan).ns();
    settings.mark = mark(0);
    let operations = open.struct_ops.punctual_tt_mut();
    operations.flags = flags.operations;
    if flags.immediately != 0 {
        // Kernels that have both do what this is for by themselves.
        operations.cpu_release = std::ptr::null_mut();
    }
    operations.timeout_ms = WATCHDOG_MS;
    let (lanes, tasks) = (plan.lanes.len() as u32, tasks(plan) as u32);
    let places =
        |(number, lane): (usize, &punctual_tables::Lane)| lane.turns.len() as u32 + Lane::room(plan, number);
    let turns: u32 = plan.lanes.iter().enumerate().map(places).sum();
    let ring = RING_BYTES.saturating_mul(lanes.next_power_of_two()).min(MOST_RING_BYTES);
    let maps = &mut open.maps;
    let sizes = [
        maps.turns.set_max_entries(turns.max(1)),
        maps.lanes.set_max_entries(lanes.max(1)),
        maps.timers.set_max_entries(lanes.max(1)),
        maps.offers.set_max_entries(lanes.max(1) * COMING as u32),
        maps.published.set_max_entries(lanes.max(1)),
        maps.tasks.set_max_entries(tasks.max(1)),
        maps.lane_of.set_max_entries(Processors::MOST as u32),
        // A thread that has ended is forgotten after another has come.
        maps.task_of.set_max_entries(2 * tasks + 16),
        maps.records.set_max_entries(ring),
    ];
    sizes.into_iter().collect::<Result<(), _>>().map_err(|error| refused("making room", &error))
}

/// Tasks of the table, and guests.
pub fn tasks(plan: &Plan) -> usize {
    plan.tasks.len() + guests::MOST
}

/// Where the table's turns for each processor begin in the map.
fn firsts(plan: &Plan) -> impl Iterator<Item = u32> {
    let before = |first: &mut u32, lane: &punctual_tables::Lane| {
        let own = *first;
        *first += lane.turns.len() as u32;
        Some(own)
    };
    plan.lanes.iter().scan(0, before)
}

fn write(map: &impl MapCore, key: u32, value: &[u8]) -> Result<(), Error> {
    map.update(&key.to_ne_bytes(), value, MapFlags::ANY)
        .map_err(|error| refused("writing the table to the kernel", &error))
}

fn lacks() -> Error {
    Error::new(ErrorKind::Other, "the scheduler has no settings; this is a bug in the build of Punctual")
}

/// Text up to its NUL.
fn text(characters: &[i8]) -> String {
    let bytes: Vec<u8> = characters.iter().map(|it| *it as u8).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
