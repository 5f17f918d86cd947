//! The events of ros2_tracing (Humble, Jazzy and newer), and of CARET, as LTTng-UST declares them.

use crate::ctf::Type::{Bytes, I32, I64, Text, U64};
use crate::ctf::{Class, Layout, Type, Value};

/// Who publishes time stamps how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracer {
    /// `rmw_publish` and `rmw_take` have the time stamp; requests and responses, as in Kilted and newer.
    Jazzy,
    /// `rmw_publish` has the message alone, as in Humble and Iron; Cyclone DDS adds its own events.
    Humble,
    /// The same, of a middleware without events; with those of messages within a process.
    Iron,
    /// CARET: `dds_bind_addr_to_stamp` and `dispatch_subscription_callback`.
    Caret,
}

/// Context of events, as `ros2 trace` asks for it.
pub const CONTEXT: &[(&str, Type)] = &[("vpid", I32), ("vtid", I32), ("procname", Type::Comm)];

const COMMON: [Class; 21] = [
    (
        "ros2:rcl_node_init",
        &[("node_handle", U64), ("rmw_handle", U64), ("node_name", Text), ("namespace", Text)],
    ),
    (
        "ros2:rcl_publisher_init",
        &[
            ("publisher_handle", U64),
            ("node_handle", U64),
            ("rmw_publisher_handle", U64),
            ("topic_name", Text),
            ("queue_depth", U64),
        ],
    ),
    (
        "ros2:rcl_subscription_init",
        &[
            ("subscription_handle", U64),
            ("node_handle", U64),
            ("rmw_subscription_handle", U64),
            ("topic_name", Text),
            ("queue_depth", U64),
        ],
    ),
    ("ros2:rclcpp_subscription_init", &[("subscription_handle", U64), ("subscription", U64)]),
    ("ros2:rclcpp_subscription_callback_added", &[("subscription", U64), ("callback", U64)]),
    ("ros2:rcl_timer_init", &[("timer_handle", U64), ("period", I64)]),
    ("ros2:rclcpp_timer_callback_added", &[("timer_handle", U64), ("callback", U64)]),
    ("ros2:rclcpp_timer_link_node", &[("timer_handle", U64), ("node_handle", U64)]),
    ("ros2:rclcpp_callback_register", &[("callback", U64), ("symbol", Text)]),
    ("ros2:rclcpp_publish", &[("message", U64)]),
    ("ros2:rclcpp_intra_publish", &[("publisher_handle", U64), ("message", U64)]),
    ("ros2:rcl_publish", &[("publisher_handle", U64), ("message", U64)]),
    ("ros2:callback_start", &[("callback", U64), ("is_intra_process", I32)]),
    ("ros2:callback_end", &[("callback", U64)]),
    ("ros2:rclcpp_executor_execute", &[("handle", U64)]),
    ("ros2:rclcpp_buffer_to_ipb", &[("buffer", U64), ("ipb", U64)]),
    ("ros2:rclcpp_ipb_to_subscription", &[("ipb", U64), ("subscription", U64)]),
    (
        "ros2:rclcpp_ring_buffer_enqueue",
        &[("buffer", U64), ("index", U64), ("size", U64), ("overwritten", I32)],
    ),
    ("ros2:rclcpp_ring_buffer_dequeue", &[("buffer", U64), ("index", U64), ("size", U64)]),
    (
        "ros2:rcl_service_init",
        &[("service_handle", U64), ("node_handle", U64), ("rmw_service_handle", U64), ("service_name", Text)],
    ),
    ("ros2:rclcpp_service_callback_added", &[("service_handle", U64), ("callback", U64)]),
];

const TAKE: Class = (
    "ros2:rmw_take",
    &[("rmw_subscription_handle", U64), ("message", U64), ("source_timestamp", I64), ("taken", I32)],
);

const fn with<const N: usize>(more: [Class; N]) -> [Class; 32] {
    assert!(N <= 12);
    let mut all = [("ros2:unused", &[] as &[(&str, Type)]); 32];
    let mut index = 0;
    while index < COMMON.len() {
        all[index] = COMMON[index];
        index += 1;
    }
    let mut other = 0;
    while other < N {
        all[index + other] = more[other];
        other += 1;
    }
    all
}

static JAZZY: [Class; 32] = with([
    TAKE,
    ("ros2:rmw_subscription_init", &[("rmw_subscription_handle", U64), ("gid", Bytes(16))]),
    ("ros2:rmw_publish", &[("rmw_publisher_handle", U64), ("message", U64), ("timestamp", I64)]),
    ("ros2:rmw_client_init", &[("rmw_client_handle", U64), ("gid", Bytes(16))]),
    (
        "ros2:rcl_client_init",
        &[("client_handle", U64), ("node_handle", U64), ("rmw_client_handle", U64), ("service_name", Text)],
    ),
    ("ros2:rmw_send_request", &[("rmw_client_handle", U64), ("request", U64), ("sequence_number", I64)]),
    (
        "ros2:rmw_take_request",
        &[
            ("rmw_service_handle", U64),
            ("request", U64),
            ("client_gid", Bytes(16)),
            ("sequence_number", I64),
            ("taken", I32),
        ],
    ),
    (
        "ros2:rmw_send_response",
        &[
            ("rmw_service_handle", U64),
            ("response", U64),
            ("client_gid", Bytes(16)),
            ("sequence_number", I64),
            ("timestamp", I64),
        ],
    ),
    (
        "ros2:rmw_take_response",
        &[
            ("rmw_client_handle", U64),
            ("response", U64),
            ("sequence_number", I64),
            ("source_timestamp", I64),
            ("taken", I32),
        ],
    ),
    ("ros2:rclcpp_executor_get_next_ready", &[]),
    ("ros2:rclcpp_executor_wait_for_work", &[("timeout", I64)]),
]);
const HUMBLE: [Class; 4] = [
    TAKE,
    ("ros2:rmw_publish", &[("message", U64)]),
    ("ros2:rmw_publisher_init", &[("rmw_publisher_handle", U64), ("gid", Bytes(24))]),
    ("ros2:rmw_subscription_init", &[("rmw_subscription_handle", U64), ("gid", Bytes(24))]),
];
static IRON: [Class; 32] = with(HUMBLE);
static HUMBLE_CYCLONE: [Class; 32] = with([
    HUMBLE[0],
    HUMBLE[1],
    HUMBLE[2],
    HUMBLE[3],
    (
        "dds:create_writer",
        &[("writer", U64), ("topic_name", Text), ("gid_prefix", Bytes(12)), ("gid_entity", Bytes(4))],
    ),
    ("dds:write_pre", &[("writer", U64), ("data", U64)]),
    ("dds:write", &[("writer", U64), ("timestamp", I64)]),
]);
static CARET: [Class; 32] = with([
    ("ros2_caret:dds_write", &[("message", U64)]),
    ("ros2_caret:dds_bind_addr_to_stamp", &[("addr", U64), ("source_stamp", U64)]),
    (
        "ros2:dispatch_subscription_callback",
        &[("message", U64), ("callback", U64), ("source_stamp", U64), ("message_timestamp", U64)],
    ),
]);

impl Tracer {
    /// The kinds of events.
    pub fn classes(self) -> &'static [Class] {
        match self {
            Tracer::Jazzy => &JAZZY,
            Tracer::Humble => &HUMBLE_CYCLONE,
            Tracer::Iron => &IRON,
            Tracer::Caret => &CARET,
        }
    }

    /// As LTTng-UST lays it out.
    pub fn layout(self) -> Layout {
        Layout {
            domain: "ust",
            is_big: false,
            has_large_headers: false,
            packet_bytes: 4096,
            context: CONTEXT,
            classes: self.classes(),
            clock: ("monotonic", 1_000_000_000),
            offset: 1_700_000_000_000_000_000,
            env: String::new(),
        }
    }
}

/// An event with its time, processor and thread, before it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Nanoseconds of the clock.
    pub at: u64,
    /// The processor.
    pub cpu: u32,
    /// Process, thread, and the process's name.
    pub thread: (i32, i32, &'static str),
    /// Its name.
    pub class: &'static str,
    /// Its fields.
    pub fields: Vec<Value>,
}

impl Event {
    /// Values of [`CONTEXT`].
    pub fn context(&self) -> [Value; 3] {
        let (pid, tid, name) = self.thread;
        [Value::I32(pid), Value::I32(tid), Value::Text(name.to_owned())]
    }
}
