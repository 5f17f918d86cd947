"""Timing models: made of recordings, read, written."""

import json

import pytest

import punctual


def test_replay_makes_the_model_of_the_command(recordings, command_json):
    path = recordings()
    assert punctual.replay(path) == command_json("replay", path, "--json")


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_workers_do_not_change_the_model(recordings, workers):
    path = recordings(activations=400_000, threads=3)
    assert punctual.replay(path, workers=workers, curve_horizon=32) == punctual.replay(path, curve_horizon=32)


def test_options_are_those_of_the_command(recordings, command_json):
    path = recordings()
    found = punctual.replay(
        [path], threads=["thread-1000", "*3"], from_="100ms", until="500ms", curve_horizon=5, wcet_horizon=7
    )
    same = command_json(
        *("replay", path, "--thread", "thread-1000", "--thread", "*3", "--from", "100ms", "--until", "500ms"),
        *("--curve-horizon", 5, "--wcet-horizon", 7, "--json"),
    )
    assert found == same
    assert {task["name"] for task in punctual.tasks(found)} == {"thread-1000", "thread-1003"}


def test_a_model_is_written_and_read(recordings, tmp_path):
    model = punctual.replay(recordings())
    path = tmp_path / "robot.timing.json"
    punctual.write_model(model, path)
    assert punctual.read_model(path) == model
    with pytest.raises(punctual.FileError, match="it exists; force=True replaces it"):
        punctual.write_model(model, path)
    punctual.write_model({**model, "clock": "CLOCK_TAI"}, str(path), force=True)
    assert json.loads(path.read_text())["clock"] == "CLOCK_TAI"


def test_a_model_that_is_none_is_not_written(recordings, tmp_path):
    model = punctual.replay(recordings())
    model["threads"]["tasks"][0]["streams"][0]["jobs"] = -1
    with pytest.raises(punctual.FileError, match=r"the timing model is not usable: .*jobs"):
        punctual.write_model(model, tmp_path / "a.timing.json")
    with pytest.raises(punctual.UsageError, match="no JSON document"):
        punctual.write_model({"clock": object()}, tmp_path / "a.timing.json")
    assert list(tmp_path.iterdir()) == []


def test_tasks_and_primary_streams_are_found(recordings):
    model = punctual.replay(recordings())
    assert len(punctual.tasks(model)) == 6
    (task,) = punctual.tasks(model, "thread-100[5]")
    assert punctual.primary(task) is task["streams"][task["primary"]]
    assert punctual.primary({**task, "streams": [], "primary": None}) is None
    assert punctual.tasks({"format": "punctual.timing-model", "version": 2, "clock": "x"}) == []
