use super::*;

const PREAMBLE: &str = r#"{"type":"preamble","version":2}"#;

fn with(fragments: &str) -> Result<Document, String> {
    read(format!("{PREAMBLE}{fragments}").as_bytes())
}

/// The payload of an event with one field, `x`.
fn payload(class: &str) -> String {
    format!(
        r#"{{"type":"event-record-class","name":"e","payload-field-class":{{"type":"structure",
"member-classes":[{{"name":"x","field-class":{class}}}]}}}}"#
    )
}

#[test]
fn versions_are_told_apart() {
    for text in ["\u{1e}{", " \n{", "\n\u{1e}x", "\u{1e}"] {
        assert!(begin(text.as_bytes()), "{text:?}");
    }
    for text in ["/* CTF 1.8 */ trace {", "", " ", "trace { \u{1e} }", "\0{"] {
        assert!(!begin(text.as_bytes()), "{text:?}");
    }
}

#[test]
fn fragments_are_understood() {
    let text = "\u{1e}{\"type\":\"preamble\",\"version\":2,\"uuid\":[1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6]}\n
\u{1e}{\"type\":\"trace-class\",\"environment\":{\"domain\":\"ust\",\"tracer_major\":2,\"vpid\":-7},
 \"x\":[{}],
 \"packet-header-field-class\":{\"type\":\"structure\",\"member-classes\":[{\"name\":\"m\",\"field-class\":
 {\"type\":\"fixed-length-unsigned-integer\",\"length\":32,\"byte-order\":\"big-endian\",
  \"roles\":[\"packet-magic-number\"]}}]}}
\u{1e}{\"type\":\"clock-class\",\"id\":\"a\",\"frequency\":5}
\u{1e}{\"type\":\"clock-class\",\"id\":\"b\",\"name\":\"monotonic\",\"uid\":\"u\",\"frequency\":1000,
 \"offset-from-origin\":{\"seconds\":-2,\"cycles\":3}}
\u{1e}{\"type\":\"data-stream-class\",\"id\":3,\"default-clock-class-id\":\"b\"}
\u{1e}{\"type\":\"event-record-class\",\"id\":4,\"data-stream-class-id\":3,\"name\":\"a:b\"}\u{1e}\n";
    let document = read(text.as_bytes()).expect("CTF 2");
    assert!(document.is_ctf2 && document.is_big);
    let env: Vec<_> = document.env.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(env, [("domain", "ust"), ("tracer_major", "2"), ("vpid", "-7")]);
    let Some(Type::Struct(header)) = &document.packet_header else { panic!() };
    assert!(matches!(&header.fields[0].1, Type::Integer(of) if of.roles.says == ["magic"]));
    let clock = &document.clocks[0];
    assert_eq!((clock.name.as_str(), clock.uuid.as_deref()), ("monotonic", Some("u")));
    assert_eq!((clock.zero(), clock.ns(2)), (-1_997_000_000, 2_000_000));
    assert!(document.streams.contains_key(&3));
    let event = &document.events[0];
    assert_eq!((event.name.as_str(), event.id, event.stream), ("a:b", 4, 3));
}

#[test]
fn drafts_are_understood() {
    let document = with(
        r#"{"type":"clock-class","name":"m","frequency":1,"offset":{"seconds":5},
            "uuid":[14,27,91,189,8,164,75,64,142,42,0,0,0,0,0,0]}
           {"type":"data-stream-class","default-clock-class-name":"m"}"#,
    );
    let clock = document.expect("a draft").clocks.remove(0);
    assert_eq!(clock.uuid.as_deref(), Some("0e1b5bbd-08a4-4b40-8e2a-000000000000"));
    assert_eq!(clock.offset_s, 5);
}

#[test]
fn what_is_not_understood_is_an_error_with_its_place() {
    for (class, why) in [
        (r#""u8""#, r#"there is no field class "u8" before it"#),
        (r#"{"type":"complex"}"#, "complex: field classes of this type are not known"),
        (
            r#"{"type":"fixed-length-signed-integer","length":65,"byte-order":"big-endian"}"#,
            "fixed-length-signed-integer: it has not 1 to 64 bits",
        ),
        (r#"{"type":"fixed-length-bit-map","length":8}"#, "fixed-length-bit-map: it has no byte-order"),
        (
            r#"{"type":"fixed-length-boolean","length":8,"byte-order":"big-endian",
                "bit-order":"first-to-last"}"#,
            "fixed-length-boolean: bits in another order than bytes are not read here",
        ),
        (
            r#"{"type":"fixed-length-unsigned-integer","length":8,"byte-order":"big-endian","alignment":12}"#,
            "fixed-length-unsigned-integer: an alignment of 12 bits",
        ),
        (
            r#"{"type":"fixed-length-floating-point-number","length":16,"byte-order":"big-endian"}"#,
            "fixed-length-floating-point-number: floating-point numbers of 16 bits are not read here",
        ),
        (
            r#"{"type":"null-terminated-string","encoding":"utf-16le"}"#,
            "null-terminated-string: text in utf-16le is not read here",
        ),
        (r#"{"type":"dynamic-length-blob"}"#, "dynamic-length-blob: it has no length-field-location"),
        (
            r#"{"type":"dynamic-length-blob","length-field-location":{"origin":"sky","path":["x"]}}"#,
            r#"dynamic-length-blob: there is no origin "sky" of fields"#,
        ),
        (
            r#"{"type":"variant","selector-field-location":{"path":["t"]},"options":
               [{"selector-field-ranges":[[3,2]],"field-class":{"type":"null-terminated-string"}}]}"#,
            "3 to 2 is no range of numbers",
        ),
    ] {
        let expected = format!("line 1, event-record-class: e: payload: x: {why}");
        assert_eq!(with(&payload(class)).expect_err(class), expected);
    }
}

#[test]
fn fragments_that_are_not_understood_are_an_error() {
    for (fragments, why) in [
        ("\n{\"type\":\"song\"}", "line 2, song: fragments of this type are not known"),
        ("{}", "line 1: missing field `type`"),
        ("{\n", "line 2: the text ends within an object"),
        ("\n\u{1e}\n{\"type\":\"x\",\n\"id\":}", "line 4: expected value"),
        ("\n[]", "line 2: there should be a fragment, which begins with {"),
        (r#"{"type":"clock-class","id":"c"}"#, "line 1, clock-class: it has no frequency"),
        (r#"{"type":"clock-class","id":"c","frequency":0}"#, "line 1, clock-class: it has no frequency"),
        (
            r#"{"type":"data-stream-class","default-clock-class-id":"c"}"#,
            "line 1, data-stream-class: there is no clock c before it",
        ),
        (
            r#"{"type":"data-stream-class","id":"one"}"#,
            r#"line 1, data-stream-class: the id "one" is no number"#,
        ),
        (
            r#"{"type":"trace-class","environment":{"x":1.5}}"#,
            "line 1: the environment should have integers and strings",
        ),
        (
            r#"{"type":"trace-class","packet-header-field-class":{"type":"null-terminated-string"}}"#,
            "line 1, trace-class: packet-header: it is no structure",
        ),
        (
            r#"{"type":"clock-class","id":"a","frequency":1}{"type":"clock-class","id":"b","frequency":1}
               {"type":"data-stream-class","default-clock-class-id":"a"}
               {"type":"data-stream-class","id":1,"default-clock-class-id":"b"}"#,
            "line 3, data-stream-class: streams with different clocks are not read here",
        ),
    ] {
        assert_eq!(with(fragments).expect_err(fragments), why);
    }
    for (text, why) in [
        (r#"{"type":"preamble","version":3}"#, "line 1, preamble: version 3 is not read here"),
        (
            r#"{"type":"preamble","version":2,"extensions":{"my.tracer":{"piano":1}}}"#,
            "line 1, preamble: it needs extensions of my.tracer, which are not read here",
        ),
        ("\u{1e}", "it has no fragments"),
        (r#"{"type":"trace-class"}"#, "line 1, trace-class: there should be a preamble before it"),
    ] {
        assert_eq!(read(text.as_bytes()).expect_err(text), why);
    }
}

#[test]
fn types_that_nest_by_their_names_are_an_error() {
    let mut fragments = String::new();
    for level in 1..100_000 {
        let before = match level {
            1 => r#"{"type":"null-terminated-string"}"#.to_owned(),
            _ => format!(r#""t{}""#, level - 1),
        };
        fragments.push_str(&format!(
            r#"{{"type":"field-class-alias","name":"t{level}","field-class":{{"type":"static-length-array",
"length":1,"element-field-class":{before}}}}}"#
        ));
    }
    assert!(with(&fragments).expect_err("deep").ends_with("types are nested too deep"));
    let deep = r#"{"type":"optional","field-class":"#.repeat(100_000);
    assert_eq!(with(&payload(&deep)).expect_err("deep"), "line 2: recursion limit exceeded");
}
