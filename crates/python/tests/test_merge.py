"""Merging is associative, commutative, and exact in any partition."""

import pickle
from datetime import timedelta
from functools import reduce

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import punctual
from conftest import ROOT

MACHINES = 9
SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def summaries(recordings):
    """Of machines with different jobs, numbers of threads, and lengths."""
    sizes = [(machine, 500 + 700 * (machine % 4), 2 + machine % 5) for machine in range(MACHINES)]
    return [punctual.summarize(recordings(*size)) for size in sizes]


@pytest.fixture(scope="module")
def whole(summaries):
    return bytes(punctual.merge(summaries))


def merged(tree):
    """Of a tree whose leaves are summaries, with empty branches."""
    return tree if isinstance(tree, punctual.Summary) else punctual.merge(merged(branch) for branch in tree)


@st.composite
def trees(draw):
    """Any grouping of all machines, in any order."""
    left = draw(st.permutations(range(MACHINES)))
    while len(left) > 1:
        size = draw(st.integers(1, len(left)))
        left = [left[:size], *left[size:]] if size < len(left) else left
        left = draw(st.permutations(left))
        if draw(st.integers(0, 3)) == 0:
            return left
    return left


@SLOW
@given(tree=trees())
def test_any_partition_in_any_order_gives_the_same_bits(summaries, whole, tree):
    def filled(branch):
        return summaries[branch] if isinstance(branch, int) else [filled(part) for part in branch]

    assert bytes(merged(filled(tree))) == whole


@SLOW
@given(order=st.permutations(range(MACHINES)), cut=st.integers(1, MACHINES - 2))
def test_merging_is_associative_and_commutative(summaries, order, cut):
    a, b = summaries[order[0]], punctual.merge(summaries[place] for place in order[1 : 1 + cut])
    c = punctual.merge(summaries[place] for place in order[1 + cut :])
    two = lambda *pair: punctual.merge(pair)
    assert two(a, b) == two(b, a)
    assert two(two(a, b), c) == two(a, two(b, c))
    assert two(a, punctual.merge([])) == a


@settings(SLOW, max_examples=25)
@given(
    runs=st.lists(
        st.tuples(st.integers(10, 99), st.integers(1, 400), st.integers(1, 4)),
        min_size=2,
        max_size=5,
        unique_by=lambda run: run[0],
    )
)
def test_one_pass_over_all_recordings_gives_the_same_bits(recordings, runs):
    paths = [recordings(*run) for run in runs]
    one_by_one = punctual.merge(punctual.summarize(path, workers=1) for path in reversed(paths))
    assert bytes(punctual.summarize(paths)) == bytes(one_by_one)
    assert bytes(reduce(lambda a, b: punctual.merge([b, a]), map(punctual.summarize, paths))) == bytes(
        one_by_one
    )


def test_the_command_makes_the_same(recordings, command, command_json, tmp_path):
    paths = [recordings(machine) for machine in (1, 2, 3)]
    for number, path in enumerate(paths):
        command("summarize", path, "-o", tmp_path / f"{number}.summary")
    read = [punctual.Summary.read(tmp_path / f"{number}.summary") for number in range(3)]
    fleet = punctual.merge(map(punctual.summarize, paths))
    assert punctual.merge(read) == fleet
    assert fleet.model() == command_json("merge", *tmp_path.glob("*.summary"), "--json")
    fleet.write(tmp_path / "fleet.summary")
    assert command_json("merge", tmp_path / "fleet.summary", "--json") == fleet.model()


def test_the_model_allows_what_each_run_did(recordings):
    paths = [recordings(machine) for machine in (1, 2, 3)]
    fleet = punctual.merge(map(punctual.summarize, paths)).model()
    for path in paths:
        for task in punctual.tasks(punctual.replay(path)):
            (same,) = punctual.tasks(fleet, task["name"])
            for n, wcet in enumerate(punctual.primary(task)["execution"]["wcet_ns"]):
                assert punctual.primary(same)["execution"]["wcet_ns"][n] >= wcet


def test_summaries_are_values(recordings):
    paths = [recordings(machine) for machine in (1, 2)]
    one, two = map(punctual.summarize, paths)
    assert pickle.loads(pickle.dumps(one)) == one != two
    assert {one, punctual.Summary(bytes(one))} == {one}
    assert one != "a summary" and punctual.Summary() == punctual.merge([])
    assert [run["host"] for run in punctual.merge([two, one]).runs] == ["generated-1", "generated-2"]
    assert one.tasks == 6 and repr(one) == "<punctual.Summary: 1 run, 6 tasks>"
    blamed = punctual.merge([one, two]).blame()
    assert {blame["run"] for blame in blamed} == {f"generated-{n}:{path}" for n, path in zip((1, 2), paths)}
    assert all(blame["value_ns"] >= 0 and blame["separator"] for blame in blamed)


def test_a_run_counts_once(recordings):
    summary = punctual.summarize(recordings(1))
    with pytest.raises(punctual.UsageError, match="cannot add summary 2: .* would count twice"):
        punctual.merge([summary, summary])


def test_what_is_no_summary_is_refused(recordings, tmp_path):
    contents = bytearray(bytes(punctual.summarize(recordings(1))))
    contents[100] ^= 1
    with pytest.raises(punctual.FileError, match="it is damaged or cut off: its checksum differs"):
        punctual.Summary(bytes(contents))
    with pytest.raises(punctual.FileError, match="it is no summary"):
        punctual.Summary(b"something else")
    with pytest.raises(punctual.FileError, match="it is a folder; punctual summarize makes a summary"):
        punctual.Summary.read(recordings(1))
    with pytest.raises(TypeError):
        punctual.merge([1])


@pytest.fixture(scope="module")
def imported(command, tmp_path_factory):
    """Summaries of the halves of a trace of trace-cmd, which does not say what commands threads have."""
    path = tmp_path_factory.mktemp("imported") / "imported.recording"
    command("import", ROOT / "crates/import/fuzz/corpus/trace_dat/six", "-o", path)
    half = {"until": timedelta(milliseconds=15)}, {"from_": timedelta(milliseconds=15)}
    with pytest.warns(punctual.PunctualWarning, match="the trace lacks"):
        return path, [punctual.summarize(path, **part) for part in half]


def test_unknown_commands_are_one_program_only_if_the_user_says_so(imported):
    halves = imported[1]
    with pytest.warns(punctual.PunctualWarning, match="commands of .* are unknown, so each run has its own"):
        apart = punctual.merge(halves)
    assert len({task["name"] for task in apart.model()["threads"]["tasks"]}) < apart.tasks
    one = punctual.merge(reversed(halves), same_program=True)
    assert one.tasks < apart.tasks == sum(half.tasks for half in halves)
    # Of parts or of the whole.
    assert punctual.merge([apart], same_program=True) == one
    parts = [punctual.merge([half], same_program=True) for half in halves]
    assert punctual.merge(parts, same_program=True) == one


def test_a_part_of_a_run_beside_the_run_is_a_warning(recordings):
    path = recordings(1)
    both = [punctual.summarize(path), punctual.summarize(path, until="1s")]
    said = "the runs .* until 1s and .* of generated-1 overlap in time: jobs that both recorded count twice"
    with pytest.warns(punctual.PunctualWarning, match=said):
        punctual.merge(both)
