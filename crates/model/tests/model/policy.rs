//! Scheduling policies in their notations.

use punctual_model::Policy;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Protocol(#[serde(with = "punctual_model::policy::lowercase")] Policy);

#[test]
fn every_notation_reads_back() {
    for policy in Policy::ALL {
        assert_eq!(Policy::from_number(policy.number()), Some(policy));
        assert_eq!(Policy::from_name(policy.name()), Some(policy));
        assert_eq!(policy.name(), format!("SCHED_{}", policy.short_name()));
        assert_eq!(policy.lowercase_name(), policy.short_name().to_lowercase());
        for value in [json!(policy), json!(Protocol(policy))] {
            let is_protocol = value.as_str().is_some_and(|name| !name.starts_with("SCHED_"));
            let read = match is_protocol {
                true => serde_json::from_value::<Protocol>(value).map(|Protocol(policy)| policy),
                false => serde_json::from_value(value),
            };
            assert_eq!(read.ok(), Some(policy));
        }
    }
}

#[test]
fn numbers_and_names_are_those_of_the_kernel() {
    let numbers = Policy::ALL.map(|policy| (policy.number(), policy.short_name()));
    let expected =
        [(0, "OTHER"), (1, "FIFO"), (2, "RR"), (3, "BATCH"), (5, "IDLE"), (6, "DEADLINE"), (7, "EXT")];
    assert_eq!(numbers, expected);
    assert_eq!(json!(Protocol(Policy::Rr)), json!("rr"));
    assert_eq!(json!(Policy::Rr), json!("SCHED_RR"));
}

#[test]
fn unknown_policies_are_refused() {
    assert_eq!(Policy::from_number(4), None);
    assert_eq!(Policy::from_name("FIFO"), None);
    assert!(serde_json::from_value::<Protocol>(json!("SCHED_FIFO")).is_err());
    let error = serde_json::from_value::<Policy>(json!("fifo")).expect_err("not a name").to_string();
    assert_eq!(
        error,
        "expected a scheduling policy (SCHED_OTHER, SCHED_FIFO, SCHED_RR, SCHED_BATCH, SCHED_IDLE, \
         SCHED_DEADLINE, SCHED_EXT), found \"fifo\""
    );
}
