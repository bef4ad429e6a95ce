"""The demo's terminal: a real run of it, its last live picture and its summary, exported by rich."""

from __future__ import annotations

import io
import sys
from pathlib import Path

from rich.console import Console

from informix_cdc.demo import demo, view
from informix_cdc.demo.demo import DemoSettings

COLUMNS, LINES = 96, 26


class _LastPicture(view.LiveView):
    """Draws nowhere; the last picture is printed when the view is left."""

    def __enter__(self) -> _LastPicture:
        return self

    def __exit__(self, *_error: object) -> None:
        self.console.print(self._last)

    def refresh(self, elapsed: float) -> None:
        self._last = self._picture(elapsed)

    _last: object = ""


def demo_screen(seconds: float = 15.0) -> str:
    """Run the demo, which starts Spark; return its screen as SVG.

    Raises:
        RuntimeError: not every row arrived as committed.
    """
    console = Console(
        record=True,
        force_terminal=True,
        color_system="truecolor",
        width=COLUMNS,
        height=LINES,
        file=io.StringIO(),
        highlight=False,
    )
    demo.Console = lambda **_settings: console  # type: ignore[assignment,misc]
    demo.view_for = _LastPicture  # type: ignore[assignment]
    if demo.run(DemoSettings(seconds=seconds, transactions_per_second=20.0, seed=7)):
        raise RuntimeError("the demo did not end well")
    return console.export_svg(title="make demo", unique_id="demo")


def main(target: Path) -> None:
    target.write_text(demo_screen(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
