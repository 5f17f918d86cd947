"""Timing models of real-time threads: read, extract, prove, check, merge.

All times are whole nanoseconds, in fields that end in ``_ns``. Timing models, proofs and checks are dicts,
the same as the JSON that the command ``punctual`` writes; ``punctual.types`` describes them.
"""

from punctual._errors import (
    Error,
    FileError,
    PunctualWarning,
    RefusedError,
    TargetError,
    UnsupportedError,
    UsageError,
)
from punctual._models import primary, tasks
from punctual._punctual import (
    Jobs,
    Summary,
    __version__,
    check,
    extract,
    jobs,
    merge,
    prove,
    read_model,
    replay,
    summarize,
    write_model,
)

__all__ = [
    "Error",
    "FileError",
    "Jobs",
    "PunctualWarning",
    "RefusedError",
    "Summary",
    "TargetError",
    "UnsupportedError",
    "UsageError",
    "__version__",
    "check",
    "extract",
    "jobs",
    "merge",
    "primary",
    "prove",
    "read_model",
    "replay",
    "summarize",
    "tasks",
    "write_model",
]
