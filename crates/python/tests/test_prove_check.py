"""Proofs and checks."""

from datetime import timedelta

import pytest

import punctual
from conftest import pinned


@pytest.fixture(scope="module")
def model(recordings):
    return punctual.replay(recordings(activations=6_000))


@pytest.fixture(scope="module")
def file(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "robot.timing.json"
    punctual.write_model(model, path)
    return path


def test_a_proof_is_that_of_the_command(model, file, command_json):
    same = command_json(
        *("prove", file, "--deadline", "thread-100[0-3]=15ms", "--margin", "10%", "--json"),
        *("--what-if", "thread-1005.wcet=-20%", "--sensitivity", "--assign"),
    )
    options = {
        "deadlines": {"thread-100[0-3]": "15ms"},
        "margin": 10,
        "what_if": "thread-1005.wcet=-20%",
        "sensitivity": True,
        "assign": True,
    }
    assert punctual.prove(file, **options) == same
    assert punctual.prove(model, **options) == same
    options["deadlines"] = {"thread-100[0-3]": timedelta(milliseconds=15)}
    assert punctual.prove(model, **options) == same


def test_an_unproven_deadline_is_a_result(model):
    proof = punctual.prove(model, deadlines={"*": "1us"}, threads="thread-1000")
    assert not proof["holds"]
    verdicts = {task["name"]: task["verdict"] for task in proof["tasks"]}
    assert verdicts["thread-1000"] == "not proven" and verdicts["thread-1001"] == "not asked for"


def test_what_cannot_be_proven_is_said(model):
    wrong = [
        ({"deadlines": {"nobody": "1ms"}}, punctual.TargetError, "no real-time thread of the model matches"),
        ({"deadlines": {"*": "much"}}, punctual.UsageError, 'deadlines: "much": expected seconds'),
        ({"deadlines": {"[": "1ms"}}, punctual.UsageError, "is not a pattern of thread names"),
        ({"deadlines": {"*": timedelta(0)}}, punctual.UsageError, "deadlines: must be longer than zero"),
        ({"margin": 2_000}, punctual.UsageError, "margin: expected 0% to 1000%"),
        ({"what_if": "x.cost=1%"}, punctual.UsageError, "what_if: .* expected THREAD.wcet"),
        ({"platform": model}, punctual.FileError, "the timing model has no section `latency`"),
    ]
    for options, kind, message in wrong:
        with pytest.raises(kind, match=message):
            punctual.prove(model, **options)


CONTRACT = """
[[task]]
name = "thread-1000"
policy = "SCHED_FIFO"
wcet = "1us"
"""


def test_a_check_is_that_of_the_command(recordings, file, model, tmp_path, command_json, command):
    contract = tmp_path / "robot.contract.toml"
    contract.write_text(CONTRACT)
    path = recordings(activations=6_000)
    checked = punctual.check(contract, [path, file])
    assert not checked["kept"] and checked["violations"] > 0
    message = command("check", contract, path, file, "--json", fails=True)
    assert f"{checked['violations']:,} violations" in message
    assert punctual.check(contract, path)["inputs"] == checked["inputs"][:1]
    (of_model,) = punctual.check(contract, model)["inputs"]
    assert {**of_model, "input": str(file)} == checked["inputs"][1]


def test_a_recording_keeps_to_its_own_model(recordings, model):
    proof = punctual.prove(pinned(punctual.replay(recordings(activations=6_000))))
    checked = punctual.check(model, recordings(activations=6_000), bounds=proof)
    assert checked["kept"], checked
    assert "bound" in {term["term"] for task in checked["inputs"][0]["tasks"] for term in task["terms"]}


def test_what_cannot_be_checked_is_said(recordings, model, tmp_path):
    (tmp_path / "bad.toml").write_text("[[task]]\nnam = 1\n")
    with pytest.raises(punctual.FileError, match=r"bad.toml is not a valid contract: line \d"):
        punctual.check(tmp_path / "bad.toml", recordings())
    with pytest.raises(punctual.UsageError, match="from_ and until are for recordings"):
        punctual.check(model, model, from_="1s")
    with pytest.raises(punctual.FileError, match="the proof has no proven bounds"):
        punctual.check(model, model, bounds={"tasks": []})
