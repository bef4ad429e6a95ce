"""The demo's terminal: a real run of it, its last live picture and its summary, exported by rich."""

from __future__ import annotations

import html
import io
import re
import sys
from pathlib import Path

from rich.console import Console

from informix_cdc.demo import demo, view
from informix_cdc.demo.demo import DemoSettings

COLUMNS, LINES = 96, 26
_CHARACTER = 12.2  # the width that rich gives one character
_RUN = re.compile(
    r'(<text class="demo-r\d+" x=")([\d.]+)(" y="[\d.]+" textLength=")([\d.]+)("[^>]*>)([^<]*)</text>'
)
_BLANK = "&#160;"


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
    return for_every_renderer(console.export_svg(title="make demo", unique_id="demo"))


def for_every_renderer(picture: str) -> str:
    """Return rich's SVG with blanks as positions instead of characters.

    librsvg, which GitLab and many viewers use, ignores `textLength` and draws a text that begins with
    blanks without them. So each word is a text of its own, at its own place. Ligatures are off: with
    them Fira Code shows 0x484a4 as a product.
    """
    whole = picture.replace("font-variant-east-asian: full-width;", "font-variant-ligatures: none;")
    return _RUN.sub(_words, whole)


def _words(run: re.Match[str]) -> str:
    before_x, x, before_length, _, rest, content = run.groups()
    words, column = list[str](), 0
    for piece in re.split(rf"((?:{_BLANK})+)", content):
        length = len(html.unescape(piece))
        if piece and not piece.startswith(_BLANK) and piece.strip():
            place, width = float(x) + column * _CHARACTER, length * _CHARACTER
            words.append(f"{before_x}{place:g}{before_length}{width:g}{rest}{piece}</text>")
        column += length
    return "".join(words)


def main(target: Path) -> None:
    target.write_text(demo_screen(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
