"""Clusters of two workers give the same bits as one process.

Dask is tested with the package; Ray and Spark, which are large, where they are installed (`make
test-clusters`).
"""

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

import punctual

MACHINES = 7


def needs(module):
    found = importlib.util.find_spec(module) is not None
    return pytest.mark.skipif(not found, reason=f"{module} is not installed: make test-clusters installs it")


@pytest.fixture(scope="module")
def paths(recordings):
    return [str(recordings(machine)) for machine in range(MACHINES)]


@pytest.fixture(scope="module")
def whole(paths):
    """By one worker in this process."""
    return bytes(punctual.summarize(paths, workers=1))


@needs("distributed")
def test_dask(paths, whole):
    from distributed import Client, LocalCluster

    import punctual.drivers.dask as driver

    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            assert bytes(driver.summarize(paths, client)) == whole
            assert len(client.scheduler_info()["workers"]) == 2
            assert driver.summarize([], client) == punctual.merge([])
            one = punctual.summarize(paths[0])
            assert driver.summarize(paths[0], client, workers=2) == one
            assert driver.summarize(Path(paths[0]), client) == one
            with pytest.raises(punctual.FileError, match="no such file or directory"):
                driver.summarize([*paths, "/nowhere"], client)
    assert bytes(driver.summarize(reversed(paths), curve_horizon=1000)) == whole


@needs("ray")
def test_ray(paths, whole):
    import ray

    import punctual.drivers.ray as driver

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        assert bytes(driver.summarize(paths)) == whole
        assert bytes(driver.summarize(reversed(paths), curve_horizon=1000)) == whole
        assert driver.summarize([]) == punctual.merge([])
        assert driver.summarize(paths[0], workers=2) == punctual.summarize(paths[0])
        with pytest.raises(punctual.FileError, match="no such file or directory"):
            driver.summarize([*paths, "/nowhere"])
    finally:
        ray.shutdown()


@needs("pyspark")
def test_spark(paths, whole, monkeypatch):
    if shutil.which("java") is None:
        pytest.skip("java is not installed: make test-clusters installs it")
    from pyspark.sql import SparkSession

    import punctual.drivers.spark as driver

    # The workers have the package where this interpreter has it.
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    # Two workers, each a process of its own with one processor and 1 GiB.
    session = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
    local = session.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    spark = local.getOrCreate()
    try:
        assert bytes(driver.summarize(paths, spark)) == whole
        assert bytes(driver.summarize(reversed(paths), spark, curve_horizon=1000)) == whole
        assert driver.summarize([], spark) == punctual.merge([])
        assert driver.summarize(paths[0], spark, workers=2) == punctual.summarize(paths[0])
        with pytest.raises(Exception, match="no such file or directory"):
            driver.summarize([*paths, "/nowhere"], spark)
    finally:
        spark.stop()


def test_drivers_are_thin():
    for file in (Path(punctual.__file__).parent / "drivers").glob("*.py"):
        assert len(file.read_text().splitlines()) <= 60, file


def test_one_recording_and_workers_are_taken_as_given():
    from punctual.drivers._recordings import one_worker, paths

    assert paths("a/b") == paths(Path("a/b")) == paths(iter(["a/b"])) == ["a/b"] and paths([]) == []
    assert one_worker({"workers": 2}) == {"workers": 2} and one_worker({})["workers"] == 1
