//! Whatever bytes come, the answer is one reply or none, and what the daemon knows stays consistent. Nothing
//! is scheduled here: the caller is nobody.

use proptest::prelude::*;
use punctual_daemon::access::Who;
use punctual_daemon::config::{Config, Machine};
use punctual_daemon::journal::Journal;
use punctual_daemon::poll::Poll;
use punctual_daemon::protocol::{About, Answered, answer};
use punctual_daemon::registry::{Caller, Registry, Setup};
use punctual_linux::scheduling;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Child, Command};
use std::rc::Rc;

const CONFIG: &str = r#"
[quotas]
specs_per_user = 5
[rules]
file = "rules.conf"
[[plugin]]
name = "EDF"
kind = "EDF"
[[plugin]]
name = "RM"
kind = "RM"
priorities = [1, 20]
[[plugin]]
name = "FP"
kind = "FP"
priorities = [21, 22]
"#;

/// Far from any user's number.
const NOBODY: u32 = 4_000_000_000;

struct Rig {
    registry: Registry,
    caller: Caller,
    about: About,
    process: Child,
    folder: tempfile::TempDir,
}

fn setup(config: &str, folder: &Path, machine: &Machine) -> Setup {
    let (config, _) = Config::parse(config, &folder.join("punctuald.toml"), machine).unwrap();
    Setup::load(&config, scheduling::limits()).unwrap().0
}

impl Rig {
    fn new() -> Self {
        Self::with(CONFIG, &Machine::here())
    }

    fn with(config: &str, machine: &Machine) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("rules.conf"), "- - max_priority 99\n- - ignore_adm_test true\n")
            .unwrap();
        let setup = setup(config, folder.path(), machine);
        let (journal, _) = Journal::open(&folder.path().join("state")).unwrap();
        let mut registry = Registry::new(setup, scheduling::limits(), journal, Poll::new().unwrap()).unwrap();
        let process = Command::new("sleep").arg("1000").spawn().unwrap();
        let (pidfd, _) = punctual_linux::thread::pin_process(process.id()).unwrap();
        let key = registry.connected(process.id(), pidfd, NOBODY).unwrap();
        let who = Who { user: NOBODY, group: NOBODY, groups: vec![] };
        let caller = Caller::new(Rc::new(who), Some(key));
        Self { registry, caller, about: About::now(), process, folder }
    }

    /// One message in; the reply, if there is one.
    fn tell(&mut self, message: &[u8]) -> Option<Value> {
        let mut out = Vec::new();
        let answered = answer(message, &self.caller, &self.about, &mut self.registry, &mut out);
        let goes_on = !matches!(answered, Answered::NotVarlink);
        let reply = match out.split_last() {
            None => None,
            Some((0, text)) => Some(serde_json::from_slice(text).expect("a reply is JSON")),
            Some(_) => panic!("a reply ends with NUL"),
        };
        assert!(goes_on || reply.as_ref().is_some_and(|reply: &Value| reply.get("error").is_some()));
        reply
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Who keeps a place is there before anybody else asks for one, whatever their numbers; and a lower threshold
/// takes nothing back.
#[test]
fn a_reload_takes_no_capacity_from_connected_clients() {
    let machine = Machine { processors: vec![0, 1], priorities: (1, 99), ..Machine::default() };
    let config = |more: &str| {
        format!("[rules]\nfile = \"rules.conf\"\n[[plugin]]\nname = \"RM\"\nkind = \"RM\"\n{more}\n")
    };
    let mut rig = Rig::with(&config("processors = [0, 1]"), &machine);
    let parameters = json!({ "runtime_ns": 9_000_000, "period_ns": 10_000_000 });
    let call = json!({
        "method": "io.punctual.Scheduler1.CreateSpec",
        "parameters": { "parameters": parameters }
    });
    let mut create = || {
        let admission = &rig.tell(call.to_string().as_bytes()).unwrap()["parameters"]["admission"];
        (admission["spec"].as_u64().unwrap(), admission["processor"].as_u64().unwrap())
    };
    let ((_, first), (second, other)) = (create(), create());
    assert_eq!((first, other), (0, 1));
    rig.registry.reload(setup(&config("processors = [1]\nutilization = 0.5"), rig.folder.path(), &machine));
    let specs = rig.tell(br#"{"method":"io.punctual.Scheduler1.ListSpecs"}"#).unwrap();
    let specs = specs["parameters"]["specs"].as_array().unwrap();
    let numbers: Vec<_> = specs.iter().map(|spec| spec["admission"]["spec"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [second]);
}

/// An unprivileged user once reached 1.60 of 0.95 in this way.
#[test]
fn a_spec_without_a_runtime_does_not_switch_the_test_off() {
    let machine = Machine { processors: vec![0], priorities: (1, 99), ..Machine::default() };
    let config = "[rules]\nfile = \"rules.conf\"\n[[plugin]]\nname = \"FP\"\nkind = \"FP\"\n";
    let mut rig = Rig::with(config, &machine);
    let mut create = |parameters: Value| {
        let call = json!({
            "method": "io.punctual.Scheduler1.CreateSpec",
            "parameters": { "parameters": parameters }
        });
        rig.tell(call.to_string().as_bytes()).unwrap()
    };
    let heavy = |priority| json!({ "runtime_ns": 8_000_000, "period_ns": 10_000_000, "priority": priority });
    assert!(create(json!({ "priority": 1 })).get("error").is_none());
    assert!(create(heavy(20)).get("error").is_none());
    let refused = create(heavy(30));
    assert_eq!(refused["error"], json!("io.punctual.Scheduler1.NotAdmitted"));
    assert_eq!(
        refused["parameters"]["reasons"],
        json!([
            "FP: utilization, processor 0: 80.00 % needed, 80.00 % already taken, the threshold is 95.00 %"
        ])
    );
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => (0u64..12).prop_map(Value::from),
        4 => (1_000u64..100_000_000).prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => ".{0,6}".prop_map(Value::from),
    ]
}

fn parameters() -> impl Strategy<Value = Value> {
    let field = prop_oneof![
        8 => prop::sample::select(vec!["runtime_ns", "desired_runtime_ns", "period_ns", "deadline_ns",
            "priority"]).prop_map(str::to_owned),
        1 => ".{0,4}",
    ];
    let plugin = prop_oneof![
        Just(Value::Null),
        prop::sample::select(vec!["EDF", "RM", "FP", "X"]).prop_map(Value::from)
    ];
    (
        prop::collection::vec((field, number()), 0..5),
        prop::option::of(plugin),
        prop::option::of(any::<bool>()),
    )
        .prop_map(|(fields, plugin, ignore)| {
            let mut object: serde_json::Map<String, Value> = fields.into_iter().collect();
            object.extend(plugin.map(|plugin| ("plugin".to_owned(), plugin)));
            object.extend(ignore.map(|ignore| ("ignore_admission".to_owned(), ignore.into())));
            object.into()
        })
}

fn message() -> impl Strategy<Value = Vec<u8>> {
    let scheduler = |method: &'static str| format!("io.punctual.Scheduler1.{method}");
    let call = prop_oneof![
        4 => (parameters(), prop::option::of(".{0,70}"))
            .prop_map(|(parameters, name)| ("CreateSpec", json!({ "parameters": parameters, "name": name }))),
        3 => (number(), parameters()).prop_map(|(spec, parameters)| ("ChangeSpec",
            json!({ "spec": spec, "parameters": parameters }))),
        2 => (number(), number()).prop_map(|(spec, thread)| ("AttachThread",
            json!({ "spec": spec, "thread": thread }))),
        1 => (number(), number(), number()).prop_map(|(spec, thread, jobs)| ("ReportUse", json!({
            "spec": spec, "thread": thread,
            "used": { "jobs": jobs, "worst_cost_ns": jobs, "overruns": jobs }
        }))),
        3 => (prop::sample::select(vec!["ReleaseSpec", "DetachThread", "GetSpec"]), number())
            .prop_map(|(method, spec)| (method, json!({ "spec": spec }))),
        1 => prop::sample::select(vec!["ListSpecs", "ListPlugins", "ListClients", "GetStatus", "Ping",
            "Nothing"]).prop_map(|method| (method, json!({}))),
    ];
    let whole = (call, prop::option::of(any::<bool>())).prop_map(move |((method, parameters), oneway)| {
        json!({ "method": scheduler(method), "parameters": parameters, "oneway": oneway })
            .to_string()
            .into_bytes()
    });
    // And the same with some bytes that are wrong.
    let harmed = (whole.clone(), prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4))
        .prop_map(|(mut bytes, changes)| {
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes
        });
    prop_oneof![6 => whole, 2 => harmed, 1 => prop::collection::vec(any::<u8>(), 0..60)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn every_message_is_answered_and_the_books_balance(messages in prop::collection::vec(message(), 1..60)) {
        let mut rig = Rig::new();
        for message in &messages {
            rig.tell(message);
        }
        let specs = rig.tell(br#"{"method":"io.punctual.Scheduler1.ListSpecs"}"#)
            .unwrap()["parameters"]["specs"].as_array().unwrap().clone();
        prop_assert!(specs.len() <= 5);
        for plugin in rig.tell(br#"{"method":"io.punctual.Scheduler1.ListPlugins"}"#)
            .unwrap()["parameters"]["plugins"].as_array().unwrap() {
            for processor in plugin["processors"].as_array().unwrap() {
                let theirs = specs.iter().filter(|spec| spec["admission"]["plugin"] == plugin["name"]
                    && spec["admission"]["processor"] == processor["number"]);
                prop_assert_eq!(&processor["specs"], &json!(theirs.count()));
            }
        }
        for spec in &specs {
            let call = json!({ "method": "io.punctual.Scheduler1.ReleaseSpec",
                "parameters": { "spec": spec["admission"]["spec"] } });
            prop_assert_eq!(rig.tell(call.to_string().as_bytes()), Some(json!({ "parameters": {} })));
        }
        for plugin in rig.tell(br#"{"method":"io.punctual.Scheduler1.ListPlugins"}"#)
            .unwrap()["parameters"]["plugins"].as_array().unwrap() {
            for processor in plugin["processors"].as_array().unwrap() {
                prop_assert_eq!((&processor["specs"], &processor["utilization"]), (&json!(0), &json!(0.0)));
            }
        }
        prop_assert_eq!(rig.registry.counts(), (0, 0));
    }

    /// Bytes that are nothing never do anything.
    #[test]
    fn a_message_is_a_call_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = punctual_daemon::protocol::parse(&bytes);
    }
}
