//! The bound of the scheduling latency, on kernels that show what it is made of: it holds under load, and the
//! kernel's own module of delays is found, measured and named.

use crate::run::{Ended, directory, punctual, run, workload};
use crate::{Outcome, Result, Test, ensure, fail, skip};
use punctual_model::latency::{Processor, RanKind, SchedulingLatency, Variables};
use rustix::system::{delete_module, finit_module};
use std::ffi::CString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub const ALONE: &[(&str, Test)] = &[
    ("bound::holds_under_load", bound_holds_under_load),
    ("bound::delays_are_found_interrupts_off", || delays("irq")),
    ("bound::delays_are_found_preemption_off", || delays("preempt")),
    ("bound::delays_are_found_in_turn", || delays("alternate")),
    ("bound::what_holds_the_timer_off_is_from_due", what_holds_the_timer_off),
    ("bound::measuring_threads_can_be_off", measuring_threads_can_be_off),
    ("bound::chosen_processors_only", chosen_processors_only),
    ("bound::monitors_watch_the_rules", monitors_watch_the_rules),
    ("bound::monitors_are_off_after_sigkill", monitors_are_off_after_sigkill),
    ("bound::threshold_keeps_what_happened", threshold_keeps_what_happened),
    ("bound::threshold_is_told_to_programs", threshold_is_told_to_programs),
    ("bound::equal_priorities_take_turns", equal_priorities_take_turns),
    ("bound::processors_go_and_come", processors_go_and_come),
    ("bound::a_processor_that_comes_is_not_measured", newcomers_are_named),
    ("bound::a_recording_gives_the_same", recording_gives_the_same),
];

/// Loads of all kinds, each by itself: no measured latency is above its bound.
pub const LIVE: &[(&str, Test)] = &[
    ("live::hackbench", || live("hackbench", "hackbench -g 1 -l 20; hackbench -T -P -g 1 -l 20")),
    ("live::cyclictest", || {
        live("cyclictest", "cyclictest -q -S -p 90 -i 500 -l 500; cyclictest -q -t 4 -p 80 -i 1000 -l 300")
    }),
    ("live::stress_ng", || {
        live("stress-ng", "stress-ng -q --cpu 1 --vm 1 --vm-bytes 8M --timer 1 --futex 1 --sock 1 -t 1")
    }),
    ("live::processes", || {
        live("seq", "for i in $(seq 60); do sh -c 'seq 200 | cat >/dev/null' & done; wait")
    }),
    ("live::network", || {
        let done = loopback()?;
        let outcome = live("sleep", "sleep 0.5");
        drop(done);
        outcome
    }),
    ("live::disk", disk),
];

/// Exit code 0 says that no measured latency is above its bound.
fn live(program: &str, load: &str) -> Result<Outcome> {
    if let Some(reason) = unsupported() {
        return skip(reason);
    }
    let has_program = Path::new("/usr/bin").join(program).exists();
    if !has_program {
        return skip(format!("{program} is not installed"));
    }
    let (ended, section) = measure_with_parts(load)?;
    ensure!(!ended.stdout.contains("No bound"), "it does not converge: {}", ended.all());
    for cpu in &section.processors {
        ensure!(!variables(cpu)?.psd.max_ns.is_zero(), "nothing was seen on processor {}", cpu.cpu);
        let wakeups: u64 = cpu.measured.iter().map(|it| it.wakeups).sum();
        ensure!(wakeups > 10, "hardly a latency was measured on processor {}: {}", cpu.cpu, ended.all());
    }
    latencies_are_explained(&section)
}

/// Datagrams and a stream over the loopback device, until the result is dropped.
fn loopback() -> Result<impl Drop> {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    struct Running(Arc<AtomicBool>);
    impl Drop for Running {
        fn drop(&mut self) {
            self.0.store(false, Ordering::Relaxed);
        }
    }
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let (mut to, from) = (TcpStream::connect(listener.local_addr()?)?, listener.accept()?.0);
    let datagrams = UdpSocket::bind("127.0.0.1:0")?;
    datagrams.connect(datagrams.local_addr()?)?;
    let running = Arc::new(AtomicBool::new(true));
    let is_running = Arc::clone(&running);
    std::thread::spawn(move || {
        let (mut from, mut bytes) = (from, [0; 16 * 1024]);
        while is_running.load(Ordering::Relaxed) {
            let _ = to.write_all(&bytes).and_then(|()| from.read_exact(&mut bytes));
            let _ = datagrams.send(&bytes[..1000]).and_then(|_| datagrams.recv(&mut bytes));
        }
    });
    Ok(Running(running))
}

/// The disk of the lab's machines with several processors; where instructions count, there is none.
const DISK: &str = "/sys/block/vda/serial";

/// Reads it, again and again, not from memory.
fn disk() -> Result<Outcome> {
    if std::fs::read_to_string(DISK).is_ok_and(|serial| serial.trim() == "lab") {
        return live(
            "cat",
            "for i in $(seq 5); do echo 1 >/proc/sys/vm/drop_caches; cat /dev/vda >/dev/null; done",
        );
    }
    skip("this is no machine of the lab with a disk")
}

/// Why the variables cannot be measured here; `None` where they can.
fn unsupported() -> Option<&'static str> {
    let has_tracepoints = Path::new("/sys/kernel/tracing/events/preemptirq/irq_disable").is_dir();
    (!has_tracepoints).then_some("the kernel has no preemptirq tracepoints")
}

/// Measures while the shell runs `load`; the section must be whole.
fn measure(options: &[&str], load: &str) -> Result<(Ended, SchedulingLatency)> {
    let directory = directory()?;
    let file = directory.path().join("latency.timing.json");
    let mut command = punctual(["latency"]);
    command.args(options).arg("-o").arg(&file).args(["--", "sh", "-c", load]);
    let ended = run(command)?;
    ended.expect_code(0)?;
    let model = crate::model::read(&file)?;
    let Some(section) = model.latency else {
        return fail(format!("no latency was written: {}", ended.all()));
    };
    for cpu in &section.processors {
        let number = cpu.cpu;
        ensure!(cpu.negative_durations == 0, "negative durations on processor {number}: {}", ended.all());
        ensure!(cpu.skipped_events == 0, "programs were skipped: {}", ended.all());
        ensure!(cpu.lost_records == 0, "interrupts of processor {number} were lost: {}", ended.all());
    }
    Ok((ended, section))
}

/// The same until each greatest latency has its parts. The kernel's programs drop those of a wake-up that
/// another one interrupts in the midst of their own work, which is rare: never three times in a row.
fn measure_with_parts(load: &str) -> Result<(Ended, SchedulingLatency)> {
    let lacks = |section: &SchedulingLatency| {
        let mut greatest =
            section.processors.iter().flat_map(|cpu| &cpu.measured).filter_map(|it| it.worst.first());
        greatest.find(|worst| worst.split.is_none()).cloned()
    };
    for _ in 0..2 {
        let (ended, section) = measure(&[], load)?;
        match lacks(&section) {
            Some(worst) => eprintln!("DISTURBED: bound: measured again, since this has no parts: {worst:?}"),
            None => return Ok((ended, section)),
        }
    }
    measure(&[], load)
}

fn variables(cpu: &Processor) -> Result<&Variables> {
    cpu.variables.as_ref().map_or_else(|| fail(format!("processor {} has no variables", cpu.cpu)), Ok)
}

/// Processes come and go, and messages, and whatever tools of load there are; exit code 0 says that no
/// measured latency is above its bound.
fn bound_holds_under_load() -> Result<Outcome> {
    if let Some(reason) = unsupported() {
        return skip(reason);
    }
    let load = "for i in $(seq 30); do sh -c 'seq 500 | cat >/dev/null' & done
        if command -v cyclictest >/dev/null; then cyclictest -q -S -p 90 -i 2000 -l 200 & fi
        if command -v hackbench >/dev/null; then hackbench -g 1 -l 5; fi
        wait";
    let (ended, section) = measure_with_parts(load)?;
    for cpu in &section.processors {
        let number = cpu.cpu;
        for (name, variable) in variables(cpu)?.each() {
            // D_PAIE needs a rare moment.
            ensure!(name == "paie" || !variable.max_ns.is_zero(), "{name} is 0 on processor {number}");
            let culprit = variable.culprit.as_ref();
            ensure!(
                variable.max_ns.is_zero() || culprit.is_some_and(|it| !it.stack.is_empty()),
                "{name} of processor {number} has no culprit: {}",
                ended.all()
            );
        }
        let timer = cpu.interrupts.iter().find(|it| it.source.name.contains("timer"));
        ensure!(
            timer.is_some_and(|it| it.curves.count > 10),
            "hardly a timer interrupt on processor {number}"
        );
        let measuring = cpu.measured.iter().find(|it| it.thread.is_none());
        ensure!(measuring.is_some_and(|it| it.wakeups > 10), "nothing was measured on processor {number}");
    }
    ensure!(ended.stdout.contains("Bound"), "there is no headline: {}", ended.all());
    latencies_are_explained(&section)
}

/// Each greatest latency has its parts, in which every instant is counted once. A section of the kernel is
/// never longer than the greatest of its variable, and without interrupts the latency is at most L_IF (paper,
/// Lemma 7), which is a sharper test than the bound.
fn latencies_are_explained(section: &SchedulingLatency) -> Result<Outcome> {
    let skipped: u64 = section.processors.iter().map(|cpu| cpu.skipped_events).sum();
    for cpu in &section.processors {
        let greatest = variables(cpu)?;
        let without_interrupts =
            greatest.st.max_ns.max(greatest.poid.max_ns) + greatest.paie.max_ns + greatest.psd.max_ns;
        for measured in &cpu.measured {
            let Some(worst) = measured.worst.first() else {
                return fail(format!("the greatest latency is not there: {measured:?}"));
            };
            let Some(split) = worst.split else { return fail(format!("it has no parts: {worst:?}")) };
            ensure!(split.total() == worst.latency_ns, "the parts are not the whole: {worst:?}");
            ensure!(
                measured.bounded_max_ns != Some(worst.latency_ns)
                    || split.sections_ns + split.rest_ns <= without_interrupts,
                "above L_IF, which is {without_interrupts}: {worst:?}"
            );
            ensure!(!split.sections_ns.is_zero(), "no switch without the scheduler: {worst:?}");
            let ran: u64 = worst.ran.iter().map(|ran| ran.duration_ns.ns()).sum();
            ensure!(
                ran + split.rest_ns.ns() == worst.latency_ns.ns(),
                "what ran is not all but the rest: {worst:?}"
            );
            // Where records were lost, and that is said, an interrupt may have no name.
            ensure!(
                worst.ran.iter().all(|ran| !ran.name.is_empty()) || cpu.lost_records > 0 || skipped > 0,
                "an interrupt was not recorded on processor {}, and nothing was lost: {worst:?}",
                cpu.cpu
            );
            for ran in &worst.ran {
                let limit = match ran.kind {
                    RanKind::St => greatest.st.max_ns,
                    RanKind::Psd => greatest.psd.max_ns,
                    _ => continue,
                };
                // It may have been called twice.
                ensure!(ran.duration_ns.ns() <= 2 * limit.ns(), "{ran:?} of at most {limit}");
            }
        }
    }
    Ok(Outcome::Completed)
}

/// The kernel's module, where the lab has put it.
fn module() -> PathBuf {
    "/lab/modules/preemptirq_delay_test.ko".into()
}

/// The module, loaded. Dropping this unloads it.
struct Delays;

impl Delays {
    /// Loads it on the first processor; it delays once at once.
    fn load(mode: &str, microseconds: u64) -> Result<Delays> {
        let parameters =
            CString::new(format!("test_mode={mode} delay={microseconds} burst_size=4 cpu_affinity=0"))?;
        finit_module(File::open(module())?, &parameters, 0)?;
        Ok(Delays)
    }
}

impl Drop for Delays {
    fn drop(&mut self) {
        // A module that stays makes the next load fail, which says so.
        let _ = delete_module(c"preemptirq_delay_test", rustix::fs::OFlags::NONBLOCK.bits() as i32);
    }
}

/// The module disables interrupts, preemption, or both in turn, for some time. That is D_POID, and the stack
/// names the module's function.
fn delays(mode: &str) -> Result<Outcome> {
    if let Some(reason) = unsupported() {
        return skip(reason);
    }
    if !module().exists() {
        return skip("the kernel's module preemptirq_delay_test is not here");
    }
    for microseconds in [50, 500, 2000] {
        let _delays = Delays::load(mode, microseconds)?;
        let load = "echo 1 >/sys/kernel/preemptirq_delay_test/trigger; sleep 0.1";
        let (_, section) = measure(&["--measure", "off"], load)?;
        let first = section.processors.iter().find(|cpu| cpu.cpu == 0);
        let Some(first) = first else { return fail("processor 0 was not measured") };
        let poid = &variables(first)?.poid;
        // With only preemption off, interrupts come meanwhile, whose time is not the thread's.
        let interrupts: u64 = match mode {
            "preempt" => {
                first.interrupts.iter().map(|it| it.curves.arrivals(HORIZON) * it.curves.wcet().ns()).sum()
            }
            _ => 0,
        };
        let delay = microseconds * 1_000;
        ensure!(
            poid.max_ns.ns() + interrupts >= delay,
            "{mode}: D_POID is {} after a delay of {microseconds} µs",
            poid.max_ns
        );
        let Some(culprit) = &poid.culprit else { return fail(format!("{mode}: D_POID has no culprit")) };
        // Where instructions count, nothing else takes as long.
        if is_counting() {
            ensure!(
                poid.max_ns.ns() <= delay + 2_000,
                "{mode}: D_POID is {} after a delay of {microseconds} µs",
                poid.max_ns
            );
            let is_ours = |place: &String| place.contains("[preemptirq_delay_test]");
            ensure!(
                culprit.thread.name == format!("{mode}_test")
                    && culprit.opened.as_ref().is_some_and(is_ours)
                    && culprit.stack.iter().any(is_ours),
                "{mode}: the culprit is {culprit:?}"
            );
        }
    }
    Ok(Outcome::Completed)
}

const HORIZON: punctual_model::Duration = punctual_model::Duration::from_ms(10);

/// The measuring thread is due in the first half of the delay, and its timer's interrupt comes at the end.
fn what_holds_the_timer_off() -> Result<Outcome> {
    if let Some(reason) = unsupported() {
        return skip(reason);
    }
    if !module().exists() {
        return skip("the kernel's module preemptirq_delay_test is not here");
    }
    let _delays = Delays::load("irq", 2_000)?;
    let load = "echo 1 >/sys/kernel/preemptirq_delay_test/trigger; sleep 0.1";
    let (ended, section) = measure(&["--measure", "1ms"], load)?;
    let Some(first) = section.processors.iter().find(|cpu| cpu.cpu == 0) else {
        return fail("processor 0 was not measured");
    };
    let from_due = first.measured.first().filter(|it| it.thread.is_none()).and_then(|it| it.from_due_max_ns);
    ensure!(from_due.is_some_and(|it| it.ns() >= 950_000), "from due {from_due:?}: {}", ended.all());
    Ok(Outcome::Completed)
}

/// Whether this is a machine of the lab with one processor: it counts instructions.
pub fn is_counting() -> bool {
    Path::new("/lab/job").exists() && std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1)
}

fn measuring_threads_can_be_off() -> Result<Outcome> {
    if let Some(reason) = unsupported() {
        return skip(reason);
    }
    let (_, section) = measure(&["--measure", "off"], "sleep 0.2")?;
    let has_any = section.processors.iter().flat_map(|cpu| &cpu.measured).any(|it| it.thread.is_none());
    ensure!(!has_any, "there was a measuring thread: {section:?}");
    Ok(Outcome::Completed)
}

fn chosen_processors_only() -> Result<Outcome> {
    if let Some(reason) = unsupported() {
        return skip(reason);
    }
    let (_, section) = measure(&["--cpus", "0"], "sleep 0.2")?;
    let measured: Vec<u32> = section.processors.iter().map(|cpu| cpu.cpu).collect();
    ensure!(measured == [0], "processors {measured:?} were measured");
    let mut command = punctual(["latency"]);
    command.args(["--cpus", "4000", "--for", "1"]);
    run(command)?.expect_code(4)?;
    Ok(Outcome::Completed)
}

/// A thread that another processor wakes while one of its priority runs is not the ready thread of highest
/// priority: it has no scheduling latency.
fn equal_priorities_take_turns() -> Result<Outcome> {
    const ROUNDS: u64 = 200;
    if let Some(reason) = unsupported() {
        return skip(reason);
    }
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1) {
        return skip("there is one processor, on which nobody can wake the thread meanwhile");
    }
    let load = format!(
        "{} --rounds {ROUNDS} --busy-us 500 --cpu 1 --waiter-priority 60 --waker-cpu 0",
        workload("kept_waiting")
    );
    let (ended, section) = measure(&["--measure", "off"], &load)?;
    let measured: u64 = section
        .processors
        .iter()
        .flat_map(|cpu| &cpu.measured)
        .filter(|it| it.thread.as_ref().is_some_and(|thread| thread.id.name == "waiter"))
        .map(|it| it.wakeups)
        .sum();
    ensure!(measured <= ROUNDS / 20, "{measured} of {ROUNDS} wake-ups were measured: {}", ended.all());
    Ok(Outcome::Completed)
}

/// Switches the second processor off or on.
const SECOND: &str = "/sys/devices/system/cpu/cpu1/online";

/// Why no processor can be taken away here; `None` where one can.
fn immovable() -> Option<&'static str> {
    let is_lab = Path::new("/lab/job").exists();
    (!is_lab || !Path::new(SECOND).exists()).then_some("this is no machine of the lab with two processors")
}

/// What was seen of a processor that was offline for a while is "at least", and its absence is no duration.
fn processors_go_and_come() -> Result<Outcome> {
    if let Some(reason) = unsupported().or_else(immovable) {
        return skip(reason);
    }
    let load = format!(
        "sleep 0.3; echo 0 >{SECOND}; sleep 5; echo 1 >{SECOND}
        echo 0 >{SECOND}; echo 1 >{SECOND}; taskset 2 seq 1000 >/dev/null; sleep 0.3"
    );
    let (ended, section) = measure(&[], &load)?;
    let [first, second] = section.processors.as_slice() else {
        return fail(format!("not two processors: {}", ended.all()));
    };
    ensure!((first.went_offline, second.went_offline) == (0, 2), "{}", ended.all());
    ensure!(ended.stderr.contains("processor 1 was offline"), "nobody was told: {}", ended.all());
    for (name, variable) in variables(second)?.each() {
        ensure!(variable.at_least, "{name} may have been greater");
        ensure!(
            variable.max_ns < punctual_model::Duration::from_ms(5_000),
            "{name} lasted as long as the processor was away: {}",
            ended.all()
        );
    }
    ensure!(
        variables(first)?.each().iter().all(|(_, variable)| !variable.at_least),
        "nothing happened to the first"
    );
    Ok(Outcome::Completed)
}

/// Nothing is said of a processor that was offline at the beginning, except that it came.
fn newcomers_are_named() -> Result<Outcome> {
    if let Some(reason) = unsupported().or_else(immovable) {
        return skip(reason);
    }
    std::fs::write(SECOND, "0")?;
    let load = format!("echo 1 >{SECOND}; taskset 2 seq 1000 >/dev/null");
    let (ended, section) = measure(&["--measure", "off"], &load)?;
    let measured: Vec<u32> = section.processors.iter().map(|cpu| cpu.cpu).collect();
    ensure!(measured == [0], "processors {measured:?} were measured");
    ensure!(ended.stderr.contains("processor 1 came online"), "nobody was told: {}", ended.all());
    Ok(Outcome::Completed)
}

/// None of the rules is violated, and the monitors are left as they were.
fn monitors_watch_the_rules() -> Result<Outcome> {
    let enabled = "/sys/kernel/tracing/rv/enabled_monitors";
    if let Some(reason) = unsupported() {
        return skip(reason);
    }
    if !Path::new(enabled).exists() {
        return skip("the kernel has no runtime-verification monitors");
    }
    let before = std::fs::read_to_string(enabled)?;
    let (ended, section) =
        measure(&["--verify"], "for i in $(seq 10); do sh -c 'seq 100 | cat >/dev/null'; done")?;
    let rules: Vec<&String> = section.monitors.iter().flat_map(|it| &it.rules).collect();
    ensure!(rules.iter().any(|rule| *rule == "R14"), "only {rules:?} were watched");
    ensure!(
        ended.stdout.contains("Not watched: R1 to R4, R13."),
        "what was not is not said: {}",
        ended.all()
    );
    let violated: Vec<_> = section.monitors.iter().filter(|it| it.violations > 0).collect();
    ensure!(violated.is_empty(), "the kernel violated rules: {violated:?}");
    let after = std::fs::read_to_string(enabled)?;
    ensure!(before == after, "monitors are {after:?} afterwards, and were {before:?}");
    Ok(Outcome::Completed)
}

/// SIGKILL leaves no time to switch them off: somebody else does. Then `doctor` finds nothing.
fn monitors_are_off_after_sigkill() -> Result<Outcome> {
    let rv = Path::new("/sys/kernel/tracing/rv");
    if let Some(reason) = unsupported() {
        return skip(reason);
    }
    if !rv.exists() {
        return skip("the kernel has no runtime-verification monitors");
    }
    let state = || -> Result<(String, String, usize)> {
        let read = |name: &str| std::fs::read_to_string(rv.join(name));
        let instances = std::fs::read_dir("/sys/kernel/tracing/instances")?.count();
        Ok((read("enabled_monitors")?, read("monitoring_on")?, instances))
    };
    let before = state()?;
    let mut command = punctual(["latency", "-q", "--verify", "--for", "100000", "--measure", "off"]);
    let mut process = command.stdout(Stdio::null()).spawn()?;
    let is_on = || -> Result<bool> {
        let now = state()?;
        Ok(now.0.lines().count() > before.0.lines().count() && now.2 > before.2)
    };
    let switched_on = until(|| Ok(is_on()? || process.try_wait()?.is_some()));
    let (then, ended) = (state(), process.try_wait()?);
    process.kill()?;
    process.wait()?;
    switched_on?;
    ensure!(ended.is_none() && then? != before, "the monitors were never on: {:?}, {ended:?}", state()?);
    ensure!(until(|| Ok(state()? == before))?, "afterwards they are {:?}, and were {before:?}", state()?);
    let mut doctor = Command::new(crate::run::binary());
    let said = run({
        doctor.args(["doctor", "--json"]);
        doctor
    })?;
    ensure!(!said.stdout.contains("left on by a measurement"), "{}", said.all());
    Ok(Outcome::Completed)
}

/// Waits until it is so; false after five minutes, which is too long on any machine.
fn until(mut is_so: impl FnMut() -> Result<bool>) -> Result<bool> {
    for _ in 0..3_000 {
        if is_so()? {
            return Ok(true);
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    Ok(false)
}

/// The variables, their culprits and the measured latencies too.
fn recording_gives_the_same() -> Result<Outcome> {
    match unsupported() {
        Some(reason) => skip(reason),
        None => crate::latency::replay_is_live(&[
            "sh",
            "-c",
            "for i in $(seq 30); do sh -c 'seq 500 | cat >/dev/null' & done; wait",
        ]),
    }
}

/// A delay above the threshold ends the measurement; the module is among the last events before it.
fn threshold_keeps_what_happened() -> Result<Outcome> {
    if let Some(reason) = unsupported() {
        return skip(reason);
    }
    if !module().exists() {
        return skip("the kernel's module preemptirq_delay_test is not here");
    }
    let _delays = Delays::load("irq", 5_000)?;
    let load = "echo 1 >/sys/kernel/preemptirq_delay_test/trigger; exec sleep 1000";
    let directory = directory()?;
    let folder = directory.path().join("recording");
    let record = folder.display().to_string();
    let (ended, section) = measure(&["--measure", "off", "--threshold", "4ms", "--record", &record], load)?;
    ensure!(ended.stdout.contains("before the threshold was exceeded"), "nothing was kept: {}", ended.all());
    ensure!(ended.stdout.starts_with("Threshold of 4 ms reached on CPU "), "not said: {}", ended.all());
    let mut timeline = punctual(["timeline", "-o"]);
    timeline.arg(directory.path().join("x.perfetto-trace")).arg(&folder);
    let shown = run(timeline)?;
    shown.expect_code(0)?;
    ensure!(shown.stderr.contains("flight-recorder event"), "the timeline has none of it: {}", shown.all());
    // Another machine may have exceeded the threshold by itself.
    if is_counting() {
        let longest =
            section.processors.iter().flat_map(|cpu| cpu.variables.as_ref()).map(|it| it.poid.max_ns);
        let threshold = punctual_model::Duration::from_ms(4);
        ensure!(longest.max() >= Some(threshold), "no D_POID is above the threshold: {}", ended.all());
        let has = |what: &str| {
            let mut lines = ended.stdout.lines();
            lines.any(|line| line.contains(what) && line.contains("[preemptirq_delay_test]"))
        };
        ensure!(has("interrupts off") && has("interrupts on"), "not the module's: {}", ended.all());
        ensure!(has("CPU 0: D_POID was ") && has(", by irq_test ("), "what it was: {}", ended.all());
        ensure!(has("irq_test ("), "the thread has no name: {}", ended.all());
    }
    Ok(Outcome::Completed)
}

/// Programs see whether the threshold was reached, and by what; the exit code is 0 in both cases.
fn threshold_is_told_to_programs() -> Result<Outcome> {
    if let Some(reason) = unsupported() {
        return skip(reason);
    }
    let threshold = |length: &str| -> Result<(serde_json::Value, Ended)> {
        let mut command = punctual(["latency", "--json", "--for", "2", "--threshold", length]);
        command.args(["--", "sleep", "0.2"]);
        let ended = run(command)?;
        ended.expect_code(0)?;
        let document: serde_json::Value = serde_json::from_str(&ended.stdout)?;
        Ok((document["threshold"].clone(), ended))
    };
    let (short, ended) = threshold("1us")?;
    ensure!(short["reached"] == true && short["threshold_ns"] == 1_000, "{short}");
    ensure!(short["by"]["duration_ns"].as_u64() >= Some(1_000), "{short}");
    ensure!(short["by"]["thread"]["name"].is_string(), "{short}");
    ensure!(ended.stderr.contains("Threshold of 1 µs reached on CPU "), "not said: {}", ended.all());
    let (long, ended) = threshold("1000s")?;
    ensure!(long["reached"] == false && long["by"].is_null(), "{long}");
    ensure!(ended.stderr.contains("Threshold of 1000 s not reached."), "not said: {}", ended.all());
    Ok(Outcome::Completed)
}
