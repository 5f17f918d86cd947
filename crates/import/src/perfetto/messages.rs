//! Messages about the recording as a whole, as far as they are read.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub struct SystemInfo {
    #[prost(message, optional, tag = "1")]
    pub utsname: Option<Utsname>,
    #[prost(string, tag = "4")]
    pub version: String,
    #[prost(uint32, tag = "8")]
    pub cpus: u32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Utsname {
    #[prost(string, tag = "3")]
    pub release: String,
    #[prost(string, tag = "4")]
    pub machine: String,
}

/// The same moment on several clocks.
#[derive(Clone, PartialEq, Message)]
pub struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub clocks: Vec<Clock>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct Clock {
    #[prost(uint32, tag = "1")]
    pub id: u32,
    #[prost(uint64, tag = "2")]
    pub ns: u64,
}

/// Threads and processes that came up.
#[derive(Clone, PartialEq, Message)]
pub struct ProcessTree {
    #[prost(message, repeated, tag = "1")]
    pub processes: Vec<Process>,
    #[prost(message, repeated, tag = "2")]
    pub threads: Vec<Thread>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct Process {
    #[prost(int32, tag = "1")]
    pub pid: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Thread {
    #[prost(int32, tag = "1")]
    pub tid: i32,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(int32, tag = "3")]
    pub pid: i32,
}

/// What the kernel counted, at the beginning or at the end.
#[derive(Clone, PartialEq, Message)]
pub struct FtraceStats {
    #[prost(int32, tag = "1")]
    pub phase: i32,
    #[prost(message, repeated, tag = "2")]
    pub cpus: Vec<CpuStats>,
    /// Events asked for that there are not, or that could not be switched on.
    #[prost(string, repeated, tag = "6")]
    pub unknown: Vec<String>,
    #[prost(string, repeated, tag = "7")]
    pub failed: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct CpuStats {
    #[prost(uint64, tag = "1")]
    pub cpu: u64,
    #[prost(uint64, tag = "3")]
    pub overrun: u64,
    #[prost(uint64, tag = "8")]
    pub dropped: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct TraceStats {
    #[prost(message, repeated, tag = "1")]
    pub buffers: Vec<BufferStats>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct BufferStats {
    /// Parts that came when a buffer that is not a ring was full.
    #[prost(uint64, tag = "18")]
    pub discarded: u64,
}

/// What was asked for.
#[derive(Clone, PartialEq, Message)]
pub struct TraceConfig {
    #[prost(message, repeated, tag = "2")]
    pub sources: Vec<DataSource>,
}

#[derive(Clone, PartialEq, Message)]
pub struct DataSource {
    #[prost(message, optional, tag = "1")]
    pub config: Option<SourceConfig>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SourceConfig {
    #[prost(message, optional, tag = "100")]
    pub ftrace: Option<FtraceConfig>,
}

#[derive(Clone, PartialEq, Message)]
pub struct FtraceConfig {
    /// Groups and names of events: `sched/sched_switch`, `raw_syscalls/*`.
    #[prost(string, repeated, tag = "1")]
    pub events: Vec<String>,
    /// The only system calls that are recorded, if it names any.
    #[prost(string, repeated, tag = "18")]
    pub calls: Vec<String>,
    /// The only threads.
    #[prost(uint32, repeated, packed = "false", tag = "35")]
    pub threads: Vec<u32>,
    /// The only processors.
    #[prost(string, tag = "37")]
    pub cpus: String,
}
