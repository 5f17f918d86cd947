//! The messages of a Perfetto trace, with just the fields that are used. Field numbers are those of
//! Perfetto's public definitions (`protos/perfetto/trace/perfetto_trace.proto`), which never change.
//!
//! They are proto2, where a field that is 0 differs from an absent one: hence `required`.

use prost::Message;

/// `Trace`: packets in a row. Whatever is appended to a trace belongs to it.
#[derive(Clone, PartialEq, Message)]
pub struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub packets: Vec<Packet>,
}

/// `TracePacket`
#[derive(Clone, PartialEq, Message)]
pub struct Packet {
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// The number of the writer, whose packets are in order.
    #[prost(uint32, required, tag = "10")]
    pub sequence: u32,
    #[prost(uint32, tag = "13")]
    pub sequence_flags: u32,
    #[prost(message, optional, tag = "1")]
    pub ftrace: Option<FtraceBundle>,
    #[prost(message, optional, tag = "2")]
    pub processes: Option<Processes>,
    #[prost(message, optional, tag = "6")]
    pub clocks: Option<ClockSnapshot>,
    #[prost(message, optional, tag = "11")]
    pub event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    pub interned: Option<Interned>,
    #[prost(message, optional, tag = "45")]
    pub system: Option<System>,
    #[prost(message, optional, tag = "59")]
    pub defaults: Option<Defaults>,
    #[prost(message, optional, tag = "60")]
    pub track: Option<Track>,
}

/// The sequence begins: earlier interned data is invalid.
pub const BEGINS: u32 = 1;
/// The packet uses interned data.
pub const USES_INTERNED: u32 = 2;

/// `TracePacketDefaults`
#[derive(Clone, PartialEq, Message)]
pub struct Defaults {
    #[prost(uint32, required, tag = "58")]
    pub clock: u32,
}

/// `ClockSnapshot`
#[derive(Clone, PartialEq, Message)]
pub struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub clocks: Vec<ClockReading>,
    #[prost(int32, required, tag = "2")]
    pub primary: i32,
}

/// `ClockSnapshot.Clock`
#[derive(Clone, PartialEq, Message)]
pub struct ClockReading {
    #[prost(uint32, required, tag = "1")]
    pub clock: u32,
    #[prost(uint64, required, tag = "2")]
    pub ns: u64,
}

/// The numbers of clocks (`BuiltinClock`).
pub mod clock {
    pub const REALTIME: u32 = 1;
    pub const MONOTONIC: u32 = 3;
    pub const MONOTONIC_RAW: u32 = 5;
    pub const BOOTTIME: u32 = 6;
}

/// `SystemInfo`
#[derive(Clone, PartialEq, Message)]
pub struct System {
    #[prost(message, optional, tag = "1")]
    pub names: Option<SystemNames>,
}

/// `Utsname`
#[derive(Clone, PartialEq, Message)]
pub struct SystemNames {
    #[prost(string, required, tag = "1")]
    pub sysname: String,
    #[prost(string, required, tag = "3")]
    pub release: String,
    #[prost(string, required, tag = "4")]
    pub machine: String,
}

/// `InternedData`: numbers for repeated texts.
#[derive(Clone, PartialEq, Message)]
pub struct Interned {
    #[prost(message, repeated, tag = "1")]
    pub categories: Vec<Name>,
    #[prost(message, repeated, tag = "3")]
    pub argument_names: Vec<Name>,
}

/// `EventCategory`, `DebugAnnotationName`
#[derive(Clone, PartialEq, Message)]
pub struct Name {
    #[prost(uint64, required, tag = "1")]
    pub number: u64,
    #[prost(string, required, tag = "2")]
    pub name: String,
}

/// `TrackDescriptor`
#[derive(Clone, PartialEq, Message)]
pub struct Track {
    #[prost(uint64, required, tag = "1")]
    pub id: u64,
    #[prost(uint64, optional, tag = "5")]
    pub parent: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(string, optional, tag = "14")]
    pub description: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub process: Option<Process>,
    #[prost(message, optional, tag = "4")]
    pub thread: Option<Thread>,
    #[prost(int32, optional, tag = "11")]
    pub child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    pub rank: Option<i32>,
}

/// Children of a track are shown by their `rank`.
pub const BY_RANK: i32 = 3;

/// `ProcessTree`: the only place where Perfetto looks for command lines.
#[derive(Clone, PartialEq, Message)]
pub struct Processes {
    #[prost(message, repeated, tag = "1")]
    pub processes: Vec<ProcessCommand>,
}

/// `ProcessTree.Process`
#[derive(Clone, PartialEq, Message)]
pub struct ProcessCommand {
    #[prost(int32, required, tag = "1")]
    pub pid: i32,
    #[prost(string, repeated, tag = "3")]
    pub command: Vec<String>,
}

/// `ProcessDescriptor`
#[derive(Clone, PartialEq, Message)]
pub struct Process {
    #[prost(int32, required, tag = "1")]
    pub pid: i32,
    #[prost(string, required, tag = "6")]
    pub name: String,
}

/// `ThreadDescriptor`
#[derive(Clone, PartialEq, Message)]
pub struct Thread {
    #[prost(int32, required, tag = "1")]
    pub pid: i32,
    #[prost(int64, required, tag = "2")]
    pub tid: i64,
    #[prost(string, required, tag = "5")]
    pub name: String,
}

/// `TrackEvent`
#[derive(Clone, PartialEq, Message)]
pub struct TrackEvent {
    #[prost(uint64, repeated, packed = "false", tag = "3")]
    pub categories: Vec<u64>,
    #[prost(message, repeated, tag = "4")]
    pub arguments: Vec<Argument>,
    #[prost(int32, required, tag = "9")]
    pub kind: i32,
    #[prost(uint64, required, tag = "11")]
    pub track: u64,
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    /// Arrows that leave from here.
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flows: Vec<u64>,
    /// Arrows that end here.
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub ending_flows: Vec<u64>,
}

/// The kind of a [`TrackEvent`] (`TrackEvent.Type`).
pub mod kind {
    pub const SLICE_BEGIN: i32 = 1;
    pub const SLICE_END: i32 = 2;
    pub const INSTANT: i32 = 3;
}

/// `DebugAnnotation`
#[derive(Clone, PartialEq, Message)]
pub struct Argument {
    #[prost(uint64, required, tag = "1")]
    pub name: u64,
    #[prost(int64, optional, tag = "4")]
    pub number: Option<i64>,
    #[prost(string, optional, tag = "6")]
    pub text: Option<String>,
}

/// `FtraceEventBundle`: events of one processor as the kernel's tracer writes them.
#[derive(Clone, PartialEq, Message)]
pub struct FtraceBundle {
    #[prost(uint32, required, tag = "1")]
    pub cpu: u32,
    #[prost(message, repeated, tag = "2")]
    pub events: Vec<FtraceEvent>,
}

/// `FtraceEvent`
#[derive(Clone, PartialEq, Message)]
pub struct FtraceEvent {
    #[prost(uint64, required, tag = "1")]
    pub timestamp: u64,
    /// The thread that ran when it happened.
    #[prost(uint32, required, tag = "2")]
    pub tid: u32,
    #[prost(message, optional, tag = "4")]
    pub switch: Option<SchedSwitch>,
    #[prost(message, optional, tag = "20")]
    pub waking: Option<SchedThread>,
    #[prost(message, optional, tag = "240")]
    pub free: Option<SchedThread>,
}

/// `SchedSwitchFtraceEvent`
#[derive(Clone, PartialEq, Message)]
pub struct SchedSwitch {
    #[prost(string, required, tag = "1")]
    pub prev_name: String,
    #[prost(int32, required, tag = "2")]
    pub prev_tid: i32,
    #[prost(int32, required, tag = "3")]
    pub prev_priority: i32,
    #[prost(int64, required, tag = "4")]
    pub prev_state: i64,
    #[prost(string, required, tag = "5")]
    pub next_name: String,
    #[prost(int32, required, tag = "6")]
    pub next_tid: i32,
    #[prost(int32, required, tag = "7")]
    pub next_priority: i32,
}

/// `SchedWakingFtraceEvent` and `SchedProcessFreeFtraceEvent`, which begin alike.
#[derive(Clone, PartialEq, Message)]
pub struct SchedThread {
    #[prost(string, required, tag = "1")]
    pub name: String,
    #[prost(int32, required, tag = "2")]
    pub tid: i32,
    #[prost(int32, required, tag = "3")]
    pub priority: i32,
}
