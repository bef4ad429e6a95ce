"""Run the notebook of examples/ cell by cell, as Jupyter would, without Jupyter.

python -m manual.notebooks NOTEBOOK      run it and write what the cells print into it
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def texts_of(notebook: dict[str, Any]) -> list[str]:
    """Return what each cell of code printed when the notebook was saved."""
    return [
        "".join(line for output in cell["outputs"] for line in output["text"])
        for cell in code_cells(notebook)
    ]


def run(notebook: dict[str, Any]) -> Iterator[str]:
    """Run the cells of code in one namespace; yield what each prints."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(code_cells(notebook), start=1):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
        yield printed.getvalue()


def main(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell, text in zip(code_cells(notebook), run(notebook), strict=True):
        lines = text.splitlines(keepends=True)
        cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
