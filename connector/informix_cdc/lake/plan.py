"""Plan a mirror, and find all problems before anything is written.

Rule: it reads the catalog, the lake and the checkpoint, and leaves nothing behind. A problem names the
table and the remedy.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from informix_capture_client.catalog import Catalog
from informix_capture_client.errors import (
    AccessRefused,
    BadOption,
    TargetUnavailable,
    UnsupportedColumn,
)
from informix_capture_client.findings import require
from informix_capture_client.sql_names import TableName
from informix_cdc.lake.control_tables import STOPPED, TableRecord
from informix_cdc.lake.definitions import MOST_BYTES_OF_NAME, NEEDS_COLUMN_MAPPING
from informix_cdc.lake.epochs import Beginning
from informix_cdc.lake.mirrored_table import form_of
from informix_cdc.lake.places import puts_if_absent, why_not_writable
from informix_cdc.lake.postgres_lake import why_unfit
from informix_cdc.lake.refused_writes import coded_errors
from informix_cdc.lake.settings import (
    CHANGES,
    DELTA,
    EMBEDDED,
    ON_READ,
    POSTGRESQL,
    MirrorSettings,
    is_reserved,
    overlapping,
)
from informix_cdc.lake.table_changes import ADDED, INTERNAL
from informix_cdc.lake.target_tables import TargetTable, definitions_and_schemas
from informix_cdc.options import (
    ALL,
    EXCLUDED,
    MIRROR_BATCH,
    MIRROR_OPTIONS,
    SourceOptions,
    with_mirror_options,
)
from informix_cdc.reading import published_capture, read_schema
from informix_cdc.server import (
    SourceTables,
    TableDefinition,
    describe_tables,
    named_tables,
    open_catalog,
)
from informix_cdc.snapshots import plan_snapshots, wanted_tables
from informix_checkpoints.offsets import read_checkpoint
from informix_checkpoints.shared_captures import PublishedCapture

_IS_A_FOLDER = re.compile(r"[\w$-][\w$. -]*")
_IN_A_CATALOG = re.compile(r"\w+", re.ASCII)  # as Spark's own catalog requires it


@dataclass(frozen=True, slots=True)
class PlanProblem:
    """A problem of a mirror; `table` is empty if it concerns no single table.

    `settings`: those of the table that solve it, as TOML, if there are any.
    """

    table: str
    message: str
    remedy: str
    settings: str = ""


@dataclass(frozen=True, slots=True)
class MirrorPlan:
    """The plan of a mirror.

    Attributes:
        settings: as given.
        options: of the stream.
        targets: of all tables that can be mirrored.
        estimates: approximate number of rows by owner.table; 0 if unknown.
        problems: of the other tables.
        left_out: tables that match a pattern, cannot be mirrored, and are not in the stream yet: a
            mirror that has begun continues without them.
        on_read: tables whose targets are merged on read, or will be.
        doubt: why checkpoint and lake do not belong together, if so; onDataLoss decides at the start.
        server: name of the server that has the tables.
        database: the tables' database.
    """

    settings: MirrorSettings
    options: Mapping[str, str] = field(repr=False)  # may contain a password
    estimates: Mapping[str, int]
    targets: tuple[TargetTable, ...]
    problems: tuple[PlanProblem, ...]
    left_out: tuple[PlanProblem, ...] = ()
    server: str = ""
    database: str = ""
    doubt: str = ""
    on_read: frozenset[str] = frozenset()

    def require_sound(self) -> None:
        """Refuse to start if there are problems.

        Raises:
            BadOption: lists all of them.
        """
        if self.problems:
            shown = " ".join(
                f"[{number}] {texts_of(group)} {group[0].remedy}"
                for number, group in enumerate(problems_by_kind(self.problems), 1)
            )
            raise BadOption(
                f"the mirror cannot start: {shown}",
                "Nothing was written. informix-cdc mirror FILE --plan shows what can be pasted.",
            )


def problems_by_kind(problems: Iterable[PlanProblem]) -> list[list[PlanProblem]]:
    """Return problems in groups with the same remedy and settings."""
    return _together(problems, lambda each: (each.remedy, each.settings))


def texts_of(problems: Iterable[PlanProblem]) -> str:
    """Return the messages of problems, each once, behind the tables that have it."""
    groups = _together(problems, lambda each: (bool(each.table), each.message))
    return " ".join(
        f"{', '.join(each.table for each in group)}: ".removeprefix(": ") + group[0].message
        for group in groups
    )


def _together(
    problems: Iterable[PlanProblem], kind: Callable[[PlanProblem], object]
) -> list[list[PlanProblem]]:
    groups: dict[object, list[PlanProblem]] = {}
    for each in problems:
        groups.setdefault(kind(each), []).append(each)
    return [*groups.values()]


def stream_options(settings: MirrorSettings, source: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the mirror's stream.

    Raises:
        BadOption: an option is given that the mirror sets itself.
    """
    given = {name.lower(): name for name in source}
    for name, value in MIRROR_OPTIONS.items():
        if name.lower() in given and str(source[given[name.lower()]]).lower() != value:
            raise BadOption(
                f"option '{name}' is always {value} in a mirror.", "Remove it from source.", option=name
            )
    options = {str(name): str(value) for name, value in source.items()}
    options = {**{n: t for n, t in MIRROR_BATCH.items() if n.lower() not in given}, **options}
    is_shared = "captureat" in given
    if is_shared:
        options |= MIRROR_OPTIONS
    else:
        spool = f"{settings.checkpoint.rstrip('/').removeprefix('file://')}/spool"
        options = with_mirror_options(options)
        options |= {} if "spoolpath" in given else {"spoolPath": spool}
    if keys := settings.snapshot_keys():
        if is_shared:
            raise BadOption(
                "keys are set in the settings of tables, but the source is a shared capture.",
                "Set them with snapshotKey in [source] of the capture's file.",
                option="captureAt",
            )
        if "snapshotkey" in given:
            raise BadOption(
                "keys are set both by option snapshotKey and in the settings of tables.",
                "Set all of them in one place.",
                option="snapshotKey",
            )
        options["snapshotKey"] = keys
    return options


def checked_settings(given: Mapping[str, Any], source: Mapping[str, str]) -> MirrorSettings:
    """Return the settings of a mirror after checking them and the options of its source.

    Raises:
        BadOption: lists all problems of both.
    """
    settings, found = MirrorSettings(into="/", checkpoint="/"), list[BadOption]()
    try:
        settings = MirrorSettings.of(**given)
    except BadOption as reason:
        found.append(reason)
    try:
        options = SourceOptions.parse(stream_options(settings, source))
        if not found:
            name = "captureAt" if options.shared.capture_at else "spoolPath"
            spool = options.shared.capture_at or options.spool.path
            found += [BadOption(each, "") for each in overlapping(settings.into, spool, name)]
    except BadOption as reason:
        found.append(reason)
    if len(found) > 1:
        texts = " ".join(f"{each.message} {each.remedy}".strip() for each in found)
        raise BadOption(texts, "Nothing was written.")
    if found:
        raise found[0]
    return settings


def plan_mirror(settings: MirrorSettings, source: Mapping[str, str]) -> MirrorPlan:
    """Return the plan of a mirror, with its problems.

    Raises:
        BadOption: options are invalid, so that the tables cannot be determined.
        InformixCdcError: the catalog cannot be read.
    """
    given = stream_options(settings, source)
    options = SourceOptions.parse(given)
    estimates: dict[str, int] = {}
    targets: list[TargetTable] = []
    problems: list[PlanProblem] = []
    if options.shared.capture_at:
        return _plan_of_capture(settings, given, published_capture(options.shared))
    with open_catalog(options.connection) as catalog:
        found = _described(options, catalog, problems)
        if found is not None:
            locks = zip(found.names, catalog.row_locks(found.tables), strict=True)
            estimates = {name: each.row_estimate for name, each in locks}
            for definition, schema in definitions_and_schemas(options, found, catalog):
                with _noted(problems, definition.table):
                    name = settings.name_of(definition.table)
                    targets.append(TargetTable.of(definition, schema, name))
            problems += [each for target in targets for each in problems_of_target(settings, target)]
            _check_snapshots(options, catalog, found, problems)
    problems += _of_settings(settings, targets, found.names if found else (), problems)
    if settings.format == POSTGRESQL and options.columns.trailing_blanks != "cut":
        problems.append(
            PlanProblem(
                "",
                "trailingBlanks is keep, but a character column of PostgreSQL does not tell blanks that"
                " pad it from others.",
                "Remove trailingBlanks from source.",
            )
        )
    plan = MirrorPlan(
        settings,
        given,
        estimates,
        tuple(targets),
        tuple(problems),
        server=options.connection.server,
        database=options.connection.database,
    )
    plan = _of_a_stream(plan, options, _tables_of_stream(settings.checkpoint))
    return _with_places(plan)


def _plan_of_capture(
    settings: MirrorSettings, given: Mapping[str, str], capture: PublishedCapture
) -> MirrorPlan:
    """Return the plan of a mirror of a shared capture, which has looked its tables up.

    Raises:
        BadOption: the capture does not keep what a mirror needs.
    """
    if capture.options.get("tableEvents") != "true":
        raise BadOption(
            "the capture has tableEvents=false, but a mirror needs true.",
            "Set mirror = true in the file of the capture, and start it again.",
            option="captureAt",
        )
    targets: list[TargetTable] = []
    problems: list[PlanProblem] = []
    definitions = [TableDefinition.from_text(table.definition) for table in capture.tables]
    for definition, table in zip(definitions, capture.tables, strict=True):
        with _noted(problems, definition.table):
            name = settings.name_of(definition.table)
            targets.append(TargetTable.of(definition, read_schema(table.schema), name))
    problems += [each for target in targets for each in problems_of_target(settings, target)]
    names = [definition.table for definition in definitions]
    problems += _of_settings(settings, targets, names, problems)
    plan = MirrorPlan(
        settings,
        given,
        {},
        tuple(targets),
        tuple(problems),
        server=capture.options.get("server", ""),
        database=capture.options.get("database", ""),
    )
    return _with_places(plan)


def _with_places(plan: MirrorPlan) -> MirrorPlan:
    """Return the plan with the problems of its folders: whose they are, and if they are writable."""
    problems = list(plan.problems)
    settings, doubt = plan.settings, ""
    if settings.format == POSTGRESQL:
        with _noted(problems, ""):
            problems += [PlanProblem("", *each) for each in why_unfit(settings)]
    is_in_files = settings.format == DELTA
    for name, place, options in (
        *([("into", settings.into, settings.storage_options)] if is_in_files else []),
        ("checkpoint", settings.checkpoint, {}),
    ):
        if why := why_not_writable(place, options):
            message, remedy = f"{name} {place} cannot be written: {why}.", "Check place and rights."
            problems.append(PlanProblem("", message, remedy))
    if len(problems) == len(plan.problems):  # what cannot be reached is not read
        with _noted(problems, ""), coded_errors(settings.into):
            beginning = Beginning(settings, plan.server, plan.database)
            if (refusal := beginning.refusal()) is not None:
                raise refusal
            doubt = beginning.doubt()
            problems += _of_records(settings, beginning.tables.values())
            can_put = settings.format != DELTA or puts_if_absent(settings)
            if not can_put and settings.engine != EMBEDDED:
                raise BadOption(
                    f"the store of {settings.into} replaces files that are there already, so that two"
                    " programs that write a table at the same time lose rows.",
                    "Use a store with conditional writes. Or set engine to embedded, so that Spark"
                    " writes nothing, and let no other program write these tables.",
                )
            plan = replace(plan, on_read=frozenset(_on_read(plan, beginning, can_put=can_put)))
    return replace(plan, problems=tuple(problems), doubt=doubt)


def _on_read(plan: MirrorPlan, beginning: Beginning, *, can_put: bool) -> Iterator[str]:
    """Yield the tables whose targets are merged on read: a target that is there says so itself."""
    wanted = {
        target.source
        for target in plan.targets
        if plan.settings.merges_on_read(target.source, plan.estimates.get(target.source, 0))
    }
    known = beginning.merged_on_read()
    wanted = {name for name in wanted if known.get(name, True)} | {
        n for n, is_so in known.items() if is_so
    }
    for name in sorted(wanted):
        if not can_put and plan.settings.of_table(name).merge == ON_READ:
            raise BadOption(
                "merge is on-read, but the store replaces files that are there already.",
                "Use a store with conditional writes, or remove merge.",
            )
        if can_put or known.get(name):
            yield name


def _of_records(settings: MirrorSettings, records: Collection[TableRecord]) -> Iterator[PlanProblem]:
    """Yield tables whose setting keep is not that of the target that they have."""
    for record in records:
        keep = settings.of_table(record.table).keep
        is_same = record.target == settings.name_of(record.table) and record.status != STOPPED
        if is_same and record.keep != keep:
            yield PlanProblem(
                record.table,
                f"keep was {record.keep} and is {keep}.",
                "Set it back; or set another name too, and resync the table when the mirror runs.",
            )


def _of_settings(
    settings: MirrorSettings,
    targets: Sequence[TargetTable],
    names: Collection[str],
    known: Sequence[PlanProblem],
) -> list[PlanProblem]:
    """Return the problems of settings for tables that are not there, and of names of targets."""
    strangers = settings.tables.keys() - {*names} - {each.table for each in known}
    message, remedy = "it has settings, but is not a table of the mirror.", "Correct its name."
    return [*(PlanProblem(table, message, remedy) for table in strangers), *_collisions(targets)]


def _tables_of_stream(checkpoint: str) -> frozenset[str]:
    """Return the tables of a mirror that has begun; none if it has not."""
    try:
        (progress,) = read_checkpoint(checkpoint).sources
    except (AccessRefused, BadOption, ValueError):
        return frozenset()
    return frozenset(progress.planned[1].tables)


def _of_a_stream(plan: MirrorPlan, options: SourceOptions, known: frozenset[str]) -> MirrorPlan:
    """Return the plan of a mirror that may have begun: new tables with problems are left out."""
    named = {_short(name) for name in options.table_choice().names}
    late = [each for each in plan.problems if known and each.table and each.table not in known | named]
    names = ",".join(sorted({each.table for each in late}))
    if not late:
        return plan
    return replace(
        plan,
        options={**plan.options, **_excluding(plan.options, names)},
        targets=tuple(each for each in plan.targets if each.source not in names.split(",")),
        problems=tuple(each for each in plan.problems if each not in late),
        left_out=tuple(late),
    )


def _excluding(options: Mapping[str, str], names: str) -> dict[str, str]:
    """Return option table, which also excludes some tables, in the user's spelling."""
    spelled = next(name for name in options if name.lower() == "table")
    excluded = [EXCLUDED + name for name in names.split(",")]
    return {spelled: ",".join([options[spelled], *excluded])}


@contextlib.contextmanager
def _noted(problems: list[PlanProblem], table: str) -> Iterator[None]:
    try:
        yield
    except (AccessRefused, BadOption, TargetUnavailable, UnsupportedColumn) as reason:
        problems.append(PlanProblem(table, reason.message, reason.remedy))


def _described(
    options: SourceOptions, catalog: Catalog, problems: list[PlanProblem]
) -> SourceTables | None:
    """Return the tables that can be captured; the others are problems."""
    with _noted(problems, ""):
        names = list(named_tables(options, catalog))
        for looked_up in catalog.find_tables(names):
            if looked_up.table is None:
                names.remove(looked_up.name)
                with _noted(problems, _short(looked_up.name)):
                    require(looked_up.finding())
        while names:
            try:
                return describe_tables(options.of_tables(names), catalog)
            except UnsupportedColumn as reason:
                of = {str(reason.facts.get("table", "")), *(table for table, *_ in reason.columns)}
                refused = [name for name in names if str(name) in of]
                if not refused:
                    raise
                for name in refused:
                    columns = [
                        f"{c} ({kind})" for table, c, kind in reason.columns if table == str(name)
                    ]
                    what = f"columns cannot be captured: {', '.join(columns)}." if columns else ""
                    problems.append(PlanProblem(_short(name), what or reason.message, reason.remedy))
                names = [name for name in names if name not in refused]
    return None


def _short(name: TableName) -> str:
    return str(name).partition(":")[2]


def _check_snapshots(
    options: SourceOptions, catalog: Catalog, source: SourceTables, problems: list[PlanProblem]
) -> None:
    """Find tables whose rows cannot be read, among those without a problem so far."""
    known = {each.table for each in problems}
    with contextlib.suppress(AccessRefused, BadOption):
        plan_snapshots(options, source, catalog, {})
        return
    with _noted(problems, ""):
        wanted = wanted_tables(options, source.tables)
        for table in source.tables:
            if table.name in wanted and _short(table.name) not in known:
                with _noted(problems, _short(table.name)):
                    one = options.of_tables([table.name])
                    one = replace(one, snapshots=replace(one.snapshots, tables=(ALL,)))
                    plan_snapshots(one, replace(source, tables=(table,)), catalog, {})


def problems_of_target(settings: MirrorSettings, target: TargetTable) -> Iterator[PlanProblem]:
    """Yield the problems of a target."""
    special = settings.of_table(target.source)
    if special.keep != CHANGES and not target.key:
        yield PlanProblem(
            target.source,
            f"its rows cannot be identified: {target.why_no_key}.",
            f"Set a unique key in the settings of the table; or set keep to {CHANGES} there, and"
            " snapshotWithoutKey to lock in source: the table is then locked while it is read,"
            " and writers wait.",
            f'keep = "{CHANGES}"',
        )
    asked = settings.tables.get(target.source)
    if asked and asked.merge == ON_READ and not settings.may_merge_on_read(target.source):
        yield PlanProblem(
            target.source,
            "merge is on-read, which is for tables of current rows or a history, and for Delta tables"
            " not with engine spark.",
            "Remove merge from its settings.",
        )
    yield from _problems_of_name(settings, target)
    taken = {field.name for field in ADDED[form_of(str(special.keep), str(special.deletes))]}
    for column in target.columns:
        if column.name.lower() in taken or column.name.lower().startswith(INTERNAL):
            yield PlanProblem(
                target.source,
                f"column {column.name} has the name of a column that the mirror adds.",
                "Exclude it with option columns, or choose another keep or deletes for the table.",
            )
        yield from _problems_of_column(settings, target, column.name)


def _problems_of_column(
    settings: MirrorSettings, target: TargetTable, name: str
) -> Iterator[PlanProblem]:
    """Yield the problem of a column's name, where tables cannot have every name."""
    if settings.format == POSTGRESQL and len(name.encode()) > MOST_BYTES_OF_NAME:
        yield PlanProblem(
            target.source,
            f"column {json.dumps(name)} has a name of more than {MOST_BYTES_OF_NAME} bytes.",
            "Rename it in Informix, or exclude it with option columns.",
        )
    if settings.format == DELTA and NEEDS_COLUMN_MAPPING.intersection(name):
        yield PlanProblem(
            target.source,
            f"column {json.dumps(name)} has a character that Delta Lake does not allow.",
            "Exclude it with option columns.",
        )


def _problems_of_name(settings: MirrorSettings, target: TargetTable) -> Iterator[PlanProblem]:
    """Yield the problem of a target's name."""
    if is_reserved(target.name) or not _IS_A_FOLDER.fullmatch(target.name):
        yield PlanProblem(
            target.source,
            f"its target would be named {json.dumps(target.name)}.",
            "Set name in its settings, using letters, digits, spaces and the characters _ - $ and .",
        )
    elif settings.format == POSTGRESQL and len(target.name.encode()) > MOST_BYTES_OF_NAME:
        yield PlanProblem(
            target.source,
            f"its target {json.dumps(target.name)} has a name of more than {MOST_BYTES_OF_NAME} bytes.",
            "Set a shorter name in its settings.",
        )
    elif settings.catalog and not _IN_A_CATALOG.fullmatch(target.name):
        yield PlanProblem(
            target.source,
            f"its target {json.dumps(target.name)} cannot be registered in {settings.catalog}.",
            "Set name in its settings, using the letters a to z, digits and _.",
        )


def _collisions(targets: Sequence[TargetTable]) -> Iterator[PlanProblem]:
    """Yield targets that two tables would share; catalogs are not case-sensitive."""
    known: dict[str, str] = {}
    for target in targets:
        other = known.setdefault(target.name.lower(), target.source)
        if other != target.source:
            yield PlanProblem(
                target.source,
                f"its target {target.name} is the same as that of {other}.",
                "Set name in the settings of one of them, or set table_name to {owner}_{table}.",
            )
