"""The examples of the documents do what they say."""

import doctest
import re

import pytest

from conftest import ROOT

PAGES = ["docs/python.md"]


@pytest.mark.parametrize("page", PAGES)
def test_examples(page, recordings, tmp_path, monkeypatch):
    """All examples of a page, one after the other, where the page says that their files are."""
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(["monday", "tuesday"], 1):
        (tmp_path / f"{name}.recording").symlink_to(recordings(number, activations=6_000))
    text = (ROOT / page).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    examples = "\n".join(blocks)
    assert examples.count(">>>") >= 20
    test = doctest.DocTestParser().get_doctest(examples, {}, page, page, 0)
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)
