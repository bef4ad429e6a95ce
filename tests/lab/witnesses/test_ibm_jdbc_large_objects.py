"""IBM's JDBC driver reads what TEXT and BYTE, BLOB and CLOB columns hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from informix_emulator import keep_rows
from lab.witnesses.jdbc import VERSIONS, conversing, url
from lab.witnesses.served import DATABASE, PASSWORD, USER, served

pytestmark = pytest.mark.witness
FILES = f"{DATABASE}:informix.files"
OBJECTS = f"{DATABASE}:informix.objects"
SIZES = (None, 0, 1, 100_000)


# 4.50.11 does not log in to an Informix 15: NumberFormatException, for its version
@pytest.mark.parametrize(
    ("version", "pose"),
    [*((version, "informix-14.10") for version in VERSIONS), ("15.0.1.0", "informix-15")],
)
def test_text_and_byte_of_any_length_are_selected_as_they_are(
    version: str, pose: str, tmp_path: Path
) -> None:
    texts = [None if size is None else ("page " * size)[:size] for size in SIZES]
    pictures = [None if size is None else bytes(n % 251 for n in range(size)) for size in SIZES]
    with served(poses_as=pose) as (server, port), conversing(version, tmp_path) as talk:
        server.create_table(FILES, "id INTEGER, page TEXT, picture BYTE")
        keep_rows(server)
        with server.transaction() as tx:
            for number, (page, picture) in enumerate(zip(texts, pictures, strict=True)):
                tx.insert(FILES, {"id": number, "page": page, "picture": picture})
        talk.ask("connect", url(port, DATABASE), USER, PASSWORD)

        rows = talk.rows("select page, picture from files order by id")

    shown = [None if picture is None else picture.hex() for picture in pictures]
    assert rows == [list(row) for row in zip(texts, shown, strict=True)]


@pytest.mark.parametrize("version", VERSIONS)
def test_blob_and_clob_are_measured_and_read_whole_and_from_a_place_on(
    version: str, tmp_path: Path
) -> None:
    contents = [bytes(33 + n % 90 for n in range(size)) for size in (2, 31, 32_001, 100_000)]
    with served() as (server, port), conversing(version, tmp_path) as talk:
        server.create_table(OBJECTS, "id INTEGER, picture BLOB, page CLOB")
        keep_rows(server)
        with server.transaction() as tx:
            tx.insert(OBJECTS, {"id": 0, "picture": None, "page": None})
            for number, content in enumerate(contents, 1):
                picture, page = server.sbspace.create(content), server.sbspace.create(content)
                tx.insert(OBJECTS, {"id": number, "picture": picture, "page": page})
        talk.ask("connect", url(port, DATABASE), USER, PASSWORD)

        rows = talk.ask("large objects", "select picture, page from objects order by id")

    assert rows == [
        [None, None],
        *(
            [
                [len(content), content.hex(), content[1:].hex()],
                [len(content), content.decode(), content[1:].decode()],
            ]
            for content in contents
        ),
    ]
