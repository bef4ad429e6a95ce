"""A conversation with a server through IBM's JDBC driver: `java/Conversation.java` does the talking.

Rule: what the driver throws is raised here with its numbers, so that a test reads like a program.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.witnesses.java_programs import compiled, running
from lab.witnesses.programs import Program

# Oldest and newest of those that were tried when the wire was built; all speak the same protocol.
VERSIONS = ("4.50.11", "15.0.1.0")
ALL_VERSIONS = ("4.50.11", "4.50.12", "4.50.13.1", "15.0.1.0")
_PAM = {"4": "PamOf4", "1": "PamOf15"}


class Refused(Exception):
    """What the driver threw: SQL code, and the codes of what caused it."""

    def __init__(self, facts: dict[str, Any]) -> None:
        super().__init__(f"{facts.get('code')}: {facts['message']} ({facts['class']})")
        self.code: int | None = facts.get("code")
        self.message: str = facts["message"]
        self.facts = facts

    @property
    def codes(self) -> list[int]:
        """The codes from the outermost exception to the innermost."""
        found, facts = [], self.facts
        while facts:
            found += [facts["code"]] if "code" in facts else []
            facts = facts.get("next") or facts.get("cause") or {}
        return found


@dataclass
class Conversation:
    """One connection at a time, through one version of the driver."""

    program: Program
    version: str

    def ask(self, verb: str, *arguments: object) -> Any:
        """Return the answer to a verb of Conversation.java."""
        self.program.say("\t".join([verb, *map(str, arguments)]))
        line = self.program.next_line()
        if "error" in line:
            raise Refused(line["error"])
        return line["answer"]

    def rows(self, sql: str, *bound: str) -> list[list[Any]]:
        """Return the rows of a query."""
        answer = self.ask("bound", sql, *bound) if bound else self.ask("execute", sql)
        rows: list[list[Any]] = answer["rows"]
        return rows

    def count(self, sql: str, *bound: str) -> int:
        """Return how many rows a statement touched."""
        answer = self.ask("bound", sql, *bound) if bound else self.ask("execute", sql)
        count: int = answer["count"]
        return count


def url(port: int, database: str, *properties: str, server: str = "informix") -> str:
    """Return a JDBC URL."""
    settings = [
        f"INFORMIXSERVER={server}",
        "DB_LOCALE=en_US.utf8",
        "CLIENT_LOCALE=en_US.utf8",
        *properties,
    ]
    return f"jdbc:informix-sqli://127.0.0.1:{port}/{database}:{';'.join(settings)}"


@contextmanager
def conversing(version: str, folder: Path, *system: str) -> Iterator[Conversation]:
    """Start a conversation through a version of the driver; it is not connected yet."""
    path = compiled([f"jdbc-{version}"], "Json", "Values", "Conversation", pam_class(version))
    with running(path, "Conversation", folder=folder, properties=system) as program:
        yield Conversation(program, version)


def pam_class(version: str) -> str:
    """Return our class that answers challenges; its interface has changed from 4 to 15."""
    return _PAM[version[0]]
