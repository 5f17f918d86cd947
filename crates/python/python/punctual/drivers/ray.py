"""Summaries of many recordings on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ray

import punctual
from punctual.drivers._recordings import Path, one_worker, paths


@ray.remote
def _one(recording: str, options: dict[str, Any]) -> punctual.Summary:
    return punctual.summarize(recording, **options)


@ray.remote
def _merged(*summaries: punctual.Summary) -> punctual.Summary:
    return punctual.merge(summaries)


def summarize(recordings: Path | Iterable[Path], **options: Any) -> punctual.Summary:
    """One summary of all recordings, by the cluster that ``ray.init`` connected to.

    ``options`` are those of ``punctual.summarize``; each task has one worker unless ``workers`` says
    otherwise.
    """
    left = [_one.remote(path, one_worker(options)) for path in paths(recordings)]
    while len(left) > 1:
        left = [_merged.remote(*left[place : place + 2]) for place in range(0, len(left), 2)]
    return ray.get(left[0]) if left else punctual.merge([])
