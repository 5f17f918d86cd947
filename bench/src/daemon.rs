//! What requests to the daemon cost: create, attach, change and release with 0 to 1,024 specs admitted, for
//! each plugin, on one and two processors, next to an exchange of the same size that does nothing and to the
//! direct system call.

use punctual_bench::{Error, document, measure, requests};

const SIZES: [u32; 4] = [0, 128, 512, 1024];
const CASES: [(&str, &str); 8] = [
    ("EDF", "utilization"),
    ("EDF", "exact"),
    ("RM", "utilization"),
    ("RM", "exact"),
    ("FP", "utilization"),
    ("FP", "exact"),
    ("RR", "utilization"),
    ("RR", "exact"),
];
const PROCESSORS: [(&str, &str); 2] = [("1", "1"), ("2", "0-1")];
const KINDS: [&str; 6] = ["create", "attach", "hold", "change", "release", "ping"];

fn main() -> Result<(), Error> {
    let daemon = measure::built("punctuald");
    let mut rows = Vec::new();
    for (plugin, admission) in CASES {
        for (count, processors) in PROCESSORS {
            let medians = requests::medians(&daemon, plugin, admission, processors)?;
            let median = |specs: u32, what: &str| {
                medians.get(&(specs, what.to_owned())).copied().ok_or(format!("no {what} was measured"))
            };
            for what in KINDS {
                let mut row = vec![format!("{plugin}, {admission}"), count.to_owned(), what.to_owned()];
                for specs in SIZES {
                    row.push(format!("{:.1}", median(specs, what)? / 1e3));
                }
                let direct = if what == "attach" { median(0, "direct")? } else { 0.0 };
                let least = median(0, "exchange")? + direct;
                row.push(format!("{:.1}", least / 1e3));
                row.push(format!("{:.2}", median(0, what)? / least));
                row.push(format!("{:.2}", median(1024, what)? / median(0, what)?));
                rows.push(<[String; 10]>::try_from(row).map_err(|_| "a row of another length")?);
            }
        }
    }
    let head = [
        "plugin, admission test",
        "processors",
        "request",
        "0 specs, µs",
        "128",
        "512",
        "1,024",
        "exchange (+ direct call), µs",
        "ratio to that",
        "1,024 specs to 0",
    ];
    document::publish("daemon", "make bench-daemon", &head, &rows)
}
