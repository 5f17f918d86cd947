"""Summaries of many recordings on a Spark cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import punctual
from punctual.drivers._recordings import Path, one_worker, paths

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def summarize(recordings: Path | Iterable[Path], spark: SparkSession, **options: Any) -> punctual.Summary:
    """One summary of all recordings, by the cluster of a session.

    ``options`` are those of ``punctual.summarize``; each task has one worker unless ``workers`` says
    otherwise.
    """
    all_paths = paths(recordings)

    def one(recording: str) -> punctual.Summary:
        return punctual.summarize(recording, **one_worker(options))

    def two(left: punctual.Summary, right: punctual.Summary) -> punctual.Summary:
        return punctual.merge([left, right])

    if not all_paths:
        return punctual.merge([])
    summaries = spark.sparkContext.parallelize(all_paths, len(all_paths)).map(one)
    result: punctual.Summary = summaries.treeReduce(two)
    return result
