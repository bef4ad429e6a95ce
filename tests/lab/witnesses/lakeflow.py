"""LeoneGarage's Informix connector for Lakeflow, from a folder that the environment names.

Rule: `LAKEFLOW` is where LeoneGarage/lakeflow-community-connectors (branch informix) lies. It has a
licence of its own, so nothing of it is part of this project and nothing fetches it: lakeflow_program.py
calls the methods of its bridge in a process of its own. Its author runs it on live 14.10 and 15.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.witnesses.jars import NotHere
from lab.witnesses.programs import Program, started
from lab.witnesses.served import DATABASE, LOCALE, PASSWORD, USER

_PROGRAM = Path(__file__).with_name("lakeflow_program.py")
MOST_RECORDS = 256  # of a poll: what it asks a session for by default


@contextmanager
def bridged(folder: Path, port: int) -> Iterator[Program]:
    """Connect through it for the length of a block."""
    place = os.environ.get("LAKEFLOW", "")
    if not (Path(place) / "src/databricks/labs/community_connector/sources/informix").is_dir():
        raise NotHere(
            "LAKEFLOW names no folder with LeoneGarage/lakeflow-community-connectors, branch informix"
        )
    options = {
        "hostname": "127.0.0.1",
        "port": str(port),
        "server": "informix",
        "database": DATABASE,
        "user": USER,
        "password": PASSWORD,
        "DB_LOCALE": LOCALE,
        "CLIENT_LOCALE": LOCALE,
        "encrypt": "false",
        "_informix.bypass.connection.capacity": "true",  # leases of connections need its own volume
    }
    environment = os.environ | {"PYTHONPATH": str(Path(place) / "src")}
    with started([sys.executable, str(_PROGRAM)], folder, environment) as program:
        program.ask("connect", options)
        yield program
