"""Errors are exceptions with the command's messages; work can be interrupted; warnings are warnings."""

import logging
import os
import subprocess
import sys
import threading
from datetime import timedelta

import pytest

import punctual


@pytest.mark.parametrize("name", ["nothing", "file", "folder", "cut"])
def test_messages_are_those_of_the_command(name, recordings, command, tmp_path):
    path = tmp_path / name
    if name == "file":
        path.write_text("{}")
    elif name in ("folder", "cut"):
        path.mkdir()
    if name == "cut":
        (path / "metadata").write_bytes((recordings() / "metadata").read_bytes()[:20])
    with pytest.raises(punctual.FileError) as error:
        punctual.replay(path)
    assert f"punctual: {error.value}\n" == command("replay", path, fails=True)


def test_exceptions_have_bases_of_python():
    bases = {
        punctual.UsageError: ValueError,
        punctual.FileError: OSError,
        punctual.TargetError: LookupError,
        punctual.UnsupportedError: NotImplementedError,
    }
    for kind, base in bases.items():
        assert issubclass(kind, punctual.Error) and issubclass(kind, base)
    with pytest.raises(OSError):
        punctual.read_model("/nowhere/at/all")


def test_arguments_are_checked(recordings):
    path = recordings()
    wrong = [
        ({"workers": 0}, punctual.UsageError, "workers: expected"),
        ({"workers": -1}, punctual.UsageError, "workers: expected 1 to 65536, not -1"),
        ({"workers": 10**30}, punctual.UsageError, "workers: expected 1 to 65536"),
        ({"curve_horizon": -1}, punctual.UsageError, "curve_horizon: expected 1 to 100000, not -1"),
        ({"curve_horizon": -(10**30)}, punctual.UsageError, "curve_horizon: expected 1 to 100000"),
        ({"workers": "two"}, TypeError, ""),
        ({"from_": 1}, punctual.UsageError, "from_: expected a time .* or a timedelta .*, not 1"),
        ({"until": timedelta(seconds=-1)}, punctual.UsageError, r"until: expected .*not datetime.timedelta"),
        ({"wcet_horizon": 100_001}, punctual.UsageError, "wcet_horizon: expected 1 to 100000"),
        ({"from_": "soon"}, punctual.UsageError, 'from_: "soon": expected seconds'),
        ({"from_": "2s", "until": "1s"}, punctual.UsageError, "from_ must be before until"),
        ({"threads": ["["]}, punctual.UsageError, "is not a pattern of thread names"),
        ({"threads": 5}, TypeError, "expected a str, or a list of them, not int"),
        ({"threads": ["a", 5]}, TypeError, "expected a str in the list, not int"),
    ]
    for options, kind, message in wrong:
        with pytest.raises(kind, match=message):
            punctual.replay(path, **options)
    with pytest.raises(punctual.UsageError, match="curve_horizon: expected 1 to 100000, not -1"):
        punctual.extract([0, 10], curve_horizon=-1)
    with pytest.raises(punctual.UsageError, match="deadlines: expected a time"):
        punctual.prove(punctual.replay(path), deadlines={"task-0": 1000})
    with pytest.raises(punctual.UsageError, match="from_: expected a time"):
        punctual.jobs(path, from_=1)
    with pytest.raises(punctual.UsageError, match="no recording is given"):
        punctual.summarize([])


def test_paths_are_text_or_bytes(recordings, tmp_path):
    path = recordings()
    model = punctual.replay(path)
    assert punctual.replay(os.fsencode(path)) == punctual.replay([str(path)]) == model
    file = os.fsencode(tmp_path / "a.timing.json")
    punctual.write_model(model, file)
    assert punctual.read_model(file) == model
    expected = r"expected a path \(str, bytes or os.PathLike\)"
    with pytest.raises(TypeError, match=f"{expected}, or a list of them, not int"):
        punctual.replay(5)
    with pytest.raises(TypeError, match=f"{expected} in the list, not int"):
        punctual.replay([path, 5])
    with pytest.raises(TypeError, match=f"{expected}, not int"):
        punctual.read_model(5)
    with pytest.raises(TypeError, match="expected a timing model as a dict, or a path"):
        punctual.prove(5)


def test_damage_is_a_warning(recordings, tmp_path):
    import shutil

    path = tmp_path / "damaged"
    shutil.copytree(recordings(activations=20_000), path)
    stream = path / "stream_0"
    contents = bytearray(stream.read_bytes())
    contents[len(contents) // 2] ^= 0xFF
    stream.write_bytes(contents)
    with pytest.warns(punctual.PunctualWarning, match="stream_0, byte"):
        model = punctual.replay(path)
    assert model["threads"]["lost_records"] > 0
    # pyproject.toml turns these warnings into exceptions.
    with pytest.raises(punctual.PunctualWarning):
        punctual.replay(path)


def test_hints_go_to_the_log(recordings, caplog):
    with caplog.at_level(logging.INFO, logger="punctual"):
        punctual.summarize(recordings(), threads="nobody")
    assert "no thread matches threads" in caplog.text


INTERRUPTED = """
import os, signal, sys, threading, time
import punctual

def interrupt():
    # Once the work has begun: it has a thread besides these two.
    while len(os.listdir("/proc/self/task")) < 3:
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
try:
    WORK
except KeyboardInterrupt:
    print("interrupted")
"""


# Each would take half a minute or more.
WORKS = [
    "punctual.replay([sys.argv[1]] * 2_000, workers=1)",
    "punctual.extract(range(10_000_000_000, 10_400_000_000, 1_000), curve_horizon=100_000)",
]


@pytest.mark.parametrize("work", WORKS)
def test_control_c_stops_the_work(work, recordings):
    command = [sys.executable, "-c", INTERRUPTED.replace("WORK", work), recordings()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.stdout.startswith("interrupted"), done.stderr


def test_work_leaves_the_lock_to_others(recordings):
    # A second thread of Python gets on while the first one replays.
    path = recordings(activations=400_000, threads=3)
    counted, ended = [], threading.Event()
    worker = threading.Thread(target=lambda: (punctual.replay(path, workers=1), ended.set()))
    worker.start()
    while not ended.is_set():
        counted.append(None)
    worker.join()
    assert len(counted) > 1_000


def test_threads_work_at_once(recordings):
    found = []
    path = recordings()
    threads = [threading.Thread(target=lambda: found.append(punctual.replay(path))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(model == found[0] for model in found)
