//! CTF 2: read with the model of the same trace in CTF 1.8. Only the metadata differ.

use crate::ctf18::{bytes, shared, simulated};
use crate::fuzz::lttng as input;
use punctual_import::ctf18::{Event, Item, Reader};
use punctual_import::ros2::{Trace, Variables};
use punctual_import::{Import, Options};
use punctual_test_lttng::ctf::{Layout, Type, Value, Writer};
use punctual_test_lttng::ctf2::{DIALECTS, Dialect, metadata};
use punctual_test_lttng::kernel::{self, IDLE, switch, waking};
use punctual_test_lttng::ros2::Tracer;
use punctual_test_lttng::system::System;
use punctual_test_support::Mutator;
use punctual_trace::flow;
use serde_json::{Value as Json, json};
use std::fs;
use std::path::Path;

/// All that a reader gives of a trace with this layout, as text.
fn told(reader: &Reader, layout: &Layout) -> Vec<String> {
    let field = |event: &Event<'_>, of: Type, field| match of {
        Type::U64 | Type::I64 | Type::I32 => format!("{:?}", event.signed(field)),
        Type::Text | Type::Comm => format!("{:?}", event.text(field)),
        Type::Bytes(_) => format!("{:?}", event.bytes(field)),
        Type::Arguments => "numbers".into(),
    };
    let mut told = Vec::new();
    let mut each = |item: &Item<'_>| {
        told.push(match item {
            Item::Event(event) => {
                let class = &reader.classes()[event.class];
                let declared = layout.classes.iter().find(|(name, _)| *name == class.name).unwrap().1;
                let context = layout.context.iter().map(|(name, of)| field(event, *of, class.context(name)));
                let fields = declared.iter().map(|(name, of)| field(event, *of, class.field(name)));
                let arguments = (0..6).map(|index| class.field(&format!("args.{index}")));
                let arguments: Vec<_> = arguments.map(|argument| event.unsigned(argument)).collect();
                let fields: Vec<String> = context.chain(fields).collect();
                format!("{:?} {} {:?} {fields:?} {arguments:?}", event.at, class.name, event.cpu)
            }
            Item::Lost(lost) => format!("{lost:?}"),
        });
        true
    };
    let totals = reader.read(&mut each, &mut |_| {}).unwrap();
    told.push(format!("{totals:?}"));
    told.push(format!("{:?} {:?}", reader.clock(), reader.has_times(0)));
    told.push(format!("{:?}", ["domain", "tracer_name", "hostname"].map(|key| reader.env(0, key))));
    told
}

#[test]
fn the_same_trace_is_read_in_both_versions() {
    let large = Layout { has_large_headers: true, packet_bytes: 65_536, ..Tracer::Jazzy.layout() };
    for layout in [Tracer::Jazzy.layout(), Layout { is_big: true, ..Tracer::Jazzy.layout() }, large] {
        let place = tempfile::tempdir().unwrap();
        let system = System::new(Tracer::Jazzy, 3).with_losses(500);
        system.write(place.path(), layout.clone(), 5_000).unwrap();
        let expected = told(&Reader::open(place.path()).unwrap(), &layout);
        assert!(expected.iter().any(|told| told.starts_with("Lost")), "nothing was lost");
        for dialect in DIALECTS {
            fs::write(place.path().join("metadata"), metadata(&layout, dialect, &[])).unwrap();
            let found = told(&Reader::open(place.path()).unwrap(), &layout);
            assert!(found == expected, "{dialect:?}, big: {}", layout.is_big);
        }
    }
}

/// What an import of a trace of ROS 2 writes, as text.
fn imported(folder: &Path) -> Vec<String> {
    let place = tempfile::tempdir().unwrap();
    let trace = Trace::new(folder, Reader::open(folder).unwrap()).unwrap();
    let written = trace.write(place.path(), &Variables::Assumed, &mut |_| {}).unwrap();
    let reader = flow::Reader::open(place.path()).unwrap();
    let mut told = vec![format!("{} {} {:?}", written.nodes, written.executors, written.notes)];
    told.push(format!("{:?}", reader.about().tasks));
    reader.read(&mut |item| told.push(format!("{item:?}")), &mut |_| {}).unwrap();
    told
}

#[test]
fn an_import_of_ros_2_writes_the_same() {
    let layout = Tracer::Jazzy.layout();
    let (place, events) = simulated(layout.clone(), 3_000);
    let expected = imported(place.path());
    assert!(expected.len() as u64 > events / 3, "{} of {events}", expected.len());
    for dialect in DIALECTS {
        fs::write(place.path().join("metadata"), metadata(&layout, dialect, &[])).unwrap();
        assert!(imported(place.path()) == expected, "{dialect:?}");
    }
}

/// A thread that waits a hundred times.
fn write_kernel(folder: &Path) {
    let thread = ("a thread", 7, 40);
    let mut writer = Writer::create(folder, kernel::layout(), 1).unwrap();
    let mut write = |at: u64, class: &str, fields: &[Value]| writer.event(0, at, class, &[], fields).unwrap();
    write(500, "sched_switch", &switch(IDLE, 0, thread));
    for at in (1..=100).map(|round| round * 1_000_000) {
        write(at, "syscall_entry_nanosleep", &[Value::U64(0x7ffc_0000)]);
        write(at + 1_000, "sched_switch", &switch(thread, 1, IDLE));
        write(at + 500_000, "sched_waking", &waking(thread));
        write(at + 510_000, "sched_switch", &switch(IDLE, 0, thread));
        write(at + 511_000, "syscall_exit_nanosleep", &[Value::I64(0)]);
    }
    writer.finish().unwrap();
}

/// The records of a kernel's trace, as text.
fn records(folder: &Path) -> Vec<String> {
    let import = Import::open(folder, &Options::default()).unwrap();
    let about = import.about();
    let mut told = vec![format!("{} {:?}", about.source, (&about.clock, about.clock_zero))];
    let mut each = |record: &punctual_trace::Record| {
        told.push(format!("{record:?}"));
        true
    };
    let imported = import.run(&mut each, &mut |_| {}).unwrap();
    told.push(format!("{imported:?}"));
    told
}

#[test]
fn an_import_of_the_kernels_trace_gives_the_same_records() {
    let place = tempfile::tempdir().unwrap();
    write_kernel(place.path());
    let expected = records(place.path());
    assert!(expected.len() > 100, "{expected:?}");
    let env = [("kernel_release", json!("6.1.0")), ("tracer_major", json!(2)), ("tracer_minor", json!(13))];
    for dialect in DIALECTS {
        fs::write(place.path().join("metadata"), metadata(&kernel::layout(), dialect, &env)).unwrap();
        assert_eq!(records(place.path()), expected, "{dialect:?}");
    }
}

/// Each event's time since the epoch, its kind and its fields of these names, as text.
fn lines(folder: &Path, fields: &[&str]) -> Vec<String> {
    let reader = Reader::open(folder).unwrap();
    let mut lines = Vec::new();
    let mut each = |item: &Item<'_>| {
        let Item::Event(event) = item else { panic!("something is missing") };
        let class = &reader.classes()[event.class];
        let ns = i128::from(event.at.ns()) + reader.clock().1;
        let number = |name: &&str| event.signed(class.field(name)).map(|number| number.to_string());
        let value = |name: &&str| event.text(class.field(name)).or_else(|| number(name)).unwrap();
        let fields: Vec<String> = fields.iter().map(value).collect();
        lines.push(format!("{ns} {} {} {}", class.name, event.cpu.unwrap(), fields.join(" ")));
        true
    };
    let totals = reader.read(&mut each, &mut |_| {}).unwrap();
    assert!(totals.damages.is_empty(), "{:?}", totals.damages);
    lines
}

/// As babeltrace2 reads them with metadata of CTF 1.8.
#[test]
fn the_traces_of_trace_compass_are_read() {
    let Some(folder) = shared("foreign/ctf2-index") else { return };
    let found = lines(&folder, &["message"]);
    assert_eq!(found.len(), 4_000);
    assert_eq!(found[0], "1565033456853953396 sample_component:message 1 Hello World");
    assert_eq!(found[3_999], "1565033465321881240 sample_component:message 0 Hello World");
    let Some(folder) = shared("foreign/ctf2-crash") else { return };
    let found = lines(&folder, &["temp", "status"]);
    assert_eq!(found.len(), 400);
    assert_eq!(found[0], "1565891729293111985 my_app:current_temp 0 53 Si le silence craque");
    assert_eq!(found[399], "1565891729293526525 my_app:current_temp 0 58 Si le silence craque");
}

/// A trace of bare events of one kind, in one packet without a header.
fn bare(fields: &Json, aliases: &[(&str, Json)]) -> String {
    let alias =
        |(name, of): &(&str, Json)| json!({ "type": "field-class-alias", "name": name, "field-class": of });
    let mut all = vec![json!({ "type": "preamble", "version": 2 })];
    all.extend(aliases.iter().map(alias));
    all.push(json!({ "type": "data-stream-class" }));
    let payload = json!({ "type": "structure", "member-classes": fields });
    all.push(json!({ "type": "event-record-class", "name": "e", "payload-field-class": payload }));
    all.iter().map(Json::to_string).collect()
}

/// What `take` finds in each event.
fn found<T>(metadata: &str, stream: &[u8], take: impl Fn(&Reader, &Event<'_>) -> T) -> Vec<T> {
    let reader = Reader::in_memory(metadata.as_bytes(), vec![stream.to_vec()]).unwrap();
    let mut all = Vec::new();
    let mut each = |item: &Item<'_>| {
        if let Item::Event(event) = item {
            all.push(take(&reader, event));
        }
        true
    };
    let totals = reader.read(&mut each, &mut |_| {}).unwrap();
    assert!(totals.damages.is_empty(), "{:?}", totals.damages);
    all
}

fn u8_field(name: &str) -> Json {
    json!({ "name": name, "field-class": u8_class() })
}

fn u8_class() -> Json {
    json!({ "type": "fixed-length-unsigned-integer", "length": 8, "byte-order": "little-endian" })
}

fn number(reader: &Reader, event: &Event<'_>, name: &str) -> Option<i64> {
    event.signed(reader.classes()[0].field(name))
}

#[test]
fn numbers_have_any_size() {
    let order = "big-endian";
    let fields = json!([
        { "name": "bits", "field-class": { "type": "fixed-length-bit-array", "length": 3,
            "byte-order": order } },
        { "name": "flags", "field-class": { "type": "fixed-length-bit-map", "length": 4, "byte-order": order,
            "flags": { "x": [[0, 1]] } } },
        { "name": "yes", "field-class": { "type": "fixed-length-boolean", "length": 1,
            "byte-order": order } },
        { "name": "low", "field-class": { "type": "fixed-length-signed-enumeration", "length": 16,
            "byte-order": order, "alignment": 16, "mappings": { "a": [[-1, 3], [7, 7]] } } },
        { "name": "leb", "field-class": { "type": "variable-length-unsigned-integer" } },
        { "name": "_signed.one", "field-class": { "type": "variable-length-signed-integer" } },
    ]);
    let stream = [0b1010_0111, 0, 0xFF, 0xFE, 0xE5, 0x8E, 0x26, 0x7B];
    let names = ["bits", "flags", "yes", "low", "leb", "_signed_one"];
    let found =
        found(&bare(&fields, &[]), &stream, |reader, event| names.map(|name| number(reader, event, name)));
    assert_eq!(found, [[5, 3, 1, -2, 624_485, -5].map(Some)]);
}

#[test]
fn text_and_blobs_have_any_length() {
    let fields = json!([
        u8_field("n"),
        { "name": "word", "field-class": { "type": "dynamic-length-string",
            "length-field-location": { "origin": "event-record-payload", "path": ["n"] } } },
        { "name": "blob", "field-class": { "type": "dynamic-length-blob",
            "length-field-location": { "path": ["n"] } } },
        { "name": "fixed", "field-class": { "type": "static-length-blob", "length": 2 } },
        { "name": "padded", "field-class": { "type": "static-length-string", "length": 4 } },
        { "name": "end", "field-class": "text" },
    ]);
    let stream = b"\x03abcdefghhi\0\0until\0\0jklm\0\0\0";
    let metadata = bare(&fields, &[("text", json!({ "type": "null-terminated-string" }))]);
    let found = found(&metadata, stream, |reader, event| {
        ["word", "blob", "fixed", "padded", "end"].map(|name| event.text(reader.classes()[0].field(name)))
    });
    let expected = [["abc", "def", "gh", "hi", "until"], ["", "", "jk", "lm", ""]];
    assert_eq!(found, expected.map(|of| of.map(|text| Some(text.to_owned()))));
}

#[test]
fn optional_fields_and_variants_are_chosen_by_ranges() {
    let location = json!({ "path": ["tag"] });
    let fields = json!([
        u8_field("tag"),
        { "name": "some", "field-class": { "type": "optional", "selector-field-location": location,
            "selector-field-ranges": [[1, 1], [3, 4]], "field-class": u8_class() } },
        { "name": "v", "field-class": { "type": "variant", "selector-field-location": location, "options": [
            { "selector-field-ranges": [[0, 2]], "field-class": { "type": "structure", "member-classes": [
                u8_field("n") ] } },
            { "selector-field-ranges": [[3, 200]], "field-class": { "type": "structure", "member-classes": [
                u8_field("other"), u8_field("n") ] } },
        ] } },
        { "name": "yes", "field-class": { "type": "fixed-length-boolean", "length": 8,
            "byte-order": "little-endian" } },
        { "name": "last", "field-class": { "type": "optional",
            "selector-field-location": { "path": ["yes"] }, "field-class": u8_class() } },
        // As long as the option that was chosen says.
        { "name": "text", "field-class": { "type": "dynamic-length-string",
            "length-field-location": { "origin": "event-record-payload", "path": ["v", "n"] } } },
    ]);
    let stream = b"\x01\x0a\x02\x00AB\x03\x0b\x09\x01\x05\x0cC\x02\x00\x00";
    let found = found(&bare(&fields, &[]), stream, |reader, event| {
        let text = event.text(reader.classes()[0].field("text"));
        (number(reader, event, "tag"), number(reader, event, "some"), text)
    });
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        found,
        [(Some(1), Some(10), text("AB")), (Some(3), Some(11), text("C")), (Some(2), None, text("")),]
    );
}

#[test]
fn locations_lead_through_structures_and_arrays() {
    let inner = |path: Json| {
        json!({ "type": "structure", "member-classes": [
            u8_field("n"),
            { "name": "words", "field-class": { "type": "dynamic-length-string",
                "length-field-location": path } },
        ] })
    };
    for (location, stream) in [
        (json!({ "path": ["n"] }), b"\x01\x02ab\x03cdeX".as_slice()),
        (json!({ "path": [null, "n"] }), b"\x01\x02a\x03cX"),
        (json!({ "origin": "event-record-payload", "path": ["all", "n"] }), b"\x01\x02ab\x03cdeX"),
        (json!({ "path": [null, "all", null, "n"] }), b"\x01\x02a\x03cX"),
    ] {
        let fields = json!([
            u8_field("n"),
            { "name": "all", "field-class": {
                "type": "static-length-array", "length": 2,
                "element-field-class": inner(location.clone()) } },
            u8_field("end"),
        ]);
        let found = found(&bare(&fields, &[]), stream, |reader, event| number(reader, event, "end"));
        assert_eq!(found, [Some(i64::from(b'X'))], "{location}");
    }
}

#[test]
fn arrays_are_aligned_even_if_they_are_empty() {
    let array = |least: u64| {
        json!({ "type": "dynamic-length-array", "length-field-location": { "path": ["n"] },
            "element-field-class": "u16", "minimum-alignment": least })
    };
    let u16_class = json!({ "type": "fixed-length-unsigned-integer", "length": 16, "alignment": 16,
        "byte-order": "little-endian" });
    for (least, stream) in [(1, b"\x00-X".as_slice()), (32, b"\x00---X"), (32, b"\x02---abcdX")] {
        let fields = json!([u8_field("n"), { "name": "all", "field-class": array(least) }, u8_field("end")]);
        let metadata = bare(&fields, &[("u16", u16_class.clone())]);
        let found = found(&metadata, stream, |reader, event| number(reader, event, "end"));
        assert_eq!(found, [Some(i64::from(b'X'))], "{least} {stream:?}");
    }
}

#[test]
fn metadata_that_are_cut_off_are_an_error_with_its_line() {
    let layout = Layout { classes: &kernel::layout().classes[..2], ..kernel::layout() };
    let text = metadata(&layout, Dialect::Ust, &[]);
    for length in 2..text.len() {
        let cut = &text[..length];
        let Err(error) = Reader::in_memory(cut.as_bytes(), Vec::new()) else {
            // Between two fragments nothing is missing that could be seen.
            assert!(cut.trim_end_matches('\u{1e}').ends_with("\n}"), "{length}: {cut}");
            continue;
        };
        let line = 1 + cut.matches('\n').count();
        let expected = format!("(memory): its CTF 2 metadata cannot be understood: line {line}: ");
        assert!(error.to_string().starts_with(&expected), "{length}: {error}, not {expected}");
    }
}

#[test]
fn changed_metadata_give_errors_or_less() {
    let (place, _) = simulated(Tracer::Jazzy.layout(), 400);
    let (_, streams) = bytes(place.path());
    let mut mutator = Mutator::new(8);
    for dialect in DIALECTS {
        let text = metadata(&Tracer::Jazzy.layout(), dialect, &[]).into_bytes();
        for _ in 0..200 {
            let mut changed = text.clone();
            for _ in 0..=mutator.below(3) {
                mutator.change(&mut changed);
            }
            input::open(&changed, streams.clone());
        }
    }
}

/// Where all parts of a value are.
fn parts(of: &Json, at: &str, all: &mut Vec<String>) {
    match of {
        Json::Object(of) => of.iter().for_each(|(key, of)| parts(of, &format!("{at}/{key}"), all)),
        Json::Array(of) => of.iter().enumerate().for_each(|(key, of)| parts(of, &format!("{at}/{key}"), all)),
        _ => {}
    }
    all.push(at.to_owned());
}

/// Puts a copy of another part, or an extreme number, in the place of a part.
fn exchange(all: &mut Json, mutator: &mut Mutator) {
    let mut places = Vec::new();
    parts(all, "", &mut places);
    let other = all.pointer(&places[mutator.below(places.len())]).unwrap().clone();
    let extremes =
        [json!(0), json!(1), json!(65), json!(1_u64 << 33), json!(u64::MAX), json!(-1), json!(null)];
    let new = extremes.get(mutator.below(2 * extremes.len())).cloned().unwrap_or(other);
    *all.pointer_mut(&places[mutator.below(places.len())]).unwrap() = new;
}

#[test]
fn metadata_with_exchanged_parts_give_errors_or_less() {
    let mut mutator = Mutator::new(9);
    for name in ["ctf2", "ctf2_fields"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/lttng");
        let data = fs::read(folder.join(name)).unwrap();
        let (metadata, stream) = data[2..].split_at(usize::from(u16::from_le_bytes([data[0], data[1]])));
        let text: Vec<u8> = metadata.iter().copied().filter(|byte| *byte != 0x1e).collect();
        let fragments = serde_json::Deserializer::from_slice(&text).into_iter().map(Result::unwrap);
        let fragments = Json::Array(fragments.collect());
        for _ in 0..1_000 {
            let mut changed = fragments.clone();
            (0..=mutator.below(4)).for_each(|_| exchange(&mut changed, &mut mutator));
            let changed: String = changed.as_array().into_iter().flatten().map(Json::to_string).collect();
            input::open(changed.as_bytes(), vec![stream.to_vec()]);
        }
    }
}

#[test]
fn locations_that_lead_nowhere_are_an_error() {
    let fields = json!([
        { "name": "word", "field-class": { "type": "dynamic-length-string",
            "length-field-location": { "path": [null, "n"] } } },
    ]);
    let other = json!([
        { "name": "word", "field-class": { "type": "dynamic-length-string",
            "length-field-location": { "origin": "event-record-header", "path": ["n"] } } },
    ]);
    for (fields, why) in [
        (fields, "the location of a field leads out of all structures"),
        (other, "there is no field stream.event.header.n before it"),
    ] {
        let error = Reader::in_memory(bare(&fields, &[]).as_bytes(), Vec::new()).err().expect("nowhere");
        let place = "its CTF 2 metadata cannot be understood: the event e: event.fields.word";
        assert_eq!(error.to_string(), format!("(memory)/metadata: {place}: {why}"));
    }
}

#[test]
fn types_that_would_take_all_memory_are_refused() {
    let pair = |of: &str| {
        json!({ "type": "structure", "member-classes": [
            { "name": "a", "field-class": of }, { "name": "b", "field-class": of } ] })
    };
    let names: Vec<String> = (0..40).map(|level| format!("t{level}")).collect();
    let mut aliases = vec![("t0", u8_class())];
    aliases.extend((1..40).map(|level| (names[level].as_str(), pair(&names[level - 1]))));
    let of = |name: &str| bare(&json!([{ "name": "x", "field-class": name }]), &aliases);
    // One event may be that large, but not many.
    let event = json!({ "type": "event-record-class", "id": 1, "payload-field-class": "t15" }).to_string();
    let long = "x".repeat(2_000);
    for (metadata, what) in [
        (of("t39"), "its types are too large"),
        (of("t0") + &event.repeat(20), "its types are too large"),
        (bare(&json!([u8_field(&long)]), &[]), "its names are too long"),
    ] {
        let error = Reader::in_memory(metadata.as_bytes(), Vec::new()).err().expect("too large");
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn a_folder_with_bad_metadata_says_where() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("metadata");
    fs::write(&path, "\u{1e}{ \"type\": \"preamble\",\n\"version\": 2 }\n\u{1e}{ \"type\": 7 }").unwrap();
    let error = Reader::open(place.path()).err().expect("no type").to_string();
    let why = "its CTF 2 metadata cannot be understood: line 3: invalid type: integer `7`, expected a string";
    assert_eq!(error, format!("{}: {why}", path.display()));
}
