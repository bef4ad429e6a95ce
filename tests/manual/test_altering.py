"""The steps of the manual that alter a captured table are done as they are printed."""

from __future__ import annotations

import re
import shlex
import textwrap
from pathlib import Path

import pytest

from connector.commands.commands import run
from connector.table_changes.altering import Shop
from harness.capture.driving import drained
from harness.servers.in_process import InProcessConnection
from harness.servers.stores import DATABASE, PASSWORD, listening_stores
from informix_cdc.commands import row_logging
from manual.made_parts import ROOT

LOGIN = {"SERVER": "informix", "UID": "informix", "PWD": PASSWORD, "DB_LOCALE": "en_US.utf8"}
PAGE = ROOT / "docs" / "operations" / "alter-a-table.md"
FOLDER = "/lake"  # where the page has its files
ROWS_ANEW = "EXECUTE FUNCTION sysadmin:task('table update_ipa', 'orders', 'stores')"


class ShopOfThePage(Shop):
    """The query's files where the page has them, below a folder of the test."""

    @property
    def receipt(self) -> Path:
        return self.folder / "orders.receipt"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoints" / "orders"


def steps() -> list[tuple[str, str]]:
    """Return language and text of each block that the section prints, in its order."""
    section = PAGE.read_text().split("\n## Step by step, with a restart\n")[1].split("\n## ")[0]
    found = re.findall(r"^ *```(\w+)\n(.*?)```", section, re.DOTALL | re.MULTILINE)
    return [(language, textwrap.dedent(text).strip()) for language, text in found]


@pytest.mark.slow
def test_a_table_is_altered_by_the_steps_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_logging, "PAUSE_SECONDS", 0)
    (_, release), (_, alter), (_, acquire), (_, option) = steps()
    with listening_stores() as served:
        shop = ShopOfThePage(served, tmp_path)
        rows = shop.begin()
        for step in (release, alter, acquire):
            if step is alter:
                writer = InProcessConnection(served[0], LOGIN, DATABASE)
                writer.rows(step.removesuffix(";"))
                writer.rows(ROWS_ANEW)
                shop.priority = {"priority": 7}
                continue
            program, *arguments = shlex.split(step.replace(FOLDER, str(tmp_path)))
            assert program == "informix-cdc"
            done = run(served[1], *arguments)
            assert done.exit_code == 0, done.output
            shop.committed(("customers", 2))  # whose writers go on all the time
        shop.committed(("orders", 3))
        name, path = re.findall(r'"([^"]+)"', option.replace(FOLDER, str(tmp_path)))
        with shop.query(**{name: path}) as made:
            more, end = shop.until_back(made, shop.offsets[-1])
            last, _ = drained(made, end, shop.committed(("orders", 4)))
    assert shop.delivered(rows + more + last) == shop.expected
    assert [row["orders"]["priority"] for row in last if row["orders"]] == [7, 7]


def test_the_page_prints_the_steps_in_their_order() -> None:
    assert [language for language, _ in steps()] == ["sh", "sql", "sh", "python"]
    assert f"`{ROWS_ANEW}`" in PAGE.read_text()
