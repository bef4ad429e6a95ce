"""A server that the suite is put to: Informix itself, or the emulator behind one of our transports.

Rule: the suite speaks SQL and capture sessions only; whatever a server cannot do stands in its
`cannot`, with the reason that the skipped test prints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pytest

from informix_capture_client import statements
from informix_capture_client.dialects import DIALECTS
from informix_cdc.proving.scratch_database import RELEASE_ATTEMPTS, ScratchDatabase
from informix_cdc.proving.sql_text import ContractTable


@dataclass
class CaptureServer(ScratchDatabase):
    """One server under test.

    Attributes:
        driver: path of the ODBC driver library, "" where none is in play.
        sibling: the same server with a database of another locale, which it makes.
        add_user: makes an operating-system user, who can do nothing yet; where it can be done.
        cannot: what the suite must not ask of it -> why.
        place: where other clients find it, on a live server (`live.independent`).
    """

    driver: str = ""
    sibling: Callable[[str], CaptureServer] | None = None
    add_user: Callable[[str, str], None] | None = None
    cannot: Mapping[str, str] = field(default_factory=dict)
    place: Any = field(default=None, repr=False)

    def needs(self, *abilities: str) -> None:
        """Skip the test, with the reason, if the server lacks one of these."""
        for ability in abilities:
            if ability in self.cannot:
                pytest.skip(self.cannot[ability])

    def needs_captures_of_any_code_set(self) -> None:
        """Skip the test where captures connect to syscdcv1, which has one (decision 0024)."""
        if DIALECTS[self.dialect].capture_database:
            pytest.skip(f"captures of {self.dialect} connect to syscdcv1, which has one code set")

    def switch_log(self) -> None:
        """Begin the next log file (Administrator's Reference, SQL administration API, onmode l)."""
        self.run("EXECUTE FUNCTION sysadmin:task('onmode', 'l')")

    def overwrite_logs(self) -> bool:
        """Switch through all log files, and once more; tell whether the current one was overwritten."""
        with self.catalog() as catalog:
            before = catalog.current_position() >> 32
            with closing(self.connect(self.database)) as transport:
                files = len(transport.rows(statements.LOG_FILES))
            for _ in range(files + 1):
                self.switch_log()
                self.run("EXECUTE FUNCTION sysadmin:task('checkpoint')")  # frees what it holds
            return catalog.oldest_position() >> 32 > before

    def drop_tables(self, attempts: int = RELEASE_ATTEMPTS) -> list[ContractTable]:
        """Drop what tests have made, as far as the server lets us; what is left is nobody's."""
        left = super().drop_tables(attempts)
        self.tables.clear()
        return left
