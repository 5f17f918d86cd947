//! What a measured latency was made of: every instant of it belongs to the innermost of what was under way
//! then: an NMI, an interrupt, a section of the kernel, or the rest.

use punctual_model::latency::{Ran, RanKind, Split, Wakeup};
use punctual_model::{Duration, Instant};

/// A latency, as the programs in the kernel have measured it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// When the thread became ready.
    pub ready: Instant,
    /// How long it waited.
    pub latency: Duration,
    /// The observer's own time meanwhile, which the latency does not contain.
    pub overhead: Duration,
    /// What the time of threads went to; `None` where that is not known.
    pub parts: Option<Vec<WaitPart>>,
}

/// All sections of one kind, where no other was inside, less interrupts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitPart {
    /// The variable, and the thread of its longest section; `None`: no section was open.
    pub section: Option<Section>,
    /// When the first began, counted from the wake-up without interrupts.
    pub from: Duration,
    /// For how long altogether.
    pub spent: Duration,
}

/// The longest section of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The variable.
    pub kind: RanKind,
    /// Name of the thread that ran.
    pub name: String,
    /// Its number.
    pub tid: u32,
    /// Where in the kernel it began.
    pub opened: Option<String>,
    /// How long it had been open when the thread was woken, less interrupts.
    pub before: Duration,
}

/// An interrupt that lies in the latency at least in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inside {
    /// What it is.
    pub kind: RanKind,
    /// Name of its handler.
    pub name: String,
    /// Its number.
    pub number: u32,
    /// When the processor entered it.
    pub entry: Instant,
    /// When the processor left it.
    pub exit: Instant,
    /// Its execution time, without what interrupted it.
    pub execution: Duration,
}

impl Wait {
    /// When the thread ran.
    pub fn end(&self) -> Instant {
        self.ready + self.latency + self.overhead
    }

    /// The latency with its parts, which sum up to it, and what ran. Interrupts that were not recorded are
    /// one entry without a name.
    pub fn explain(&self, interrupts: impl IntoIterator<Item = Inside>) -> Wakeup {
        let all = sum(self.parts.iter().flatten().map(|part| part.spent));
        let known = self.parts.as_ref().filter(|_| all <= self.latency);
        let mut left = known.map_or(self.latency, |_| self.latency.saturating_sub(all));
        let interrupts_ns = left;
        let mut ran = self.interrupts(interrupts, &mut left);
        let Some(parts) = known else {
            return Wakeup { at_ns: self.ready, latency_ns: self.latency, split: None, ran };
        };
        if !left.is_zero() {
            let (kind, from_ns) = (RanKind::Interrupt, self.ready);
            ran.push(Ran { kind, from_ns, duration_ns: left, ..Ran::default() });
        }
        let sections: Vec<Ran> = parts.iter().filter_map(|part| self.section(part, &ran)).collect();
        let sections_ns = sum(sections.iter().map(|section| section.duration_ns));
        let split = Split {
            interrupts_ns,
            threads_ns: Duration::ZERO,
            sections_ns,
            rest_ns: all.saturating_sub(sections_ns),
        };
        ran.extend(sections);
        ran.sort_by_key(|ran| ran.from_ns);
        Wakeup { at_ns: self.ready, latency_ns: self.latency, split: Some(split), ran }
    }

    /// By entry; no more than `left` altogether.
    fn interrupts(&self, all: impl IntoIterator<Item = Inside>, left: &mut Duration) -> Vec<Ran> {
        let end = self.end();
        let mut inside: Vec<Inside> =
            all.into_iter().filter(|it| it.exit > self.ready && it.entry < end).collect();
        inside.sort_by_key(|it| (it.entry, it.exit));
        let mut ran = Vec::new();
        for it in inside {
            let from_ns = it.entry.max(self.ready);
            let own = it.execution.min(it.exit.min(end).since(from_ns)).min(*left);
            *left = left.saturating_sub(own);
            if !own.is_zero() {
                let Inside { kind, name, number, .. } = it;
                ran.push(Ran { kind, name, number, from_ns, duration_ns: own, ..Ran::default() });
            }
        }
        ran
    }

    /// `None` for the rest. The interrupts before it put its beginning off.
    fn section(&self, part: &WaitPart, interrupts: &[Ran]) -> Option<Ran> {
        let Section { kind, name, tid, opened, before } = part.section.clone()?;
        let mut from_ns = self.ready + part.from;
        for interrupt in interrupts {
            if interrupt.from_ns <= from_ns {
                from_ns = from_ns + interrupt.duration_ns;
            }
        }
        let before_ns = (!before.is_zero()).then_some(before);
        Some(Ran { kind, name, number: tid, opened, before_ns, from_ns, duration_ns: part.spent })
    }
}

fn sum(durations: impl Iterator<Item = Duration>) -> Duration {
    durations.fold(Duration::ZERO, |sum, duration| sum + duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Duration {
        Duration::from_ns(us * 1_000)
    }

    fn at(us: u64) -> Instant {
        Instant::from_ns(us * 1_000)
    }

    fn interrupt(entry: u64, exit: u64, execution: u64) -> Inside {
        let (kind, name) = (RanKind::Interrupt, "LOC".to_owned());
        Inside { kind, name, number: 236, entry: at(entry), exit: at(exit), execution: us(execution) }
    }

    fn part(kind: RanKind, from: u64, spent: u64, before: u64) -> WaitPart {
        let (name, opened, before) = ("php".to_owned(), Some("lock+0x1".to_owned()), us(before));
        let section = Some(Section { kind, name, tid: 9, opened, before });
        WaitPart { section, from: us(from), spent: us(spent) }
    }

    fn wait(parts: Vec<WaitPart>) -> Wait {
        Wait { ready: at(100), latency: us(30), overhead: Duration::ZERO, parts: Some(parts) }
    }

    /// Open since 4 µs at the wake-up, interrupted once; then the scheduler; 2 µs of nothing known.
    #[test]
    fn the_parts_are_the_latency() {
        let rest = WaitPart { section: None, from: us(24), spent: us(2) };
        let wait = wait(vec![part(RanKind::Poid, 0, 10, 4), part(RanKind::St, 10, 13, 0), rest]);
        let wakeup = wait.explain([interrupt(95, 99, 4), interrupt(103, 108, 5), interrupt(131, 140, 9)]);
        let found: Vec<_> = wakeup.ran.iter().map(|it| (it.kind, it.from_ns, it.duration_ns)).collect();
        let expected = [
            (RanKind::Poid, at(100), us(10)),
            (RanKind::Interrupt, at(103), us(5)),
            (RanKind::St, at(115), us(13)),
        ];
        assert_eq!(found, expected);
        assert_eq!((wakeup.ran[0].before_ns, wakeup.ran[2].before_ns), (Some(us(4)), None));
        let split = wakeup.split.expect("parts");
        assert_eq!((split.interrupts_ns, split.sections_ns, split.rest_ns), (us(5), us(23), us(2)));
        assert_eq!(split.total(), us(30));
    }

    #[test]
    fn interrupts_that_were_not_recorded_are_an_entry_without_a_name() {
        let wakeup = wait(vec![part(RanKind::Poid, 0, 10, 0)]).explain([interrupt(103, 108, 5)]);
        let nameless = wakeup.ran.iter().find(|ran| ran.name.is_empty()).expect("an entry");
        assert_eq!((nameless.kind, nameless.duration_ns), (RanKind::Interrupt, us(15)));
        assert_eq!(sum(wakeup.ran.iter().map(|ran| ran.duration_ns)), us(30));
    }

    #[test]
    fn interrupts_are_clipped_to_the_latency() {
        let wait = Wait { parts: None, ..wait(vec![]) };
        let wakeup = wait.explain([interrupt(90, 104, 14), interrupt(128, 137, 9)]);
        let found: Vec<_> = wakeup.ran.iter().map(|it| (it.from_ns, it.duration_ns)).collect();
        assert_eq!(found, [(at(100), us(4)), (at(128), us(2))]);
        assert_eq!(wakeup.split, None);
    }

    #[test]
    fn parts_that_exceed_the_latency_are_not_shown() {
        assert_eq!(wait(vec![part(RanKind::Poid, 0, 31, 0)]).explain([]).split, None);
    }
}
