"""What the drivers take as recordings."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Union

Path = Union[str, "os.PathLike[str]"]


def paths(recordings: Path | Iterable[Path]) -> list[str]:
    """Their paths: one, or several."""
    if isinstance(recordings, (str, os.PathLike)):
        return [os.fspath(recordings)]
    return [os.fspath(path) for path in recordings]


def one_worker(options: dict[str, Any]) -> dict[str, Any]:
    """Options of ``punctual.summarize``: one worker for each task of a cluster, unless they say otherwise."""
    return {"workers": 1, **options}
