//! The names of interrupts, from `/proc/interrupts`.

use punctual_model::latency::{InterruptKind, InterruptSource};
use punctual_observe::wakeups::FIRST_SOFTIRQ;
use std::collections::BTreeMap;
use std::fs;

/// Numbers of sources, as the programs have them: the NMI, vectors, then the kernel's own numbers.
const NMI: u32 = 1;
const FIRST_IRQ: u32 = 256;

/// Vectors of the processor itself, and their rows in the file. (kernel: asm/irq_vectors.h)
const VECTORS: [(u32, &str); 11] = [
    (0xec, "LOC"),
    (0xf4, "DFR"),
    (0xf6, "IWI"),
    (0xf7, "PLT"),
    (0xf9, "THR"),
    (0xfa, "TRM"),
    (0xfb, "CAL"),
    (0xfc, "CAL"),
    (0xfd, "RES"),
    (0xfe, "ERR"),
    (0xff, "SPU"),
];

/// Rows of `/proc/softirqs`, by number. (kernel: linux/interrupt.h)
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// Names by row.
pub struct Names(BTreeMap<String, String>);

impl Names {
    /// As they are now.
    pub fn read() -> Names {
        Names::parse(&fs::read_to_string("/proc/interrupts").unwrap_or_default())
    }

    /// Rows are a label, a count for each processor, and a description; rows of numbered interrupts end in
    /// the handlers' names.
    fn parse(text: &str) -> Names {
        let mut lines = text.lines();
        let columns = lines.next().map_or(0, |head| head.split_whitespace().count());
        let row = |line: &str| {
            let (label, rest) = line.split_once(':')?;
            let label = label.trim();
            let described: Vec<&str> = rest.split_whitespace().skip(columns).collect();
            let is_numbered = label.parse::<u32>().is_ok();
            // The chip, its own number, and how the line is triggered come before the handlers.
            let name = if is_numbered { described.get(2..)?.join(" ") } else { described.join(" ") };
            (!name.is_empty()).then(|| (label.to_owned(), name))
        };
        Names(lines.filter_map(row).collect())
    }

    /// The row in which the kernel counts a source; none for NMIs, of which one may have several handlers.
    pub fn row(source: &InterruptSource) -> Option<String> {
        let number = source.number?;
        match source.kind {
            InterruptKind::Nmi => None,
            InterruptKind::Irq => Some(number.to_string()),
            InterruptKind::Vector => {
                VECTORS.iter().find(|known| known.0 == number).map(|known| known.1.to_owned())
            }
            InterruptKind::Softirq => SOFTIRQS.get(number as usize).map(|&row| row.to_owned()),
        }
    }

    /// The source with a number of the programs'.
    pub fn source(&self, number: u32) -> InterruptSource {
        let (kind, number, row) = match number {
            NMI => (InterruptKind::Nmi, None, "NMI".to_owned()),
            vector if vector < FIRST_IRQ => {
                let known = VECTORS.iter().find(|known| known.0 == vector);
                let row = known.map_or_else(|| format!("vector {vector:#x}"), |known| known.1.to_owned());
                (InterruptKind::Vector, Some(vector), row)
            }
            softirq if softirq >= FIRST_SOFTIRQ => {
                let number = softirq - FIRST_SOFTIRQ;
                let known = SOFTIRQS.get(number as usize);
                (
                    InterruptKind::Softirq,
                    Some(number),
                    known.map_or_else(|| number.to_string(), |&it| it.into()),
                )
            }
            irq => (InterruptKind::Irq, Some(irq - FIRST_IRQ), (irq - FIRST_IRQ).to_string()),
        };
        let name = self.0.get(&row).cloned().unwrap_or(row);
        InterruptSource { kind, number, name }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "           CPU0       CPU1       \n\
          4:       1180          0   IO-APIC   4-edge      ttyS0\n\
         35:          0          1 PCI-MSIX-0000:00:02.0   0-edge      virtio1-config, virtio1-other\n\
        NMI:          0          0   Non-maskable interrupts\n\
        LOC:    5286428    5120349   Local timer interrupts\n\
        ERR:          0\n";

    #[test]
    fn sources_have_the_names_of_the_file() {
        let names = Names::parse(FILE);
        assert_eq!(names.source(0xec).name, "Local timer interrupts");
        assert_eq!(names.source(1).name, "Non-maskable interrupts");
        assert_eq!(names.source(256 + 4).name, "ttyS0");
        assert_eq!(names.source(256 + 35).name, "virtio1-config, virtio1-other");
        assert_eq!(names.source(256 + 35).number, Some(35));
        assert_eq!(names.source(256 + 99).name, "99");
        assert_eq!(names.source(0xf2).name, "vector 0xf2");
        assert_eq!(names.source(FIRST_SOFTIRQ + 3).name, "NET_RX");
        assert_eq!(Names::row(&names.source(0xfb)).as_deref(), Some("CAL"));
    }
}
