"""Plots show what the models say."""

import matplotlib
import polars
import pyarrow
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt

import punctual
import punctual.plot
from conftest import pinned


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    figure.canvas.draw()
    plt.close(figure)


def test_arrival_curves(ax):
    stream = punctual.extract([0, 10_000_000, 30_000_000])
    assert punctual.plot.arrivals(stream, ax) is ax
    most, least = ax.get_lines()
    assert list(zip(*most.get_data())) == [(0, 1), (10, 2), (30, 3)]
    assert list(zip(*least.get_data())) == [(0, 0), (20, 1), (30, 2)]
    with pytest.raises(ValueError, match="no arrival curve"):
        punctual.plot.arrivals(punctual.extract([1]))


def test_costs(ax):
    punctual.plot.costs(punctual.extract([0, 1], [1_000_000, 3_000_000]), ax)
    assert list(zip(*ax.get_lines()[0].get_data())) == [(1, 3), (2, 4)]
    with pytest.raises(ValueError, match="no costs"):
        punctual.plot.costs(punctual.extract([0, 1]))


@pytest.mark.parametrize("table", [polars.DataFrame, pyarrow.table])
def test_jobs(ax, table, recordings):
    jobs = table(punctual.jobs(recordings(), primary=True, until="200ms"))
    punctual.plot.responses(jobs, ax)
    assert sum(patch.get_height() for patch in ax.patches) == len(jobs["tid"])
    ax.clear()
    punctual.plot.timeline(jobs, ax)
    assert len(ax.patches) == 2 * len(jobs["tid"])
    assert [label.get_text() for label in ax.get_yticklabels()][0].startswith("thread-")


def test_proofs(ax, recordings):
    proof = punctual.prove(pinned(punctual.replay(recordings())))
    punctual.plot.proof(proof, ax)
    bounded = [task for task in proof["tasks"] if task["response_ns"] is not None]
    assert len(ax.patches) == sum(len(task["parts"]) for task in bounded) > 0


def test_what_cannot_be_plotted_is_said():
    for plot, wrong, message in [
        (punctual.plot.arrivals, {}, "this is not a stream of a timing model: it has no 'arrival'"),
        (punctual.plot.costs, {}, "the stream has no costs"),
        (punctual.plot.proof, {}, "this is not a proof: it has no 'tasks'"),
        (punctual.plot.responses, {}, "this is not a table of jobs: it has no column 'response_ns'"),
        (punctual.plot.timeline, polars.DataFrame(), "it has no column 'thread'"),
    ]:
        with pytest.raises(punctual.UsageError, match=message):
            plot(wrong)
