"""Summaries of many recordings on a cluster: one module each for Dask, Ray and Spark.

Each has one function, ``summarize(recordings, …)``: the cluster's workers summarize a recording each and
merge the summaries pairwise. The result has the same bits as that of one process, in whatever order they do
it. Workers must be able to read the recordings under the same paths, and have the package installed.
"""
