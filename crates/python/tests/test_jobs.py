"""Jobs as Arrow, for pyarrow, polars and pandas."""

import gc
import io

import pandas
import polars
import pyarrow
import pyarrow.csv
import pytest

import punctual


def test_arrow_has_what_the_command_lists(recordings, command):
    path = recordings()
    table = pyarrow.table(punctual.jobs(path))
    listed = command("jobs", path)
    types = {"disturbance": pyarrow.string(), "expirations": pyarrow.int64(), "arrival_ns": pyarrow.int64()}
    options = pyarrow.csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=False)
    same = pyarrow.csv.read_csv(io.BytesIO(listed.encode()), convert_options=options)
    assert table.column_names == same.column_names == punctual.jobs(path).columns
    assert table.num_rows > 2_000
    for name in table.column_names:
        assert table[name].to_pylist() == same[name].to_pylist(), name
    assert table.schema.metadata == {b"punctual.clock": b"CLOCK_MONOTONIC", b"punctual.unit": b"ns"}


def test_every_library_takes_the_same_jobs(recordings):
    jobs = punctual.jobs(recordings())
    table = pyarrow.table(jobs)
    frame = polars.DataFrame(jobs)
    assert frame.to_arrow().to_pydict() == table.to_pydict()
    assert frame.schema["arrival_ns"] == polars.Int64 and frame.schema["primary"] == polars.Boolean
    other = pandas.DataFrame.from_arrow(jobs)
    assert other["cost_ns"].tolist() == frame["cost_ns"].to_list()
    assert other["thread"].tolist() == frame["thread"].to_list()


def test_numbers_are_not_copied(recordings):
    # numpy refuses what it would have to copy.
    batches = list(pyarrow.RecordBatchReader.from_stream(punctual.jobs(recordings())))
    costs = batches[0]["cost_ns"].to_numpy(zero_copy_only=True)
    assert costs.sum() > 0 and not costs.flags.writeable


def test_jobs_come_in_batches(recordings):
    path = recordings(activations=400_000, threads=3)
    jobs = punctual.jobs(path)
    sizes = [batch.num_rows for batch in pyarrow.RecordBatchReader.from_stream(jobs)]
    assert max(sizes) == 65_536 and len(sizes) > 3
    assert sum(sizes) == pyarrow.table(punctual.jobs(path)).num_rows


def test_a_stream_may_be_dropped_early(recordings):
    jobs = punctual.jobs(recordings(activations=400_000, threads=3))
    for _ in range(3):
        reader = pyarrow.RecordBatchReader.from_stream(jobs)
        assert reader.read_next_batch().num_rows == 65_536
        del reader
        gc.collect()
    # One that nobody takes.
    jobs.__arrow_c_stream__()
    assert pyarrow.schema(jobs).names == jobs.columns


def test_jobs_are_chosen(recordings):
    path = recordings()
    every = polars.DataFrame(punctual.jobs(path))
    one = polars.DataFrame(punctual.jobs(path, threads="thread-1005", primary=True, workers=1))
    assert one.equals(every.filter((polars.col("thread") == "thread-1005") & polars.col("primary")))
    assert 0 < one.height < every.height
    early = polars.DataFrame(punctual.jobs(path, until="500ms"))
    assert 0 < early.height < every.height


def test_what_has_no_jobs_is_refused(recordings, tmp_path):
    with pytest.raises(punctual.TargetError, match="the recording has no thread that matches"):
        punctual.jobs(recordings(), threads="nobody")
    with pytest.raises(punctual.FileError, match="no such file or directory"):
        punctual.jobs(tmp_path / "nothing")
    assert repr(punctual.jobs(recordings())).startswith("<punctual.Jobs of ")


def test_a_recording_that_goes_away_is_an_error(recordings, tmp_path):
    import shutil

    path = tmp_path / "copy"
    shutil.copytree(recordings(), path)
    jobs = punctual.jobs(path)
    shutil.rmtree(path)
    with pytest.raises(Exception, match="cannot read .*no such file or directory"):
        pyarrow.table(jobs)
