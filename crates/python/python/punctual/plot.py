"""Plots of timing models and jobs, with matplotlib (the extra ``plot`` of ``punctual-timing``).

Each function draws into ``ax``, by default matplotlib's current one, and returns it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

from punctual._errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from punctual.types import Proof, Stream

_MS = 1e6


def _axes(ax: Axes | None, x: str, y: str) -> Axes:
    ax = plt.gca() if ax is None else ax
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    return ax


def arrivals(stream: Stream, ax: Axes | None = None) -> Axes:
    """The arrival curves: at most η⁺(Δ) and at least η⁻(Δ) releases in any window of length Δ."""
    curve = _part(stream, "arrival").get("curve")
    if curve is None:
        raise UsageError("the stream has no arrival curve: it has fewer than two releases")
    ax = _axes(ax, "window, ms", "releases")
    curves = ("at most", 1, curve["delta_min_ns"]), ("at least", 0, curve["delta_max_ns"])
    for label, first, distances in curves:
        windows = [0.0, *(ns / _MS for ns in distances)]
        ax.step(windows, [first + number for number in range(len(windows))], where="post", label=label)
    ax.legend()
    return ax


def costs(stream: Stream, ax: Axes | None = None) -> Axes:
    """WCET(n): the most processor time of n consecutive jobs."""
    execution = stream.get("execution")
    if execution is None:
        raise UsageError("the stream has no costs: no job ended")
    ax = _axes(ax, "consecutive jobs", "processor time, ms")
    wcet = execution["wcet_ns"]
    ax.plot(range(1, 1 + len(wcet)), [ns / _MS for ns in wcet], marker=".", label="WCET(n)")
    ax.legend()
    return ax


def responses(jobs: Any, ax: Axes | None = None, bins: int = 100) -> Axes:
    """How often each response time was seen. ``jobs`` is a table of jobs: pandas, polars, pyarrow."""
    ax = _axes(ax, "response time, ms", "jobs")
    ax.hist([int(ns) / _MS for ns in _column(jobs, "response_ns")], bins=bins, log=True)
    return ax


def timeline(jobs: Any, ax: Axes | None = None) -> Axes:
    """Each job from its release to its end, one row a thread. ``jobs`` is a table of jobs."""
    ax = _axes(ax, "time, ms", "")
    columns = [list(_column(jobs, name)) for name in ("thread", "release_earliest_ns", "start_ns", "end_ns")]
    names = list(dict.fromkeys(str(name) for name in columns[0]))
    zero = min((int(ns) for ns in columns[1]), default=0)
    for name, release, start, end in zip(*columns):
        row = names.index(str(name))
        ax.barh(
            row, (int(end) - int(release)) / _MS, left=(int(release) - zero) / _MS, height=0.6, color="C7"
        )
        ax.barh(row, (int(end) - int(start)) / _MS, left=(int(start) - zero) / _MS, height=0.6, color="C0")
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    return ax


def proof(proof: Proof, ax: Axes | None = None) -> Axes:
    """What each bound of a response time is made of, and the deadlines."""
    tasks = [task for task in _part(proof, "tasks") if task["response_ns"] is not None]
    ax = _axes(ax, "response time, ms", "")
    causes = list(dict.fromkeys(part["cause"] for task in tasks for part in task["parts"]))
    for row, task in enumerate(tasks):
        left = 0.0
        for part in task["parts"]:
            color = f"C{causes.index(part['cause']) % 10}"
            ax.barh(row, part["duration_ns"] / _MS, left=left, height=0.6, color=color)
            left += part["duration_ns"] / _MS
        if task["deadline_ns"] is not None:
            ax.plot([task["deadline_ns"] / _MS] * 2, [row - 0.4, row + 0.4], color="black")
    ax.set_yticks(range(len(tasks)), [task["name"] for task in tasks])
    ax.invert_yaxis()
    handles = [Rectangle((0, 0), 1, 1, color=f"C{number % 10}") for number in range(len(causes))]
    ax.legend(handles, causes)
    return ax


def _part(of: Any, name: str) -> Any:
    """A part that every stream, or every proof, has."""
    try:
        return of[name]
    except (KeyError, TypeError) as error:
        what = "a stream of a timing model" if name == "arrival" else "a proof"
        raise UsageError(f"this is not {what}: it has no {name!r}") from error


def _column(jobs: Any, name: str) -> Iterable[Any]:
    # What a table raises is its library's own.
    try:
        column = jobs[name]
    except Exception as error:
        raise UsageError(f"this is not a table of jobs: it has no column {name!r}") from error
    # pyarrow's columns yield scalars of its own.
    values: Iterable[Any] = column.to_pylist() if hasattr(column, "to_pylist") else column
    return values
