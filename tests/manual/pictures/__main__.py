"""Draw all pictures of the manual anew: `make docs`.

python -m manual.pictures            the drawn ones
python -m manual.pictures demo       the demo's terminal too: it runs the demo, half a minute
"""

from __future__ import annotations

import sys

from manual.pictures.files import FOLDER, drawn

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in drawn().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    if "demo" in sys.argv[1:]:
        from manual.pictures.demo_screen import main

        main(FOLDER / "demo.svg")
