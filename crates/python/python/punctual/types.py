"""Types of what the package returns: timing models (docs/timing-model.md), proofs (docs/prove.md), checks
(docs/contracts.md), runs."""

from __future__ import annotations

from typing import Literal, TypedDict, Union

from punctual import _schema
from punctual._schema import *  # noqa: F403


class Part(TypedDict):
    """A part of a bound."""

    cause: str
    duration_ns: int


class ProofTask(TypedDict):
    """What was proven of a task."""

    name: str
    tid: int
    policy: str | None
    priority: int
    # Empty if they are unknown.
    cpus: list[int]
    deadline_ns: int | None
    # The bound of its response time.
    response_ns: int | None
    verdict: Literal["met", "not proven", "not asked for"]
    method: str | None
    exact: bool | None
    # Of the window in which this is the worst job, released `earlier_ns` after its beginning.
    parts: list[Part]
    earlier_ns: int | None
    job: int | None
    # Why there is no bound.
    reason: str | None
    # How far costs and distances may change, with `sensitivity`.
    wcet_permille: int | None
    period_permille: int | None
    # With `assign`.
    assigned_priority: int | None
    assigned_deadline_ns: int | None


class Load(TypedDict):
    """How much of a processor its threads need."""

    cpu: int
    load: float | None


class Proof(TypedDict):
    """What `punctual prove --json` prints."""

    # Whether all deadlines that were asked for are met.
    holds: bool
    tasks: list[ProofTask]
    processors: list[Load]
    # Whether priorities were found, with `assign`.
    assigned: bool | None
    observed_on: list[_schema.TimingModelPlatform]
    remarks: list[str]


class CheckedViolation(TypedDict):
    """A term that was not kept."""

    task: str
    term: str
    unit: Literal["ns", "count"]
    value: Union[int, str]
    agreed: Union[int, str]
    thread: str | None
    pid: int | None
    tid: int | None
    phase: int | None
    job: int | None
    release_ns: int | None
    end_ns: int | None
    open: bool | None


class CheckedTerm(TypedDict):
    """How a term was kept."""

    term: str
    unit: Literal["ns", "count"]
    agreed: Union[int, str]
    worst: Union[int, str, None]
    violations: int
    tolerated: int
    examples: list[CheckedViolation]


class CheckedTask(TypedDict):
    """How the terms of a task were kept."""

    name: str
    threads: int
    jobs: int
    terms: list[CheckedTerm]


class UnknownThread(TypedDict):
    """Threads of a name that the contract does not have."""

    name: str
    threads: int


class Note(TypedDict):
    """What else is to be said of a task; of all of them, its name is empty."""

    task: str
    text: str


class CheckedInput(TypedDict):
    """How an input keeps to the contract."""

    input: str
    violations: int
    withdrawn_violations: int
    gaps: int
    lost_records: int
    tasks: list[CheckedTask]
    unknown_threads: list[UnknownThread]
    unknown_violations: int
    notes: list[Note]


class Checked(TypedDict):
    """What `punctual check --json` prints."""

    kept: bool
    violations: int
    inputs: list[CheckedInput]


class Run(TypedDict):
    """A run of a summary."""

    host: str
    name: str
    clock: str
    from_ns: int
    until_ns: int
    records: int
    lost_records: int


class Blame(TypedDict):
    """Which run an extreme is from."""

    task: str
    # The task's number in the model.
    tid: int
    separator: str
    extreme: str
    value_ns: int
    run: str


__all__ = [
    *_schema.__all__,
    "Blame",
    "Checked",
    "CheckedInput",
    "CheckedTask",
    "CheckedTerm",
    "CheckedViolation",
    "Load",
    "Note",
    "Part",
    "Proof",
    "ProofTask",
    "Run",
    "UnknownThread",
]
