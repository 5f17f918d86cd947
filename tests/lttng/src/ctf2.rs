//! The metadata of the same traces in CTF 2, whose packets are those of CTF 1.8.

use crate::ctf::{Layout, Type, UUID};
use serde_json::{Value, json};

/// Whose CTF 2 it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `lttng-modules` 2.15: field classes have names; locations are relative.
    Kernel,
    /// `lttng-sessiond` 2.15 for user space: locations have an origin.
    Ust,
    /// A draft of CTF 2, before clocks had IDs.
    Draft,
}

/// All of them.
pub const DIALECTS: [Dialect; 3] = [Dialect::Kernel, Dialect::Ust, Dialect::Draft];

/// The text of the metadata: what [`crate::ctf::metadata`] says in TSDL. `env` lists what the layout has
/// there.
pub fn metadata(layout: &Layout, dialect: Dialect, env: &[(&str, Value)]) -> String {
    let fragments = fragments(layout, dialect, env);
    let text = |fragment: Value| match dialect {
        Dialect::Kernel => format!("\u{1e}{fragment}"),
        Dialect::Ust => format!("\u{1e}{fragment:#}"),
        Dialect::Draft => format!("\u{1e}{fragment:#}\n"),
    };
    fragments.into_iter().map(text).collect()
}

fn fragments(layout: &Layout, dialect: Dialect, env: &[(&str, Value)]) -> Vec<Value> {
    let make = Make { is_big: layout.is_big, dialect };
    let mut all = vec![json!({ "type": "preamble", "version": 2, "uuid": UUID })];
    let mut class = |name: &str, class: Value| {
        if dialect != Dialect::Kernel {
            return class;
        }
        all.push(json!({ "type": "field-class-alias", "name": name, "field-class": class }));
        json!(name)
    };
    let timestamp = class("u64-ts", make.integer(64, 8, &["default-clock-timestamp"]));
    let header = class("pkt-header", make.packet_header());
    let context = class("pkt-ctx", make.packet_context(timestamp.clone()));
    let event = class("er-header", make.event_header(layout.has_large_headers, timestamp));
    all.push(json!({
        "type": "trace-class", "namespace": "lttng.org,2009", "name": "", "packet-header-field-class": header,
        "environment": environment(layout, env),
    }));
    all.push(clock(layout, dialect));
    let key = if dialect == Dialect::Draft { "default-clock-class-name" } else { "default-clock-class-id" };
    all.push(json!({
        "type": "data-stream-class", "id": 0, key: layout.clock.0, "packet-context-field-class": context,
        "event-record-header-field-class": event,
        "event-record-common-context-field-class": make.fields(layout.context),
    }));
    for (id, (name, of)) in layout.classes.iter().enumerate() {
        all.push(json!({
            "type": "event-record-class", "id": id, "data-stream-class-id": 0, "name": name,
            "payload-field-class": make.fields(of),
            "attributes": { "lttng.org,2009": { "log-level": "debug" } },
        }));
    }
    all
}

fn environment(layout: &Layout, more: &[(&str, Value)]) -> Value {
    let mut env = json!({ "domain": layout.domain, "tracer_name": "lttng", "hostname": "robot" });
    for (name, value) in more {
        env[*name] = value.clone();
    }
    env
}

fn clock(layout: &Layout, dialect: Dialect) -> Value {
    let (name, frequency) = layout.clock;
    let offset = json!({ "seconds": layout.offset / frequency, "cycles": layout.offset % frequency });
    let mut clock = json!({
        "type": "clock-class", "name": name, "frequency": frequency, "description": "Monotonic Clock",
        "offset-from-origin": offset,
    });
    if dialect == Dialect::Draft {
        clock["uuid"] = json!([0x0e, 0x1b, 0x5b, 0xbd, 0x08, 0xa4, 0x4b, 0x40, 0x8e, 0x2a, 0, 0, 0, 0, 0, 0]);
    } else {
        clock["id"] = json!(name);
        clock["uid"] = json!("0e1b5bbd-08a4-4b40-8e2a-000000000000");
        clock["origin"] = json!("unix-epoch");
    }
    clock
}

#[derive(Clone, Copy)]
struct Make {
    is_big: bool,
    dialect: Dialect,
}

impl Make {
    fn sized(self, kind: &str, bits: u64, align: u64) -> Value {
        let order = if self.is_big { "big-endian" } else { "little-endian" };
        json!({ "type": kind, "length": bits, "byte-order": order, "alignment": align })
    }

    fn integer(self, bits: u64, align: u64, roles: &[&str]) -> Value {
        let mut class = self.sized("fixed-length-unsigned-integer", bits, align);
        if !roles.is_empty() {
            class["roles"] = json!(roles);
        }
        class
    }

    fn packet_header(self) -> Value {
        structure(vec![
            ("magic", self.integer(32, 8, &["packet-magic-number"])),
            (
                "uuid",
                json!({ "type": "static-length-blob", "length": 16, "roles": ["metadata-stream-uuid"] }),
            ),
            ("stream_id", self.integer(32, 8, &["data-stream-class-id"])),
            ("stream_instance_id", self.integer(64, 8, &["data-stream-id"])),
        ])
    }

    fn packet_context(self, timestamp: Value) -> Value {
        let integer = |role: &str| self.integer(64, 8, &[role]);
        structure(vec![
            ("timestamp_begin", timestamp),
            ("timestamp_end", integer("packet-end-default-clock-timestamp")),
            // Names mean nothing where there are roles.
            ("packet_size", integer("packet-content-length")),
            ("content_size", integer("packet-total-length")),
            ("packet_seq_num", integer("packet-sequence-number")),
            ("events_discarded", integer("discarded-event-record-counter-snapshot")),
            ("cpu_id", self.integer(32, 8, &[])),
        ])
    }

    fn event_header(self, is_large: bool, timestamp: Value) -> Value {
        let (bits, align, low) = if is_large { (16, 8, 32) } else { (5, 1, 27) };
        let most = (1_u64 << bits) - 1;
        let mut id = self.integer(bits, align, &["event-record-class-id"]);
        id["mappings"] = json!({ "compact": [[0, most - 1]], "extended": [[most, most]] });
        if self.dialect == Dialect::Draft {
            id["type"] = json!("fixed-length-unsigned-enumeration");
        }
        let location = match self.dialect {
            Dialect::Kernel => json!({ "path": ["id"] }),
            Dialect::Ust => json!({ "origin": "event-record-header", "path": ["id"] }),
            Dialect::Draft => json!(["event-record-header", "id"]),
        };
        let low = self.integer(low, align, &["default-clock-timestamp"]);
        let compact = structure(vec![("timestamp", low)]);
        let wide = self.integer(32, 8, &["event-record-class-id"]);
        let extended = structure(vec![("id", wide), ("timestamp", timestamp)]);
        let mut options = vec![
            json!({ "name": "compact", "selector-field-ranges": [[0, most - 1]], "field-class": compact }),
            json!({ "selector-field-ranges": [[most, most]], "field-class": extended }),
        ];
        if self.dialect == Dialect::Ust {
            options.reverse();
        }
        let variant = json!({ "type": "variant", "selector-field-location": location, "options": options });
        let mut header = structure(vec![("id", id), ("v", variant)]);
        header["minimum-alignment"] = json!(8);
        header
    }

    fn fields(self, of: &[(&str, Type)]) -> Value {
        structure(of.iter().map(|(name, of)| (*name, self.field(*of))).collect())
    }

    fn field(self, of: Type) -> Value {
        let signed = |bits| self.sized("fixed-length-signed-integer", bits, 8);
        let array = |length: usize, bits| {
            let element = self.integer(bits, 8, &[]);
            json!({ "type": "static-length-array", "length": length, "element-field-class": element })
        };
        match of {
            Type::U64 => self.integer(64, 8, &[]),
            Type::I64 => signed(64),
            Type::I32 => signed(32),
            Type::Text => json!({ "type": "null-terminated-string" }),
            Type::Bytes(count) => array(count, 8),
            Type::Comm => json!({ "type": "static-length-string", "length": 16, "encoding": "utf-8" }),
            Type::Arguments => array(6, 64),
        }
    }
}

fn structure(members: Vec<(&str, Value)>) -> Value {
    let member = |(name, class): (&str, Value)| json!({ "name": name, "field-class": class });
    json!({ "type": "structure", "member-classes": members.into_iter().map(member).collect::<Vec<_>>() })
}
