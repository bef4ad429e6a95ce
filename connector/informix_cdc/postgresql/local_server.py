"""A PostgreSQL server of one's own, for the demo and for tests: where initdb is found.

Rule: it has one folder, which is removed with it, and is reached by a socket in it: only the user who
started it may connect, without a password. PostgreSQL refuses to run as root, so that root starts it as
`postgres` or `nobody`.

Source: PostgreSQL 17, "initdb", "postgres", "Peer Authentication".
"""

from __future__ import annotations

import contextlib
import getpass
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

_START_SECONDS = 60.0
_DEBIAN = "/usr/lib/postgresql"  # has a folder for each version, which is not in the path
_UNSAFE_AND_QUICK = {"fsync": "off", "shared_buffers": "64MB", "max_connections": "40"}


def find_programs() -> Path | None:
    """Return the folder with initdb and postgres of the newest version; None if there is none."""
    versions = sorted(Path(_DEBIAN).glob("*/bin"), key=lambda each: float(each.parent.name))
    known = shutil.which("initdb")
    folders = [*([Path(known).resolve().parent] if known else []), *reversed(versions)]
    return next((each for each in folders if (each / "initdb").exists()), None)


@dataclass(slots=True)
class LocalServer:
    """A server in a folder.

    Args:
        folder: with the data in `data`, and the socket.
        programs: folder of the server's programs.
        user: who runs it; None: who starts it.
    """

    folder: Path
    programs: Path
    user: str | None
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def parameters(self) -> dict[str, str]:
        """What a client of this host needs besides a database."""
        return {"host": str(self.folder), "user": getpass.getuser()}

    @property
    def address(self) -> str:
        """The connection string of its database `postgres`."""
        return f"host={self.folder} user={getpass.getuser()} dbname=postgres"

    def start(self, settings: Mapping[str, str] | None = None) -> None:
        """Start it, and return when it answers.

        Args:
            settings: of postgresql.conf, for this run.
        """
        import psycopg

        wanted = {"listen_addresses": "", "unix_socket_directories": str(self.folder)}
        wanted |= {**_UNSAFE_AND_QUICK, **(settings or {})}
        given = [part for name, value in wanted.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self.programs / "postgres", "-D", self.folder / "data", *given],
                stdout=log,
                stderr=log,
                user=self.user,
                start_new_session=True,  # Ctrl-C is for who started it
            )
        for attempt in Retrying(
            retry=retry_if_exception_type(psycopg.OperationalError),
            stop=stop_after_delay(_START_SECONDS),
            wait=wait_fixed(0.05),
            reraise=True,
        ):
            with attempt:
                psycopg.connect(self.address).close()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT ends connections, SIGQUIT is like a crash."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(how)
            self._process.wait()
            self._process = None

    def copy(self, folder: Path) -> LocalServer:
        """Return a standby of this server, which runs."""
        self._prepared(folder)
        connection, data = f"host={self.folder} user={getpass.getuser()}", folder / "data"
        _run(self.programs / "pg_basebackup", "-d", connection, "-D", data, "-R", "-c", "fast")
        if self.user is not None:
            for place in (data, *data.rglob("*")):
                shutil.chown(place, self.user)
        return LocalServer(folder, self.programs, self.user)

    def create(self) -> None:
        """Make the data folder, for a superuser with the name of who starts it."""
        self._prepared(self.folder)
        _run(
            *(self.programs / "initdb", "-D", self.folder / "data", "-U", getpass.getuser()),
            *("-A", "peer", "-E", "UTF8", "--locale", "C", "--no-sync"),
            user=self.user,
        )
        me, data = getpass.getuser(), self.folder / "data"
        who = "peer map=own"
        (data / "pg_hba.conf").write_text(f"local all all {who}\nlocal replication all {who}\n")
        # A standby connects as who runs it.
        (data / "pg_ident.conf").write_text(f"own {me} {me}\nown {self.user or me} {me}\n")

    def _prepared(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        if self.user is not None:
            shutil.chown(folder, self.user)


def _run(program: Path, *given: object, user: str | None = None) -> None:
    line = [str(program), *map(str, given)]
    done = subprocess.run(
        line, user=user, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode:
        raise OSError(f"{program.name} has failed: {done.stdout.decode(errors='replace')}")


@contextlib.contextmanager
def local_server(programs: Path) -> Iterator[LocalServer]:
    """Run a server in a folder of its own, which is removed at the end.

    Args:
        programs: as `find_programs` returns it.

    Raises:
        OSError: it cannot be started.
    """
    folder = Path(tempfile.mkdtemp(prefix="informix-cdc-pg-"))  # the path of a socket is short
    made = LocalServer(folder, programs, _other_user())
    try:
        made.create()
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _other_user() -> str | None:
    """Return who runs the server in place of root."""
    if os.getuid() != 0:
        return None
    known = {each.pw_name for each in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in known)
