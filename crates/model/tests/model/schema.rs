//! The schema in `docs/`: it describes every field that is written, every written file obeys it, and so does
//! whatever the reader accepts. So it cannot drift from the types.

use crate::generate::model;
use crate::read::{EXAMPLE, changed};
use jsonschema::Validator;
use proptest::prelude::*;
use punctual_model::{Call, TimingModel};
use serde_json::Value;
use std::sync::LazyLock;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../../docs/timing-model.schema.json"))
        .expect("the schema is JSON")
});
static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| {
    jsonschema::draft202012::meta::validate(&SCHEMA).expect("the schema is one of draft 2020-12");
    jsonschema::draft202012::new(&SCHEMA).expect("the schema compiles")
});

/// The schema without fields that it does not describe.
static CLOSED: LazyLock<Validator> = LazyLock::new(|| {
    fn close(schema: &mut Value) {
        match schema {
            Value::Object(fields) => {
                // Conditions describe fields only in part.
                fields.iter_mut().filter(|(name, _)| *name != "if").for_each(|(_, value)| close(value));
                if fields.contains_key("properties") {
                    fields.insert("additionalProperties".into(), false.into());
                }
            }
            Value::Array(items) => items.iter_mut().for_each(close),
            _ => {}
        }
    }
    let mut schema = SCHEMA.clone();
    close(&mut schema);
    jsonschema::draft202012::new(&schema).expect("the schema compiles")
});

fn refusals_by(validator: &Validator, document: &Value) -> Vec<String> {
    validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

fn refusals(document: &Value) -> Vec<String> {
    refusals_by(&VALIDATOR, document)
}

#[test]
fn the_example_of_the_format_is_valid() {
    assert_eq!(refusals(&serde_json::from_str(EXAMPLE).expect("JSON")), [""; 0]);
}

/// `PUNCTUAL_BLESS=1 cargo test -p punctual-model names_every_call` writes the names anew.
#[test]
fn the_schema_names_every_call() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/timing-model.schema.json");
    let schema = std::fs::read_to_string(path).expect("the schema");
    let (before, rest) = schema
        .split_once(
            r#""enum": [
            "suspension","#,
        )
        .expect("the names of calls");
    let (_, after) = rest.split_once(']').expect("their end");
    let names: Vec<String> = Call::ALL.iter().map(|call| format!("            \"{call}\"")).collect();
    let expected = format!("{before}\"enum\": [\n{}\n          ]{after}", names.join(",\n"));
    if std::env::var_os("PUNCTUAL_BLESS").is_some() {
        std::fs::write(path, expected).expect("the schema can be written");
    } else {
        assert!(schema == expected, "the schema does not name every call: run this with PUNCTUAL_BLESS=1");
    }
}

#[test]
fn every_property_is_described() {
    fn walk(path: &str, value: &Value) {
        if let Some(properties) = value.get("properties").and_then(Value::as_object) {
            for (name, property) in properties {
                let is_described = ["description", "$ref"].iter().any(|key| property.get(key).is_some());
                // A condition names a property that is described elsewhere.
                assert!(is_described || path.ends_with("/if"), "{path}/{name} is not described");
            }
        }
        match value {
            Value::Object(fields) => {
                fields.iter().for_each(|(name, value)| walk(&format!("{path}/{name}"), value))
            }
            Value::Array(items) => items.iter().for_each(|value| walk(path, value)),
            _ => {}
        }
    }
    walk("", &SCHEMA);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn every_written_file_is_valid(model in model()) {
        let written = serde_json::from_str(&model.to_json()).expect("JSON");
        prop_assert_eq!(refusals(&written), Vec::<String>::new());
        prop_assert_eq!(refusals_by(&CLOSED, &written), Vec::<String>::new(), "not described");
    }

    /// The schema never refuses what the reader takes: other tools that check it lose nothing.
    #[test]
    fn whatever_the_reader_accepts_is_valid(
        model in model(),
        changes in prop::collection::vec(any::<(u16, u8)>(), 1..3),
    ) {
        let mut document = serde_json::to_value(&model).expect("serializes");
        changes.iter().for_each(|(place, change)| changed(&mut document, *place, *change));
        if TimingModel::from_json(&document.to_string()).is_ok() {
            prop_assert_eq!(refusals(&document), Vec::<String>::new());
        }
    }
}
