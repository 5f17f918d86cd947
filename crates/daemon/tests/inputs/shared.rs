//! Plugins from shared objects: the example, built and used as the daemon uses it, and objects that are not
//! as they should be.

use proptest::prelude::*;
use punctual_daemon::config::{Config, Machine};
use punctual_daemon::shared::Shared;
use punctual_model::Duration;
use punctual_schedule::{
    Answer, AssignedPolicy, Assignment, Kind, Limits, Offer, Parameters, Plugin, Refusal, Settings, SpecId,
    Test,
};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());
static HARMONIC: LazyLock<PathBuf> = LazyLock::new(|| compile("examples/plugin/harmonic.c", "harmonic", &[]));
static ODD: LazyLock<PathBuf> = LazyLock::new(|| compile("tests/plugins/odd.c", "odd", &[]));

fn compile(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let object = FOLDER.path().join(format!("{name}.so"));
    let warnings = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"];
    let mut cc = Command::new("cc");
    cc.args(warnings)
        .args(flags)
        .arg("-I")
        .arg(root.join("include"))
        .arg("-o")
        .arg(&object)
        .arg(root.join(source));
    let compiled = cc.output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    std::fs::set_permissions(&object, Permissions::from_mode(0o644)).unwrap();
    object
}

fn settings(name: &str) -> Settings {
    Settings {
        name: name.into(),
        processors: vec![1, 3],
        priorities: (10, 20),
        threshold: 0.5,
        test: Test::Exact,
        limits: Limits::default(),
        platforms: Vec::new(),
        reserves: Vec::new(),
        without_runtime_up_to: None,
    }
}

fn needs(runtime_us: u64, period_us: u64) -> Parameters {
    Parameters {
        runtime: Some(Duration::from_us(runtime_us)),
        period: Some(Duration::from_us(period_us)),
        ..Parameters::default()
    }
}

fn offered(answer: Answer) -> Offer {
    match answer {
        Answer::Ok(offer) => offer,
        other => panic!("{other:?}"),
    }
}

fn refused(answer: Answer) -> String {
    match answer {
        Answer::No(Refusal::Unschedulable(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

/// As the daemon does with a new spec; whether it was taken.
fn create(plugin: &mut dyn Plugin, spec: u64, parameters: &Parameters) -> bool {
    match plugin.consider(parameters, None) {
        Answer::Ok(offer) | Answer::Partial(offer) => {
            plugin.admit(SpecId(spec), parameters, offer);
            true
        }
        Answer::No(_) => false,
    }
}

fn fifo(plugin: &dyn Plugin, spec: u64) -> (u32, u32) {
    match plugin.assignment(SpecId(spec)) {
        Some(Assignment { processor, policy: AssignedPolicy::Fifo(priority) }) => (processor, priority),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_example_admits_schedules_changes_and_releases() {
    let mut plugin = Shared::load(&HARMONIC, settings("harmonic")).unwrap();
    assert_eq!(plugin.name(), "harmonic");
    assert!(create(&mut plugin, 1, &needs(200, 1000)));
    assert_eq!(fifo(&plugin, 1), (1, 20));
    // A shorter period comes before: those that are there move down, and the daemon hears of it.
    assert!(create(&mut plugin, 2, &needs(100, 500)) && plugin.shifted() && !plugin.shifted());
    assert_eq!((fifo(&plugin, 2), fifo(&plugin, 1)), ((1, 20), (1, 19)));
    // 0.1 are left there: the next goes on to processor 3.
    assert!(create(&mut plugin, 3, &needs(400, 2000)));
    assert_eq!(fifo(&plugin, 3), (3, 20));
    let message = refused(plugin.consider(&needs(900, 2000), None));
    assert_eq!(
        message,
        "harmonic test: on processor 3 it would be overloaded (0.200000 are taken, 0.450000 are needed)"
    );
    let message = refused(plugin.consider(&needs(1, 700), None));
    assert!(message.contains("neither divides nor is a multiple"), "{message}");
    assert_eq!(refused(plugin.consider(&Parameters::default(), None)), "it needs runtime_ns and period_ns");
    // For a change the old one counts as gone.
    let offer = offered(plugin.consider(&needs(1000, 2000), Some(SpecId(3))));
    plugin.release(SpecId(3));
    plugin.admit(SpecId(3), &needs(1000, 2000), offer);
    let loads: Vec<(u32, usize)> = plugin.loads().iter().map(|load| (load.processor, load.specs)).collect();
    assert_eq!(loads, [(1, 2), (3, 1)]);
    assert!((plugin.loads()[1].utilization - 0.5).abs() < 1e-9);
    plugin.release(SpecId(2));
    plugin.release(SpecId(99));
    assert_eq!((fifo(&plugin, 1), plugin.assignment(SpecId(2))), ((1, 20), None));
    // As much of the desired runtime as there is.
    let wish = Parameters { desired_runtime: Some(Duration::from_us(400)), ..needs(100, 1000) };
    assert_eq!(offered(plugin.consider(&wish, None)).accepted_runtime, Some(Duration::from_us(300)));
    let ignored = offered(plugin.consider(&Parameters { ignore_admission: true, ..needs(900, 1000) }, None));
    assert!(ignored.ignored && ignored.accepted_runtime == Some(Duration::from_us(900)));
}

#[test]
fn plugins_of_one_object_are_independent() {
    let text = format!(
        "[[plugin]]\nname = \"one\"\nobject = \"{0}\"\nprocessors = [0]\n\
         [[plugin]]\nname = \"two\"\nobject = \"{0}\"\nprocessors = [1]\n",
        HARMONIC.display()
    );
    let machine = Machine { processors: vec![0, 1], priorities: (1, 99), ..Machine::default() };
    let (config, _) = Config::parse(&text, Path::new("/p.toml"), &machine).unwrap();
    let mut plugins = config.plugins(Limits::default()).unwrap();
    assert!(create(plugins[0].as_mut(), 7, &needs(900, 1000)));
    assert_eq!((plugins[0].assignment(SpecId(7)).is_some(), plugins[1].assignment(SpecId(7))), (true, None));
    drop(plugins.remove(0));
    assert!(create(plugins[0].as_mut(), 8, &needs(900, 1000)), "the object stays open for the other");
}

#[test]
fn invalid_objects_are_refused_with_the_reason() {
    let folder = FOLDER.path();
    let odd = |name: &str, flag: &str| compile("tests/plugins/odd.c", name, &[flag]);
    let text = folder.join("text.so");
    std::fs::write(&text, "no object").unwrap();
    std::fs::set_permissions(&text, Permissions::from_mode(0o644)).unwrap();
    let writable = odd("writable", "-DX");
    std::fs::set_permissions(&writable, Permissions::from_mode(0o666)).unwrap();
    let cases = [
        (folder.join("none.so"), "none.so: cannot be opened: no such file or directory"),
        (folder.to_owned(), "is not a regular file"),
        (text, "text.so: cannot be loaded: it: "),
        (writable, "writable.so: is writable by others (mode 666); use chmod go-w"),
        (odd("symbol", "-DSYMBOL=another"), "symbol.so: does not export punctual_plugin"),
        (odd("nothing", "-DNOTHING"), "punctual_plugin() returned NULL"),
        (
            odd("version", "-DVERSION=2"),
            "was compiled for version 2 of punctual-plugin.h, but this daemon has 1; compile it again",
        ),
        (odd("size", "-DSIZE=16"), "its description has 16 bytes, which is too few"),
        (odd("function", "-DCHANGE=0"), "function.so: has no function change"),
    ];
    for (path, expected) in cases {
        let message = Shared::load(&path, settings("odd")).unwrap_err();
        assert!(message.contains(expected), "{expected}: {message}");
    }
    let message = |name| Shared::load(&ODD, settings(name)).unwrap_err();
    assert!(message("failing-init").ends_with("odd.so: no luck: never"), "{}", message("failing-init"));
    assert!(message("silent-init").ends_with("its init() failed and does not say why"));
}

#[test]
fn an_object_of_another_user_is_not_loaded() {
    let path = compile("tests/plugins/odd.c", "others", &[]);
    if std::os::unix::fs::chown(&path, Some(4711), None).is_err() {
        eprintln!("SKIPPED: to give a file away takes root");
        return;
    }
    let message = Shared::load(&path, settings("odd")).unwrap_err();
    assert!(message.contains("belongs to user 4711; it must belong to root"), "{message}");
}

#[test]
fn a_shorter_description_of_an_older_plugin_is_accepted() {
    let size = "-DSIZE=offsetof(struct punctual_plugin_description,attach)";
    let mut plugin =
        Shared::load(&compile("tests/plugins/odd.c", "short", &[size]), settings("short")).unwrap();
    assert!(create(&mut plugin, 1, &needs(1, 1000)));
    plugin.attached(SpecId(1), 5).unwrap();
    assert_eq!(plugin.loads()[0].specs, 0, "its attach() is not known to be there");
    // One from the future has functions that this daemon does not call.
    Shared::load(&compile("tests/plugins/odd.c", "long", &["-DSIZE=4096"]), settings("long")).unwrap();
}

#[test]
fn a_plugin_receives_its_configuration_and_events() {
    Shared::load(&ODD, settings("checks-configuration")).unwrap();
    let mut plugin = Shared::load(&ODD, settings("told")).unwrap();
    assert!(create(&mut plugin, 1, &needs(1, 1000)));
    plugin.attached(SpecId(1), 4321).unwrap();
    assert_eq!(plugin.loads()[0].specs, 4321);
    plugin.detached(SpecId(1));
    assert_eq!(plugin.loads()[0].specs, 0);
    assert!(!plugin.shifted() && Shared::load(&ODD, settings("shifts")).unwrap().shifted());
}

#[test]
fn invalid_answers_of_a_plugin_are_refused() {
    let ask = |name: &str, parameters: &Parameters| {
        Shared::load(&ODD, settings(name)).unwrap().consider(parameters, None)
    };
    let wish = Parameters { desired_runtime: Some(Duration::from_us(5)), ..needs(2, 1000) };
    for (name, expected) in [
        ("foreign-processor", "gave a wrong answer: processor 4711, which is not one of its own"),
        ("too-short", "an accepted runtime of 1999 ns, where 2000 ns were declared"),
        ("too-long", "an accepted runtime of 5001 ns"),
        ("ignores-unasked", "it ignored its admission test, which nobody asked for"),
        ("unknown-answer", "17 is neither OK, PARTIAL nor NO"),
        ("refuses-silently", "it does not say why"),
    ] {
        let message = refused(ask(name, &wish));
        assert!(message.contains(expected), "{expected}: {message}");
    }
    assert_eq!(refused(ask("refuses", &wish)), "x".repeat(512), "without a zero, as much as there is room");
    assert!(matches!(ask("partial", &wish), Answer::Partial(_)));

    let assigned = |name: &str| {
        let mut plugin = Shared::load(&ODD, settings(name)).unwrap();
        assert!(create(&mut plugin, 1, &needs(2, 1000)));
        plugin.assignment(SpecId(1)).map(|assignment| assignment.policy)
    };
    assert_eq!(assigned("fine"), Some(AssignedPolicy::RoundRobin(15)));
    let [runtime, deadline] = [2, 1000].map(Duration::from_us);
    assert_eq!(assigned("deadline"), Some(AssignedPolicy::Deadline { runtime, deadline, period: deadline }));
    for wrong in ["assigns-foreign", "unknown-policy", "too-urgent", "short-deadline"] {
        assert_eq!(assigned(wrong), None, "{wrong}");
    }
    assert_eq!(
        Shared::load(&ODD, settings("many-loads")).unwrap().loads().len(),
        1,
        "only loads of its processors"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn the_exact_test_admits_whatever_the_example_admits(
        specs in prop::collection::vec((1u64..300, 0u32..6, 0u64..1 << 40), 1..30),
        gone in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
    ) {
        let one = Settings { processors: vec![0], threshold: 1.0, ..settings("one") };
        let mut example = Shared::load(&HARMONIC, one.clone()).unwrap();
        let mut exact = punctual_schedule::plugin(Kind::Rm, one).unwrap();
        let mut taken: Vec<(u64, u64)> = Vec::new();
        for (number, (share, level, _)) in specs.iter().enumerate() {
            let (number, period) = (number as u64 + 1, 1000 << level);
            let parameters = needs((share << level).min(period), period);
            let mine = create(&mut example, number, &parameters);
            // With periods that are harmonic, utilization decides exactly, and so do response times.
            prop_assert_eq!(mine, create(exact.as_mut(), number, &parameters));
            if mine {
                taken.push((number, period));
            }
        }
        for index in gone {
            if !taken.is_empty() {
                let (number, _) = taken.swap_remove(index.index(taken.len()));
                example.release(SpecId(number));
            }
        }
        for (one, period) in &taken {
            for (other, longer) in taken.iter().filter(|(_, longer)| longer > period) {
                prop_assert!(fifo(&example, *one).1 > fifo(&example, *other).1, "{period} {longer}");
            }
        }
        prop_assert_eq!(example.loads()[0].specs, taken.len());
    }
}

/// The dynamic loader knows objects by their names, and these are descriptors, whose numbers come again.
#[test]
fn each_object_has_its_own_code() {
    let kind = |path: &Path| {
        let plugin = Shared::load(path, settings("partial")).unwrap();
        // Only odd.c goes by its instance's name.
        let odd = matches!(plugin.consider(&needs(1000, 10_000), None), Answer::Partial(_));
        (plugin, odd)
    };
    let (first, first_is_odd) = kind(&HARMONIC);
    let (second, second_is_odd) = kind(&ODD);
    assert_eq!((first_is_odd, second_is_odd), (false, true), "loaded together");
    drop((first, second));

    // This one stays loaded after it was closed, as C++ often has it.
    let resident = compile("tests/plugins/odd.c", "resident", &["-Wl,-z,nodelete"]);
    drop(kind(&resident));
    assert!(!kind(&HARMONIC).1, "loaded after one that stays");
}
