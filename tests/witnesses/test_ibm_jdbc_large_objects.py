"""IBM's JDBC driver reads what TEXT and BYTE columns hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from informix_capture_client.emulator import keep_rows
from witnesses.jdbc import VERSIONS, conversing, url
from witnesses.served import DATABASE, PASSWORD, USER, served

pytestmark = pytest.mark.witness
FILES = f"{DATABASE}:informix.files"
SIZES = (None, 0, 1, 100_000)


@pytest.mark.parametrize("version", VERSIONS)
def test_text_and_byte_of_any_length_are_selected_as_they_are(version: str, tmp_path: Path) -> None:
    texts = [None if size is None else ("page " * size)[:size] for size in SIZES]
    pictures = [None if size is None else bytes(n % 251 for n in range(size)) for size in SIZES]
    with served() as (server, port), conversing(version, tmp_path) as talk:
        server.create_table(FILES, "id INTEGER, page TEXT, picture BYTE")
        keep_rows(server)
        with server.transaction() as tx:
            for number, (page, picture) in enumerate(zip(texts, pictures, strict=True)):
                tx.insert(FILES, {"id": number, "page": page, "picture": picture})
        talk.ask("connect", url(port, DATABASE), USER, PASSWORD)

        rows = talk.rows("select page, picture from files order by id")

    shown = [None if picture is None else picture.hex() for picture in pictures]
    assert rows == [list(row) for row in zip(texts, shown, strict=True)]
