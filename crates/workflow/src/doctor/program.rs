//! What may make the jobs of a program late, before they are: how its threads are set up, and what happens on
//! their processors within a second. Not for what did make a job late: `why` says that.

use super::facts::{Facts, Interrupt, Mutex, Policy, Thread};
use punctual_observe::{Check, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// Of a second, by real-time threads on one processor. At 95 % the kernel stops them for a while.
const BUSY_PERCENT: u64 = 50;
/// A processor that takes longer to leave an idle state makes every wake-up late.
const LONG_EXIT_US: u64 = 50;
/// Most names in a finding.
const MOST_SHOWN: usize = 4;

/// Judges what was found.
pub fn judge(facts: &Facts) -> Vec<Check> {
    let mut checks = vec![policies(facts), memory(facts)];
    checks.extend(faults(facts));
    checks.push(placement(facts));
    checks.extend(equals(facts));
    checks.extend(throttling(facts));
    checks.push(frequency(facts));
    checks.push(idle(facts));
    checks.push(interrupts(facts));
    checks.extend(mutexes(facts));
    checks
}

fn works(name: &'static str, needed_for: &'static str, detail: impl Into<String>) -> Check {
    Check { name, ok: Verdict::Works, detail: detail.into(), advice: None, needed_for }
}

fn hurts(name: &'static str, needed_for: &'static str, detail: String, advice: &str) -> Check {
    Check { name, ok: Verdict::Degraded, detail, advice: Some(advice.to_owned()), needed_for }
}

fn policies(facts: &Facts) -> Check {
    let (name, needed_for) = ("real-time policy", "not waiting for ordinary threads");
    if !facts.threads.iter().any(Thread::is_real_time) {
        let detail = "no thread has one: any other thread may be given the processor first";
        return hurts(
            name,
            needed_for,
            detail.into(),
            "chrt --fifo --pid 50 TID, or pthread_setschedparam(3)",
        );
    }
    works(name, needed_for, listed(facts.threads.iter().map(Thread::to_string)))
}

fn memory(facts: &Facts) -> Check {
    let (name, needed_for) = ("locked memory", "no page faults in a job");
    let (unlocked, resident) = (facts.unlocked_kib, facts.resident_kib);
    if unlocked == 0 {
        return works(name, needed_for, format!("all {resident} KiB"));
    }
    let detail = format!("{unlocked} of {resident} KiB are not: the kernel may take them away");
    hurts(name, needed_for, detail, "mlockall(MCL_CURRENT | MCL_FUTURE), then touch stacks and heap once")
}

/// Only where there were some.
fn faults(facts: &Facts) -> Option<Check> {
    let seen = |thread: &&Thread| thread.faults > 0;
    let seen: Vec<String> = facts.threads.iter().filter(seen).map(|it| it.with(it.faults)).collect();
    let advice = "touch memory before the loop; mlockall(2)";
    let detail = || format!("in a second: {}", listed(seen.iter().cloned()));
    (!seen.is_empty()).then(|| hurts("page faults", "jobs that take as long as usual", detail(), advice))
}

fn placement(facts: &Facts) -> Check {
    let (name, needed_for) = ("fixed processors", "no migration, and caches that stay warm");
    // The kernel places threads of SCHED_DEADLINE on all processors of theirs by itself.
    let moves = |thread: &&Thread| thread.processors.len() > 1 && thread.policy != Policy::Deadline;
    let free: Vec<String> = facts.threads.iter().filter(moves).map(|it| it.name.clone()).collect();
    if free.is_empty() {
        return works(name, needed_for, "each thread has one");
    }
    let detail = format!("the kernel may move {}", listed(free));
    hurts(name, needed_for, detail, "taskset --cpu-list --pid CPU TID, or pthread_setaffinity_np(3)")
}

/// Only for real-time threads.
fn equals(facts: &Facts) -> Option<Check> {
    let (name, needed_for) = ("priorities", "no waiting behind threads of the same priority");
    let mine: Vec<&Thread> = facts.threads.iter().filter(|thread| thread.has_priority()).collect();
    if mine.is_empty() {
        return None;
    }
    let mut shared = BTreeSet::new();
    for (index, thread) in mine.iter().enumerate() {
        let others = mine[index + 1..].iter().copied().chain(&facts.others);
        let meets = |other: &&Thread| {
            other.priority == thread.priority && !other.processors.is_disjoint(&thread.processors)
        };
        shared.extend(others.filter(meets).map(|other| format!("{thread} and {other}")));
    }
    if shared.is_empty() {
        return Some(works(name, needed_for, "no two threads of a processor have the same"));
    }
    let detail = format!("one waits for the other: {}", listed(shared));
    Some(hurts(
        name,
        needed_for,
        detail,
        "another priority for one of them: punctual prove MODEL --assign finds one",
    ))
}

/// Only for real-time threads.
fn throttling(facts: &Facts) -> Option<Check> {
    let (name, needed_for) = ("real-time throttling", "real-time threads that are never stopped");
    facts.threads.iter().find(|thread| thread.has_priority())?;
    let Some((runtime, period)) = facts.throttling else {
        return Some(works(name, needed_for, "off (sched_rt_runtime_us is -1)"));
    };
    let mut shares: BTreeMap<u32, u64> = BTreeMap::new();
    for thread in facts.threads.iter().chain(&facts.others).filter(|thread| thread.has_priority()) {
        *shares.entry(thread.processor).or_default() += thread.percent;
    }
    let busiest = shares.into_iter().max_by_key(|(_, percent)| *percent);
    let (processor, percent) = busiest.unwrap_or_default();
    let rule = format!("real-time threads get {} of {} ms", runtime / 1_000, period / 1_000);
    if percent < BUSY_PERCENT {
        return Some(works(
            name,
            needed_for,
            format!("{rule}; here they use {percent} % of processor {processor}"),
        ));
    }
    let detail =
        format!("{rule}, then ordinary ones run; here they use {percent} % of processor {processor}");
    Some(hurts(
        name,
        needed_for,
        detail,
        "use less of the processor, or sysctl kernel.sched_rt_runtime_us=-1",
    ))
}

fn frequency(facts: &Facts) -> Check {
    let (name, needed_for) = ("clock frequency", "jobs that take as long as usual");
    let governors: BTreeSet<&str> =
        facts.processors.values().filter_map(|processor| processor.governor.as_deref()).collect();
    let is_fixed = governors.iter().all(|governor| *governor == "performance");
    let shown = listed(governors.iter().map(|it| (*it).to_owned()));
    match (governors.is_empty(), is_fixed) {
        (true, _) => works(name, needed_for, "the kernel does not scale it here"),
        (false, true) => works(name, needed_for, shown),
        (false, false) => {
            let detail = format!("changes with the load: {shown}");
            hurts(name, needed_for, detail, "cpupower frequency-set --governor performance")
        }
    }
}

fn idle(facts: &Facts) -> Check {
    let (name, needed_for) = ("idle states", "processors that wake up at once");
    let deepest = facts.processors.iter().filter_map(|(cpu, found)| Some((found.idle.as_ref()?, cpu)));
    let Some(((state, exit_us), cpu)) = deepest.max_by_key(|((_, exit_us), _)| *exit_us) else {
        return works(name, needed_for, "none that the kernel chooses");
    };
    let detail = format!("processor {cpu} may take {exit_us} µs to leave {state}");
    if *exit_us <= LONG_EXIT_US {
        return works(name, needed_for, detail);
    }
    let advice =
        "keep /dev/cpu_dma_latency open with 0 written to it, or cpupower idle-set --disable-by-latency 1";
    hurts(name, needed_for, detail, advice)
}

fn interrupts(facts: &Facts) -> Check {
    let (name, needed_for) = ("interrupts", "processors that serve no devices");
    let used = |it: &&Interrupt| facts.processors.contains_key(&it.processor);
    let mut seen: Vec<&Interrupt> = facts.interrupts.iter().filter(used).collect();
    if seen.is_empty() {
        return works(name, needed_for, "no device's within a second");
    }
    seen.sort_by_key(|it| std::cmp::Reverse(it.count));
    let shown = seen.iter().map(|it| format!("{}: {} on processor {}", it.name, it.count, it.processor));
    let detail = format!("in a second: {}", listed(shown));
    hurts(
        name,
        needed_for,
        detail,
        "write other processors to /proc/irq/NUMBER/smp_affinity_list, or boot with irqaffinity=",
    )
}

/// Only where a thread waited for one.
fn mutexes(facts: &Facts) -> Option<Check> {
    let (name, needed_for) = ("mutexes without inheritance", "no priority inversion");
    let Some(seen) = &facts.mutexes else {
        let detail = "not looked at: the memory of the process cannot be read";
        return Some(hurts(name, needed_for, detail.into(), "run as root (sudo)"));
    };
    let shown: BTreeSet<String> =
        seen.iter().map(|Mutex { waiter, owner }| format!("{waiter} for {owner}")).collect();
    let detail = || format!("threads waited for a less urgent owner: {}", listed(shown.iter().cloned()));
    let advice = "pthread_mutexattr_setprotocol(3) with PTHREAD_PRIO_INHERIT";
    (!shown.is_empty()).then(|| hurts(name, needed_for, detail(), advice))
}

/// `a; b; c; d and 3 more`.
fn listed(names: impl IntoIterator<Item = String>) -> String {
    let names: Vec<String> = names.into_iter().collect();
    let shown = names[..names.len().min(MOST_SHOWN)].join("; ");
    match names.len().saturating_sub(MOST_SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::Processor;

    fn thread(name: &str, priority: u32, processors: &[u32]) -> Thread {
        Thread {
            name: name.into(),
            policy: if priority > 0 { Policy::Fifo } else { Policy::Other },
            priority,
            processors: processors.iter().copied().collect(),
            processor: processors[0],
            percent: 10,
            faults: 0,
        }
    }

    /// A program that is set up as it should be.
    fn good() -> Facts {
        let processor = Processor { governor: Some("performance".into()), idle: Some(("C1".into(), 2)) };
        Facts {
            threads: vec![thread("control", 80, &[1])],
            others: vec![thread("irq/24-eth0", 50, &[0])],
            unlocked_kib: 0,
            resident_kib: 2_000,
            throttling: Some((950_000, 1_000_000)),
            processors: BTreeMap::from([(1, processor)]),
            interrupts: vec![Interrupt { name: "eth0".into(), processor: 0, count: 900 }],
            mutexes: Some(Vec::new()),
        }
    }

    fn doubts(facts: &Facts) -> Vec<&'static str> {
        let checks = judge(facts);
        let doubtful = checks.iter().filter(|check| check.ok != Verdict::Works);
        assert!(doubtful.clone().all(|check| check.advice.is_some()), "{checks:?}");
        doubtful.map(|check| check.name).collect()
    }

    #[test]
    fn a_good_program_has_no_doubts() {
        assert!(doubts(&good()).is_empty());
    }

    #[test]
    fn each_doubt_is_told_for_its_reason_alone() {
        let with = |change: &dyn Fn(&mut Facts)| {
            let mut facts = good();
            change(&mut facts);
            doubts(&facts)
        };
        let of = |name: &str, priority| thread(name, priority, &[1]);
        assert_eq!(with(&|facts| facts.threads = vec![of("control", 0)]), ["real-time policy"]);
        assert_eq!(with(&|facts| facts.unlocked_kib = 500), ["locked memory"]);
        assert_eq!(with(&|facts| facts.threads[0].faults = 3), ["page faults"]);
        assert_eq!(with(&|facts| facts.threads[0].processors.extend([0])), ["fixed processors"]);
        assert_eq!(with(&|facts| facts.threads.push(of("vision", 80))), ["priorities"]);
        assert_eq!(with(&|facts| facts.others.push(of("irq/25-usb", 80))), ["priorities"]);
        assert_eq!(with(&|facts| facts.threads[0].percent = 70), ["real-time throttling"]);
        let together = with(&|facts| {
            facts.others.push(Thread { percent: 45, ..of("other", 10) });
        });
        assert_eq!(together, ["real-time throttling"]);
        let governed = |facts: &mut Facts| {
            facts.processors.entry(1).and_modify(|it| it.governor = Some("schedutil".into()));
        };
        assert_eq!(with(&governed), ["clock frequency"]);
        let sleepy = |facts: &mut Facts| {
            facts.processors.entry(1).and_modify(|it| it.idle = Some(("C6".into(), 200)));
        };
        assert_eq!(with(&sleepy), ["idle states"]);
        assert_eq!(with(&|facts| facts.interrupts[0].processor = 1), ["interrupts"]);
        let inverted = Mutex { waiter: "control (FIFO 80)".into(), owner: "logger".into() };
        assert_eq!(
            with(&|facts| facts.mutexes = Some(vec![inverted.clone()])),
            ["mutexes without inheritance"]
        );
    }

    #[test]
    fn throttling_hurts_nobody_where_it_is_off() {
        let mut facts = good();
        (facts.throttling, facts.threads[0].percent) = (None, 100);
        assert!(doubts(&facts).is_empty());
    }

    #[test]
    fn long_lists_are_cut() {
        let names = ["a", "b", "c", "d", "e", "f"].map(str::to_owned);
        assert_eq!(listed(names), "a; b; c; d and 2 more");
    }
}
