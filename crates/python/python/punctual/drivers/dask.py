"""Summaries of many recordings on a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dask.delayed import delayed

import punctual
from punctual.drivers._recordings import Path, one_worker, paths

if TYPE_CHECKING:
    from distributed import Client


def summarize(
    recordings: Path | Iterable[Path], client: Client | None = None, **options: Any
) -> punctual.Summary:
    """One summary of all recordings.

    ``client`` is whose cluster does it; without one it is Dask's default. ``options`` are those of
    ``punctual.summarize``; each task has one worker unless ``workers`` says otherwise.
    """
    one, two = delayed(punctual.summarize, pure=True), delayed(punctual.merge, pure=True)
    left = [one(path, **one_worker(options)) for path in paths(recordings)]
    while len(left) > 1:
        left = [two(left[place : place + 2]) for place in range(0, len(left), 2)]
    whole = left[0] if left else two([])
    result: punctual.Summary = client.compute(whole).result() if client else whole.compute()
    return result
