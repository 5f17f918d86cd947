//! `dist/`: what systemd makes of the units.

use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const DIST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist");

const UNITS: [&str; 3] = ["punctuald.service", "punctuald.socket", "punctual-watch@.service"];

/// The units with the daemon that was built, in a folder of their own.
fn units() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in UNITS {
        let text = std::fs::read_to_string(Path::new(DIST).join(name)).unwrap();
        // Whatever is built: the unit's command has to be there.
        let text = text.replace("/usr/local/bin/punctual watch", "/bin/true watch");
        let text = text.replace("/usr/local/bin/punctuald", env!("CARGO_BIN_EXE_punctuald"));
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// What `systemd-analyze` says, or nothing where there is none.
fn analyze(arguments: &[&str], unit: &Path) -> Option<(bool, String)> {
    let Ok(printed) = Command::new("systemd-analyze").args(arguments).arg(unit).output() else {
        eprintln!("SKIPPED: there is no systemd-analyze here");
        return None;
    };
    Some((
        printed.status.success(),
        String::from_utf8_lossy(&[printed.stdout, printed.stderr].concat()).into_owned(),
    ))
}

#[test]
fn systemd_understands_the_units() {
    let folder = units();
    for unit in UNITS.map(|unit| unit.replace('@', "@robot")) {
        let Some((fine, printed)) = analyze(&["verify", "--man=no"], &folder.path().join(&unit)) else {
            return;
        };
        // Units of the machine may be wrong too, which is not ours.
        let ours: Vec<&str> = printed.lines().filter(|line| line.contains("punctual")).collect();
        assert!(fine && ours.is_empty(), "{printed}");
    }
}

#[test]
fn systemd_rates_the_exposure_low() {
    let folder = units();
    // Of 10 (unsafe) to 0. What is left is what the daemon is for; see the unit's comments.
    let arguments = ["security", "--offline=true", "--no-pager", "--threshold=20"];
    for unit in ["punctuald.service", "punctual-watch@robot.service"] {
        let Some((fine, printed)) = analyze(&arguments, &folder.path().join(unit)) else { return };
        if printed.contains("unrecognized option") {
            eprintln!("SKIPPED: this systemd-analyze looks at running units only");
            return;
        }
        assert!(fine, "{printed}");
    }
}

/// The user of the watch is created by what is installed beside it, and the rule for it is one.
#[test]
fn the_watch_has_a_user_and_a_rule() {
    let read = |name: &str| std::fs::read_to_string(Path::new(DIST).join(name)).unwrap();
    let unit = read("punctual-watch@.service");
    let user = unit.lines().find_map(|line| line.strip_prefix("User=")).expect("a user");
    let users = read("punctual-watch.sysusers");
    let created = users.lines().filter_map(|line| line.strip_prefix("u ")?.split_whitespace().next());
    assert_eq!(created.collect::<Vec<_>>(), [user]);
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/daemon.md");
    let document = std::fs::read_to_string(document).unwrap();
    let of_user = |line: &&str| line.split_whitespace().next() == Some(user) && line.contains("observe");
    let rule = document.lines().find(of_user).expect("the rule");
    let commented = read("rules.conf").lines().any(|line| {
        line.strip_prefix('#').is_some_and(|it| it.split_whitespace().eq(rule.split_whitespace()))
    });
    assert!(commented, "{rule}");
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    std::fs::create_dir_all(root.join("etc")).unwrap();
    let users = std::fs::File::open(Path::new(DIST).join("punctual-watch.sysusers")).unwrap();
    let mut sysusers = Command::new("systemd-sysusers");
    sysusers.arg(format!("--root={}", root.display())).arg("-").stdin(users);
    let Ok(made) = sysusers.output() else {
        eprintln!("SKIPPED: there is no systemd-sysusers here");
        return;
    };
    assert!(made.status.success(), "{made:?}");
    let passwd = std::fs::read_to_string(root.join("etc/passwd")).unwrap();
    assert!(passwd.lines().any(|line| line.starts_with(&format!("{user}:"))), "{passwd}");
}
