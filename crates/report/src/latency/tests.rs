//! What the tables of scheduling latency say of the examples.

use super::example::{figure_24, measured_only};
use super::*;
use punctual_model::latency::Preemption;
use punctual_model::latency::{Monitor, NoVariables, Ran, RanKind, Split};

fn text(section: &SchedulingLatency) -> String {
    latency(section, &Page::default())
}

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    // Cells are padded.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in parts {
        assert!(words.contains(part), "{part}\n{text}");
    }
}

#[test]
fn figure_24_is_shown_with_its_terms() {
    says(
        &text(&figure_24()),
        &[
            "Linux 5.2.21-rt14 (PREEMPT_RT), 1 processor for 60 s; nothing lost.",
            "Bound: 98.042 µs, on CPU 1",
            "Largest part: D_POID, 22.51 µs, by php (25708) in wake_up_new_task+0x1c5.",
            "Measured: at most 27 µs on CPU 1, 27.54 % of its bound.",
            "= max(19.312 µs, 22.51 µs) + 0 ns + 19.702 µs = 42.212 µs",
            "irq 33 nvme0q1 1,000 16.914 µs 1 ms",
            "no interrupts 42.212 µs",
            "worst single interrupt 62.94 µs",
            "sporadic does not converge",
            "sliding window 98.042 µs 42.212 µs 55.83 µs 42.212 µs → 97.741 µs → 98.042 µs",
            "L_IF 42.212 µs + irq 33 nvme0q1 16.914 µs + irq 35 enp3s0 14.588 µs + vector 236 LOC 21.029 µs \
             + \
             vector 246 IWI 3.299 µs = 98.042 µs",
            "wake_up_new_task+0x1c5",
        ],
    );
}

#[test]
fn a_latency_above_the_bound_is_said_first() {
    let mut section = figure_24();
    let measured = &mut section.processors[0].measured[0];
    measured.max_ns = Duration::from_ns(98_043);
    measured.bounded_max_ns = Some(measured.max_ns);
    measured.worst[0].latency_ns = measured.max_ns;
    section.processors[0].measured[0].worst[0].ran.clear();
    says(
        &text(&section),
        &["MEASURED ABOVE THE BOUND: measuring/1 on CPU 1: 98.043 µs.", "--threshold 98us --record DIR"],
    );
    let worst = &mut section.processors[0].measured[0].worst[0];
    let (from_ns, duration_ns) = (worst.at_ns, Duration::from_ns(7_000));
    worst.ran.push(Ran { kind: RanKind::Nmi, name: "NMI".into(), from_ns, duration_ns, ..Ran::default() });
    says(
        &text(&section),
        &["on CPU 1: 98.043 µs at ", ": NMI 7 µs, rest 27 µs. This is a defect of Punctual"],
    );
    assert!(json(&section, None).contains("\"exceeded\": true"));
    // The bound is for threads that no other delays.
    section.processors[0].measured[0].bounded_max_ns = Some(Duration::from_ns(98_042));
    assert!(!text(&section).contains("ABOVE"));
}

#[test]
fn what_was_missed_makes_a_bound_at_least_that() {
    let mut section = figure_24();
    section.processors[0].interrupts[0].at_least = true;
    section.processors[0].lost_records = 3;
    says(
        &text(&section),
        &[
            "LOST: 3 lost records.",
            "Bound: at least 98.042 µs",
            "sliding window ≥ 98.042 µs",
            "may be greater",
        ],
    );
}

#[test]
fn rules_that_the_kernel_watched_are_named() {
    let mut section = figure_24();
    says(&text(&section), &["monitors of the rules were not on"]);
    let rules = vec!["R6".to_owned()];
    let watched_ns = Duration::from_ms(1_000);
    section.monitors = vec![Monitor { name: "scpd".to_owned(), rules, watched_ns, violations: 0 }];
    says(
        &text(&section),
        &[
            "none violated: R6 (scpd) for 1 s. Not watched: R1 to R5, R7 to R14. No kernel has monitors of \
           R1 to R4, R13;",
            "No monitor was on for R5, R7 to R12, R14; not every kernel has one.",
        ],
    );
    let others = ["R5", "R6", "R7", "R8", "R9", "R10", "R11", "R12", "R14"];
    section.monitors[0].rules = others.map(str::to_owned).to_vec();
    let all = text(&section);
    says(&all, &["Not watched: R1 to R4, R13. No kernel has monitors of R1 to R4, R13; the bound rests on"]);
    assert!(!all.contains("No monitor was on"), "{all}");
    let value: serde_json::Value = serde_json::from_str(&json(&section, None)).expect("JSON");
    assert_eq!(value["rules"]["unwatched"], serde_json::json!(["R1", "R2", "R3", "R4", "R13"]));
    section.monitors[0].violations = 2;
    says(&text(&section), &["found 2 VIOLATIONS OF THE RULES that the bound rests on: it does not hold"]);
    says(&text(&section), &["NOT TO BE RELIED ON: the kernel's monitors found 2 VIOLATIONS OF THE RULES"]);
    let value: serde_json::Value = serde_json::from_str(&json(&section, None)).expect("JSON");
    let why = value["processors"][0]["unreliable"].as_str().expect("a reason");
    assert!(why.ends_with("rests on: R5 R6 R7 R8 R9 R10 R11 R12 R14 (scpd)."), "{why}");
}

#[test]
fn without_the_tracepoints_there_is_no_bound_and_a_reason() {
    let text = text(&measured_only());
    says(
        &text,
        &[
            "No bound: the kernel lacks the tracepoints preemptirq:* (CONFIG_PREEMPTIRQ_TRACEPOINTS",
            "(CONFIG_PREEMPTIRQ_TRACEPOINTS, which CONFIG_IRQSOFF_TRACER and CONFIG_PREEMPT_TRACER switch \
             on), and the rules that the bound rests on are those of PREEMPT_RT kernels, and this one is \
             built with PREEMPT_VOLUNTARY.",
            "Measured: at most 2.01 ms, on CPU 1. Latest timer: 150 µs late, on CPU 1.",
            "4,000 timers expired; mean lateness 3 µs, greatest 150 µs",
            "control (71) 1 FIFO 80 1 2.01 ms 2.01 ms 4 µs 2 ms 6 µs",
            "control (71): 2.01 ms at +1.000000 s: busy (72) 2 ms, vector 236 LOC 4 µs",
        ],
    );
    assert!(!text.contains("L_IF") && !text.contains("monitors"), "{text}");
}

#[test]
fn wakeups_that_were_not_seen_make_the_greatest_at_least_that() {
    let mut section = measured_only();
    let cpu = &mut section.processors[0];
    (cpu.measured[0].unmeasured, cpu.measured[0].wakeups) = (16, 1_982);
    cpu.timers.as_mut().expect("timers").lateness.at_least = true;
    says(
        &text(&section),
        &[
            "LOST: 16 unseen wake-ups.",
            "Measured: at least 2.01 ms, on CPU 1; 16 of 1,998 wake-ups were not seen. Latest timer: at \
             least 150 µs late, on CPU 1.",
            "FIFO 80 1,982 1.014 µs ≥ 2.01 ms",
            "16 not seen",
            "greatest at least 150 µs",
        ],
    );
    let value: serde_json::Value = serde_json::from_str(&json(&section, None)).expect("JSON");
    let cpu = &value["processors"][0];
    assert_eq!((&cpu["measured_max_ns"], &cpu["measured_at_least"]), (&2_010_000.into(), &true.into()));
    assert_eq!((&cpu["timers"]["max_ns"], &cpu["timers"]["at_least"]), (&150_000.into(), &true.into()));
    let thread = &cpu["measured"][0];
    assert_eq!((&thread["unseen"], &thread["at_least"]), (&16.into(), &true.into()));
    assert_eq!(thread["thread"]["id"]["name"], "control");
    assert_eq!(thread["worst"][0]["split"]["threads_ns"], 2_000_000);
    assert_eq!(cpu["interrupts"][0]["source"]["name"], "nvme0q1");
}

#[test]
fn what_ran_several_times_is_summed_up() {
    let mut section = measured_only();
    let ran = &mut section.processors[0].measured[0].worst[0].ran;
    ran.push(Ran { duration_ns: Duration::from_ns(3_000), ..ran[1].clone() });
    says(&text(&section), &["busy (72) 2 ms, vector 236 LOC 7 µs in 2 times"]);
}

#[test]
fn what_a_latency_was_made_of_is_named() {
    let mut section = figure_24();
    let worst = &mut section.processors[0].measured[0].worst[0];
    let ns = Duration::from_ns;
    worst.split = Some(Split {
        interrupts_ns: ns(4_000),
        sections_ns: ns(22_000),
        rest_ns: ns(1_000),
        ..Split::default()
    });
    let ran = |kind, name: &str, number, duration_ns| Ran {
        kind,
        name: name.into(),
        number,
        duration_ns,
        ..Ran::default()
    };
    worst.ran = vec![
        Ran {
            opened: Some("_raw_spin_lock_irqsave+0x19".into()),
            before_ns: Some(ns(3_000)),
            ..ran(RanKind::Poid, "php", 25_708, ns(9_000))
        },
        ran(RanKind::Interrupt, "LOC", 236, ns(3_000)),
        ran(RanKind::Interrupt, "", 0, ns(1_000)),
        ran(RanKind::Paie, "swapper/1", 0, ns(1_000)),
        ran(RanKind::Psd, "php", 25_708, ns(5_000)),
        ran(RanKind::St, "php", 25_708, ns(7_000)),
    ];
    says(
        &text(&section),
        &[
            "27 µs at +4.000000 s: D_POID of php (25708) from _raw_spin_lock_irqsave+0x19, open for 3 µs \
             before, 9 µs, vector 236 LOC 3 µs, interrupts that were not recorded 1 µs, D_PAIE of idle 1 µs, \
             D_PSD 5 µs, D_ST 7 µs, rest 1 µs",
            "27 µs 27 µs 4 µs 0 ns 22 µs 1 µs",
        ],
    );
}

#[test]
fn other_preemption_models_have_no_bound() {
    let mut section = figure_24();
    section.preemption = Preemption::Voluntary;
    let text = text(&section);
    says(
        &text,
        &[
            "No bound: the rules that the bound rests on are those of PREEMPT_RT",
            "PREEMPT_VOLUNTARY",
            "D_POID 22.51 µs",
        ],
    );
    assert!(json(&section, None).contains("\"bound_ns\": null"));
}

#[test]
fn json_has_every_bound_with_its_parts() {
    let value: serde_json::Value = serde_json::from_str(&json(&figure_24(), None)).expect("JSON");
    let cpu = &value["processors"][0];
    assert_eq!((&cpu["bound_ns"], &cpu["interference_free_ns"]), (&98_042.into(), &42_212.into()));
    assert_eq!(cpu["largest"]["variable"], "D_POID");
    assert_eq!(cpu["largest"]["culprit"]["thread"]["name"], "php");
    let bounds = cpu["bounds"].as_array().expect("six");
    assert_eq!(bounds.len(), 6);
    for bound in bounds.iter().filter(|bound| !bound["bound_ns"].is_null()) {
        let parts = bound["parts"].as_array().expect("parts");
        let sum: u64 = parts.iter().filter_map(|part| part["duration_ns"].as_u64()).sum();
        assert_eq!(Some(sum), bound["bound_ns"].as_u64(), "{bound}");
    }
    assert_eq!(bounds[4]["windows_ns"], serde_json::json!([42_212, 97_741, 98_042]));
    assert!(bounds[3]["bound_ns"].is_null(), "sporadic does not converge");
}

#[test]
fn from_due_is_shown_beside_the_latency_and_is_no_violation() {
    let mut section = figure_24();
    assert!(!text(&section).contains("From due"));
    section.processors[0].measured[0].from_due_max_ns = Some(Duration::from_ns(988_000));
    let shown = text(&section);
    says(&shown, &["From due to user space: at most 988 µs, on CPU 1.", "27 µs 98.042 µs 27.54 % 988 µs"]);
    assert!(!shown.contains("ABOVE"), "{shown}");
    let value: serde_json::Value = serde_json::from_str(&json(&section, None)).expect("JSON");
    assert_eq!(value["processors"][0]["measured"][0]["from_due_max_ns"], 988_000);
    assert_eq!(value["processors"][0]["exceeded"], false);
}

#[test]
fn without_what_ran_tables_and_programs_see_why() {
    let mut section = measured_only();
    let why = "an event between the wake-up and the thread's first instant reached no program";
    assert!(!json(&section, None).contains("ran_unknown"));
    let worst = &mut section.processors[0].measured[0].worst[0];
    worst.ran.clear();
    worst.split = None;
    says(&text(&section), &[&format!("control (71): 2.01 ms at +1.000000 s: what ran was not seen: {why}")]);
    let value: serde_json::Value = serde_json::from_str(&json(&section, None)).expect("JSON");
    assert_eq!(value["processors"][0]["measured"][0]["worst"][0]["ran_unknown"], why);
}

#[test]
fn why_there_is_no_bound_is_the_reason_of_the_measurement() {
    let mut section = measured_only();
    section.no_variables = Some(NoVariables::Privileges);
    let mut shown = text(&section);
    says(&shown, &["could not be read with the privileges of the measurement"]);
    assert!(!shown.contains("kernel lacks"), "{shown}");
    // Older files do not say.
    section.no_variables = None;
    shown = text(&section);
    says(&shown, &["were not observed, and the file does not say why"]);
    assert!(!shown.contains("kernel lacks"), "{shown}");
}

#[test]
fn negative_durations_make_a_bound_unreliable() {
    let mut section = figure_24();
    assert!(json(&section, None).contains("\"unreliable\": null"));
    section.processors[0].negative_durations = 3;
    let doubts =
        "NOT TO BE RELIED ON: 3 durations came out negative on CPU 1, which is a defect of Punctual.";
    says(&text(&section), &[&format!("{doubts} Bound: 98.042 µs, ")]);
    assert_eq!(unreliable(&Analysed::all(&section)), doubts);
    let value: serde_json::Value = serde_json::from_str(&json(&section, None)).expect("JSON");
    assert_eq!(value["processors"][0]["unreliable"], doubts);
    // Without a bound, there is nothing to rely on.
    section.preemption = Preemption::Full;
    assert_eq!(unreliable(&Analysed::all(&section)), "");
}

#[test]
fn a_recording_that_was_cut_off_is_no_whole_observation() {
    let mut section = figure_24();
    section.damaged_recordings = 1;
    let shown = text(&section);
    says(
        &shown,
        &["LOST: what came after 1 recording cut off or damaged.", "Measured: at least 27 µs on CPU 1"],
    );
    assert!(!shown.contains("nothing lost"), "{shown}");
    assert!(json(&section, None).contains("\"measured_at_least\": true"));
}

#[test]
fn sums_that_do_not_fit_are_no_bound() {
    let mut section = figure_24();
    let variables = section.processors[0].variables.as_mut().expect("there");
    for variable in [&mut variables.poid, &mut variables.psd, &mut variables.st, &mut variables.paie] {
        variable.max_ns = Duration::from_ns(u64::MAX);
    }
    let shown = text(&section);
    says(
        &shown,
        &["No bound: on CPU 1, the variables add up to more than", "no interrupts does not converge"],
    );
    let value: serde_json::Value = serde_json::from_str(&json(&section, None)).expect("JSON");
    assert!(value["processors"][0]["bound_ns"].is_null(), "{value}");
}
