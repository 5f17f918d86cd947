//! Makes perf.data files, record by record, so that what is in them is known.

/// Numbers of the tracepoints.
pub const SWITCH: u16 = 300;
pub const WAKING: u16 = 301;
pub const ENTER: u16 = 302;
pub const EXIT: u16 = 303;
pub const LEND: u16 = 304;
pub const RUNTIME: u16 = 306;
pub const MIGRATE: u16 = 307;
pub const FREE: u16 = 310;

/// As the kernel describes them.
pub const FORMATS: &str = "name: sched_switch\nID: 300\nformat:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;

\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;
\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;
\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;
\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;
\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;

print fmt: \"\"
name: sched_waking\nID: 301\nformat:
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;

print fmt: \"\"
name: sys_enter\nID: 302\nformat:
\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;
\tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;

print fmt: \"\"
name: sys_exit\nID: 303\nformat:
\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;
\tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;

print fmt: \"\"
name: sched_pi_setprio\nID: 304\nformat:
\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;
\tfield:int oldprio;\toffset:12;\tsize:4;\tsigned:1;
\tfield:int newprio;\toffset:16;\tsize:4;\tsigned:1;

print fmt: \"\"
name: sched_stat_runtime\nID: 306\nformat:
\tfield:__data_loc char[] comm;\toffset:8;\tsize:4;\tsigned:0;
\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;
\tfield:u64 runtime;\toffset:16;\tsize:8;\tsigned:0;

print fmt: \"\"
name: sched_migrate_task\nID: 307\nformat:
\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;

print fmt: \"\"
name: sched_process_free\nID: 310\nformat:
\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;

print fmt: \"\"
";

/// Those of one system call, of which each has its own.
const OF_ONE_CALL: &str = "name: sys_enter_clock_nanosleep\nID: 311\nformat:
\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;
\tfield:const clockid_t which_clock;\toffset:16;\tsize:8;\tsigned:0;
\tfield:int flags;\toffset:24;\tsize:8;\tsigned:0;
\tfield:const struct __kernel_timespec * rqtp;\toffset:32;\tsize:8;\tsigned:0;
\tfield:struct __kernel_timespec * rmtp;\toffset:40;\tsize:8;\tsigned:0;

print fmt: \"\"
name: sys_exit_clock_nanosleep\nID: 312\nformat:
\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;
\tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;

print fmt: \"\"
";

/// Which tracepoints of system calls are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Calls {
    /// Those of all calls at once.
    #[default]
    All,
    /// That of clock_nanosleep(2).
    One,
    Both,
}

const CLOCK_NANOSLEEP: i64 = 230;

/// What goes to sleep, is preempted, or dies, as tracepoints report it.
pub const SLEEPS: i64 = 1;
pub const WAITS_FOR_DISK: i64 = 2;
pub const IDLES: i64 = 0x80;
pub const DIES: i64 = 0x10;
pub const IS_PREEMPTED: i64 = 0x100;

/// Kinds of records.
const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;
const ROUND: u32 = 68;
const ID_INDEX: u32 = 69;

/// How records are packed into others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// All behind the header of a record is packed; up to this many bytes of it.
    Plain(usize),
    /// The size of what is packed stands in front of it; Linux 6.16.
    Sized(usize),
}

/// Packs records into one stream.
struct Packer {
    context: zstd_safe::CCtx<'static>,
    packing: Packing,
}

impl Packer {
    fn pack(&mut self, plain: &[u8], into: &mut File) {
        let mut bytes = vec![0; zstd_safe::compress_bound(plain.len()) + 64];
        let mut output = zstd_safe::OutBuffer::around(&mut bytes[..]);
        let mut input = zstd_safe::InBuffer::around(plain);
        self.context.compress_stream(&mut output, &mut input).expect("packed");
        self.context.flush_stream(&mut output).expect("flushed");
        let written = output.pos();
        bytes.truncate(written);
        let (Packing::Plain(most) | Packing::Sized(most)) = self.packing;
        for piece in bytes.chunks(most) {
            let size = (piece.len() as u64).to_le_bytes();
            let (kind, body) = match self.packing {
                Packing::Plain(_) => (81_u32, piece.to_vec()),
                Packing::Sized(_) => {
                    let mut body = [&size[..], piece].concat();
                    body.resize(body.len().next_multiple_of(8), 0);
                    (83, body)
                }
            };
            into.data.extend(kind.to_le_bytes());
            into.data.extend([0; 2]);
            into.data.extend((body.len() as u16 + 8).to_le_bytes());
            into.data.extend(body);
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

/// A recording in the making. Times are in microseconds.
#[derive(Clone, Default)]
pub struct File {
    data: Vec<u8>,
    calls: Calls,
    /// Where tracepoints are hit: on the second processor, unless another one is named.
    cpu: Option<u32>,
}

impl File {
    /// With these system calls.
    pub fn with(calls: Calls) -> File {
        File { calls, ..File::default() }
    }

    fn record(&mut self, kind: u32, misc: u16, body: &[u8]) {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(8), 0);
        self.data.extend(kind.to_le_bytes());
        self.data.extend(misc.to_le_bytes());
        self.data.extend((body.len() as u16 + 8).to_le_bytes());
        self.data.extend(body);
    }

    /// What comes next is hit on this processor.
    pub fn on(&mut self, cpu: u32) -> &mut Self {
        self.cpu = Some(cpu);
        self
    }

    /// Who ran, when, and where: what every record says.
    fn sample_id(pid: i32, tid: i32, us: u64, cpu: u32) -> Vec<u8> {
        let mut bytes = [pid.to_le_bytes(), tid.to_le_bytes()].concat();
        bytes.extend((us * 1_000).to_le_bytes());
        bytes.extend(cpu.to_le_bytes());
        bytes.extend([0; 4]);
        bytes
    }

    fn sample(&mut self, us: u64, tid: i32, number: u16, fields: &[u8]) {
        let mut raw = number.to_le_bytes().to_vec();
        raw.resize(8, 0);
        raw.extend(fields);
        let mut body = Self::sample_id(tid, tid, us, self.cpu.unwrap_or(1));
        body.extend((raw.len() as u32).to_le_bytes());
        body.extend(raw);
        self.record(9, 0, &body);
    }

    /// From one thread with its priority and state to another.
    pub fn switch(
        &mut self,
        us: u64,
        (from, priority, state): (i32, i32, i64),
        (to, next_priority): (i32, i32),
    ) -> &mut Self {
        let name = |tid: i32| {
            let mut name = format!("thread-{tid}").into_bytes();
            name.resize(16, 0);
            name
        };
        let mut fields = name(from);
        fields.extend(from.to_le_bytes());
        fields.extend(priority.to_le_bytes());
        fields.extend(state.to_le_bytes());
        fields.extend(name(to));
        fields.extend(to.to_le_bytes());
        fields.extend(next_priority.to_le_bytes());
        self.sample(us, from, SWITCH, &fields);
        self
    }

    pub fn waking(&mut self, us: u64, by: i32, tid: i32) -> &mut Self {
        self.sample(us, by, WAKING, &tid.to_le_bytes());
        self
    }

    pub fn enter(&mut self, us: u64, tid: i32, call: i64, arguments: [u64; 6]) -> &mut Self {
        let arguments: Vec<u8> = arguments.iter().flat_map(|argument| argument.to_le_bytes()).collect();
        if self.calls != Calls::All && call == CLOCK_NANOSLEEP {
            self.sample(us, tid, 311, &[&call.to_le_bytes()[..], &arguments[..32]].concat());
        }
        if self.calls != Calls::One {
            self.sample(us, tid, ENTER, &[&call.to_le_bytes()[..], &arguments].concat());
        }
        self
    }

    pub fn leave(&mut self, us: u64, tid: i32, call: i64, result: i64) -> &mut Self {
        let fields = [call.to_le_bytes(), result.to_le_bytes()].concat();
        if self.calls != Calls::All && call == CLOCK_NANOSLEEP {
            self.sample(us, tid, 312, &fields);
        }
        if self.calls != Calls::One {
            self.sample(us, tid, EXIT, &fields);
        }
        self
    }

    pub fn lend(&mut self, us: u64, tid: i32, before: i32, after: i32) -> &mut Self {
        self.sample(us, 0, LEND, &[tid.to_le_bytes(), before.to_le_bytes(), after.to_le_bytes()].concat());
        self
    }

    /// The kernel's account of a thread that runs.
    pub fn runtime(&mut self, us: u64, tid: i32, ran_us: u64) -> &mut Self {
        let ran = (ran_us * 1_000).to_le_bytes();
        self.sample(us, tid, RUNTIME, &[&[0; 4], &tid.to_le_bytes()[..], &ran].concat());
        self
    }

    /// What no importer reads.
    pub fn free(&mut self, us: u64, tid: i32) -> &mut Self {
        self.sample(us, 0, FREE, &tid.to_le_bytes());
        self
    }

    pub fn migrate(&mut self, us: u64, tid: i32) -> &mut Self {
        self.sample(us, 0, MIGRATE, &tid.to_le_bytes());
        self
    }

    /// A tracepoint without a description.
    pub fn undescribed(&mut self, us: u64) -> &mut Self {
        self.sample(us, 0, 999, &[]);
        self
    }

    pub fn name(&mut self, us: u64, pid: i32, tid: i32, name: &str, executes: bool) -> &mut Self {
        let mut body = [pid.to_le_bytes(), tid.to_le_bytes()].concat();
        body.extend(name.bytes());
        body.resize((body.len() + 1).next_multiple_of(8), 0);
        body.extend(Self::sample_id(pid, tid, us, 0));
        self.record(3, if executes { 1 << 13 } else { 0 }, &body);
        self
    }

    pub fn lost(&mut self, us: u64, count: u64) -> &mut Self {
        let mut body = [0_u64.to_le_bytes(), count.to_le_bytes()].concat();
        body.extend(Self::sample_id(0, 0, us, 1));
        self.record(2, 0, &body);
        self
    }

    /// What the kernel had no room to say, by a record that is younger than the one above.
    pub fn lost_samples(&mut self, us: u64, count: u64) -> &mut Self {
        self.record(13, 0, &[&count.to_le_bytes()[..], &Self::sample_id(0, 0, us, 1)].concat());
        self
    }

    /// What a processor's own tracing unit recorded: the size of what follows is not in the header.
    pub fn traced_by_the_processor(&mut self, size: u64) -> &mut Self {
        self.record(71, 0, &[&size.to_le_bytes()[..], &[0; 32]].concat());
        self
    }

    /// A function of the kernel that perf found, written without the time that such records have.
    pub fn function(&mut self) -> &mut Self {
        self.record(17, 0, &[0xff; 64]);
        self
    }

    /// What came before is in order, but for what came since the last time.
    pub fn round(&mut self) -> &mut Self {
        self.record(68, 0, &[]);
        self
    }

    /// Its records, each with its kind.
    fn records(&self) -> Vec<(u32, &[u8])> {
        let (mut records, mut rest) = (Vec::new(), &self.data[..]);
        while rest.len() >= 8 {
            let (record, after) = rest.split_at(usize::from(u16::from_le_bytes([rest[6], rest[7]])));
            records.push((word(record, 0), record));
            rest = after;
        }
        records
    }

    /// Its tracepoints: nanoseconds, processor, thread, and what they say.
    pub fn samples(&self) -> Vec<(u64, u32, i32, Vec<u8>)> {
        let mut samples = Vec::new();
        for (_, record) in self.records().into_iter().filter(|(kind, _)| *kind == SAMPLE) {
            let body = &record[8..];
            let ns = u64::from_le_bytes(body[8..16].try_into().expect("8 bytes"));
            let raw = body[28..28 + word(body, 24) as usize].to_vec();
            samples.push((ns, word(body, 16), word(body, 4) as i32, raw));
        }
        samples
    }

    /// The same with all but the rounds packed (`perf record -z`), as old perf does it or as new.
    pub fn packed(&self, packing: Packing) -> File {
        let mut packer = Packer { context: zstd_safe::CCtx::create(), packing };
        let mut file = File { calls: self.calls, ..File::default() };
        let mut plain = Vec::new();
        for (kind, record) in self.records() {
            plain.extend(record);
            if kind == ROUND {
                plain.truncate(plain.len() - record.len());
                packer.pack(&plain, &mut file);
                file.data.extend(record);
                plain.clear();
            }
        }
        packer.pack(&plain, &mut file);
        file
    }

    /// The same as `perf record --threads` writes it: a file for what perf itself says, and one for each
    /// processor.
    pub fn split(&self, processors: u32, packing: Option<Packing>) -> Vec<(String, Vec<u8>)> {
        let mut files = vec![File { calls: self.calls, ..File::default() }; processors as usize + 1];
        let entry = |cpu: u32| [17, u64::from(cpu), u64::from(cpu), u64::MAX].map(u64::to_le_bytes).concat();
        let index = (0..processors).flat_map(entry).collect::<Vec<u8>>();
        files[0].record(ID_INDEX, 0, &[&u64::from(processors).to_le_bytes()[..], &index].concat());
        for (kind, record) in self.records() {
            let cpu = match kind {
                ROUND => continue,
                SAMPLE => word(record, 24),
                LOST_SAMPLES => u32::MAX,
                _ => word(record, record.len() - 8),
            };
            files[cpu.wrapping_add(1) as usize].data.extend(record);
        }
        let packed = |file: &File| packing.map_or_else(|| file.clone(), |packing| file.packed(packing));
        let mut of_processors = files.split_off(1).into_iter().map(|file| packed(&file).data);
        let names = (0..).map(|number| format!("data.{number}"));
        let header = [("data".to_owned(), files[0].bytes_with(&[(24, 1_u64.to_le_bytes().to_vec())]))];
        header.into_iter().chain(names.zip(of_processors.by_ref())).collect()
    }

    /// The description of an event, and what is known of the machine and of events, by the number of each.
    fn parts(&self) -> (Vec<u8>, Vec<(u64, Vec<u8>)>) {
        // Tracepoints, with thread, time, processor and what they say, in all records.
        let mut attribute = Vec::new();
        for word in [2_u32, 64] {
            attribute.extend(word.to_le_bytes());
        }
        let format = 1 << 1 | 1 << 2 | 1 << 7 | 1 << 10;
        for number in [u64::from(SWITCH), 1, format, 0, 1 << 18] {
            attribute.extend(number.to_le_bytes());
        }
        attribute.resize(64, 0);
        let text = |text: &str| {
            let mut bytes = 64_u32.to_le_bytes().to_vec();
            bytes.extend(text.bytes());
            bytes.resize(4 + 64, 0);
            bytes
        };
        let mut events: Vec<u8> = [1_u32, 64].iter().flat_map(|word| word.to_le_bytes()).collect();
        events.extend(&attribute);
        events.extend(1_u32.to_le_bytes());
        events.extend(text("sched:sched_switch"));
        events.extend(17_u64.to_le_bytes());
        let of_all = |text: &&str| self.calls != Calls::One || !text.starts_with("name: sys_");
        let formats: String = FORMATS.split_inclusive("print fmt: \"\"\n").filter(of_all).collect();
        let formats = formats + OF_ONE_CALL;
        let formats = if self.calls == Calls::All { FORMATS.to_owned() } else { formats };
        let features = vec![
            (1, formats.into_bytes()),
            (3, text("machine")),
            (4, text("6.12.0-rt")),
            (5, text("6.1")),
            (6, text("x86_64")),
            (7, [4_u32.to_le_bytes(), 2_u32.to_le_bytes()].concat()),
            (12, events),
        ];
        (attribute, features)
    }

    /// The whole file.
    pub fn bytes(&self) -> Vec<u8> {
        self.bytes_with(&[])
    }

    /// The same with more that is known of the recording.
    fn bytes_with(&self, more: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let (_, mut features) = self.parts();
        features.extend_from_slice(more);
        const HEADER: u64 = 104;
        let data = (HEADER, self.data.len() as u64);
        let table = data.0 + data.1;
        let mut file = b"PERFILE2".to_vec();
        let set = features.iter().fold(0_u64, |set, (feature, _)| set | 1 << feature);
        for number in [HEADER, 80, HEADER, 0, data.0, data.1, 0, 0, set, 0, 0, 0] {
            file.extend(number.to_le_bytes());
        }
        file.extend(&self.data);
        let mut place = table + 16 * features.len() as u64;
        for (_, bytes) in &features {
            file.extend(place.to_le_bytes());
            file.extend((bytes.len() as u64).to_le_bytes());
            place += bytes.len() as u64;
        }
        features.iter().for_each(|(_, bytes)| file.extend(bytes));
        file
    }

    /// The same as perf writes it to a pipe, which ends with a round.
    pub fn piped(&self) -> Vec<u8> {
        let (attribute, features) = self.parts();
        let mut front = File::default();
        front.record(64, 0, &[&attribute[..], &17_u64.to_le_bytes()].concat());
        for (feature, bytes) in features.iter().filter(|(feature, _)| ![1, 12].contains(feature)) {
            front.record(80, 0, &[&feature.to_le_bytes()[..], bytes].concat());
        }
        for (_, bytes) in features.iter().filter(|(feature, _)| *feature == 1) {
            let mut formats = bytes.clone();
            formats.resize(formats.len().next_multiple_of(8), 0);
            front.record(66, 0, &(formats.len() as u32).to_le_bytes());
            front.data.extend(formats);
        }
        let mut data = self.clone();
        if data.records().last().is_some_and(|(kind, _)| *kind != ROUND) {
            data.round();
        }
        [&b"PERFILE2"[..], &16_u64.to_le_bytes(), &front.data, &data.data].concat()
    }
}
