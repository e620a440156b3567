"""The notebooks of docs/notebooks run, and what they show is in them."""

import importlib.util
import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs_and_was_run(path: Path) -> None:
    spec = importlib.util.spec_from_file_location("execute", FOLDER / "execute.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kept, notebook = json.loads(path.read_text()), json.loads(path.read_text())
    module.execute(notebook)
    for was, now in zip(kept["cells"], notebook["cells"], strict=True):
        if was["cell_type"] == "code":
            kinds = [[output["output_type"] for output in cell["outputs"]] for cell in (was, now)]
            assert kinds[0] == kinds[1], "".join(was["source"])
            assert was["execution_count"] == now["execution_count"]
