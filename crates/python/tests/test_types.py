"""Type hints say what is so."""

import subprocess
import sys
import types
import typing
from pathlib import Path

import pytest

import punctual
import punctual.types
from conftest import ROOT

PACKAGE = Path(punctual.__file__).parent


def run(*arguments):
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stdout + done.stderr


def test_types_of_models_are_those_of_the_schema():
    run(ROOT / "scripts" / "python-types", "--check")


def test_the_package_is_typed(tmp_path):
    # What only a cluster needs may not be there.
    missing = ["ray", "pyspark", "pyspark.sql"]
    settings = "[mypy]\nstrict = True\n" + "".join(
        f"[mypy-{name}]\nignore_missing_imports = True\nfollow_imports = skip\n" for name in missing
    )
    (tmp_path / "mypy.ini").write_text(
        settings
        + "[mypy-punctual.drivers.*]\ndisallow_untyped_decorators = False\ndisallow_untyped_calls = False\n"
    )
    run(
        "-m",
        "mypy",
        "--config-file",
        tmp_path / "mypy.ini",
        "-p",
        "punctual",
        "--cache-dir",
        tmp_path / "cache",
    )


def test_stubs_are_those_of_the_native_module(tmp_path):
    run("-m", "mypy.stubtest", "punctual._punctual", "--concise")


def test_users_see_types(tmp_path):
    (tmp_path / "use.py").write_text(
        "import punctual\n"
        "model = punctual.read_model('a')\n"
        "for task in punctual.tasks(model):\n"
        "    stream = punctual.primary(task)\n"
        "    assert stream is not None\n"
        "    reveal_type(stream['execution']['wcet_ns'])\n"
        "reveal_type(punctual.prove(model, deadlines={'*': '1ms'})['tasks'][0]['response_ns'])\n"
        "reveal_type(punctual.merge(map(punctual.summarize, ['a', 'b'])))\n"
        "punctual.replay(5)\n"
    )
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--cache-dir",
        tmp_path / "cache",
        tmp_path / "use.py",
    ]
    said = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path).stdout
    for kind in ('"list[int]"', '"int | None"', '"punctual._punctual.Summary"'):
        assert f"Revealed type is {kind}" in said.replace("builtins.", ""), said
    assert 'Argument 1 to "replay" has incompatible type "int"' in said and "Found 1 error" in said


def fits(value, kind, place):
    """Checks a value against a type: every field is there, and no other."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if typing.is_typeddict(kind):
        fields = typing.get_type_hints(kind)
        assert kind.__required_keys__ <= value.keys() <= fields.keys(), (place, value.keys())
        for name, part in value.items():
            fits(part, fields[name], f"{place}.{name}")
    elif origin is list:
        assert isinstance(value, list), place
        for part in value:
            fits(part, arguments[0], f"{place}[]")
    elif origin is typing.Literal:
        assert value in arguments, (place, value)
    elif origin in (typing.Union, types.UnionType):
        simple = [part for part in arguments if isinstance(part, type)]
        assert isinstance(value, tuple(simple)) or value in arguments, (place, value)
    else:
        assert isinstance(value, (int, float) if kind is float else kind), (place, value)


def test_results_are_of_their_types(recordings, tmp_path):
    if sys.version_info < (3, 10):
        pytest.skip("hints of results are written as of Python 3.10")
    (tmp_path / "contract.toml").write_text('[[task]]\nname = "thread-1000"\nwcet = "1us"\n')
    paths = [recordings(machine) for machine in (1, 2)]
    model = punctual.replay(paths[0])
    fleet = punctual.merge(map(punctual.summarize, paths))
    fits(model, punctual.types.TimingModel, "model")
    fits(fleet.model(), punctual.types.TimingModel, "fleet")
    fits(fleet.runs, list[punctual.types.Run], "runs")
    fits(fleet.blame(), list[punctual.types.Blame], "blame")
    for options in ({}, {"sensitivity": True, "assign": True}):
        fits(punctual.prove(model, **options), punctual.types.Proof, "proof")
    checked = punctual.check(tmp_path / "contract.toml", paths[0])
    assert checked["inputs"][0]["tasks"][0]["terms"][0]["examples"]
    fits(checked, punctual.types.Checked, "checked")
