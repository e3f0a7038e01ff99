"""The notebooks of `examples/notebooks` are kept without outputs, and each runs to its end in a kernel of Jupyter (long: half a minute each)."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_snippets import ROOT
from tests.harness.kernel import kernel

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def cells(notebook: Path, kind: str) -> list[dict[str, Any]]:
    """The cells of one kind, ``code`` or ``markdown``."""
    return [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == kind]


def test_there_is_a_notebook_for_streaming_and_one_for_replay() -> None:
    assert [notebook.stem for notebook in NOTEBOOKS] == ["replay", "streaming"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_is_kept_without_outputs_for_any_python_3(notebook: Path) -> None:
    document = json.loads(notebook.read_text())
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    assert document["metadata"]["kernelspec"]["name"] == "python3"
    assert document["cells"][0]["cell_type"] == "markdown"
    assert document["cells"][0]["source"][0].startswith("# ")
    names = [cell["id"] for cell in document["cells"]]
    assert len(set(names)) == len(names)
    for cell in cells(notebook, "code"):
        assert (cell["outputs"], cell["execution_count"]) == ([], None), cell["source"]
        compile("".join(cell["source"]), notebook.name, "exec")


@pytest.mark.long
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_runs_to_its_end(notebook: Path, tmp_path: Path) -> None:
    with kernel(tmp_path) as run:
        for cell in cells(notebook, "code"):
            run("".join(cell["source"]))
