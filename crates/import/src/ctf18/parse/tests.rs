use super::*;

fn parsed(text: &str) -> Document {
    parse(text.as_bytes()).expect("TSDL")
}

fn fields(text: &str) -> Vec<(String, Type)> {
    let document = parsed(&format!("event {{ name = e; fields := struct {{ {text} }}; }};"));
    match document.events.into_iter().next().and_then(|event| event.fields) {
        Some(Type::Struct(of)) => of.fields.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn types_are_understood() {
    let found = fields(
        "typealias integer { size = 8; } := uint8_t; typedef uint8_t pair[2]; integer { size = 5; } small;
         enum : uint8_t { a = 0 ... 30, b = 0x1f, c, \"d e\" = -3 } id; pair p; uint8_t n, m[n], t[2][3];
         struct { string s; } align(32) inner; floating_point { exp_dig = 8; mant_dig = 24; align = 8; } f;
         variant <id> { struct { uint8_t x; } a; string b; } v; struct named { uint8_t y; }; struct named z;",
    );
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["small", "id", "p", "n", "m", "t", "inner", "f", "v", "z"]);
    let of = |name: &str| &found.iter().find(|(it, _)| it == name).expect("there").1;
    assert!(matches!(of("small"), Type::Integer(Integer { bits: 5, align: 1, signed: false, .. })));
    let Type::Enumeration(id) = of("id") else { panic!() };
    let ranges: Vec<_> = id.labels.iter().map(|it| (it.name.as_str(), it.from, it.until)).collect();
    assert_eq!(ranges, [("a", 0, 30), ("b", 31, 31), ("c", 32, 32), ("d e", -3, -3)]);
    let array = |of: &Type| match of {
        Type::Array(of) => of.clone(),
        other => panic!("{other:?}"),
    };
    assert!(matches!(array(of("p")).length, Length::Fixed(2)));
    assert!(matches!(&array(of("m")).length, Length::Of(Location::Named(length)) if length == "n"));
    assert!(matches!(array(of("t")).length, Length::Fixed(2)));
    assert!(matches!(array(&array(of("t")).element).length, Length::Fixed(3)));
    assert_eq!(of("inner").align(), 32);
    let Type::Variant(v) = of("v") else { panic!() };
    assert!(matches!(&v.tag, Some(Location::Named(tag)) if tag == "id"));
    assert_eq!((v.options.len(), &v.ranges), (2, &None));
}

#[test]
fn blocks_are_understood() {
    let document = parsed(
        "/* CTF 1.8 */ typealias integer { size = 64; map = clock.mono.value; } := unsigned long;
         trace { byte_order = be; packet.header := struct { unsigned long magic; }; };
         env { domain = \"ust\"; tracer_major = 2; };
         clock { name = \"mono\"; freq = 1000000; offset_s = 5; offset = -7; };
         stream { id = 3; event.header := struct { unsigned long t; }; };
         event { name = \"a:b\"; id = 4; stream_id = 3; loglevel = 13; };",
    );
    assert!(document.is_big && document.packet_header.is_some());
    assert_eq!(document.env["domain"], "ust");
    assert_eq!((document.clocks[0].zero(), document.clocks[0].ns(3)), (4_999_993_000, 3_000));
    assert!(document.streams[&3].event_header.is_some());
    let event = &document.events[0];
    assert_eq!((event.name.as_str(), event.id, event.stream), ("a:b", 4, 3));
}

#[test]
fn what_is_not_understood_is_an_error_with_its_place() {
    for (text, what) in [
        ("trace { byte_order = le;", "there should be a name"),
        ("event { name = e; fields := struct { nothing x; }; };", "there is no type \"nothing\""),
        ("typealias integer { size = 65; } := x;", "an integer has not 1 to 64 bits"),
        ("typealias integer { size = 8; align = 3; } := x;", "an alignment of 3 bits"),
        ("event { id = 1; };", "an event has no name"),
        ("env { a = \"x", "a string does not end"),
        ("clock { freq = 0; };", "a clock has no frequency"),
    ] {
        let problem = parse(text.as_bytes()).expect_err(text);
        assert_eq!(problem.what, what, "{text}");
        assert!(problem.offset <= text.len());
    }
    let deep = format!("event {{ fields := {} }};", "struct { ".repeat(100_000));
    assert_eq!(parse(deep.as_bytes()).expect_err("deep").what, "types are nested too deep");
}

#[test]
fn types_that_nest_by_their_names_are_an_error() {
    let mut by_name = String::from("typealias integer { size = 8; } := t0;");
    for level in 1..100_000 {
        by_name.push_str(&format!("typealias struct {{ t{} a; }} := t{level};", level - 1));
    }
    let by_length = format!("typedef integer {{ size = 8; }} x{};", "[1]".repeat(100_000));
    for text in [by_name, by_length] {
        assert_eq!(parse(text.as_bytes()).expect_err("deep").what, "types are nested too deep");
    }
}
