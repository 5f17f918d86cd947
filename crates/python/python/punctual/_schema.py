"""The types of timing models, made from docs/timing-model.schema.json by scripts/python-types."""

from __future__ import annotations

from typing import Literal, TypedDict


class _TimingModel(TypedDict):
    # Tells this format from others.
    format: Literal["punctual.timing-model"]
    # Version of the format.
    version: Literal[2]
    # The clock of every instant in the file, such as CLOCK_MONOTONIC.
    clock: str


class TimingModel(_TimingModel, total=False):
    """The timing of real-time threads: what was observed of them, and task models that allow all of it.
    All times are whole nanoseconds, in fields that end in _ns. More fields than these may stand beside
    them. What a schema cannot say (bounds between fields, curves that never decrease) is in
    timing-model.md."""

    # The machine that was observed. Absent if unknown.
    platform: TimingModelPlatform
    # Section: threads and their tasks.
    threads: Threads
    # Section: which jobs of threads were late, and why.
    causes: Causes
    # Section: a dataflow program.
    dataflow: Dataflow
    # Section: what delays threads on each processor.
    latency: SchedulingLatency
    # Section: a time-triggered schedule.
    table: Table


class TimingModelPlatform(TypedDict):
    """The machine that was observed. Absent if unknown."""

    # Kernel release, as uname -r prints it. Empty if unknown.
    kernel: str
    # Machine, as uname -m prints it. Empty if unknown.
    machine: str
    # Processors online. 0 if unknown.
    cpus: int


class _Threads(TypedDict):
    # When the observation began.
    from_ns: int
    # When it ended; not before from_ns.
    until_ns: int
    # Activation records received.
    records: int
    # Records known to be lost.
    lost_records: int
    # Every task.
    tasks: list[Task]


class Threads(_Threads, total=False):
    """What was observed of threads, and what was not."""

    # Threads that were not watched because there was no room for them. Absent if zero.
    untracked_threads: int
    # Runs of the observing programs that the kernel skipped. Most of what they would have seen is
    # reconstructed exactly; other releases became windows. Absent if zero.
    skipped_events: int
    # Time that the hypervisor took from all processors of the machine together. Absent if zero or unknown.
    stolen_ns: int
    # When CLOCK_REALTIME was set: the first 100 steps. What was due on it is due as the clock was then.
    # Absent if there were none.
    clock_steps: list[ThreadsClockStep]
    # What is to be known of the recording as a whole, as sentences: above all what an imported trace does not
    # have. Absent if there are none.
    notes: list[str]
    # Tasks left out because there were too many. Absent if zero.
    omitted_tasks: int


class ThreadsClockStep(TypedDict):
    # When.
    at_ns: int
    # By so many nanoseconds; forward if positive.
    by_ns: int


class _Task(TypedDict):
    # The thread's name.
    name: str
    # Process.
    pid: int
    # Thread.
    tid: int
    # Counts the tasks of one thread from 0.
    phase: int
    # Command line of the process; empty for kernel threads.
    command: str
    # Scheduling policy.
    policy: Literal[
        "SCHED_OTHER",
        "SCHED_FIFO",
        "SCHED_RR",
        "SCHED_BATCH",
        "SCHED_IDLE",
        "SCHED_DEADLINE",
        "SCHED_EXT",
    ]
    # Real-time priority (1 to 99) under SCHED_FIFO and SCHED_RR, else 0.
    priority: int
    # Processors it may use, as a list such as 0-1,4.
    affinity: str
    # Since when it was observed.
    from_ns: int
    # Until when it was observed; not before from_ns.
    until_ns: int
    # Why it ended.
    ended_by: Literal[
        "observation_end",
        "policy_change",
        "priority_change",
        "affinity_change",
        "exec",
        "exit",
        "loss",
    ]
    # One stream of jobs per separator.
    streams: list[Stream]


class Task(_Task, total=False):
    """A thread, or a stretch of its life between two task transitions."""

    # Nice value, where the policy has one.
    nice: int
    # Parameters under SCHED_DEADLINE.
    reservation: TaskReservation
    # Index into streams of the one that explains the task best; absent where there are no streams.
    primary: int
    # Why that one, in words.
    primary_reason: str
    # The recording that the task comes from, where the file is about several; of a task of several runs
    # (docs/fleets.md), how many. Absent otherwise.
    recording: str
    # Changes of policy, priority or affinity that did not end the task: with --merge-transitions all of them,
    # its parameters being those after the last; without, those of affinity from the third in a row on, its
    # affinity having the processors of all. Absent where there were none.
    merged_transitions: int
    # For how long the last job had been open when the task ended, since the thread last woke up. Only where
    # that is longer than every response time of the primary stream: the models do not tell of that job.
    # Absent otherwise.
    open_ns: int
    # Processor time that the task took, where it never waited, so that it has no jobs. Absent otherwise.
    busy_ns: int
    # Whether the list of separators was full, so that some share a stream (object others). Default false.
    separators_capped: bool


class TaskReservation(TypedDict):
    """Parameters under SCHED_DEADLINE."""

    # Budget per period.
    runtime_ns: int
    # Relative deadline.
    deadline_ns: int
    # Period.
    period_ns: int


class _Stream(TypedDict):
    separator: Separator
    # Jobs that were seen from release to end.
    jobs: int
    # Releases that are known to lie in a window only; every model covers the whole window.
    uncertain_releases: int
    arrival: Arrival


class Stream(_Stream, total=False):
    """The jobs of a task at one separator, and every model of them."""

    # Releases: as many as jobs (the default), or one more where the last job had not ended.
    releases: int
    # Of these, the ones whose call did not wait, because the event had already happened. Default 0.
    back_to_back: int
    # Processor time; absent without a complete job.
    execution: StreamExecution
    # Sleep inside jobs; absent without a complete job.
    suspension: StreamSuspension
    # Response times: from the arrival (if unknown, from the earliest release) to the end; absent without a
    # complete job.
    response: StreamResponse
    # Jobs that certainly took longer than the period: from the arrival (if unknown, from the latest release)
    # to the end. Exactly so many if fewer than 32, else at least so many. Absent without a period, and in
    # older files.
    late: int
    # Times that most of the jobs do not exceed. Each is at least the exact one and at most 1/64 above it; of
    # lateness only where all arrivals are known, else it is that of a sample of the releases.
    percentiles: StreamPercentiles


class _Separator(TypedDict):
    # The system call (futex by operation), or suspension: any sleep.
    call: Literal[
        "suspension",
        "clock_nanosleep",
        "nanosleep",
        "select",
        "pselect6",
        "poll",
        "ppoll",
        "epoll_wait",
        "epoll_pwait",
        "epoll_pwait2",
        "read",
        "readv",
        "preadv",
        "preadv2",
        "accept",
        "accept4",
        "recvfrom",
        "recvmsg",
        "recvmmsg",
        "futex_wait",
        "futex_wait_bitset",
        "futex_lock_pi",
        "futex_wait_requeue_pi",
        "futex_waitv",
        "rt_sigtimedwait",
        "rt_sigsuspend",
        "pause",
        "mq_timedreceive",
        "msgrcv",
        "semop",
        "semtimedop",
        "wait4",
        "waitid",
        "io_getevents",
        "io_pgetevents",
        "io_uring_enter",
        "sched_yield",
    ]


class Separator(_Separator, total=False):
    """Where one job ends and the next begins: a call, and what it waits on. At most one of clock, object,
    address and id."""

    # The clock of a sleep.
    clock: Literal[
        "CLOCK_REALTIME",
        "CLOCK_MONOTONIC",
        "CLOCK_PROCESS_CPUTIME_ID",
        "CLOCK_BOOTTIME",
        "CLOCK_REALTIME_ALARM",
        "CLOCK_BOOTTIME_ALARM",
        "CLOCK_TAI",
        "CLOCK_OTHER",
    ]
    # The number of a clock that is CLOCK_OTHER.
    clock_id: int
    # Whether the sleep was until a time of the clock, not for a time on it.
    absolute: bool
    # What the descriptor is, with its inode (pipe, socket, mqueue) or device number (char, block); or others:
    # all that share a stream.
    object: str
    # The descriptor's number.
    fd: int
    # A number for a file whose kind shows none; seldom there.
    identity: int
    # An address in the thread's process, such as that of a futex word, in hexadecimal, rounded down to eight
    # bytes.
    address: str
    # What is at the address in every run of the program: module:symbol, module:symbol+offset, or
    # module+offset. Absent if that is unknown, and for heap and stack.
    name: str
    # A System V identifier.
    id: int


class Arrival(TypedDict, total=False):
    """How often jobs come, or activations. Every model here allows every release that was observed."""

    periodic: Periodic
    # Consecutive releases keep a least distance.
    sporadic: ArrivalSporadic
    # Distance functions, the pseudo-inverses of the arrival curves. Both arrays have the same length and
    # never decrease; delta_min_ns[i] <= delta_max_ns[i].
    curve: ArrivalCurve
    # Several rates, bursts, or rates that change, in order of time: if they explain the releases better than
    # one period; then there is no periodic model. Absent if empty.
    modes: list[Mode]


class _Periodic(TypedDict):
    # What offset and jitter are measured on: known arrivals (then jitter is how much later than its arrival a
    # job was released), or releases alone.
    on: Literal["arrival", "release"]
    # Period, rounded to whole nanoseconds.
    period_ns: int
    # Arrival of the first job on the observation's clock, in nanoseconds; may lie before the clock's zero.
    offset_ns: int
    # Greatest distance from arrival to release.
    jitter_ns: int
    # The least jitter that any period could have had.
    least_jitter_ns: int
    # Why this period: a round number explains the releases well enough; the estimate itself, as no rounder
    # one does; the one of least jitter.
    choice: Literal["rounded", "estimated", "least_jitter"]


class Periodic(_Periodic, total=False):
    """Job j (from 0) is released between the arrival of activation k_j, at offset_ns + k_j·P, and
    jitter_ns later; k_j = j unless activations were skipped. P is period_exact if present, otherwise
    period_ns. Every release is covered; releases before an extra one count as late, by a period for
    each."""

    # The exact period in nanoseconds, if it is not a whole number; within 1 ns of period_ns.
    period_exact: PeriodicPeriodExact
    # Whether offset and jitter are over-approximated, because more points bound the releases than are kept.
    # Default false.
    approximate: bool
    # Activations that had no release. Absent if zero.
    skipped: int
    # Releases in excess of one for each activation. Absent if zero.
    extra: int
    # Where activations were skipped and releases extra, in order of time: all places if they are fewer than
    # ten, else the first ten. Absent if zero.
    slips: list[PeriodicSlip]
    # Offset and jitter of nearly all releases, on the same period and with the same slips: without a few that
    # are far from all others, which are listed. A release that was not seen counts at its latest bound, and
    # from its known arrival on.
    typical: PeriodicTypical


class PeriodicPeriodExact(TypedDict):
    """The exact period in nanoseconds, if it is not a whole number; within 1 ns of period_ns."""

    # Nanoseconds times the denominator.
    numerator: int
    # Greater than zero.
    denominator: int


class PeriodicSlip(TypedDict):
    # The latest bound of the first release after it.
    at_ns: int
    # Activations that were skipped before that release; below zero: releases that were extra. Never zero.
    activations: int


class _PeriodicTypical(TypedDict):
    # Arrival of the first job, be it left out. From there on each release is of the activation after the one
    # of the release before, but for the slips.
    offset_ns: int
    # Greatest distance from arrival to latest bound, of the releases that are not left out. At most
    # `jitter_ns` of the model. What 99.9 % of the releases keep to, however many are late, is
    # `percentiles.lateness.p999_ns`.
    jitter_ns: int


class PeriodicTypical(_PeriodicTypical, total=False):
    """Offset and jitter of nearly all releases, on the same period and with the same slips: without a few
    that are far from all others, which are listed. A release that was not seen counts at its latest
    bound, and from its known arrival on."""

    # The releases that are left out, in order of time: at most one, or 0.1 % of all, and never more than 4
    # early and 516 late ones. Absent if zero.
    left_out: list[PeriodicTypicalLeftOut]


class _PeriodicTypicalLeftOut(TypedDict):
    # The latest bound of the release, or its known arrival where that is early.
    at_ns: int
    # How far it is outside, in whole nanoseconds: negative before its arrival (by its known arrival, or else
    # its latest bound), positive after the jitter (by its latest bound). Never zero.
    off_ns: int


class PeriodicTypicalLeftOut(_PeriodicTypicalLeftOut, total=False):
    # The reason, if known: a signal ended or interrupted the sleep; the thread was being terminated, or what
    # it waited for was shut down; the machine stalled.
    reason: Literal["signal", "ending", "stall"]


class ArrivalSporadic(TypedDict):
    """Consecutive releases keep a least distance."""

    # Least separation; zero where two releases may coincide.
    min_separation_ns: int


class ArrivalCurve(TypedDict):
    """Distance functions, the pseudo-inverses of the arrival curves. Both arrays have the same length and
    never decrease; delta_min_ns[i] <= delta_max_ns[i]."""

    # Element i is δ⁻(i+2): the least span of i+2 consecutive releases.
    delta_min_ns: list[int]
    # Element i is δ⁺(i+2): the greatest span of i+2 consecutive releases.
    delta_max_ns: list[int]


class _Mode(TypedDict):
    # Latest bound of its first release.
    from_ns: int
    # Latest bound of its last release.
    until_ns: int
    # Its releases.
    releases: int


class Mode(_Mode, total=False):
    """A span of time in which the same periodic sources release all jobs."""

    # What releases them. Absent where no sources are known that explain them.
    sources: list[Source]


class _Source(TypedDict):
    # The period, rounded to whole nanoseconds; greater than zero.
    period_ns: int
    # Arrival of the first activation, on the clock of the observation; may lie before its zero.
    offset_ns: int
    # Greatest distance from arrival to release.
    jitter_ns: int
    # Activations from the first to the last one with a release.
    activations: int


class Source(_Source, total=False):
    """A periodic source. Activation k, from 0, arrives at offset_ns + k · P, with P the exact period, and
    releases at most one job, or those of one burst, from then until jitter_ns later, and until the
    length of a burst after that."""

    # The exact period, if it is not a whole number of nanoseconds: a fraction in lowest terms.
    period_exact: SourcePeriodExact
    # The same without a few outliers. Absent if there are none.
    usual_jitter_ns: int
    # Present if each activation may release several jobs.
    burst: SourceBurst


class SourcePeriodExact(TypedDict):
    """The exact period, if it is not a whole number of nanoseconds: a fraction in lowest terms."""

    # Nanoseconds, times the denominator.
    numerator: int
    # Greater than zero.
    denominator: int


class SourceBurst(TypedDict):
    """Present if each activation may release several jobs."""

    # Most jobs: two or more.
    jobs: int
    # Greatest time from the first to the last release.
    within_ns: int


class _StreamExecution(TypedDict):
    # Element i is WCET(i+1): the greatest processor time of i+1 consecutive jobs together. Never decreases.
    wcet_ns: list[int]


class StreamExecution(_StreamExecution, total=False):
    """Processor time; absent without a complete job."""

    # Mean processor time of a job.
    mean_ns: int


class StreamSuspension(TypedDict):
    """Sleep inside jobs; absent without a complete job."""

    # The longest that a job sleeps in all.
    dynamic_ns: int
    # A bag of segment vectors: every job obeys, segment by segment, one that has as many segments as the job.
    # Of a job with more segments than 16, the first ones count as one.
    segmented: list[list[StreamSuspensionSegmented]]


class StreamSuspensionSegmented(TypedDict):
    # Longest sleep before the segment; zero for the first.
    suspended_ns: int
    # Greatest processor time in the segment.
    cost_ns: int


class _StreamResponse(TypedDict):
    # The greatest.
    max_ns: int


class StreamResponse(_StreamResponse, total=False):
    """Response times: from the arrival (if unknown, from the earliest release) to the end; absent without
    a complete job."""

    # The greatest that is certain, where some releases are windows: from the arrival (if unknown, from the
    # latest release) to the end.
    certain_max_ns: int
    # The mean.
    mean_ns: int


class StreamPercentiles(TypedDict, total=False):
    """Times that most of the jobs do not exceed. Each is at least the exact one and at most 1/64 above it;
    of lateness only where all arrivals are known, else it is that of a sample of the releases."""

    # From the arrival (known, or that of the typical periodic model) to the latest bound of the release.
    lateness: Quantiles
    # Processor time of a job.
    cost: Quantiles
    # Response time of a job.
    response: Quantiles


class _Quantiles(TypedDict):
    # 50 %.
    p50_ns: int
    # 90 %.
    p90_ns: int
    # 99 %.
    p99_ns: int
    # 99.9 %.
    p999_ns: int


class Quantiles(_Quantiles, total=False):
    """Percentiles, in ascending order."""

    # 10 %; files of earlier versions have none.
    p10_ns: int
    # 25 %; likewise.
    p25_ns: int


class _Causes(TypedDict):
    # When the observation began.
    from_ns: int
    # When it ended; not before from_ns.
    until_ns: int
    # Threads with jobs, those with most late jobs first.
    tasks: list[LateTask]


class Causes(_Causes, total=False):
    """Which jobs of threads were late, and why."""

    # What the observation did not tell apart: other_threads (whatever else had a processor is unknown),
    # interrupts (they count as what they interrupted). Absent if nothing.
    lacks: list[Literal["other_threads", "interrupts"]]


class _LateTask(TypedDict):
    # The thread's name.
    task: str
    # Its TID; of several observations, the least.
    tid: int
    # Its policy.
    policy: Literal[
        "SCHED_OTHER",
        "SCHED_FIFO",
        "SCHED_RR",
        "SCHED_BATCH",
        "SCHED_IDLE",
        "SCHED_DEADLINE",
        "SCHED_EXT",
    ]
    # All its jobs.
    jobs: int
    # How many were late; no more than jobs, and as many as those of all causes.
    late: int
    # Which count as late: longer than the user asked for, than the period of the task, than a contract
    # allows, the longest 1 %; none: the user chose them, whether late or not.
    limit: Literal["given", "period", "contract", "longest", "none"]
    # Later than this is late; of several observations, the least.
    limit_ns: int
    # The processor time that half of its jobs do not exceed; 0 if unknown.
    usual_cost_ns: int
    # The time of the longest late job.
    longest_ns: int
    # What the late jobs are put down to, those of most time first.
    causes: list[LateCause]


class LateTask(_LateTask, total=False):
    """The late jobs of one thread."""

    # Its real-time priority. Absent if the policy has none.
    priority: int
    # How many more may have been: when they were released is not known exactly. Absent if none.
    perhaps: int
    # The time of the job that the thread's end cut off, if it is beyond the limit; of several, the greatest.
    # It is none of jobs: it may have been the way to the end.
    cut_off_ns: int
    # Other causes together. Absent if all are listed.
    others: LateTaskOthers
    # Some late jobs, the longest first. Absent if none is kept.
    worst: list[LateJob]


class _LateCause(TypedDict):
    # The kind of the part that the jobs are put down to.
    kind: Literal[
        "backlog",
        "late-wakeup",
        "preempted",
        "queued",
        "throttled",
        "dispatch",
        "interrupt",
        "softirq",
        "steal",
        "own",
        "blocked",
        "stopped",
        "unknown",
    ]
    # Whether less urgent threads held up somebody on the way to what the jobs waited for.
    inversion: bool
    # How many jobs.
    jobs: int
    # The time of the part that each of them is put down to, in all.
    ns: int
    # The shortest of these parts.
    least_ns: int
    # The longest of these parts.
    longest: LatePart


class LateCause(_LateCause, total=False):
    """Late jobs with the same main cause. Threads of the same name, policy and priority are one."""

    # The name of the thread behind it. Absent if none, or unknown.
    thread: str
    # That thread's policy. Absent if unknown.
    policy: Literal[
        "SCHED_OTHER",
        "SCHED_FIFO",
        "SCHED_RR",
        "SCHED_BATCH",
        "SCHED_IDLE",
        "SCHED_DEADLINE",
        "SCHED_EXT",
    ]
    # That thread's real-time priority. Absent if it has none.
    priority: int
    # The interrupt behind it: interrupt 24 (ahci), softirq NET_RX, timer interrupt. Absent if none.
    interrupt: str
    # The system call that the jobs were blocked in, or page fault. Absent if unknown.
    call: str
    # The file or futex that they were blocked on. Absent if unknown.
    object: str
    # Jobs with so many page faults that these may matter. Absent if zero.
    faulting_jobs: int
    # The most page faults of one job. Absent if zero.
    faults: int
    # How many of these had to read from a disk. Absent if zero.
    major_faults: int


class _LatePart(TypedDict):
    # The reason.
    kind: Literal[
        "backlog",
        "late-wakeup",
        "preempted",
        "queued",
        "throttled",
        "dispatch",
        "interrupt",
        "softirq",
        "steal",
        "own",
        "blocked",
        "stopped",
        "unknown",
    ]
    # When it began.
    from_ns: int
    # How long.
    ns: int


class LatePart(_LatePart, total=False):
    """A stretch of a job's time with one reason."""

    # The name of the thread behind it. Absent if none, or unknown.
    thread: str
    # That thread's policy. Absent if unknown.
    policy: Literal[
        "SCHED_OTHER",
        "SCHED_FIFO",
        "SCHED_RR",
        "SCHED_BATCH",
        "SCHED_IDLE",
        "SCHED_DEADLINE",
        "SCHED_EXT",
    ]
    # That thread's real-time priority. Absent if it has none.
    priority: int
    # The interrupt behind it. Absent if none.
    interrupt: str
    # The system call that it was blocked in, or page fault. Absent if unknown.
    call: str
    # The file or futex that it was blocked on. Absent if unknown.
    object: str
    # The thread behind it. Absent if none.
    tid: int
    # The job behind it, by its number. Absent if none.
    job: int
    # Of a wait: whether no signal would have ended it. Absent if one would.
    uninterruptible: bool
    # What the thread did that was waited for. Absent if unknown.
    waited_for: LatePartWaitedFor


class LatePartWaitedFor(TypedDict):
    """What the thread did that was waited for. Absent if unknown."""

    # Its name.
    thread: str
    # Which one.
    tid: int
    # It owned the lock, woke the other at last, or is the same with the job before.
    role: Literal["owner", "waker", "previous"]
    # Whether less urgent threads than the one that waits kept it from its processor for at least half of that
    # time.
    inversion: bool
    # Its time meanwhile, in parts, in the order of time.
    parts: list[LatePart]


class LateTaskOthers(TypedDict):
    """Other causes together. Absent if all are listed."""

    # How many jobs.
    jobs: int
    # The time of the parts that they are put down to.
    ns: int


class _LateJob(TypedDict):
    # Its number within its task.
    job: int
    # Its thread.
    tid: int
    # When its time begins: its arrival; else its release, or the earliest that this can have been.
    begin_ns: int
    # When it ended.
    end_ns: int
    # From its beginning to its end; the sum of its parts.
    response_ns: int
    # Page faults of its turns on a processor.
    faults: int
    # How many of these had to read from a disk.
    major_faults: int
    # What it is put down to.
    cause: Literal[
        "backlog",
        "late-wakeup",
        "preempted",
        "queued",
        "throttled",
        "dispatch",
        "interrupt",
        "softirq",
        "steal",
        "own",
        "blocked",
        "stopped",
        "unknown",
    ]
    # Its time in parts, in the order of time, without gaps.
    parts: list[LatePart]


class LateJob(_LateJob, total=False):
    """A late job."""

    # Which of its thread's tasks it belongs to. Absent in older files.
    phase: int
    # When it arrived: begin_ns. Absent if unknown.
    arrival_ns: int
    # The name of the thread behind that. Absent if none, or unknown.
    cause_thread: str
    # The call that it was blocked in. Absent if none, or unknown.
    cause_call: str
    # What it was blocked on. Absent if none, or unknown.
    cause_object: str


class _Dataflow(TypedDict):
    # When the first event of the trace was.
    from_ns: int
    # When the last one was; not before from_ns.
    until_ns: int
    # Events in the trace.
    events: int
    # Events for which the tracer had no room.
    discarded_events: int
    # Channels, by number.
    channels: list[Channel]
    # Tasks, by number.
    tasks: list[FlowTask]
    # Chains that were asked for, or all from sources to sinks.
    chains: list[Chain]


class Dataflow(_Dataflow, total=False):
    """A dataflow program: its graph, the times of its tasks, the end-to-end latencies of its chains. Tasks
    and channels are named by names of their own."""

    # What was traced.
    program: str
    # Operating system and processor, for people.
    platform: str
    # Scheduling policy: fifo, lifo, priority.
    policy: str
    # How many executors there are.
    executors: int
    # Packets that are missing from the trace. Absent if zero.
    missing_packets: int
    # Packets that are damaged, and were left out wholly or in part. Absent if zero.
    damaged_packets: int
    # How connections are known: declared by the program, seen when inputs were notified, or inferred from
    # which pushes activated which tasks. Absent in older files.
    connections: Literal["declared", "seen", "inferred"]
    # Where tasks or connections may be missing, as the trace says. Absent if nowhere.
    openings: list[Opening]
    # Whether there are too many paths from sources to sinks to list them. Default false.
    chains_omitted: bool


class _Opening(TypedDict):
    # Why, for people.
    why: str


class Opening(_Opening, total=False):
    """Tasks before or after which there may be others that the trace does not show."""

    # Tasks to which others may lead. Absent if none.
    before: list[str]
    # Tasks that may lead to others. Absent if none.
    behind: list[str]


class _Channel(TypedDict):
    # Its name; no other channel has it.
    name: str
    # Its number in the trace.
    id: int
    # Pushes in the trace.
    pushes: int
    # Tasks that push on it.
    pushed_by: list[PushedBy]
    # Tasks that data on it can activate.
    activates: list[Activates]


class Channel(_Channel, total=False):
    """A channel: who puts data on it, whom data on it can activate."""

    # Pushes that are missing from the trace. Absent if zero.
    missing_pushes: int
    # Of the pushes, those outside any task. Absent if zero.
    from_outside: int
    # Pushes whose task is unknown. Absent if zero.
    from_unknown: int
    # Whether it notifies its inputs only when a number of pushes is complete. Default false.
    barrier: bool


class PushedBy(TypedDict):
    """A task that pushes on a channel."""

    # Its name.
    task: str
    # How often it did.
    pushes: int


class _Activates(TypedDict):
    # Its name.
    task: str
    # How many of its activations came in a push on this channel.
    activations: int
    # Whether the program says so, not only the events.
    declared: bool


class Activates(_Activates, total=False):
    """A task that data on a channel can activate, alone or with others."""

    # Whether the connection is a guess that nobody confirmed. Default false.
    assumed: bool
    # What the input keeps: all, until as many as it needs are taken, or the newest. Absent where the trace
    # does not say.
    keeps: Literal["queue", "newest"]


class _FlowTask(TypedDict):
    # Its name; no other task has it.
    name: str
    # Its number in the trace.
    id: int
    # Activations in the trace.
    activations: int
    # Instances with activation, start and stop in the trace.
    executions: int
    # When activations come; no curve spans one that is missing.
    arrival: Arrival


class FlowTask(_FlowTask, total=False):
    """A task of a dataflow program."""

    # Instances that had not ended when the trace did. Absent if zero.
    in_flight: int
    # Instances with a missing event. Absent if zero.
    incomplete: int
    # Activations for which the inputs that the task waits for had not enough pushes, as the trace says that
    # they count. Absent if zero.
    unexplained: int
    # Activations that are missing from the trace. Absent if zero.
    missing_activations: int
    # From start to stop; absent without an execution.
    execution: Times
    # From activation to start; absent without an execution.
    queuing: Times
    # Execution times by what the kernel did with the executor's thread; absent without a recording of the
    # same time.
    by_kernel: ByKernel
    # Values of the distance functions that arrival.curve says, and how they go on. Default empty.
    distances: list[Distance]
    # Values of the arrival curves that arrival.curve says, and how they go on. Default empty.
    counts: list[ActivationCount]


class _Times(TypedDict):
    # Their number.
    count: int
    # The least.
    min_ns: int
    # First quartile, to three significant digits.
    quartile_1_ns: int
    # Median, to three significant digits.
    median_ns: int
    # Third quartile, to three significant digits.
    quartile_3_ns: int
    # The greatest.
    max_ns: int
    # The first instance that took the greatest.
    worst: TimesWorst


class Times(_Times, total=False):
    """How times of a task's instances are distributed."""

    # The mean, rounded down; absent in older files.
    mean_ns: int
    # 95 % are at most this; absent in older files.
    p95_ns: int
    # 99 % are at most this, to three significant digits; absent in older files.
    p99_ns: int
    # 99.9 % are at most this; absent in older files.
    p999_ns: int
    # How many are in which range, in order; the last ends with max_ns. Absent in older files.
    histogram: list[Bin]


class Bin(TypedDict):
    """Values that lie close together."""

    # Each is at most this, and more than that of the bin before.
    until_ns: int
    # How many.
    count: int


class TimesWorst(TypedDict):
    """The first instance that took the greatest."""

    # Its number, from 0.
    instance: int
    # When that time began.
    at_ns: int


class ByKernel(TypedDict):
    """Execution times split by what the kernel did; the parts of an execution add up to it."""

    # Executions that the recording covers completely.
    executions: int
    # Time on a processor.
    running: Distribution
    # Time ready to run, without a processor.
    preempted: Distribution
    # Time blocked.
    suspended: Distribution


class _Distribution(TypedDict):
    # Their number.
    count: int
    # The least.
    min_ns: int
    # First quartile, to three significant digits.
    quartile_1_ns: int
    # Median, to three significant digits.
    median_ns: int
    # Third quartile, to three significant digits.
    quartile_3_ns: int
    # The greatest.
    max_ns: int


class Distribution(_Distribution, total=False):
    """How times are distributed."""

    # The mean, rounded down; absent in older files.
    mean_ns: int
    # 95 % are at most this; absent in older files.
    p95_ns: int
    # 99 % are at most this, to three significant digits; absent in older files.
    p99_ns: int
    # 99.9 % are at most this; absent in older files.
    p999_ns: int
    # How many are in which range, in order; the last ends with max_ns. Absent in older files.
    histogram: list[Bin]


class _Distance(TypedDict):
    # How many activations.
    n: int
    # δ⁻(n): the least span of n consecutive activations.
    min_ns: int
    # Whether δ⁻(n) is extrapolated, by δ⁻(n + 1) = δ⁻(n) + δ⁻(2).
    extrapolated: bool


class Distance(_Distance, total=False):
    """δ⁻(n) and δ⁺(n)."""

    # δ⁺(n): the greatest; absent past the curve.
    max_ns: int


class _ActivationCount(TypedDict):
    # Δ, the length of a half-open interval.
    span_ns: int
    # Whether η⁺(Δ) is extrapolated, by η⁺(Δ + δ⁻(2)) = η⁺(Δ) + 1.
    extrapolated: bool


class ActivationCount(_ActivationCount, total=False):
    """η⁻(Δ) and η⁺(Δ)."""

    # η⁻(Δ): the least number of activations; absent past the curve.
    min: int
    # η⁺(Δ): the greatest; absent where nothing bounds it.
    max: int


class _Chain(TypedDict):
    # Their names, from source to sink.
    tasks: list[str]
    # Instances of the source that put a datum on the chain: those with a reaction time, overtaken, lost,
    # incomplete, in_flight.
    sources: int
    # Instances of the sink that read a datum of the chain, or may have: those with a data age, sinks_lost,
    # sinks_incomplete, sinks_in_flight.
    sinks: int


class Chain(_Chain, total=False):
    """Tasks, each of which pushes to a channel that can activate the next."""

    # Whether no task precedes the first and none follows the last; false for a part of a longer chain, and
    # where connections may be unknown. Absent in older files.
    end_to_end: bool
    # Of those with a reaction time, how many had none of their own: the sink read a later datum, too or
    # instead. Absent if zero.
    overwritten: int
    # Instances of the source whose datum came after the sink had read a later one. Absent if zero.
    overtaken: int
    # Instances of the source that could not be followed, because events are missing. Absent if zero.
    lost: int
    # Instances of the source whose datum was read by an instance of the sink without start or stop in the
    # trace. Absent if zero.
    incomplete: int
    # Instances of the source whose datum was on its way when the trace ended. Absent if zero.
    in_flight: int
    # Instances of the sink whose reads are unknown. Absent if zero.
    sinks_lost: int
    # Instances of the sink without start or stop in the trace. Absent if zero.
    sinks_incomplete: int
    # Instances of the sink that had not ended when the trace did. Absent if zero.
    sinks_in_flight: int
    # From the activation of a source instance to the end of the first sink instance that has read its datum
    # or a later one; absent where none was followed.
    reaction: Latency
    # From the activation of the source instance of the newest datum that a sink instance has read to its end;
    # absent where none was followed.
    age: Latency


class _Latency(TypedDict):
    # Their number.
    count: int
    # The least.
    min_ns: int
    # First quartile, to three significant digits.
    quartile_1_ns: int
    # Median, to three significant digits.
    median_ns: int
    # Third quartile, to three significant digits.
    quartile_3_ns: int
    # The greatest.
    max_ns: int
    # The first of the greatest.
    worst: WorstPath


class Latency(_Latency, total=False):
    """How end-to-end latencies are distributed."""

    # The mean, rounded down; absent in older files.
    mean_ns: int
    # 95 % are at most this; absent in older files.
    p95_ns: int
    # 99 % are at most this, to three significant digits; absent in older files.
    p99_ns: int
    # 99.9 % are at most this; absent in older files.
    p999_ns: int
    # How many are in which range, in order; the last ends with max_ns. Absent in older files.
    histogram: list[Bin]
    # How it went: equal parts of the trace, without those in which none ended. Absent in older files.
    series: list[Moment]
    # The same, if inputs on the chain about which the trace says nothing are queues, or keep the newest.
    # Absent if there are none.
    alternatives: list[Alternative]


class WorstPath(TypedDict):
    """The path of a datum. The three parts add up to the time from from_ns to until_ns."""

    # The source's instance.
    source_instance: int
    # Its activation.
    from_ns: int
    # The end of the sink's instance.
    until_ns: int
    # Waiting for an executor.
    queuing_ns: int
    # Being executed.
    execution_ns: int
    # Waiting on a channel: for another input, for more data, or because a later datum went ahead.
    waiting_ns: int
    # The instances from source to sink, one for each task. The first is later than source_instance if that
    # one's datum did not arrive.
    path: list[PathStep]


class _PathStep(TypedDict):
    # Its task.
    task: str
    # Its number, from 0.
    instance: int
    # When it was activated. Where an input has the newest value, the datum may have come after that, up to
    # the start.
    activation_ns: int
    # When it started.
    start_ns: int
    # When it pushed the datum; of the last, when it stopped.
    until_ns: int


class PathStep(_PathStep, total=False):
    """An instance on the way of a datum."""

    # How long the task was queued or executing with earlier data between the arrival of the datum and the
    # activation. Absent if it was not, or if that is unknown.
    busy_ns: int
    # The channel that it pushed on; absent of the last.
    channel: str


class Moment(TypedDict):
    """Latencies that ended in a part of the trace."""

    # When the part begins.
    from_ns: int
    # How many.
    count: int
    # The least.
    min_ns: int
    # The greatest.
    max_ns: int


class _Alternative(TypedDict):
    # The way.
    keeps: Literal["queue", "newest"]


class Alternative(_Alternative, total=False):
    """What a latency would be if inputs of unknown kind buffered data in one way."""

    # How it would be distributed; absent if no datum would have arrived.
    distribution: Distribution


class _SchedulingLatency(TypedDict):
    # When the observation began.
    from_ns: int
    # When it ended; not before from_ns.
    until_ns: int
    # Kernel release, as uname -r prints it.
    kernel: str
    # How preemptible the kernel was. The rules that the bound rests on are those of rt.
    preemption: Literal["none", "voluntary", "full", "lazy", "rt", "unknown"]
    # Windows of interrupts are exact up to this length.
    horizon_ns: int
    # Processors that were observed, by ascending number.
    processors: list[Processor]


class SchedulingLatency(_SchedulingLatency, total=False):
    """What delays threads on each processor: the variables of the bound of the scheduling latency,
    interrupts, and measured latencies."""

    # Why the variables were not observed: not known; processors other than x86-64; a kernel before 6.12; one
    # without the tracepoints preemptirq:*; tracefs was not mounted; or it could not be read. Absent where
    # they were, and in older files.
    no_variables: Literal[
        "unknown",
        "architecture",
        "kernel_version",
        "kernel_options",
        "tracefs",
        "privileges",
    ]
    # Of the recordings that this was replayed from, those that were cut off or damaged: everything may have
    # been greater. Absent if zero.
    damaged_recordings: int
    # Runtime-verification monitors of the kernel that watched the rules. Absent if there were none.
    monitors: list[Monitor]


class _Processor(TypedDict):
    # Its number.
    cpu: int
    # For how long it was observed.
    observed_ns: int
    # Interrupts, by source.
    interrupts: list[Interrupt]
    # Measured latencies, by thread; the measuring thread first.
    measured: list[Measured]


class Processor(_Processor, total=False):
    """What delays threads on one processor."""

    # Events that are known to have been missed. Absent if zero.
    skipped_events: int
    # Records that found no room on their way to user space. Absent if zero.
    lost_records: int
    # How often it went offline. Absent if zero.
    went_offline: int
    # Durations that came out negative, which is a defect of the observation. Absent if zero.
    negative_durations: int
    # Greatest durations, less the time of interrupts inside. Absent where the kernel does not show them.
    variables: ProcessorVariables
    # How late timers expired. Absent where that was not observed.
    timers: ProcessorTimers


class ProcessorVariables(TypedDict):
    """Greatest durations, less the time of interrupts inside. Absent where the kernel does not show them."""

    # D_POID: preemption or interrupts disabled by a thread, but not to schedule.
    poid: Variable
    # D_PSD: preemption disabled to schedule, until the scheduler enables it again.
    psd: Variable
    # D_ST: interrupts disabled by the scheduler for a context switch, until it enables preemption.
    st: Variable
    # D_PAIE: preemption and interrupts enabled, although the scheduler is to be called.
    paie: Variable


class _Variable(TypedDict):
    # The greatest observed duration.
    max_ns: int


class Variable(_Variable, total=False):
    """The greatest observed duration of a kind, and what took that long."""

    # Whether something was missed that may have been longer. Default false.
    at_least: bool
    # What took that long. Absent where nothing was observed, or its record was lost.
    culprit: VariableCulprit


class _VariableCulprit(TypedDict):
    # When it ended.
    at_ns: int
    # The thread that was running.
    thread: ThreadId


class VariableCulprit(_VariableCulprit, total=False):
    """What took that long. Absent where nothing was observed, or its record was lost."""

    # Place in the kernel where it began, such as function+0x1c.
    opened: str
    # Place in the kernel where it ended.
    closed: str
    # Kernel stack at its end, innermost frame first. Absent if unknown.
    stack: list[str]


class ThreadId(TypedDict):
    """A thread, by name and number."""

    # The thread's name.
    name: str
    # Process.
    pid: int
    # Thread.
    tid: int


class _Interrupt(TypedDict):
    # Where they come from.
    source: InterruptSource
    # How many and how long.
    curves: InterruptCurves


class Interrupt(_Interrupt, total=False):
    """Interrupts of one source on one processor."""

    # Whether some may have been missed: there may be more of them, and longer ones. Default false.
    at_least: bool
    # When the longest one ended.
    longest_at_ns: int


class _InterruptSource(TypedDict):
    # nmi: non-maskable. irq: of a device, by the kernel's number. vector: of the processor itself. softirq: a
    # softirq, which is not part of the bound.
    kind: Literal["nmi", "irq", "vector", "softirq"]
    # Name of the handler, as in /proc/interrupts.
    name: str


class InterruptSource(_InterruptSource, total=False):
    """Where they come from."""

    # Number of the interrupt, its vector or softirq. Absent for NMIs.
    number: int


class _InterruptCurves(TypedDict):
    # How many were observed.
    count: int
    # delta-(i+2): least time from the exit of an interrupt to the entry of the (i+1)-th after it. Never
    # decreases; below the horizon.
    delta_min_ns: list[int]
    # WCET(i+1): greatest total execution time of up to i+1 consecutive interrupts within the horizon. Never
    # decreases; no more than i+1 times the first; one entry more than delta_min_ns.
    wcet_ns: list[int]
    # Greatest total execution time in windows of any length. Both arrays have the same length and rise.
    execution: InterruptCurvesExecution


class InterruptCurves(_InterruptCurves, total=False):
    """How many and how long."""

    # Least time from one entry to the next; no less than the first of delta_min_ns. Absent where no two were
    # seen one after the other.
    min_separation_ns: int
    # Element i bounds the total execution time in any window of 2^(i+1) horizons. Never decreases; the first
    # is no less than the last of sum_ns. Absent where longer windows were not observed.
    long_execution_ns: list[int]


class InterruptCurvesExecution(TypedDict):
    """Greatest total execution time in windows of any length. Both arrays have the same length and rise."""

    # In windows longer than this … The first is 0, all are below the horizon.
    window_ns: list[int]
    # … interrupts may take this long. The first is no less than that of wcet_ns, the last is the last of
    # wcet_ns.
    sum_ns: list[int]


class ProcessorTimers(TypedDict):
    """How late timers expired. Absent where that was not observed."""

    # Timers that expired.
    expired: int
    # The sum of their latenesses.
    total_ns: int
    # The greatest lateness; its culprit is the thread that was interrupted.
    lateness: Variable


class _Measured(TypedDict):
    # Wake-ups of which the latency is known.
    wakeups: int
    # The sum of all latencies.
    total_ns: int
    # The greatest latency.
    max_ns: int
    # The wake-ups with the greatest latencies, the greatest first.
    worst: list[Wakeup]


class Measured(_Measured, total=False):
    """Scheduling latencies of one thread on one processor."""

    # The observed thread. Absent for the measuring thread of Punctual itself.
    thread: MeasuredThread
    # Wake-ups of which it is not, since an event of them was not seen. Absent if zero.
    unmeasured: int
    # The greatest latency of those that the bound is for: wake-ups during which no thread ran that the
    # scheduler preferred. Absent without one.
    bounded_max_ns: int
    # Of the measuring thread: the greatest time from when it was due until it ran in user space. Absent for
    # observed threads, and where that was not measured.
    from_due_max_ns: int


class MeasuredThread(TypedDict):
    """The observed thread. Absent for the measuring thread of Punctual itself."""

    # Which thread.
    id: ThreadId
    # Scheduling policy.
    policy: Literal[
        "SCHED_OTHER",
        "SCHED_FIFO",
        "SCHED_RR",
        "SCHED_BATCH",
        "SCHED_IDLE",
        "SCHED_DEADLINE",
        "SCHED_EXT",
    ]
    # Real-time priority (1 to 99) under SCHED_FIFO and SCHED_RR, else 0.
    priority: int


class _Wakeup(TypedDict):
    # When the thread became ready.
    at_ns: int
    # From then until it ran.
    latency_ns: int


class Wakeup(_Wakeup, total=False):
    """One wake-up."""

    # What the latency is made of; the parts sum up to it. Absent where unknown.
    split: WakeupSplit
    # What ran on the processor meanwhile, in order, as far as it was recorded. Absent if nothing was.
    ran: list[WakeupRan]


class _WakeupSplit(TypedDict):
    # Interrupts, softirqs and NMIs.
    interrupts_ns: int
    # Threads that the scheduler preferred.
    threads_ns: int
    # All else. Where the kernel does not show the variables, they are part of it.
    rest_ns: int


class WakeupSplit(_WakeupSplit, total=False):
    """What the latency is made of; the parts sum up to it. Absent where unknown."""

    # The variables: preemption or interrupts disabled, and the scheduler. Absent if zero, or where the kernel
    # does not show them.
    sections_ns: int


class _WakeupRan(TypedDict):
    # What kind of thing ran.
    kind: Literal["thread", "interrupt", "softirq", "nmi", "poid", "psd", "st", "paie"]
    # Name of the thread, or of the interrupt's handler.
    name: str
    # Thread, or number of the interrupt; 0 if it has none.
    number: int
    # When it began, or the wake-up if that was later.
    from_ns: int
    # For how long, from then on. Of a variable, the sum of all its sections.
    duration_ns: int


class WakeupRan(_WakeupRan, total=False):
    # Where in the kernel the longest section of a variable began. Absent where unknown.
    opened: str
    # How long that section had been open at the wake-up, without interrupts. Absent if it began later.
    before_ns: int


class Monitor(TypedDict):
    """A runtime-verification monitor of the kernel that watched some of the rules R1 to R14."""

    # Its name in tracefs.
    name: str
    # The rules (R) and operations (O) that it watches.
    rules: list[str]
    # For how long it watched.
    watched_ns: int
    # How often it found a rule violated.
    violations: int


class Table(TypedDict):
    """A time-triggered schedule, repeated for ever. All times but slot_ns are in slots, from the start of
    the table."""

    # Length of a slot.
    slot_ns: int
    # Slots after which the table is repeated: a multiple of every period.
    slots: int
    # The clock whose instants begin slots.
    clock: Literal["CLOCK_MONOTONIC", "CLOCK_TAI"]
    # The processors that follow the table: numbers of Linux, ascending.
    processors: list[int]
    # How it was made: edf (one processor), maximum_flow (with migration), first_fit or worst_fit (decreasing,
    # then EDF on each processor), search (of partitions, then EDF on each), other (outside Punctual).
    method: Literal["edf", "maximum_flow", "first_fit", "worst_fit", "search", "other"]
    # The tasks.
    tasks: list[TableTask]
    # The jobs of one repetition, by task and release.
    jobs: list[TableJob]
    # Which slots belong to which job, by processor and slot. Slots of no run are idle.
    runs: list[TableRun]


class _TableTask(TypedDict):
    # Its name; no other task of the table has it.
    name: str
    # Slots from one activation to the next.
    period: int
    # Slots that a job needs at most.
    wcet: int
    # Slots from an activation until its job must have ended, at most the period.
    deadline: int


class TableTask(_TableTask, total=False):
    """A task of a table."""

    # Which thread it is: globs (* and ?), all of which must match. Absent if it is the thread with the task's
    # name.
    thread: TableTaskThread
    # The slot of the first activation, less than the period. Absent if zero.
    offset: int
    # The processors that it may use. Absent if all of the table.
    processors: list[int]
    # Whether nothing else runs on its processors: no other task, no aperiodic job. Absent if not.
    exclusive: bool
    # Tasks of the same period whose jobs must end before its own start: places in tasks. Absent without one.
    after: list[int]
    # What happens to a job that has used its slots: it goes on in the next slot of its task (continue, also
    # if absent); it loses the task's next job (skip); its process is stopped (stop); as continue, and whoever
    # watches is told (tell).
    on_overrun: Literal["continue", "skip", "stop", "tell"]


class TableTaskThread(TypedDict, total=False):
    """Which thread it is: globs (* and ?), all of which must match. Absent if it is the thread with the
    task's name."""

    # The thread's name.
    comm: str
    # The command line of its process.
    command: str
    # Its control group, as in /proc/PID/cgroup.
    cgroup: str


class TableJob(TypedDict):
    """A job of a table. If its window exceeds the table, the rest is at the table's beginning."""

    # Its task: a place in tasks.
    task: int
    # The first slot that it may use.
    release: int
    # The first slot that it must not use any more.
    deadline: int
    # The slots that it gets.
    slots: int


TableRun = TypedDict(
    "TableRun",
    {
        # The processor.
        "processor": int,
        # The first slot.
        "from": int,
        # The first slot after.
        "to": int,
        # The job: a place in jobs.
        "job": int,
    },
)


__all__ = [
    "Activates",
    "ActivationCount",
    "Alternative",
    "Arrival",
    "ArrivalCurve",
    "ArrivalSporadic",
    "Bin",
    "ByKernel",
    "Causes",
    "Chain",
    "Channel",
    "Dataflow",
    "Distance",
    "Distribution",
    "FlowTask",
    "Interrupt",
    "InterruptCurves",
    "InterruptCurvesExecution",
    "InterruptSource",
    "LateCause",
    "LateJob",
    "LatePart",
    "LatePartWaitedFor",
    "LateTask",
    "LateTaskOthers",
    "Latency",
    "Measured",
    "MeasuredThread",
    "Mode",
    "Moment",
    "Monitor",
    "Opening",
    "PathStep",
    "Periodic",
    "PeriodicPeriodExact",
    "PeriodicSlip",
    "PeriodicTypical",
    "PeriodicTypicalLeftOut",
    "Processor",
    "ProcessorTimers",
    "ProcessorVariables",
    "PushedBy",
    "Quantiles",
    "SchedulingLatency",
    "Separator",
    "Source",
    "SourceBurst",
    "SourcePeriodExact",
    "Stream",
    "StreamExecution",
    "StreamPercentiles",
    "StreamResponse",
    "StreamSuspension",
    "StreamSuspensionSegmented",
    "Table",
    "TableJob",
    "TableRun",
    "TableTask",
    "TableTaskThread",
    "Task",
    "TaskReservation",
    "ThreadId",
    "Threads",
    "ThreadsClockStep",
    "Times",
    "TimesWorst",
    "TimingModel",
    "TimingModelPlatform",
    "Variable",
    "VariableCulprit",
    "Wakeup",
    "WakeupRan",
    "WakeupSplit",
    "WorstPath",
]
