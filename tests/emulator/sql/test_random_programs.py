"""Random programs of two sessions, against a small model: rows by key, and what undoes each change.

The model knows what is committed, what each session has open, and who has changed which key. From the
log alone the committed rows are computed a second time: both must be what SELECT finds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.sql.asking import NAMES, Asked
from informix_emulator import EmulatedServer
from informix_emulator.sql import open_session
from informix_emulator.sql_errors import SqlError

TABLE = "stores:informix.t"
KEYS = st.integers(0, 3)
VALUES = st.one_of(st.none(), st.integers(-5, 5))
STEPS = st.one_of(
    st.tuples(st.just("insert"), KEYS, VALUES),
    st.tuples(st.just("update"), KEYS, VALUES),
    st.tuples(st.just("move"), KEYS, KEYS),
    st.tuples(st.just("delete"), KEYS, st.none()),
    st.tuples(st.sampled_from(["begin", "commit", "rollback"]), st.none(), st.none()),
    st.tuples(st.sampled_from(["savepoint", "back"]), st.sampled_from(["a", "b"]), st.none()),
)
PROGRAMS = st.lists(st.tuples(st.sampled_from([0, 1]), STEPS), max_size=30)
SQL = {
    "insert": "INSERT INTO t VALUES ({0}, {1})",
    "update": "UPDATE t SET v = {1} WHERE k = {0}",
    "move": "UPDATE t SET k = {1} WHERE k = {0}",
    "delete": "DELETE FROM t WHERE k = {0}",
    "begin": "BEGIN WORK",
    "commit": "COMMIT WORK",
    "rollback": "ROLLBACK WORK",
    "savepoint": "SAVEPOINT {0}",
    "back": "ROLLBACK WORK TO SAVEPOINT {0}",
}
Rows = dict[int, int | None]


@dataclass
class Model:
    """What the rows must be; `rows` with what is open, `holders` who has changed a key."""

    rows: Rows = field(default_factory=dict)
    committed: Rows = field(default_factory=dict)
    open: list[bool] = field(default_factory=lambda: [False, False])
    undo: list[list[tuple[int, bool, int | None]]] = field(default_factory=lambda: [[], []])
    marks: list[dict[str, int]] = field(default_factory=lambda: [{}, {}])
    holders: dict[int, int] = field(default_factory=dict)

    def put(self, who: int, key: int, is_there: bool, value: int | None) -> None:
        """Change a key, and note how that is undone."""
        self.undo[who].append((key, key in self.rows, self.rows.get(key)))
        self.holders[key] = who
        self.set(key, is_there, value)

    def set(self, key: int, is_there: bool, value: int | None) -> None:
        """Change a key."""
        if is_there:
            self.rows[key] = value
        else:
            self.rows.pop(key, None)

    def back(self, who: int, count: int) -> None:
        """Undo down to so many changes."""
        while len(self.undo[who]) > count:
            self.set(*self.undo[who].pop())

    def end(self, who: int, *, is_committed: bool) -> None:
        """End a transaction."""
        if not is_committed:
            self.back(who, 0)
        for key in [key for key, holder in self.holders.items() if holder == who]:
            del self.holders[key]
            if key in self.rows:
                self.committed[key] = self.rows[key]
            else:
                self.committed.pop(key, None)
        self.undo[who].clear()
        self.marks[who].clear()
        self.open[who] = False

    def expected(self, who: int, step: tuple[str, object, object]) -> int:
        """Carry out a step; returns the number of the error that it must end with, or 0."""
        verb, key, value = step
        if verb in ("begin", "commit", "rollback", "savepoint", "back"):
            return self._control(who, verb, str(key))
        assert isinstance(key, int)
        error = self._change(who, verb, key, value)
        if not self.open[who]:
            self.end(who, is_committed=not error)
        return error

    def _control(self, who: int, verb: str, name: str) -> int:
        if verb == "begin":
            error = -535 if self.open[who] else 0
            self.open[who] = True
            return error
        if not self.open[who]:
            return -255
        if verb == "savepoint":
            self.marks[who].pop(name, None)
            self.marks[who][name] = len(self.undo[who])
        elif verb == "back":
            if name not in self.marks[who]:
                return -881
            names = list(self.marks[who])
            for later in names[names.index(name) + 1 :]:
                del self.marks[who][later]
            self.back(who, self.marks[who][name])
        else:
            self.end(who, is_committed=verb == "commit")
        return 0

    def _is_held(self, who: int, key: int) -> bool:
        return self.holders.get(key, who) != who

    def _change(self, who: int, verb: str, key: int, value: object) -> int:
        assert value is None or isinstance(value, int)
        if verb == "insert":
            return self._insert(who, key, value)
        if self._is_held(who, key) and (key in self.rows or key in self.committed):
            return -243
        if key in self.rows and verb == "move":
            return self._move(who, key, int(value or 0))
        if key in self.rows:
            self.put(who, key, verb == "update", value)
        return 0

    def _insert(self, who: int, key: int, value: int | None) -> int:
        if self._is_held(who, key):
            return -271
        if key in self.rows:
            return -268
        self.put(who, key, True, value)
        return 0

    def _move(self, who: int, key: int, new: int) -> int:
        if new == key:
            self.put(who, key, True, self.rows[key])
            return 0
        if self._is_held(who, new):
            return -271
        if new in self.rows:
            return -268
        value = self.rows[key]
        self.put(who, key, False, None)
        self.put(who, new, True, value)
        return 0


def rows_by_the_log(server: EmulatedServer) -> Rows:
    """Return what the log says is committed: images of keys and values, DISCARD and RBTX heeded."""
    table = server.table(TABLE)
    known = {
        table.encode({"k": key, "v": value}): (key, value)
        for key in range(4)
        for value in (None, *range(-5, 6))
    }
    pending: dict[int, list[tuple[int, str, tuple[int, int | None]]]] = {}
    rows: Rows = {}
    for file in server.log.files:
        for record in file.records:
            kind, number = NAMES[record.kind], record.transaction_id
            if kind == "BEGINTX":
                pending[number] = []
            elif kind == "DISCARD":
                first = int.from_bytes(record.payload[16:24], "big")
                place = first & 0xFFFFFFFF
                pending[number] = [item for item in pending[number] if item[0] < place]
            elif kind == "COMMTX":
                apply(rows, pending.pop(number))
            elif kind == "RBTX":
                pending.pop(number)
            elif record.table == table.partnum:
                row = known[record.sizes, record.payload]
                pending[number].append((record.place & 0xFFFFFFFF, kind, row))
    return rows


def apply(rows: Rows, changes: list[tuple[int, str, tuple[int, int | None]]]) -> None:
    """Apply a committed transaction; every image before must be the row that is there."""
    for _, kind, (key, value) in changes:
        if kind in ("DELETE", "UPDBEF"):
            assert rows.pop(key) == value
        else:
            assert key not in rows
            rows[key] = value


@settings(deadline=None)
@given(PROGRAMS)
def test_sessions_do_what_the_model_does_and_the_log_says_so(
    program: list[tuple[int, tuple[str, object, object]]],
) -> None:
    server = EmulatedServer(clock=lambda: 0.0)
    server.create_database("stores")
    asked = [Asked(open_session(server, "informix", "stores", False), server) for _ in range(2)]
    asked[0].run("CREATE TABLE t (k integer PRIMARY KEY, v integer)")
    server.set_full_row_logging(TABLE, True)
    model = Model()
    watcher = Asked(open_session(server, "informix", "stores", False), server)
    for who, step in program:
        shown = ["NULL" if part is None else part for part in step[1:]]
        wanted = model.expected(who, step)
        try:
            asked[who].run(SQL[step[0]].format(*shown))
            error = 0
        except SqlError as refused:
            error = refused.native
        assert error == wanted, step
        for isolation, rows in (("DIRTY READ", model.rows), (LAST, model.committed)):
            watcher.run(f"SET ISOLATION TO {isolation}")
            assert dict(watcher.rows("SELECT k, v FROM t")) == rows
    for who in (0, 1):
        asked[who].session.close()
        model.end(who, is_committed=False)
    assert rows_by_the_log(server) == model.committed == dict(watcher.rows("SELECT k, v FROM t"))


LAST = "COMMITTED READ LAST COMMITTED"
