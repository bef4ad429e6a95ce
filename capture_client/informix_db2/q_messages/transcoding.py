"""Messages of code pages in which a delimiter's byte may be part of a character: made UTF-8 first.

Rule: what is refused is given back in the bytes that came. A message whose text would not become the
same bytes again is refused as a whole.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from informix_db2.changes import Db2Changes
from informix_db2.code_pages import CodePage
from informix_db2.q_messages.messages import MessageReader
from informix_db2.refused_bytes import BadDb2Value, ColumnValues, Refusals


class TranscodedReader:
    """Reads messages that are text of such a code page."""

    def __init__(self, reader: MessageReader, page: CodePage) -> None:
        self._reader = reader
        self._page = page

    def changes(self, values: ColumnValues, refusals: Refusals) -> Iterator[Db2Changes | None]:
        """Yield the changes of values, in order; None where bytes were refused only.

        Raises:
            ProtocolViolation: a record is bad, and bad ones are not to come as rows.
        """
        texts = [self._utf8(values, number, refusals) for number in range(len(values.names))]
        made = ColumnValues.of(texts, list(values.names))
        found, places = Refusals(made, is_row=True), _Places(self._page, made, values)
        for changes in self._reader.changes(made, found):
            _hand_on(found, places, refusals)
            yield changes
        _hand_on(found, places, refusals)

    def finish(self, refusals: Refusals) -> Iterator[Db2Changes | None]:
        """Yield nothing: no message waits for another one."""
        yield from ()

    def _utf8(self, values: ColumnValues, number: int, refusals: Refusals) -> bytes:
        start, end = values.bounds[number : number + 2].tolist()
        data = values.data[start:end]
        try:
            text = self._page.decode(data)
            if self._page.encode(text) == data:
                return text.encode("utf-8")
            reason = f"the text is not {self._page.name} in its canonical form"
        except (BadDb2Value, UnicodeError) as bad:
            reason = getattr(bad, "reason", "bad text")
        refusals.refuse(start, end, reason, 0)
        return b""


class _Places:
    """Finds places of UTF-8 among the bytes that came; they are asked for in order.

    Each value is encoded once, on from the last place: what was encoded anew for each place would cost
    a time that grows with the square of the bytes.
    """

    def __init__(self, page: CodePage, made: ColumnValues, came: ColumnValues) -> None:
        self._page, self._made, self._came = page, made, came
        self._begin(0)

    def _begin(self, number: int) -> None:
        self._number = number
        self._at, self._found = int(self._made.bounds[number]), int(self._came.bounds[number])
        self._encoder = codecs.getincrementalencoder(self._page.name)()

    def of(self, number: int, at: int) -> int:
        """Return where a place of this value lies among the bytes that came."""
        if at == int(self._made.bounds[number + 1]):  # what the encoder still holds belongs to it
            return int(self._came.bounds[number + 1])
        if number != self._number or at < self._at:
            self._begin(number)
        text = self._made.data[self._at : at].decode("utf-8")
        self._at, self._found = at, self._found + len(self._encoder.encode(text))
        return self._found


def _hand_on(found: Refusals, places: _Places, refusals: Refusals) -> None:
    for each in found.taken():
        number = int(found.values.which_one(each.start))
        start = places.of(number, each.start)
        refusals.refuse(start, places.of(number, each.end), each.reason, each.record)
