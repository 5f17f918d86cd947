//! How late slots begin, and what a change of slots costs: a table that is dispatched by sched_ext and from
//! user space, beside SCHED_RR at the kernel's tick and a cyclic executive. `make bench-tt` runs it here and
//! in the lab, where an instruction takes a nanosecond.
//!
//! The threads themselves measure: each reads the clock again and again, and notes the stretches in which it
//! ran. The first reading of a stretch is the first instruction; between the last reading of one thread and
//! the first of the next lies what the change has cost.

use punctual_bench::{Error, document};
use punctual_model::table::{Clock, Method, OnOverrun, Table, TableJob, TableRun, TableTask};
use punctual_model::{Duration, TimingModel};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const SLOT: u64 = 1_000_000;
/// Threads that share a processor, each with every fourth slot.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// Slots that are measured.
const SLOTS: u64 = 5_000;
/// From the call of `punctual tt run` to the first slot: it takes a while to start where instructions count.
const LEAD: u64 = 2_500_000_000;
/// Slots begin so long after a whole millisecond, at which the kernel's tick comes.
const PHASE: u64 = 400_000;
/// So long before it, the threads begin.
const READY: u64 = 200_000_000;
/// A thread that did not read the clock for so long did not run.
const GAP: u64 = 1_500;
/// The most stretches that a thread notes.
const MOST: usize = 1 << 16;
/// The processor of the table.
const PROCESSOR: u32 = 1;
/// The priority of the cyclic executive and of threads of SCHED_RR.
const PRIORITY: i32 = 80;

/// A thread ran from here to here.
#[derive(Clone, Copy)]
struct Stretch {
    thread: usize,
    from: u64,
    to: u64,
}

/// What was measured of one way to change slots.
struct Row {
    name: String,
    /// From the beginning of a slot to the first instruction of its owner, by slot.
    late: Vec<(u64, u64)>,
    /// From the last instruction of a slot's owner to the first one of the next slot's.
    cost: Vec<u64>,
    /// Slots in which the owner never ran, or another thread did.
    wrong: u64,
}

fn clock() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is valid.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn sleep_until(at: u64) {
    let time = libc::timespec { tv_sec: (at / 1_000_000_000) as i64, tv_nsec: (at % 1_000_000_000) as i64 };
    // SAFETY: the place is valid; nothing is written.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &time, std::ptr::null_mut()) };
}

/// Puts a thread on a processor, with a policy.
fn enter(tid: i32, processor: u32, policy: i32, priority: i32) -> Result<(), Error> {
    // SAFETY: all zeros are a value of this structure of integers; the places are valid.
    let results = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor as usize, &mut set);
        let parameters = libc::sched_param { sched_priority: priority };
        [
            libc::sched_setaffinity(tid, size_of_val(&set), &set),
            libc::sched_setscheduler(tid, policy, &parameters),
        ]
    };
    if results == [0, 0] { Ok(()) } else { Err(std::io::Error::last_os_error().into()) }
}

/// Threads with these names that read the clock from an instant until SIGTERM, then write `FILE`.
fn load(file: &Path, begin: u64, names: &[String]) -> Result<(), Error> {
    static STOP: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    let mut signals = std::mem::MaybeUninit::uninit();
    // SAFETY: the first call makes a value of it; the places are valid.
    unsafe {
        libc::sigemptyset(signals.as_mut_ptr());
        libc::sigaddset(signals.as_mut_ptr(), libc::SIGTERM);
        libc::sigaddset(signals.as_mut_ptr(), libc::SIGINT);
        libc::pthread_sigmask(libc::SIG_BLOCK, signals.as_ptr(), std::ptr::null_mut());
        libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE);
    }
    let spin = move || {
        let mut stretches = vec![(1, 1); MOST];
        sleep_until(begin);
        let (mut count, mut from, mut last) = (0, clock(), clock());
        while !STOP.load(std::sync::atomic::Ordering::Relaxed) {
            let now = clock();
            if now - last > GAP {
                if count < MOST {
                    stretches[count] = (from, last);
                    count += 1;
                }
                from = now;
            }
            last = now;
        }
        stretches.truncate(count);
        stretches
    };
    let threads: Vec<_> = names
        .iter()
        .map(|name| std::thread::Builder::new().name(name.clone()).spawn(spin))
        .collect::<Result<_, _>>()?;
    let mut signal = 0;
    // SAFETY: the set was made above.
    unsafe { libc::sigwait(signals.as_ptr(), &mut signal) };
    STOP.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut text = String::new();
    for (number, thread) in threads.into_iter().enumerate() {
        for (from, to) in thread.join().map_err(|_| "a thread panicked")? {
            let _ = writeln!(text, "{number} {from} {to}");
        }
    }
    Ok(fs::write(file, text)?)
}

/// What the threads noted, in order.
fn stretches(file: &Path) -> Result<Vec<Stretch>, Error> {
    let mut all = Vec::new();
    for line in fs::read_to_string(file)?.lines() {
        let mut words = line.split(' ').map(str::parse::<u64>);
        let mut next = || words.next().ok_or("a line is short")?.map_err(|_| "a line is no number");
        all.push(Stretch { thread: next()? as usize, from: next()?, to: next()? });
    }
    all.sort_by_key(|stretch| stretch.from);
    Ok(all)
}

/// A table of four slots for each processor, one for each thread; of two threads and as many idle slots where
/// it is `half`.
fn table(processors: &[u32], half: bool) -> Table {
    let names = |place: usize| move |slot: usize| format!("{}{place}", NAMES[slot]);
    let slots: Vec<usize> = if half { vec![0, 2] } else { vec![0, 1, 2, 3] };
    let task = |name: String| TableTask {
        name,
        thread: None,
        period: 4,
        wcet: 1,
        offset: 0,
        deadline: 4,
        processors: Vec::new(),
        exclusive: false,
        after: Vec::new(),
        on_overrun: OnOverrun::Continue,
    };
    let (mut tasks, mut runs) = (Vec::new(), Vec::new());
    for (place, &processor) in processors.iter().enumerate() {
        for &slot in &slots {
            let from = slot as u64;
            runs.push(TableRun { processor, from, to: from + 1, job: tasks.len() });
            tasks.push(task(names(place)(slot)));
        }
    }
    let job = |task| TableJob { task, release: 0, deadline: 4, slots: 1 };
    Table {
        slot_ns: Duration::from_ns(SLOT),
        slots: 4,
        clock: Clock::Monotonic,
        processors: processors.to_vec(),
        method: Method::Other,
        jobs: (0..tasks.len()).map(job).collect(),
        tasks,
        runs,
    }
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder, Error> {
        let path = std::env::temp_dir().join(format!("punctual-bench-tt-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn start_load(log: &Path, begin: u64, names: &[String]) -> Result<Child, Error> {
    let mut command = Command::new(std::env::current_exe()?);
    Ok(command.arg("load").arg(log).arg(begin.to_string()).args(names).spawn()?)
}

fn end_load(mut child: Child) -> Result<(), Error> {
    // SAFETY: no memory is involved, and the child has not been waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    if child.wait()?.success() { Ok(()) } else { Err("a load failed".into()) }
}

/// A table that was dispatched.
struct Dispatched {
    /// When it began.
    start: u64,
    /// Who ran when.
    all: Vec<Stretch>,
    table: Table,
    /// Processor time of the dispatcher beside the table's processors, in a thousandth of the time.
    beside: u64,
}

/// Dispatches a table.
fn dispatch(dispatcher: &str, processors: &[u32], half: bool) -> Result<Dispatched, Error> {
    let folder = Folder::new()?;
    let (file, log) = (folder.0.join("bench.table.json"), folder.0.join("log"));
    let table = table(processors, half);
    let names: Vec<String> = table.tasks.iter().map(|task| task.name.clone()).collect();
    let model = TimingModel { table: Some(table.clone()), ..TimingModel::new("CLOCK_MONOTONIC") };
    fs::write(&file, model.to_json())?;
    let start = (clock() + LEAD).next_multiple_of(SLOT) + PHASE;
    // Until then the threads leave the processors to what has to be set up.
    let load = start_load(&log, start - READY, &names)?;
    let threads = threads_of(load.id(), &names)?;
    let punctual = std::env::var_os("PUNCTUAL").unwrap_or_else(|| OsString::from("punctual"));
    let mut command = Command::new(punctual);
    command.args(["tt", "run", "--quiet", "--dispatcher", dispatcher]).arg(&file);
    command.args(["--start", &start.to_string(), "--for", &(SLOTS * SLOT / 1_000_000_000).to_string()]);
    for (name, tid) in names.iter().zip(&threads) {
        command.args(["--thread", &format!("{name}={tid}")]);
    }
    let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().and_then(|mut child| {
        let beside = used_beside(child.id(), start);
        child.wait().map(|ended| (ended, beside))
    });
    end_load(load)?;
    let (ended, beside) = ended?;
    match ended.code() {
        Some(0) => Ok(Dispatched { start, all: stretches(&log)?, table, beside }),
        code => Err(format!("punctual tt run ended with {code:?}").into()),
    }
}

/// How busy a dispatcher is beside the table's processors, in a thousandth of the time, while a table runs
/// that begins at `start`. Waits for that.
fn used_beside(pid: u32, start: u64) -> u64 {
    let used = || -> u64 {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let read =
            |task: &fs::DirEntry, name: &str| fs::read_to_string(task.path().join(name)).unwrap_or_default();
        // Those that are called like this are on the table's processors.
        let beside = tasks.filter(|task| !read(task, "comm").starts_with("tt/"));
        let used = |task: fs::DirEntry| read(&task, "schedstat").split(' ').next()?.parse::<u64>().ok();
        beside.filter(|task| !read(task, "comm").starts_with("tt-plug")).filter_map(used).sum()
    };
    sleep_until(start + SLOTS * SLOT / 5);
    let (from, first) = (clock(), used());
    sleep_until(start + SLOTS * SLOT * 4 / 5);
    let (to, last) = (clock(), used());
    last.saturating_sub(first) * 1_000 / (to - from).max(1)
}

/// Keeps the first processor busy for so many thousandths of the time until told to stop, every 20 ms, as a
/// dispatcher does.
fn keep_busy(share: u64) -> (std::sync::Arc<std::sync::atomic::AtomicBool>, std::thread::JoinHandle<()>) {
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let told = std::sync::Arc::clone(&stop);
    let busy = std::thread::spawn(move || {
        while !told.load(std::sync::atomic::Ordering::Relaxed) {
            // Prime, so that it comes at every phase.
            std::thread::sleep(std::time::Duration::from_nanos(19_999_999));
            let until = clock() + share * 20_000;
            while clock() < until {}
        }
    });
    (stop, busy)
}

/// The numbers of a process's threads with these names.
fn threads_of(pid: u32, names: &[String]) -> Result<Vec<u32>, Error> {
    let find = |name: &String| -> Option<u32> {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
        let mut found = tasks.filter(|task| {
            fs::read_to_string(task.path().join("comm")).is_ok_and(|found| found.trim() == name)
        });
        found.next()?.file_name().to_str()?.parse().ok()
    };
    for _ in 0..500 {
        let found: Vec<u32> = names.iter().filter_map(find).collect();
        if found.len() == names.len() {
            return Ok(found);
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    Err("the threads of the load did not start".into())
}

/// How late slots of a processor began, and what changes cost.
fn measured(name: &str, start: u64, all: &[Stretch], table: &Table, processor: u32) -> Row {
    let owner = |slot: u64| {
        let job = table.job_at(processor, slot % table.slots);
        job.map(|job| table.jobs[job].task)
    };
    let own: Vec<&Stretch> = all
        .iter()
        .filter(|stretch| {
            table.runs_on(processor).iter().any(|run| table.jobs[run.job].task == stretch.thread)
        })
        .collect();
    // The first slots find nobody to take the processor from; the last one may be cut off.
    let (first, last) = (4, SLOTS - 4);
    let mut row = Row { name: name.to_owned(), late: Vec::new(), cost: Vec::new(), wrong: 0 };
    for slot in first..last {
        let Some(task) = owner(slot) else { continue };
        let (begin, end) = (start + slot * SLOT, start + (slot + 1) * SLOT);
        // The owner's first stretch that begins in the slot.
        let from = own.partition_point(|stretch| stretch.from < begin);
        let within = own[from..].iter().take_while(|stretch| stretch.from < end);
        match within.clone().next() {
            Some(stretch) if stretch.thread == task => row.late.push((slot, stretch.from - begin)),
            _ => row.wrong += 1,
        }
        row.wrong += u64::from(within.clone().any(|stretch| stretch.thread != task));
    }
    row.cost = costs(&own, start + first * SLOT, start + last * SLOT);
    row
}

/// From the last reading of one thread to the first one of another.
fn costs(own: &[&Stretch], from: u64, until: u64) -> Vec<u64> {
    let within = |stretch: &&&Stretch| (from..until).contains(&stretch.from);
    let own: Vec<&&Stretch> = own.iter().filter(within).collect();
    let changes = own.windows(2).filter(|pair| pair[0].thread != pair[1].thread);
    let cost = |pair: &[&&Stretch]| pair[1].from.saturating_sub(pair[0].to);
    // Where a slot lies between them, nobody had it.
    changes.map(cost).filter(|cost| *cost < SLOT / 2).collect()
}

/// Threads of SCHED_RR change at the kernel's tick: how late after it, and what changes cost.
fn round_robin() -> Result<Row, Error> {
    const SLICE: &str = "/proc/sys/kernel/sched_rr_timeslice_ms";
    const THROTTLE: &str = "/proc/sys/kernel/sched_rt_runtime_us";
    let folder = Folder::new()?;
    let log = folder.0.join("log");
    let before = [SLICE, THROTTLE].map(|path| (path, fs::read_to_string(path).unwrap_or_default()));
    let (period, origin) = tick()?;
    fs::write(SLICE, "1")?;
    fs::write(THROTTLE, "-1")?;
    let names = NAMES.map(str::to_owned);
    let measured = (|| -> Result<(), Error> {
        let load = start_load(&log, 0, &names)?;
        for tid in threads_of(load.id(), &names)? {
            enter(tid as i32, PROCESSOR, libc::SCHED_RR, PRIORITY)?;
        }
        std::thread::sleep(std::time::Duration::from_nanos(SLOTS * period));
        end_load(load)
    })();
    for (path, text) in &before {
        fs::write(path, text.trim())?;
    }
    measured?;
    let all = stretches(&log)?;
    let own: Vec<&Stretch> = all.iter().collect();
    let begin = all.first().map_or(0, |stretch| stretch.from) + 200_000_000;
    let changes = own.windows(2).filter(|pair| pair[0].thread != pair[1].thread && pair[1].from >= begin);
    let late: Vec<(u64, u64)> = changes
        .map(|pair| pair[1].from.wrapping_sub(origin))
        .map(|since| (since / period, since % period))
        .collect();
    let name = format!("SCHED_RR, at the tick of {} ms", period / 1_000_000);
    Ok(Row { name, late, cost: costs(&own, begin, u64::MAX), wrong: 0 })
}

/// The period of the processor's tick, and one instant of it, from the kernel's list of timers.
fn tick() -> Result<(u64, u64), Error> {
    // The tick is off on an idle processor, so something has to run there.
    let busy = std::thread::spawn(|| {
        enter(0, PROCESSOR, libc::SCHED_OTHER, 0).map_err(|error| error.to_string())?;
        let until = clock() + 300_000_000;
        while clock() < until {}
        Ok::<(), String>(())
    });
    std::thread::sleep(std::time::Duration::from_millis(100));
    let list = fs::read_to_string("/proc/timer_list")?;
    busy.join().map_err(|_| "a thread panicked")??;
    let section = list.split("\ncpu: ").find(|part| part.starts_with(&format!("{PROCESSOR}\n")));
    let mut lines = section.ok_or("the kernel lists no timers of the processor")?.lines();
    lines.by_ref().find(|line| line.contains(", tick_")).ok_or("the kernel lists no tick")?;
    let expires = lines
        .next()
        .and_then(|line| line.trim().strip_prefix("# expires at ")?.split('-').next()?.parse::<u64>().ok());
    let period = length_of_tick().ok_or("the kernel does not say how long its tick is")?;
    Ok((period, expires.ok_or("the kernel does not say when its tick is")?))
}

/// The length of a tick, as the list counts them.
fn length_of_tick() -> Option<u64> {
    let look = || {
        let list = fs::read_to_string("/proc/timer_list").ok()?;
        let after = |text: &str| {
            let at = list.find(text)? + text.len();
            let digits = list[at..].trim_start().split(|other: char| !other.is_ascii_digit()).next()?;
            digits.parse::<u64>().ok()
        };
        Some((after("now at ")?, after("jiffies:")?))
    };
    let (from, first) = look()?;
    std::thread::sleep(std::time::Duration::from_millis(500));
    let (to, last) = look()?;
    let found = (to - from) / (last - first).max(1);
    // As kernels are built.
    [100, 250, 300, 1_000].map(|hz: u64| 1_000_000_000 / hz).into_iter().min_by_key(|ns| ns.abs_diff(found))
}

/// One thread of SCHED_FIFO that sleeps until each slot, works for most of it, and sleeps again.
fn cyclic_executive() -> Result<Row, Error> {
    let run = std::thread::spawn(|| -> Result<Vec<(u64, u64)>, String> {
        enter(0, PROCESSOR, libc::SCHED_FIFO, PRIORITY).map_err(|error| error.to_string())?;
        let mut late = vec![(0, 0); SLOTS as usize];
        let start = (clock() + 50_000_000).next_multiple_of(SLOT) + PHASE;
        for slot in 0..SLOTS {
            let at = start + slot * SLOT;
            sleep_until(at);
            let mut now = clock();
            late[slot as usize] = (slot, now - at);
            // So much is left that it sleeps in time, as a cyclic executive has to.
            while now < at + SLOT * 4 / 5 {
                now = clock();
            }
        }
        Ok(late.split_off(4))
    });
    let late = run.join().map_err(|_| "a thread panicked")??;
    Ok(Row { name: "cyclic executive, clock_nanosleep".into(), late, cost: Vec::new(), wrong: 0 })
}

/// Half, 99 of 100, and the greatest.
fn quantiles(values: &mut [u64]) -> [Option<u64>; 3] {
    values.sort_unstable();
    let at = |share: f64| values.get(((values.len() as f64 * share) as usize).min(values.len().max(1) - 1));
    [at(0.5), at(0.99), at(1.0)].map(Option::<&u64>::copied)
}

fn us(value: Option<u64>) -> String {
    value.map_or_else(|| "—".into(), |ns| format!("{:.1}", ns as f64 / 1e3))
}

impl Row {
    fn cells(&self) -> [String; 9] {
        let mut late: Vec<u64> = self.late.iter().map(|late| late.1).collect();
        let [p50, p99, max] = quantiles(&mut late);
        let [cost50, cost99, cost_max] = quantiles(&mut self.cost.clone());
        [
            self.name.clone(),
            late.len().to_string(),
            us(p50),
            us(p99),
            us(max),
            us(cost50),
            us(cost99),
            us(cost_max),
            self.wrong.to_string(),
        ]
    }
}

const HEAD: [&str; 9] = [
    "dispatch",
    "slots",
    "first instruction, µs: p50",
    "p99",
    "greatest",
    "change of threads, µs: p50",
    "p99",
    "greatest",
    "wrong or none",
];

const SKEW_HEAD: [&str; 5] =
    ["dispatch on two processors", "slots", "difference of first instructions, µs: p50", "p99", "greatest"];

/// The difference of two processors at the same slots.
fn skew(name: &str, one: &Row, other: &Row) -> [String; 5] {
    let mut differences: Vec<u64> = Vec::new();
    let mut rest = other.late.iter().peekable();
    for &(slot, late) in &one.late {
        while rest.next_if(|other| other.0 < slot).is_some() {}
        if let Some(other) = rest.next_if(|other| other.0 == slot) {
            differences.push(late.abs_diff(other.1));
        }
    }
    let count = differences.len().to_string();
    let [p50, p99, max] = quantiles(&mut differences).map(us);
    [name.to_owned(), count, p50, p99, max]
}

/// Which of the ways are there.
fn rows(dispatchers: &[String]) -> Result<Vec<Row>, Error> {
    // Threads of SCHED_RR would keep this one from their processor.
    enter(0, 0, libc::SCHED_OTHER, 0)?;
    let (mut rows, mut busiest) = (Vec::new(), 0);
    for dispatcher in dispatchers {
        let name = if dispatcher == "sched-ext" { "sched_ext" } else { "user space" };
        eprintln!("bench-tt: {name} …");
        let it = dispatch(dispatcher, &[PROCESSOR], false)?;
        eprintln!("bench-tt: {name} keeps the other processor busy for {} ‰ of the time", it.beside);
        busiest = busiest.max(it.beside);
        rows.push(measured(name, it.start, &it.all, &it.table, PROCESSOR));
    }
    eprintln!("bench-tt: SCHED_RR …");
    rows.push(round_robin()?);
    eprintln!("bench-tt: SCHED_RR, the other processor busy for {busiest} ‰ of the time …");
    let (stop, busy) = keep_busy(busiest);
    let row = round_robin();
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    busy.join().map_err(|_| "a thread panicked")?;
    let row = row?;
    rows.push(Row { name: format!("{}, other processor as busy as above", row.name), ..row });
    eprintln!("bench-tt: cyclic executive …");
    rows.push(cyclic_executive()?);
    Ok(rows)
}

/// From user space on two processors, at the same times.
fn skews() -> Result<Vec<[String; 5]>, Error> {
    if online() < 2 {
        return Ok(Vec::new());
    }
    eprintln!("bench-tt: two processors …");
    let processors = [0, 1];
    let Dispatched { start, all, table, .. } = dispatch("user-space", &processors, true)?;
    let [one, other] = processors.map(|processor| measured("", start, &all, &table, processor));
    Ok(vec![skew("user space", &one, &other)])
}

fn online() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn main() -> Result<(), Error> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.split_first() {
        Some((word, [file, begin, names @ ..])) if word == "load" => {
            load(Path::new(file), begin.parse()?, names)
        }
        // In the lab, which makes the table. Its processors take turns, so their skew means nothing.
        Some((word, dispatchers)) if word == "rows" => {
            let rows = rows(dispatchers)?;
            println!("head {}", HEAD.join("|"));
            rows.iter().for_each(|row| println!("row {}", row.cells().join("|")));
            Ok(())
        }
        _ => {
            // It stays on its processor, so it is a thread of its own.
            let rows =
                std::thread::spawn(|| rows(&["user-space".to_owned()]).map_err(|error| error.to_string()));
            let rows = rows.join().map_err(|_| "a thread panicked")??;
            let skews = skews()?;
            let cells: Vec<[String; 9]> = rows.iter().map(Row::cells).collect();
            document::publish("tt", "make bench-tt", &HEAD, &cells)?;
            if skews.is_empty() {
                eprintln!("bench-tt: there is one processor, so there is no skew");
                return Ok(());
            }
            document::publish("tt-skew", "make bench-tt", &SKEW_HEAD, &skews)
        }
    }
}
