"""Debezium's embedded engine: its jars, our small program around it, its properties.

Rule: the jars come from Maven Central when they are needed and stay in .rivals/, never shipped; IBM's
driver among them is run as it is.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lab.rivals.generator import CAPTURED, DATABASE, PASSWORD

ROOT = Path(__file__).parents[3]
HOME = ROOT / ".rivals"
VERSION = "3.5.0.Final"
JDBC = "15.0.1.0"

# Everything else is as Debezium's documentation has it by default.
NEEDED = {
    "name": "rival",
    "connector.class": "io.debezium.connector.informix.InformixConnector",
    "topic.prefix": "rival",
    "database.hostname": "127.0.0.1",
    "database.user": "informix",
    "database.password": PASSWORD,
    "database.dbname": DATABASE,
    "table.include.list": ",".join(f"{DATABASE}.informix.{table}" for table in CAPTURED),
    "snapshot.mode": "no_data",
    "decimal.handling.mode": "string",
    "converter.schemas.enable": "false",
    "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
    "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
}
# What its documentation offers against what its defaults lose or repeat.
RECOMMENDED = {
    "skipped.operations": "none",
    "cdc.stop.logging.on.close": "false",
    "offset.flush.interval.ms": "0",
}
SETTINGS: dict[str, Mapping[str, str]] = {"defaults": {}, "recommended": RECOMMENDED}


class NotHere(Exception):
    """What the comparison needs and this machine does not have."""


@dataclass(frozen=True)
class Peer:
    """One life after another of an engine: where it keeps its offsets, and how it is set."""

    folder: Path
    port: int
    settings: Mapping[str, str] = field(default_factory=dict)
    heap: str = ""

    def command(self, arguments: list[str]) -> list[str]:
        """Write the properties, and return the command of `Rival.java`."""
        properties = {
            **NEEDED,
            "database.port": str(self.port),
            "offset.storage.file.filename": str(self.folder / "offsets.dat"),
            "schema.history.internal.file.filename": str(self.folder / "schemas.dat"),
            **self.settings,
        }
        file = self.folder / "peer.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        java = ["java", *([f"-Xmx{self.heap}"] if self.heap else [])]
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=info"
        path = f"{HOME / 'classes'}:{HOME / 'jars'}/*"
        return [*java, quiet, "-cp", path, "Rival", str(file), *arguments]


def made_ready() -> None:
    """Fetch the jars and compile our program around them, once."""
    for tool in ("java", "javac", "mvn"):
        if shutil.which(tool) is None:
            raise NotHere(f"{tool} is not on PATH: Java 17 or later and Maven are needed")
    here = Path(__file__).parent
    wanted, there = (here / "pom.xml").read_text(), HOME / "jars" / "pom.xml"
    if not there.is_file() or there.read_text() != wanted:
        shutil.rmtree(HOME / "jars", ignore_errors=True)
        fetch = ["mvn", "-q", "-B", "-f", str(here / "pom.xml"), "dependency:copy-dependencies"]
        fetch += [f"-DoutputDirectory={HOME / 'jars'}", "-DincludeScope=runtime"]
        if subprocess.run(fetch, check=False).returncode:
            raise NotHere("Maven Central could not be reached, or lacks a jar of pom.xml")
        there.write_text(wanted)
    compile_ = ["javac", "-d", str(HOME / "classes"), "-cp", f"{HOME / 'jars'}/*"]
    subprocess.run([*compile_, str(here / "Rival.java")], check=True)
