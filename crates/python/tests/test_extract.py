"""Models of arrays."""

import array

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

import punctual

TIMES = st.lists(st.integers(0, 2**40), min_size=1, max_size=40).map(sorted)


def test_arrays_have_the_models_of_the_recording(recordings):
    # A thread without windows of other reasons: all that a record says of it is in its list of jobs.
    path = recordings(machine=3, threads=1)
    (task,) = punctual.tasks(punctual.replay(path))
    stream = punctual.primary(task)
    jobs = polars.DataFrame(punctual.jobs(path, primary=True))
    found = punctual.extract(
        jobs["release_earliest_ns"],
        jobs["cost_ns"],
        latest=jobs["release_latest_ns"],
        arrivals=jobs["arrival_ns"],
        ends=jobs["end_ns"],
    )
    assert stream["releases"] == stream["jobs"] + 1, "the last job had not ended, and is not in the list"
    assert found["jobs"] == found["releases"] == stream["jobs"]
    assert found["execution"] == stream["execution"]
    assert found["response"] == stream["response"]
    assert found["percentiles"]["cost"] == stream["percentiles"]["cost"]
    periodic, same = found["arrival"]["periodic"], stream["arrival"]["periodic"]
    assert periodic["period_ns"] == same["period_ns"] and periodic["jitter_ns"] <= same["jitter_ns"]


@given(TIMES, st.data())
def test_models_are_those_of_brute_force(releases, data):
    costs = data.draw(st.lists(st.integers(0, 10**9), min_size=len(releases), max_size=len(releases)))
    found = punctual.extract(np.array(releases), np.array(costs))
    for n in range(2, len(releases) + 1):
        spans = [releases[first + n - 1] - releases[first] for first in range(len(releases) - n + 1)]
        assert found["arrival"]["curve"]["delta_min_ns"][n - 2] == min(spans)
        assert found["arrival"]["curve"]["delta_max_ns"][n - 2] == max(spans)
    for n in range(1, len(costs) + 1):
        sums = [sum(costs[first : first + n]) for first in range(len(costs) - n + 1)]
        assert found["execution"]["wcet_ns"][n - 1] == max(sums)


@given(TIMES)
def test_every_kind_of_array_gives_the_same(releases):
    same = punctual.extract(releases)
    wide = np.repeat(np.array(releases, dtype=np.uint64), 2)
    kinds = [
        np.array(releases, dtype=np.int64),
        wide[::2],
        array.array("q", releases),
        array.array("Q", releases),
        memoryview(array.array("Q", releases)),
        tuple(releases),
        pandas.Series(releases),
        polars.Series(releases),
        pyarrow.array(releases),
        pyarrow.chunked_array([releases]),
        np.ma.array(releases),
    ]
    for kind in kinds:
        assert punctual.extract(kind) == same, type(kind)


def test_what_was_not_given_is_not_in_the_models():
    bare = punctual.extract([0, 10, 20])
    assert bare["releases"] == 3 and bare["jobs"] == 0
    assert not {"execution", "suspension", "response"} & bare.keys()
    assert bare["percentiles"].keys() == {"lateness"}
    costs = punctual.extract([0, 10, 20], [1, 2])
    assert costs["jobs"] == 2 and costs["execution"]["wcet_ns"] == [2, 3]
    assert "response" not in costs and "suspension" not in costs
    assert "response" not in costs["percentiles"] and costs["percentiles"]["cost"]
    ends = punctual.extract([0, 10, 20], [1, 2, 3], ends=[5, 12, 29])
    assert ends["response"]["max_ns"] == 9 and "suspension" not in ends


def test_windows_and_arrivals_count():
    found = punctual.extract([100, 205], latest=[110, 205], arrivals=[100, 200])
    assert found["uncertain_releases"] == 1
    assert found["arrival"]["curve"] == {"delta_min_ns": [95], "delta_max_ns": [105]}


def test_horizons_end_curves():
    found = punctual.extract(range(100), [1] * 100, curve_horizon=3, wcet_horizon=4)
    assert len(found["arrival"]["curve"]["delta_min_ns"]) == 3
    assert found["execution"]["wcet_ns"] == [1, 2, 3, 4]


WRONG = [
    ((np.array([0.5]),), {}, r"releases: expected whole nanoseconds .* not items of format .d."),
    ((np.zeros((2, 2), dtype=int),), {}, r"in one dimension, not 2"),
    ((np.array([1], dtype=">i8"),), {}, "not items of format .>"),
    ((np.array([1], dtype=np.int32),), {}, "not items of format .i."),
    (([0.5],), {}, "releases: expected whole nanoseconds .* not this"),
    (([-1],), {}, r"releases\[0\] is -1: times are not negative"),
    (([5, -3],), {}, r"releases\[1\] is -3: times are not negative"),
    (([5, None],), {}, r"releases\[1\] is None: leave out what has no value"),
    ((polars.Series([1, None]),), {}, "format .d.: .*missing values are: leave out the rows"),
    ((pandas.Series([1, None]),), {}, "format .d.: .*missing values are: leave out the rows"),
    ((pandas.Series([1, None], dtype="Int64"),), {}, "format .[dO].: .*missing values are"),
    ((np.array([1, None]),), {}, "format .O.: .*missing values are"),
    ((pyarrow.array([1, None]),), {}, "format .d.: .*missing values are"),
    ((np.ma.array([1, 2], mask=[0, 1]),), {}, r"releases: its masked values would count .*compressed"),
    (("text",), {}, "releases: expected whole nanoseconds .* not this"),
    ((None,), {}, "releases: expected whole nanoseconds .* not this"),
    ((np.array([5, -3]),), {}, r"releases\[1\] is -3: times are not negative"),
    (([5, 3],), {}, r"releases\[1\] is before the one before it: sort them"),
    (([1, 2, 3], [1]), {}, "costs: expected 3, as many as releases, or one less, not 1"),
    (([1], [1, 1]), {}, "costs: expected 1, as many as releases, or one less, not 2"),
    (([1, 2],), {"latest": [1]}, "latest: expected 2, as many as releases, not 1"),
    (([1, 2],), {"latest": [1, 1]}, r"latest\[1\] is before releases\[1\]"),
    (([1],), {"ends": [2]}, "ends: costs are missing"),
    (([1, 2], [1]), {"ends": [2, 3]}, "ends: expected 1, as many as costs, not 2"),
    (([5], [1]), {"ends": [2]}, r"ends\[0\] is before releases\[0\]"),
    (([5],), {"curve_horizon": 0}, "curve_horizon: expected 1 to 100000, not 0"),
]


@pytest.mark.parametrize(("arguments", "keywords", "message"), WRONG)
def test_what_cannot_be_used_is_said(arguments, keywords, message):
    with pytest.raises(punctual.UsageError, match=message):
        punctual.extract(*arguments, **keywords)


def test_extremes_do_not_overflow():
    most = 2**64 - 1
    with pytest.warns(punctual.PunctualWarning, match=r"costs\[1\]"):
        found = punctual.extract([0, most], [most, most], ends=[most, most])
    # Curves of costs end before a total of 52 days.
    assert "execution" not in found and found["percentiles"]["cost"]["p50_ns"] == most
    assert found["response"]["max_ns"] == most
    assert punctual.extract([])["releases"] == 0


def test_ends_that_cannot_be_are_refused():
    with pytest.raises(punctual.UsageError, match=r"ends\[1\] is before the one before it"):
        punctual.extract([0, 10, 20], costs=[1, 1, 1], ends=[15, 12, 30])
    with pytest.raises(punctual.UsageError, match="ends: costs are missing"):
        punctual.extract([0, 10], ends=[5, 15])
    with pytest.warns(punctual.PunctualWarning, match=r"in 2 jobs, first in costs\[1\]: response times are"):
        found = punctual.extract([0, 1_000, 2_000], costs=[5, 100, 100], ends=[5, 1_005, 2_005])
    assert found["execution"]["wcet_ns"][0] == 100
