//! The configuration: what is understood, what is refused and how that is said.

use proptest::prelude::*;
use punctual_daemon::config::{Config, DEFAULT_TEXT, Kind, Machine, Quotas};
use punctual_model::latency::{Preemption, Processor, SchedulingLatency, Variable, Variables};
use punctual_model::{Duration, Instant, Threads, TimingModel};
use punctual_schedule::{Answer, Kind as BuiltIn, Limits, Parameters, Reserve, ReserveKind, Test};
use std::path::Path;

fn machine() -> Machine {
    Machine { processors: vec![0, 1, 2, 3], priorities: (1, 99), ..Machine::default() }
}

fn parse(text: &str) -> Result<(Config, Vec<String>), String> {
    Config::parse(text, Path::new("/etc/p/p.toml"), &machine())
        .map(|(config, warnings)| (config, warnings.iter().map(ToString::to_string).collect()))
        .map_err(|error| error.to_string())
}

const RM: &str = "[[plugin]]\nname = \"RM\"\nkind = \"RM\"\n";

#[test]
fn the_default_is_valid_without_a_warning_and_lifts_nothing() {
    let (config, warnings) = parse(DEFAULT_TEXT).unwrap();
    assert_eq!(warnings, [""; 0]);
    assert_eq!(config.plugin_names(), ["RM"]);
    assert!(
        config.plugins.iter().all(|plugin| !plugin.kind.is_edf()),
        "with EDF, sched_rt_runtime_us would be lifted"
    );
    assert_eq!(config.plugins[0].priorities, (10, 49), "below the kernel's threaded interrupts");
    assert_eq!(config.rules.as_deref(), Some(Path::new("/etc/punctual/rules.conf")));
}

/// A timing model of what the kernel took on processors 1 and 2.
fn observed_kernel() -> TimingModel {
    let variable = |us| Variable { max_ns: Duration::from_us(us), ..Variable::default() };
    let variables = Variables { poid: variable(40), psd: variable(5), st: variable(9), paie: variable(1) };
    let processor = |cpu| Processor { cpu, variables: Some(variables.clone()), ..Processor::default() };
    let latency = SchedulingLatency {
        from_ns: Instant::from_ns(0),
        until_ns: Instant::from_ns(9),
        kernel: "6.1.0".into(),
        preemption: Preemption::Rt,
        no_variables: None,
        damaged_recordings: 0,
        horizon_ns: Duration::from_ms(50),
        processors: [1, 2].map(processor).to_vec(),
        monitors: Vec::new(),
    };
    TimingModel { latency: Some(latency), ..TimingModel::new("monotonic") }
}

#[test]
fn a_plugin_counts_the_latency_of_a_timing_model() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kernel.timing.json");
    std::fs::write(&file, observed_kernel().to_json()).unwrap();
    let parse = |plugin: &str| {
        let text = format!("[[plugin]]\nname = \"A\"\n{plugin}\nlatency = \"kernel.timing.json\"");
        let config = Config::parse(&text, &folder.path().join("p.toml"), &machine());
        config.map_err(|error| error.to_string()).map(|(config, warnings)| {
            assert_eq!(warnings, []);
            config
        })
    };
    let config = parse("kind = \"RM\"\nprocessors = [1, 2]").unwrap();
    let us = Duration::from_us;
    let platforms = &config.plugins[0].platforms;
    let known: Vec<_> = platforms.iter().map(|it| (it.cpu, it.blocking, it.switch)).collect();
    assert_eq!(known, [(1, us(46), us(6)), (2, us(46), us(6))]);
    // 1 ms of work and 46 µs of the kernel.
    let plugin = &config.plugins(Limits::default()).unwrap()[0];
    let asks = |deadline| Parameters {
        runtime: Some(us(1_000)),
        period: Some(us(10_000)),
        deadline: Some(us(deadline)),
        ..Parameters::default()
    };
    assert!(matches!(plugin.consider(&asks(1_046), None), Answer::Ok(_)));
    assert!(matches!(plugin.consider(&asks(1_045), None), Answer::No(_)));

    let wrong = |plugin: &str| parse(plugin).unwrap_err();
    assert!(wrong("kind = \"RM\"\nprocessors = [0, 1]").contains("has no latency bound of processor 0"));
    assert!(wrong("kind = \"EDF\"\nprocessors = [1]").contains("only in the exact test of RM, FP and RR"));
    let simple = "kind = \"FP\"\nprocessors = [1]\nadmission = \"utilization\"";
    assert!(wrong(simple).contains("only in the exact test of RM, FP and RR"));
    let without = TimingModel { threads: Some(Threads::default()), ..TimingModel::new("monotonic") };
    std::fs::write(&file, without.to_json()).unwrap();
    assert!(wrong("kind = \"RM\"\nprocessors = [1]").contains("has no section `latency`"));
    std::fs::write(&file, "{").unwrap();
    assert!(wrong("kind = \"RM\"\nprocessors = [1]").contains("is not a timing model"));
    std::fs::remove_file(&file).unwrap();
    assert!(wrong("kind = \"RM\"\nprocessors = [1]").contains("no such file or directory"));
}

/// The file still counts: without it, an update of the kernel would leave the machine without its scheduler.
#[test]
fn latency_of_another_machine_is_doubted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kernel.timing.json");
    let platform = |kernel: &str, cpus| punctual_model::Platform {
        kernel: kernel.into(),
        machine: "x86_64".into(),
        cpus,
    };
    let doubt = |platform, machine: &Machine| {
        let model = TimingModel { platform: Some(platform), ..observed_kernel() };
        std::fs::write(&file, model.to_json()).unwrap();
        let text =
            "[[plugin]]\nname = \"A\"\nkind = \"RM\"\nprocessors = [1, 2]\nlatency = \"kernel.timing.json\"";
        let (config, warnings) = Config::parse(text, &folder.path().join("p.toml"), machine).unwrap();
        let plugin = &config.plugins[0];
        assert_eq!((plugin.platforms.len(), warnings.len()), (2, usize::from(plugin.doubt.is_some())));
        plugin.doubt.clone()
    };
    let here = Machine { kernel: "6.1.0".into(), hardware: "x86_64".into(), ..machine() };
    assert_eq!(doubt(platform("6.1.0", 4), &here), None);
    // Nothing is known of a machine, and nothing of the model's.
    assert_eq!(doubt(platform("6.1.0", 0), &machine()), None);
    let updated = Machine { kernel: "6.1.1".into(), ..here.clone() };
    let why = doubt(platform("6.1.0", 8), &updated).unwrap();
    assert!(why.contains("observed on kernel 6.1.0, not 6.1.1; 8 processors online, not 4"), "{why}");
    assert!(why.contains("measure again"), "{why}");
    let other = Machine { hardware: "aarch64".into(), ..here };
    assert!(doubt(platform("6.1.0", 4), &other).unwrap().contains("on x86_64, not aarch64"));
}

/// The paper's configuration: EDF above all priorities that there are.
#[test]
fn edf_may_have_any_priorities() {
    let text = |kind: &str, priorities: &str| {
        format!("[[plugin]]\nname = \"A\"\nkind = \"{kind}\"\npriorities = {priorities}")
    };
    let (config, warnings) = parse(&text("EDF", "[100, 100]")).unwrap();
    assert_eq!(config.plugins[0].priorities, machine().priorities);
    assert!(warnings.iter().any(|warning| warning.contains("priorities mean nothing")), "{warnings:?}");
    assert!(parse(&text("RM", "[100, 100]")).is_err());
    assert!(parse(&text("EDF", "[100]")).is_err());
}

#[test]
fn commented_defaults_are_the_actual_defaults() {
    // Uncomment all that is `#key = value` or `#[[plugin]]`; prose has a space after the sign.
    let uncommented: Vec<&str> = DEFAULT_TEXT
        .lines()
        .map(|line| line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line))
        .collect();
    let (shown, _) = parse(&uncommented.join("\n")).unwrap();
    let (bare, _) = parse(RM).unwrap();
    assert_eq!(
        Config { rules: None, realtimekit: None, plugins: Vec::new(), ..shown.clone() },
        Config { plugins: Vec::new(), socket: shown.socket.clone(), ..bare.clone() }
    );
    assert_eq!((&shown.socket.path, shown.socket.mode), (&bare.socket.path, bare.socket.mode));
    assert_eq!(shown.plugin_names(), ["RM", "FP", "RR", "EDF", "GEDF", "NICE", "TT", "mine"]);
    let (shown, bare) = (&shown.plugins[0], &bare.plugins[0]);
    assert_eq!((shown.threshold, shown.test), (bare.threshold, bare.test));
}

#[test]
fn every_key_is_understood() {
    let text = r#"
        [socket]
        path = "s"
        mode = "0660"
        group = "root"
        [state]
        directory = "/run/x"
        [rules]
        file = "r.conf"
        [quotas]
        connections = 7
        connections_per_user = 6
        specs = 5
        specs_per_user = 4
        [kernel]
        lift_realtime_limit = false
        [[plugin]]
        name = "one"
        kind = "RM"
        priorities = [10, 20]
        processors = "0,2-3"
        utilization = 0.7
        admission = "utilization"
        [[plugin]]
        name = "two"
        object = "lib/two.so"
        processors = [1]
        utilization = 1
    "#;
    let (config, warnings) = parse(text).unwrap();
    assert_eq!(warnings, [""; 0]);
    assert_eq!(config.socket.path, Path::new("/etc/p/s"));
    assert_eq!((config.socket.mode, config.socket.group), (0o660, Some(0)));
    assert_eq!(
        (config.state.as_path(), config.rules.as_deref()),
        (Path::new("/run/x"), Some(Path::new("/etc/p/r.conf")))
    );
    assert_eq!(
        config.quotas,
        Quotas { connections: 7, connections_per_user: 6, specs: 5, specs_per_user: 4 }
    );
    assert!(!config.lift_realtime_limit);
    let [one, two] = config.plugins.as_slice() else { panic!("{:?}", config.plugins) };
    assert_eq!(
        (one.kind.clone(), one.priorities, one.processors.as_slice()),
        (Kind::BuiltIn(BuiltIn::Rm), (10, 20), &[0, 2, 3][..])
    );
    assert_eq!((one.threshold, one.test), (0.7, Test::Utilization));
    assert_eq!((two.kind.clone(), two.priorities), (Kind::Object("/etc/p/lib/two.so".into()), (1, 99)));
    assert_eq!((two.threshold, two.test), (1.0, Test::Exact));
}

#[test]
fn errors_name_the_place() {
    let plugin = |rest: &str| format!("[[plugin]]\nname = \"X\"\nkind = \"RM\"\n{rest}\n");
    let cases: Vec<(String, &str)> = vec![
        ("".into(), "p.toml: names no plugin"),
        ("[[plugin]\n".into(), "p.toml:1:"),
        ("sockets = 1\n".into(), "p.toml:1:1: unknown field `sockets`, expected one of"),
        (plugin("prio = 3"), "p.toml:4:1: unknown field `prio`, expected one of"),
        ("[[plugin]]\nkind = \"RM\"\n".into(), "missing field `name`"),
        ("[[plugin]]\nname = \"X\"\n".into(), "p.toml:2:8: plugin 'X' is nothing yet; expected kind ="),
        (
            "[[plugin]]\nname = \"X\"\nkind = \"RMS\"\n".into(),
            "p.toml:3:8: kind 'RMS' is unknown; expected \"EDF\", \"RM\", \"FP\", \"RR\", \"GEDF\", \
             \"NICE\" or \"TT\"",
        ),
        ("[[plugin]]\nname = \"X\"\nkind = \"EDF.so\"\n".into(), "; a shared object goes to object"),
        (plugin("object = \"/x.so\""), "p.toml:4:10: plugin 'X' has both kind and object"),
        (format!("{RM}{RM}"), "p.toml:5:8: another plugin is called 'RM' already"),
        (
            plugin("priorities = [0, 50]"),
            "p.toml:4:14: priorities = [0, 50] is out of range; SCHED_FIFO and SCHED_RR have 1 to 99 here",
        ),
        (plugin("priorities = [50, 100]"), "out of range"),
        (plugin("priorities = [50, 1]"), "priorities = [50, 1] is empty; the least comes first"),
        (plugin("priorities = [50]"), "expected priorities = [least, greatest], of 1 to 99"),
        (plugin("priorities = \"1-50\""), "expected priorities = [least, greatest]"),
        (plugin("processors = [4]"), "p.toml:4:14: processor 4 is not online here; there are 0-3"),
        (plugin("processors = \"2-9\""), "processor 4 is not online here"),
        (plugin("processors = []"), "no processor; leave processors out for all of them"),
        (plugin("processors = [-1]"), "expected processors such as [0, 2, 3] or \"0,2-3\""),
        (plugin("processors = \"a\""), "'a' is not a processor or a range of them"),
        (plugin("processors = 1.5"), "expected processors such as"),
        (plugin("utilization = 0"), "p.toml:4:15: utilization = 0 is out of range"),
        (plugin("utilization = 1.01"), "utilization = 1.01 is out of range"),
        (plugin("utilization = -0.5"), "out of range"),
        (plugin("utilization = nan"), "out of range"),
        (plugin("utilization = inf"), "out of range"),
        (
            plugin("utilization = \"0.5\""),
            "out of range; expected a share of each processor above 0 and at most 1, such as 0.95",
        ),
        (
            plugin("admission = \"none\""),
            "admission 'none' is unknown; expected \"exact\" or \"utilization\"",
        ),
        ("[[plugin]]\nname = \"-\"\nkind = \"RM\"\n".into(), "'-' means any plugin in a rule"),
        ("[[plugin]]\nname = \"a b\"\nkind = \"RM\"\n".into(), "' ' cannot be in a plugin's name"),
        ("[[plugin]]\nname = \"\"\nkind = \"RM\"\n".into(), "a plugin's name has 1 to 31 bytes"),
        (
            format!("[[plugin]]\nname = \"{}\"\nkind = \"RM\"\n", "x".repeat(32)),
            "a plugin's name has 1 to 31 bytes",
        ),
        (format!("[quotas]\nspecs = 0\n{RM}"), "p.toml:2:9: specs = 0 is out of range; expected 1 to 65536"),
        (format!("[quotas]\nconnections = -3\n{RM}"), "connections = -3 is out of range"),
        (
            format!("[socket]\nmode = \"888\"\n{RM}"),
            "mode '888' is not valid; expected octal digits such as \"0660\"",
        ),
        (format!("[socket]\nmode = \"10000\"\n{RM}"), "mode '10000' is not valid"),
        (format!("[socket]\nmode = 666\n{RM}"), "invalid type: integer `666`, expected a string"),
        (
            format!("[socket]\ngroup = \"no-such-group\"\n{RM}"),
            "p.toml:2:9: there is no group 'no-such-group' here",
        ),
        (format!("[socket]\npath = \"\"\n{RM}"), "expected a path"),
        (
            format!("[socket]\npath = \"/{}\"\n{RM}", "x".repeat(107)),
            "is too long for a socket, whose path has at most 107 bytes",
        ),
        (
            (0..65).map(|n| format!("[[plugin]]\nname = \"p{n}\"\nkind = \"FP\"\n")).collect(),
            "more than 64 plugins",
        ),
    ];
    for (text, expected) in cases {
        let message = parse(&text).expect_err(&text);
        assert!(
            message.contains(expected) && message.starts_with("/etc/p/p.toml:"),
            "{text}\nmessage  {message}\nexpected {expected}"
        );
    }
}

#[test]
fn all_errors_are_reported_at_once_and_in_order() {
    let text = "[socket]\nmode = \"9\"\n[quotas]\nspecs = 0\n\
                [[plugin]]\nname = \"X\"\nkind = \"Y\"\nutilization = 2\n";
    let message = parse(text).unwrap_err();
    let places: Vec<&str> = message.lines().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(places, ["/etc/p/p.toml:2:8", "/etc/p/p.toml:4:9", "/etc/p/p.toml:7:8", "/etc/p/p.toml:8:15"]);
}

#[test]
fn shared_processors_are_warned_about_with_the_order_of_plugins() {
    let two = |one: &str, other: &str| {
        let (_, warnings) =
            parse(&format!("[[plugin]]\nname = \"A\"\n{one}\n[[plugin]]\nname = \"B\"\n{other}\n")).unwrap();
        warnings
    };
    assert_eq!(two("kind = \"RM\"\nprocessors = [0, 1]", "kind = \"RM\"\nprocessors = \"2-3\""), [""; 0]);
    assert_eq!(
        two(
            "kind = \"RM\"\nprocessors = [0, 1, 3]\nutilization = 0.5",
            "kind = \"EDF\"\nprocessors = \"1-3\"\nutilization = 0.5"
        ),
        ["/etc/p/p.toml:7:8: 'A' and 'B' share processors 1,3: whatever 'B' admits runs before what 'A' \
             admits, which 'A' does not count. What they promise holds only on processors of their own"]
    );
    let warnings =
        two("kind = \"RM\"\npriorities = [50, 99]\nprocessors = [2]", "kind = \"FP\"\npriorities = [1, 49]");
    assert!(
        warnings[0].contains(
            "share processor 2: whatever 'A' admits runs before what 'B' admits, which 'B' \
                              does not count; together they may give out 1.90 of each"
        ),
        "{warnings:?}"
    );
    let warnings = two("kind = \"RM\"\npriorities = [50, 99]", "kind = \"FP\"\npriorities = [1, 50]");
    assert!(
        warnings[0].contains(
            "share processors 0-3: threads of either may run before those of the other, and \
                          neither counts them"
        ),
        "{warnings:?}"
    );
}

#[test]
fn unusable_edf_is_warned_about() {
    let text = "[kernel]\nlift_realtime_limit = false\n\
                [[plugin]]\nname = \"EDF\"\nkind = \"EDF\"\npriorities = [1, 2]\n";
    let (_, warnings) = parse(text).unwrap();
    let expected = ":4:8: plugin 'EDF' refuses every spec as long as sched_rt_runtime_us is not -1";
    assert!(warnings.iter().any(|warning| warning.contains(expected)), "{warnings:?}");
    assert!(
        warnings.iter().any(|warning| warning.contains(":6:14: priorities mean nothing to 'EDF'")),
        "{warnings:?}"
    );
}

#[test]
fn global_edf_on_some_processors_needs_a_partition() {
    let text = "[[plugin]]\nname = \"G\"\nkind = \"GEDF\"\n";
    let (_, warnings) = parse(text).unwrap();
    assert_eq!(warnings, [""; 0]);
    let (_, warnings) = parse(&format!("{text}processors = [1, 2]\n")).unwrap();
    let expected = ":2:8: plugin 'G' takes only threads that may run on exactly its processors";
    assert!(warnings.iter().any(|warning| warning.contains(expected)), "{warnings:?}");
}

#[test]
fn plugins_are_made_in_their_order() {
    let text = "[[plugin]]\nname = \"b\"\nkind = \"RM\"\n\
                [[plugin]]\nname = \"a\"\nkind = \"EDF\"\nprocessors = [1]\n";
    let plugins = parse(text).unwrap().0.plugins(Limits::default()).unwrap();
    let shown: Vec<(&str, usize)> =
        plugins.iter().map(|plugin| (plugin.name(), plugin.loads().len())).collect();
    assert_eq!(shown, [("b", 4), ("a", 1)]);
    let (config, _) = parse("[[plugin]]\nname = \"mine\"\nobject = \"/no/such.so\"\n").unwrap();
    let message = config.plugins(Limits::default()).unwrap_err().to_string();
    assert!(message.starts_with("/etc/p/p.toml: plugin 'mine' cannot be made: /no/such.so"), "{message}");
}

#[test]
fn a_file_is_loaded_for_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("punctuald.toml");
    std::fs::write(&path, RM).unwrap();
    let (config, _) = Config::load(&path).unwrap();
    assert_eq!(config.plugins[0].processors, Machine::here().processors);
    assert_eq!(config.rules, None);
    assert!(Config::load(&folder.path().join("none")).unwrap_err().to_string().contains("no such file"));
}

#[test]
fn deep_nesting_is_an_error() {
    let deep = 200_000;
    for text in [
        format!("a = {}{}", "[".repeat(deep), "]".repeat(deep)),
        format!("a = {}", "{a = ".repeat(deep)),
        format!("{}a = 1", "a.".repeat(deep)),
        format!("[{}a]", "a.".repeat(deep)),
        format!("[quotas]\nspecs = {}", "9".repeat(deep)),
        "[[plugin]]\n".repeat(deep / 10),
    ] {
        assert!(parse(&text).is_err());
    }
}

/// Text that is nearly a configuration: pieces of the default, and of what is wrong in it.
fn nearly() -> impl Strategy<Value = String> {
    let words: Vec<String> = DEFAULT_TEXT
        .split_inclusive(|c: char| c.is_whitespace() || c == '=')
        .map(|word| word.trim_start_matches('#').to_owned())
        .collect();
    let odd = [
        "[",
        "]]",
        "\"",
        "'''",
        "=",
        "\0",
        "π",
        "-1",
        "1e999",
        "9223372036854775808",
        "0x",
        "\n",
        "{",
        "1979-05-27",
        "name=",
        "\u{feff}",
    ];
    let word = prop_oneof![4 => prop::sample::select(words),
        1 => prop::sample::select(odd.map(str::to_owned).to_vec()), 1 => any::<String>()];
    prop::collection::vec(word, 0..60).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_text_makes_the_reader_panic_and_every_error_names_the_file(text in nearly()) {
        match Config::parse(&text, Path::new("/f"), &machine()) {
            Ok((config, _)) => prop_assert!(!config.plugins.is_empty()),
            Err(error) => prop_assert!(!error.0.is_empty()
                && error.to_string().lines().all(|line| line.starts_with("/f:")), "{error}"),
        }
    }

    #[test]
    fn a_changed_byte_in_the_default_is_refused_or_valid(at in 0..DEFAULT_TEXT.len(), byte in any::<u8>()) {
        let mut bytes = DEFAULT_TEXT.as_bytes().to_vec();
        bytes[at] = byte;
        if let Ok((config, _)) = Config::parse(&String::from_utf8_lossy(&bytes), Path::new("/f"),
            &machine()) {
            for plugin in &config.plugins {
                prop_assert!(plugin.priorities.0 >= 1 && plugin.priorities.0 <= plugin.priorities.1
                    && plugin.priorities.1 <= 99);
                prop_assert!(plugin.threshold > 0.0 && plugin.threshold <= 1.0
                    && !plugin.processors.is_empty());
            }
        }
    }
}

#[test]
fn one_plugin_serves_all_tables_and_has_no_settings() {
    let tt = |name: &str, more: &str| format!("[[plugin]]\nname = \"{name}\"\nkind = \"tt\"\n{more}");
    let (config, warnings) = parse(&(RM.to_owned() + &tt("TT", ""))).unwrap();
    assert_eq!((warnings.len(), config.plugins.last().map(|it| it.kind.clone())), (0, Some(Kind::Table)));
    let (_, warnings) = parse(&tt("TT", "processors = [0]\npriorities = [1, 2]\n")).unwrap();
    assert!(warnings.len() == 2 && warnings[0].contains("means nothing to 'TT'"), "{warnings:?}");
    let error = parse(&(tt("TT", "") + &tt("other", ""))).unwrap_err().to_string();
    assert!(error.contains("another plugin is of kind"), "{error}");
}

#[test]
fn examples_in_the_documents_are_valid() {
    let wide = Machine { processors: (0..8).collect(), priorities: (1, 99), ..Machine::default() };
    let mut shown = 0;
    for name in ["daemon.md", "from-rtkit.md"] {
        let text =
            std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name))
                .unwrap();
        for block in text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
            // A part of a file needs a plugin to be whole.
            let whole =
                if block.contains("[[plugin]]") { block.to_owned() } else { RM.to_owned() + "\n" + block };
            if let Err(error) = Config::parse(&whole, Path::new(name), &wide) {
                panic!("{error}\n{block}");
            }
            shown += 1;
        }
    }
    assert_eq!(shown, 5);
}

#[test]
fn what_the_kernel_keeps_is_read_or_configured() {
    let fair = |processor| Reserve {
        processor,
        kind: ReserveKind::FairServer,
        runtime: Duration::from_ms(50),
        period: Duration::from_ms(1000),
    };
    let throttle = Reserve { kind: ReserveKind::Throttle, ..fair(1) };
    let here = Machine { reserves: vec![fair(0), fair(1), throttle], ..machine() };
    let reserves = |kernel: &str, plugin: &str| {
        let text = format!("[kernel]\n{kernel}\n{RM}processors = [1]\n{plugin}");
        let (config, _) =
            Config::parse(&text, Path::new("p.toml"), &here).map_err(|error| error.to_string())?;
        Ok::<_, String>(config.plugins[0].reserves.clone())
    };
    assert_eq!(reserves("", ""), Ok(vec![fair(1), throttle]));
    assert_eq!(reserves("", "admission = \"utilization\""), Ok(vec![]), "the paper's test");
    assert_eq!(reserves("fair_server = \"none\"", ""), Ok(vec![throttle]));
    assert_eq!(reserves("realtime_throttle = \"none\"\nfair_server = \"kernel\"", ""), Ok(vec![fair(1)]));
    let given = reserves("fair_server = [20000, 500000]\nrealtime_throttle = \"none\"", "").unwrap();
    assert_eq!(
        given,
        [Reserve { runtime: Duration::from_ms(20), period: Duration::from_ms(500), ..fair(1) }]
    );
    for wrong in ["5", "\"some\"", "[1]", "[1000000, 1000000]", "[-1, 5]", "[1, 60000001]"] {
        let why = reserves(&format!("fair_server = {wrong}"), "").unwrap_err();
        assert!(why.contains("p.toml:2:15: ") && why.contains("such as [50000, 1000000]"), "{why}");
    }
}

#[test]
fn measuring_is_chosen() {
    use punctual_daemon::enforce::Accounting::{Always, IfRefused, Never};
    let ask = |text: &str| {
        let plugin = "[[plugin]]\nname = 'RM'\nkind = 'RM'\n";
        Config::parse(&format!("{text}{plugin}"), Path::new("/c/p.toml"), &Machine::here())
            .map(|(config, _)| (config.enforcement.polls, config.enforcement.accounting))
            .map_err(|error| error.to_string())
    };
    let chosen = |name: &str| ask(&format!("[enforcement]\nmeasuring = '{name}'\n"));
    assert_eq!(chosen("events"), Ok((false, Never)));
    assert_eq!(chosen("polling"), Ok((true, Never)));
    assert_eq!(chosen("accounting"), Ok((true, Always)));
    assert_eq!(chosen("auto"), ask(""));
    assert_eq!(ask("").map(|(_, accounting)| accounting), Ok(IfRefused));
    let error = chosen("accounts").unwrap_err();
    assert!(error.contains("expected \"auto\", \"events\", \"polling\", \"accounting\""), "{error}");
}

#[test]
fn clamps_are_shares_of_the_capacity() {
    use punctual_linux::scheduling::Clamps;
    let ask = |kind: &str, clamps: bool, text: &str| {
        let machine = Machine { clamps, ..machine() };
        let text = format!("[[plugin]]\nname = 'P'\nkind = '{kind}'\n{text}");
        Config::parse(&text, Path::new("/c/p.toml"), &machine)
            .map(|(config, warnings)| {
                let plugin = &config.plugins[0];
                (plugin.clamps, plugin.doubt.is_some(), warnings.len())
            })
            .map_err(|error| error.to_string())
    };
    let none = Clamps::default();
    assert_eq!(ask("RM", true, ""), Ok((none, false, 0)));
    let both = Clamps { min: Some(512), max: Some(1024) };
    assert_eq!(ask("RM", true, "util_min = 0.5\nutil_max = 1"), Ok((both, false, 0)));
    assert_eq!(ask("RM", false, "util_min = 0.5\nutil_max = 1"), Ok((both, true, 1)));
    let one = Clamps { min: None, max: Some(0) };
    assert_eq!(ask("NICE", true, "util_max = 0"), Ok((one, false, 0)));
    // They mean nothing where the kernel knows the utilization itself, or a table decides.
    assert_eq!(ask("EDF", true, "util_min = 1.0"), Ok((none, false, 1)));
    assert_eq!(ask("TT", true, "util_min = 1.0"), Ok((none, false, 1)));
    for (text, error) in [
        ("util_min = 1.1", "util_min = 1.1 is out of range"),
        ("util_max = -0.1", "0 to 1"),
        ("util_min = '1'", "out of range"),
        ("util_min = 0.6\nutil_max = 0.5", "util_max is below util_min"),
    ] {
        assert!(ask("RM", true, text).unwrap_err().contains(error), "{text}");
    }
}
