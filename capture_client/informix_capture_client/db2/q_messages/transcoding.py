"""Messages of code pages in which a delimiter's byte may be part of a character: made UTF-8 first.

Rule: what is refused is given back in the bytes that came. A message whose text would not become the
same bytes again is refused as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator

from informix_capture_client.db2.changes import Changes
from informix_capture_client.db2.code_pages import CodePage
from informix_capture_client.db2.q_messages.messages import MessageReader
from informix_capture_client.db2.refused_bytes import BadValue, Refusals, Values


class TranscodedReader:
    """Reads messages that are text of such a code page."""

    def __init__(self, reader: MessageReader, page: CodePage) -> None:
        self._reader = reader
        self._page = page

    def changes(self, values: Values, refusals: Refusals) -> Iterator[Changes | None]:
        """Yield the changes of values, in order; None where bytes were refused only.

        Raises:
            ProtocolViolation: a record is bad, and bad ones are not to come as rows.
        """
        texts = [self._utf8(values, number, refusals) for number in range(len(values.names))]
        made = Values.of(texts, list(values.names))
        found = Refusals(made, is_row=True)
        for changes in self._reader.changes(made, found):
            self._hand_on(found, values, refusals)
            yield changes
        self._hand_on(found, values, refusals)

    def finish(self, refusals: Refusals) -> Iterator[Changes | None]:
        """Yield nothing: no message waits for another one."""
        yield from ()

    def _utf8(self, values: Values, number: int, refusals: Refusals) -> bytes:
        start, end = values.bounds[number : number + 2].tolist()
        data = values.data[start:end]
        try:
            text = self._page.decode(data)
            if self._page.encode(text) == data:
                return text.encode("utf-8")
            reason = f"the text is not {self._page.name} in its usual form"
        except (BadValue, UnicodeError) as bad:
            reason = getattr(bad, "reason", "bad text")
        refusals.refuse(start, end, reason, 0)
        return b""

    def _hand_on(self, found: Refusals, values: Values, refusals: Refusals) -> None:
        made = found.values
        for each in found.taken():
            number = int(made.which_one(each.start))
            first = int(made.bounds[number])
            before = self._page.encode(made.data[first : each.start].decode("utf-8"))
            data = self._page.encode(made.data[each.start : each.end].decode("utf-8"))
            start = int(values.bounds[number]) + len(before)
            refusals.refuse(start, start + len(data), each.reason, each.record)
