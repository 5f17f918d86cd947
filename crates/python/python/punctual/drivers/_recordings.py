"""What the drivers take as recordings."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Union

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]


def paths(recordings: Path | Iterable[Path]) -> list[str]:
    """Their paths: one, or several."""
    if isinstance(recordings, (str, bytes, os.PathLike)):
        return [os.fsdecode(recordings)]
    return [os.fsdecode(path) for path in recordings]


def one_worker(options: dict[str, Any]) -> dict[str, Any]:
    """Options of ``punctual.summarize``: one worker for each task of a cluster, unless they say otherwise."""
    return {"workers": 1, **options}
