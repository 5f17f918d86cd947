"""Summaries of many recordings on a Spark cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import punctual

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def summarize(recordings: Iterable[str], spark: SparkSession, **options: Any) -> punctual.Summary:
    """One summary of all recordings, by the cluster of a session.

    ``options`` are those of ``punctual.summarize``; each task uses one processor.
    """
    paths = [str(recording) for recording in recordings]

    def one(recording: str) -> punctual.Summary:
        return punctual.summarize(recording, workers=1, **options)

    def two(left: punctual.Summary, right: punctual.Summary) -> punctual.Summary:
        return punctual.merge([left, right])

    if not paths:
        return punctual.merge([])
    summaries = spark.sparkContext.parallelize(paths, len(paths)).map(one)
    result: punctual.Summary = summaries.treeReduce(two)
    return result
