"""A schema of PostgreSQL as the place of a mirror's tables; see `postgres_batches.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from informix_cdc.lake.identity import BatchEnd, Witnessed
from informix_cdc.lake.mirrored_table import Target
from informix_cdc.lake.places import Lake
from informix_cdc.lake.postgres_batches import PostgresBatches
from informix_cdc.lake.postgres_tables import PostgresTarget
from informix_cdc.lake.settings import MirrorSettings
from informix_cdc.postgresql import BRIEF_SECONDS, Place, PostgresDatabase, quoted

_OLDEST = 140000  # of PostgreSQL: extract() is exact since 14


class PostgresLake(Lake):
    """Creates targets in a schema of PostgreSQL.

    Args:
        settings: `into` and `storage_options`.
        application: the identifier of the mirror.
        witnessed: what the tables have, for the mirror that writes them; readers give none.
    """

    def __init__(
        self,
        settings: MirrorSettings,
        application: str,
        witnessed: Mapping[str, Witnessed] | None = None,
    ) -> None:
        self._witnessed = witnessed
        self.batches = PostgresBatches(settings, application, is_writer=witnessed is not None)
        self._open: dict[str, PostgresTarget] = {}

    def begin_epoch(self, epoch: int) -> None:
        """Let further writes belong to an epoch that begins."""
        self.batches.begin_epoch(epoch)

    def begin_batch(self, batch: int, end: BatchEnd) -> None:
        """Set number and end of the batch of all further writes, and read what there is."""
        self.batches.begin(batch, end)

    def doubt(self) -> str:
        """Return why the tables may not be as their mirror left them, in words; "" if they are."""
        return self.batches.doubt()

    def end_batch(self) -> None:
        """Commit the batch, with its position, also if it has changed no table."""
        for target in self._open.values():
            target.complete()
        self.batches.end()
        for target in self._open.values():
            target.committed()

    def undo(self) -> None:
        """Undo what the batch has written: a table has stopped."""
        self.batches.undo()

    def begin_again(self) -> bool:
        """Return whether the writes of the batch were undone, so that they are to be done once more."""
        return self.batches.begin_again()

    def abandon(self) -> None:
        """Undo what was written since the last commit."""
        self.batches.abandon()

    def make_durable(self) -> None:
        """Do nothing: what is committed is durable."""

    def register(self, name: str) -> None:
        """Do nothing: the database is the catalog."""

    @property
    def puts_if_absent(self) -> bool:
        """Whether two writers cannot both win: always."""
        return True

    def target(self, name: str) -> Target:
        """Return the target of a name: for its writer always the same, for readers as it is now."""
        if self._witnessed is None:
            self.batches.forget()
            return PostgresTarget(self.batches, name)
        if name not in self._open:
            self._open[name] = PostgresTarget(self.batches, name, self._witnessed.get(name))
        return self._open[name]

    def targets(self) -> Mapping[str, Target]:
        """Return the targets that the writer has opened, by name."""
        return {**self._open}

    def close(self) -> None:
        """Close the connection."""
        self.batches.database.close()


def why_unfit(settings: MirrorSettings) -> Iterator[tuple[str, str]]:
    """Yield why nothing can be mirrored into a schema, each with a remedy."""
    place = Place.of(settings.into, settings.storage_options)
    database, schema = PostgresDatabase(place, patient_seconds=BRIEF_SECONDS), quoted(place.schema)
    try:
        database.connect()
        ((version, encoding, is_standby, user, may_create),) = database.rows(
            "SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),"
            " pg_is_in_recovery(), quote_ident(current_user),"
            " (SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = %s)",
            (place.schema,),
        )
        unfit = [
            (version < _OLDEST, f"{place} is older than PostgreSQL 14.", "Use a later one."),
            (encoding != "UTF8", f"{place} has the encoding {encoding}.", "Use a database with UTF8."),
            (is_standby, f"{place} is a standby, which cannot be written.", "Name the primary."),
            (may_create is None, f"{place} has no such schema.", f"CREATE SCHEMA {schema};"),
            (
                may_create is False,
                f"{user} may not create tables in {place}.",
                f"GRANT CREATE, USAGE ON SCHEMA {schema} TO {user};",
            ),
        ]
        yield from ((what, remedy) for is_so, what, remedy in unfit if is_so)
        yield from (
            (
                f"foreign key {key} of {table} is checked before the end of a transaction.",
                f"ALTER TABLE {schema}.{quoted(table)} ALTER CONSTRAINT {quoted(key)}"
                " DEFERRABLE INITIALLY DEFERRED;",
            )
            for key, table in database.rows(
                "SELECT k.conname, c.relname FROM pg_constraint k, pg_class c"
                " WHERE c.oid = k.conrelid AND k.contype = 'f' AND NOT k.condeferrable"
                " AND c.relnamespace = to_regnamespace(quote_ident(%s)) ORDER BY 2, 1",
                (place.schema,),
            )
        )
    finally:
        database.close()
