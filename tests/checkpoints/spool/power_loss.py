"""What a power loss may leave of a folder: derived from the order of writes, syncs and renames.

Rule: nothing is promised but what was synced. Since a file was last synced it may be as it was then,
empty, cut, full of zeros, or whole; since a folder was last synced each of its names may stand for what
it stood for then or at any time since. A file's sync says nothing of its name, and a folder's sync
nothing of the content of its files. File systems mostly promise more.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from informix_capture_client import failpoints

State = frozenset[tuple[str, bytes]]  # paths and contents
WATCHED = ("fsync", "replace", "unlink", "mkdir")  # functions of `os`


@dataclass(eq=False)
class _File:
    content: bytes = b""
    synced: bytes = b""

    def variants(self) -> Iterator[dict[str, bytes]]:
        cut, zeros = self.content[: len(self.content) // 2], bytes(len(self.content))
        for content in {self.content} | (
            set() if self.content == self.synced else {self.synced, b"", cut, zeros}
        ):
            yield {"": content}


@dataclass(eq=False)
class _Folder:
    """What each name has stood for since the last sync, the oldest first."""

    names: dict[str, list[_File | _Folder | None]] = field(default_factory=dict)

    def variants(self) -> Iterator[dict[str, bytes]]:
        each = [
            [(name, kept) for found in set(past) for kept in (found.variants() if found else [{}])]
            for name, past in self.names.items()
        ]
        for chosen in product(*each):
            yield {f"{name}/{path}": content for name, kept in chosen for path, content in kept.items()}


class PowerLoss:
    """Watches all that is done below a folder.

    Args:
        root: a folder whose own name is safe.
        announced: what has been promised by now; asked at every step.
    """

    def __init__(self, root: Path, announced: Callable[[], Any]) -> None:
        self._announced = announced
        self._path = root
        self._root = _Folder()
        self._by_number: dict[int, _File | _Folder] = {root.stat().st_ino: self._root}
        self.left: dict[tuple[State, Any], str] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Keep what a power loss at any step of the block may leave, in `left`."""
        with pytest.MonkeyPatch.context() as patched:
            for name in WATCHED:
                patched.setattr(os, name, self._watched(name, getattr(os, name)))
            patched.setattr(failpoints, "reached", self._lose)
            self._lose("begin")
            yield
            self._lose("end")

    def _watched(self, name: str, run: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            self._lose(f"before {name}")
            done = run(*arguments, **options)
            self._look()
            if name == "fsync":
                self._sync(os.fstat(arguments[0]))
            self._lose(f"after {name}")
            return done

        return call

    def _sync(self, facts: os.stat_result) -> None:
        synced = self._by_number.get(facts.st_ino)
        if isinstance(synced, _File):
            synced.synced = synced.content
        elif synced is not None:
            synced.names = {name: past[-1:] for name, past in synced.names.items() if past[-1]}

    def _look(self) -> None:
        alive = {self._path.stat().st_ino: self._root} | self._look_into(self._path, self._root)
        self._by_number = alive  # a number that is gone may be given to another file

    def _look_into(self, path: Path, folder: _Folder) -> dict[int, Any]:
        alive: dict[int, Any] = {}
        for name in {*folder.names, *(entry.name for entry in os.scandir(path))}:
            now = self._now(path / name, alive)
            past = folder.names.setdefault(name, [None])
            if past[-1] is not now:
                past.append(now)
        return alive

    def _now(self, path: Path, alive: dict[int, Any]) -> _File | _Folder | None:
        try:
            facts = path.stat()
        except FileNotFoundError:
            return None
        is_folder = stat.S_ISDIR(facts.st_mode)
        found = self._by_number.get(facts.st_ino) or (_Folder() if is_folder else _File())
        alive[facts.st_ino] = found
        if isinstance(found, _Folder):
            alive |= self._look_into(path, found)
        else:
            found.content = path.read_bytes()
        return found

    def _lose(self, step: str) -> None:
        """Write down every state in which the disk may be found."""
        self._look()
        announced = self._announced()
        for kept in self._root.variants():
            state = frozenset((path.rstrip("/"), content) for path, content in kept.items())
            self.left.setdefault((state, announced), step)


def restore(state: State, root: Path) -> None:
    """Make a folder look as a power loss has left it."""
    for name, content in state:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
