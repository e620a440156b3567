"""The notebooks of docs/notebooks run, and what they show is in them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs_and_was_run(path: Path, tmp_path: Path) -> None:
    copy = shutil.copy(path, tmp_path)
    # In a process of its own: it records itself, and stays in the session that it was recorded in.
    subprocess.run([sys.executable, FOLDER / "execute.py", copy], check=True)
    kept, notebook = json.loads(path.read_text()), json.loads(Path(copy).read_text())
    for was, now in zip(kept["cells"], notebook["cells"], strict=True):
        if was["cell_type"] == "code":
            kinds = [[output["output_type"] for output in cell["outputs"]] for cell in (was, now)]
            assert kinds[0] == kinds[1], "".join(was["source"])
            assert was["execution_count"] == now["execution_count"]
