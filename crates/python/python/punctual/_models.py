"""Finding one's way in timing models."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from punctual.types import Stream, Task, TimingModel


def tasks(model: TimingModel, name: str = "*") -> list[Task]:
    """The tasks whose threads' names match a pattern (``*``, ``?``, ``[...]``)."""
    threads = model.get("threads")
    return [task for task in threads["tasks"] if fnmatchcase(task["name"], name)] if threads else []


def primary(task: Task) -> Stream | None:
    """The stream of jobs that explains the task best; None if it has no jobs."""
    index = task.get("primary")
    return None if index is None else task["streams"][index]
