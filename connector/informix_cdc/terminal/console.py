"""The console that commands print to: what it is given is shown, and never obeyed, by the terminal.

Rule: escaping happens where rich makes pieces of text out of anything, so that no table, line or live
view is forgotten. A `Text` in a table may be cut at its column's width, which rich has measured before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from informix_capture_client.printable import printable


class PlainConsole(Console):
    """A console of rich that writes control characters out; rich strips only some of them."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Yield the pieces of something, those that come from rich itself as they are."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else piece._replace(text=printable(piece.text))

    def render_str(self, text: str, **settings: Any) -> Text:  # noqa: ANN401 - those of rich
        """Return a text as rich takes it, escaped before its width is measured."""
        return super().render_str(printable(text), **settings)


def plain_console(**settings: Any) -> Console:  # noqa: ANN401 - those of rich
    """Return a console that takes text as text: no markup, no emoji, no colours of rich's own."""
    return PlainConsole(highlight=False, markup=False, emoji=False, **settings)
