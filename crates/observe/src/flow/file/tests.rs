//! Probes files that are read, refused and merged.

use super::*;

const FILE: &str = r#"
framework = "X"
[[probe]]
event = "push"
symbol = "push"
id = "u32 at arg0+8"
name = "id"
[[probe]]
event = "activation"
symbol = ["queue", "queue_too"]
id = "u32 at [arg1]+8"
name = "string at [arg1]+0x10"
[[probe]]
event = "start"
symbol = "run"
id = "arg1"
[[probe]]
event = "stop"
symbol = "run"
at = "return"
"#;

fn parse(text: &str) -> Result<ProbeFile, (usize, String)> {
    let file = ProbeFile::parse(text.as_bytes())?;
    file.check().map_err(|what| (1, what))?;
    Ok(file)
}

#[test]
fn a_file_is_read() {
    let file = parse(FILE).unwrap();
    assert_eq!(file.framework.as_deref(), Some("X"));
    assert_eq!(file.probes.len(), 4);
    assert_eq!(file.probes[1].symbols, ["queue", "queue_too"]);
    assert_eq!(file.probes[1].id.as_ref().unwrap().place.offsets, [0, 8]);
    assert!(file.probes[3].at_return && file.probes[3].id.is_none());
    assert_eq!((file.policy, file.executors, file.connections), (None, None, Vec::new()));
    // Nothing needs a name.
    assert!(parse(&FILE.replace("framework = \"X\"", "")).is_ok());
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (from, to, line, expected) in [
        ("event = \"push\"", "event = \"shove\"", 4, "expected push, activation, start, stop or connection"),
        ("u32 at arg0+8", "u32 at arg9+8", 6, "arg0 to arg5"),
        ("u32 at arg0+8", "i32 at arg0+8", 6, "u8, u16, u32 or u64"),
        ("at = \"return\"", "at = \"leave\"", 20, "expected entry or return"),
        ("at = \"return\"", "at = \"return\"\nid = \"arg0\"", 19, "arguments are gone"),
        ("id = \"arg1\"", "", 15, "needs an id"),
        ("symbol = \"push\"", "symbol = []", 5, "names no function"),
        ("symbol = \"push\"", "symbols = \"push\"", 5, "unknown field"),
        (
            "[[probe]]\nevent = \"stop\"\nsymbol = \"run\"\nat = \"return\"\n",
            "",
            1,
            "no [[probe]] with event = \"stop\"",
        ),
        ("framework = \"X\"", "policy = \" \"", 2, "policy names none"),
        ("framework = \"X\"", "executors = 0", 2, "nobody would execute"),
        ("framework = \"X\"", "executors = -1", 2, "expected u32"),
    ] {
        let text = FILE.replacen(from, to, 1);
        let (at, what) = parse(&text).expect_err(to);
        assert!(what.contains(expected), "{to}: {what}");
        assert_eq!(at, line, "{to}: {what}");
    }
    for (connection, expected) in [
        ("channel = \"\"\ntask = \"t\"", "names none"),
        ("channel = \"c\"", "missing field `task`"),
        ("channel = \"c\"\ntask = \"t\"\nthreshold = 0", "one push at least"),
        ("channel = \"c\"\ntask = \"t\"\nsynchronized = true", "unknown field"),
        ("channel = \"c\"\ntask = \"t\"\nfinal = 1", "expected a boolean"),
    ] {
        let (line, what) =
            ProbeFile::parse(format!("[[connection]]\n{connection}\n").as_bytes()).expect_err(connection);
        assert!(what.contains(expected), "{connection}: {what}");
        assert!(line <= 4, "{connection}: line {line}");
    }
}

#[test]
fn inputs_are_declared_as_far_as_they_are_known() {
    let arming_of = |text: &str| {
        let file =
            ProbeFile::parse(format!("[[connection]]\nchannel = \"c\"\ntask = \"t\"\n{text}").as_bytes())
                .unwrap();
        let [Declared { channel, task, arming }] = &file.connections[..] else { panic!("{file:?}") };
        assert_eq!((channel.as_str(), task.as_str()), ("c", "t"));
        *arming
    };
    assert_eq!(arming_of(""), None);
    assert_eq!(arming_of("threshold = 3"), Some(Arming { threshold: 3, ..Arming::default() }));
    assert_eq!(arming_of("synchronised = true"), Some(Arming::default()));
    let newest = Arming { synchronised: false, optional: true, is_final: true, ..Arming::default() };
    assert_eq!(arming_of("synchronised = false\noptional = true\nfinal = true"), Some(newest));
}

#[test]
fn files_add_up() {
    let connection = "[[connection]]\nchannel = \"c\"\ntask = \"t\"\n";
    let mut file = parse(FILE).unwrap();
    file.add(ProbeFile::parse(format!("policy = \"fifo\"\nexecutors = 2\n{connection}").as_bytes()).unwrap());
    file.add(
        ProbeFile::parse(format!("policy = \"lifo\"\n{connection}threshold = 2\n{connection}").as_bytes())
            .unwrap(),
    );
    assert_eq!((file.framework.as_deref(), file.probes.len()), (Some("X"), 4));
    assert_eq!((file.policy.as_deref(), file.executors), (Some("lifo"), Some(2)));
    let thresholds: Vec<_> =
        file.connections.iter().map(|it| it.arming.map(|arming| arming.threshold)).collect();
    assert_eq!(thresholds, [None, Some(2)]);
    // Of one that is of a program alone, what is missing is said.
    assert!(
        ProbeFile::parse(b"policy = \"fifo\"").unwrap().check().unwrap_err().contains("event = \"push\"")
    );
    assert!(ProbeFile::parse(&[0xff]).unwrap_err().1.contains("not a probes file"));
}
