"""Executes a notebook's cells and writes what they show into it, so that it can be read without being run.

    python docs/notebooks/execute.py docs/notebooks/first-look.ipynb

As Jupyter does for what these notebooks use (nbformat 4.5: printed text, the last expression's value, matplotlib's figures),
without Jupyter's forty packages; Jupyter opens and runs them as well.
"""

import ast
import base64
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")
from matplotlib import pyplot

DOTS_PER_INCH = 72


def execute(notebook: dict[str, Any]) -> None:
    """Runs the code cells in order, in a folder of their own, and puts their outputs into them."""
    names: dict[str, Any] = {"__name__": "__main__"}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
            for count, cell in enumerate(cells, 1):
                cell["execution_count"] = count
                cell["outputs"] = run("".join(cell["source"]), names, count)
        finally:
            os.chdir(before)


def run(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """One cell; gives its outputs."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        exec(compile(tree, f"cell {count}", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {count}", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": lines(printed.getvalue())})
    for number in pyplot.get_fignums():
        png = io.BytesIO()
        pyplot.figure(number).savefig(png, format="png", dpi=DOTS_PER_INCH)
        data = {"image/png": base64.b64encode(png.getvalue()).decode()}
        outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
    pyplot.close("all")
    is_quiet = source.rstrip().endswith(";") or type(value).__module__.startswith("matplotlib")
    if value is not None and not is_quiet:
        result = {"output_type": "execute_result", "execution_count": count, "metadata": {}}
        outputs.append({**result, "data": {"text/plain": lines(repr(value))}})
    return outputs


def lines(text: str) -> list[str]:
    return text.rstrip("\n").splitlines(keepends=True)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name).resolve()
        notebook = json.loads(path.read_text())
        execute(notebook)
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
