"""What the tests share: simulated recordings, the command, reasons to skip."""

import json
import os
import subprocess
from pathlib import Path

import pytest

import punctual

# The folder of built programs.
BUILT = Path(os.environ.get("PUNCTUAL_BUILT", "target/debug")).absolute()
ROOT = Path(__file__).absolute().parents[3]


class Recordings:
    """Recordings of simulated machines, made once each."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, machine=0, activations=3_000, threads=6):
        path = self.folder / f"machine{machine}-{activations}-{threads}.recording"
        if not path.exists():
            generate = BUILT / "examples" / "generate"
            numbers = map(str, (activations, threads, machine))
            subprocess.run([generate, path, *numbers], check=True, capture_output=True)
        return path


@pytest.fixture(scope="session")
def recordings(tmp_path_factory):
    return Recordings(tmp_path_factory.mktemp("recordings"))


def pinned(model):
    """With all its threads on one processor, where bounds of their responses exist."""
    for task in punctual.tasks(model):
        task["affinity"] = "0"
    return model


@pytest.fixture(scope="session")
def command():
    """Runs `punctual`, and returns what it printed: its errors, if it is to fail."""

    def run(*arguments, fails=False):
        done = subprocess.run([BUILT / "punctual", *map(str, arguments)], capture_output=True, text=True)
        assert (done.returncode != 0) == fails, done.stderr
        return done.stderr if fails else done.stdout

    return run


@pytest.fixture(scope="session")
def command_json():
    """The JSON that `punctual` prints; of a failed proof, too."""

    def run(*arguments):
        done = subprocess.run([BUILT / "punctual", *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode in (0, 6), done.stderr
        return json.loads(done.stdout)

    return run


def pytest_terminal_summary(terminalreporter):
    """What was skipped, a line each; and the total in the words of cargo test, for scripts/test."""
    stats = terminalreporter.stats
    for report in stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        terminalreporter.write_line(f"SKIPPED: python {report.nodeid}: {reason.removeprefix('Skipped: ')}")
    passed, skipped = len(stats.get("passed", [])), len(stats.get("skipped", []))
    failed = len(stats.get("failed", [])) + len(stats.get("error", []))
    word = "FAILED" if failed else "ok"
    # The lines above are subtracted from what passed.
    terminalreporter.write_line(f"test result: {word}. {passed + skipped} passed; {failed} failed; 0 ignored")
