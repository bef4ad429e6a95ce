"""The form of values in SQLite, chosen so that SQLite's order and equality are Informix's.

    family      stored as
    INTEGER     integer
    FLOAT       real
    DECIMAL     text that sorts as the numbers do, one for each number: `decimal_key`
    TEXT        text; of a CHAR without its trailing blanks; compared under RTRIM
    DATE        days since 31 December 1899
    DATETIME    text, all digits of its qualifier
    INTERVAL    months, or hundred-thousandths of a second
    BOOLEAN     1 and 0
    OBJECT      bytes or text as given

Input is checked against the type and rejected with Informix's error number (source: finderr); output is
what `EmulatedType.encode` accepts. A DATE in a text is written in the order of the login's DBDATE;
without one as month/day/year, and year-month-day is accepted too.
"""

from __future__ import annotations

import datetime
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, fields
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import lru_cache

from ...answers import SqlValue
from ...column_types.encoding import EmulatedType
from ...sql_errors import sql_error
from .families import CHARS, FLOATING, INTEGER_ERRORS, Family, digits_of, family_of, largest, named_type
from .moments import parse_datetime, parse_interval, render_interval

Stored = int | float | str | bytes | None
WIDE = Context(prec=400)  # nothing is rounded by accident
_DBDATE = re.compile(r"(?P<fields>(?:M|D|Y[24]){3})(?P<sign>[-/.0]?)")
_DATE = named_type("date")
_DAY_ZERO = datetime.date(1899, 12, 31).toordinal()
_BIAS = 500
_SIMPLE_OBJECTS = (11, 12)  # BYTE and TEXT
COMPLEMENT = str.maketrans("0123456789", "9876543210")
_DATE_FORMS = (
    re.compile(r"(?P<month>\d{1,2})[-/.](?P<day>\d{1,2})[-/.](?P<year>\d{4}|\d{2})"),
    re.compile(r"(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})"),
)


@dataclass(frozen=True, slots=True)
class DateForm:
    """How DBDATE has a date as a text: `Y4MD-` (Guide to SQL: Reference, "DBDATE")."""

    text: str

    @property
    def _parts(self) -> tuple[list[str], str]:
        """Return the fields in their order, and their separators; SqlError -1277 if there are none."""
        match = _DBDATE.fullmatch(self.text.upper())
        fields = re.findall(r"M|D|Y[24]", match["fields"]) if match else []
        if match is None or sorted(field[0] for field in fields) != ["D", "M", "Y"]:
            raise sql_error(-1277)
        return fields, match["sign"].replace("0", "") if match["sign"] else "/"

    def printed(self, date: datetime.date) -> str:
        """Return a date as a text."""
        fields, sign = self._parts
        year = {"Y4": f"{date.year:04}", "Y2": f"{date.year % 100:02}"}
        known = {"M": f"{date.month:02}", "D": f"{date.day:02}", **year}
        return sign.join(known[field] for field in fields)

    def pattern(self) -> re.Pattern[str]:
        """Return what the text of a date looks like; any sign may stand between its fields."""
        fields, sign = self._parts
        digits = r"\d{1,2}" if sign else r"\d\d"
        known = {"M": rf"(?P<month>{digits})", "D": rf"(?P<day>{digits})"}
        year = r"(?P<year>\d{4}|\d\d)"
        return re.compile(("[-/.]" if sign else "").join(known.get(field, year) for field in fields))


@dataclass(frozen=True, slots=True)
class DatedType(EmulatedType):
    """DATE as one session writes it."""

    form: DateForm | None = None


@lru_cache(maxsize=64)
def dated_type(form: DateForm) -> EmulatedType:
    """Return DATE in a form, one for each form."""
    given = {field.name: getattr(_DATE, field.name) for field in fields(EmulatedType)}
    return DatedType(**given, form=form)


def decimal_key(number: Decimal) -> str:
    """Return a text that sorts among its like as the number does.

    >>> sorted([decimal_key(Decimal(text)) for text in ("-2", "-2.5", "0", "10", "9.99")])
    ['4498774~', '449877~', '5', '6501999', '65021']
    """
    sign, digits, exponent = number.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    size = len(text) + int(exponent)
    text = text.rstrip("0")
    if not text:
        return "5"
    key = f"{size + _BIAS:03}{text}"
    return f"4{key.translate(COMPLEMENT)}~" if sign else f"6{key}"


def decimal_of(key: str) -> Decimal:
    """Return the number of a text that `decimal_key` made."""
    if key == "5":
        return Decimal(0)
    text = key[1:-1].translate(COMPLEMENT) if key[0] == "4" else key[1:]
    size, digits = int(text[:3]) - _BIAS, text[3:]
    return Decimal((int(key[0] == "4"), tuple(map(int, digits)), size - len(digits)))


def store(kind: EmulatedType, value: SqlValue) -> Stored:
    """Return how a value is kept in a column of a type; SqlError if it does not fit."""
    if value is None:
        return None
    return _STORE[family_of(kind)](kind, value)


def load(kind: EmulatedType, stored: Stored) -> SqlValue:
    """Return the value that is kept, in the form that the type encodes."""
    if stored is None:
        return None
    return _LOAD.get(family_of(kind), _as_it_is)(kind, stored)


def loader(kind: EmulatedType) -> Callable[[Stored], SqlValue]:
    """Return what `load` does for a type, for the many values of a column."""
    load_one = _LOAD.get(family_of(kind))
    if load_one is None:
        return lambda stored: stored
    return lambda stored: None if stored is None else load_one(kind, stored)


def printed(kind: EmulatedType, stored: Stored) -> str | None:
    """Return a value as Informix prints it, and as a cast to a text type gives it."""
    value = load(kind, stored)
    if value is None:
        return None
    return _PRINT.get(family_of(kind), str)(value)


def convert(kind: EmulatedType, source: EmulatedType, stored: Stored) -> Stored:
    """Return what a value of one type is in another."""
    if stored is None or kind is source:
        return stored
    wanted, given = family_of(kind), family_of(source)
    if source.__class__ is DatedType and wanted is Family.TEXT:
        assert isinstance(source, DatedType)
        assert source.form is not None
        return store(kind, source.form.printed(_load_date(source, stored)))
    if wanted is Family.TEXT:
        return store(kind, printed(source, stored))
    if given is Family.TEXT or wanted is given or (wanted, given) in _CONVERTIBLE:
        value = load(source, stored)
        return store(kind, value.rstrip() if isinstance(value, str) else value)
    raise sql_error(-1260)


_CONVERTIBLE = {
    (a, b)
    for group in ((Family.INTEGER, Family.DECIMAL, Family.FLOAT), (Family.DATE, Family.DATETIME))
    for a in group
    for b in group
}


def exact(value: SqlValue) -> Decimal:
    """Return a number without loss; SqlError if it is none."""
    if isinstance(value, Decimal):
        number = value
    elif isinstance(value, bool) or not isinstance(value, int | float | str):
        raise sql_error(-1213)
    else:
        try:
            number = Decimal(value) if isinstance(value, int) else Decimal(str(value).strip())
        except InvalidOperation:
            raise sql_error(-1213) from None
    if not number.is_finite() or abs(number.adjusted()) > _BIAS - 100:
        raise sql_error(-1213)
    return number


def fit(kind: EmulatedType, number: Decimal) -> Decimal:
    """Round a number to a DECIMAL type; SqlError -1226 if it has too many digits before the point."""
    precision, scale = digits_of(kind)
    if scale == FLOATING:
        fitted = Context(prec=precision, rounding=ROUND_HALF_UP).plus(number)
        if fitted and not -130 <= fitted.adjusted() <= 125:
            raise sql_error(-1226)
        return fitted
    fitted = number.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, WIDE)
    if fitted and fitted.adjusted() >= precision - scale:
        raise sql_error(-1226)
    return fitted


def _store_integer(kind: EmulatedType, value: SqlValue) -> Stored:
    if type(value) is not int:
        value = int(exact(value).to_integral_value(ROUND_DOWN))
    if abs(value) > largest(kind):  # the lowest of all stands for NULL
        raise sql_error(INTEGER_ERRORS.get(kind.coltype, -1284))
    return value


def _store_float(kind: EmulatedType, value: SqlValue) -> Stored:
    number = float(value) if isinstance(value, float) else float(exact(value))
    try:
        short = struct.unpack(">f", struct.pack(">f", number))[0]
    except OverflowError:
        short = float("inf")
    number = float(short) if kind.coltype == 4 else number
    if number != number or abs(number) == float("inf"):
        raise sql_error(-1226)
    return number + 0.0


def _store_decimal(kind: EmulatedType, value: SqlValue) -> Stored:
    return decimal_key(fit(kind, exact(value)))


def _store_text(kind: EmulatedType, value: SqlValue) -> Stored:
    if not isinstance(value, str):
        value = _PRINT_VALUES.get(type(value), str)(value)
    if kind.coltype in CHARS:
        value = value.rstrip(" ")
    try:
        kind.encode(value)
    except UnicodeEncodeError:
        raise sql_error(-23103) from None
    except ValueError:
        return _cut(kind, value)
    return value


def _cut(kind: EmulatedType, text: str) -> str:
    """Return as many characters as fit: a database that is not ANSI's cuts without an error."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        try:
            kind.encode(text[:middle])
            low = middle
        except ValueError:
            high = middle - 1
    return text[:low].rstrip(" ") if kind.coltype in CHARS else text[:low]


def _store_date(kind: EmulatedType, value: SqlValue) -> Stored:
    if isinstance(value, datetime.date):
        return value.toordinal() - _DAY_ZERO
    if isinstance(value, str):
        form = kind.form if isinstance(kind, DatedType) else None
        return parse_date(value, form).toordinal() - _DAY_ZERO
    if isinstance(value, int):
        return value
    raise sql_error(-1218)


def parse_date(text: str, form: DateForm | None = None) -> datetime.date:
    """Read a date; the fields of a DATETIME behind it do not count."""
    text = text.strip().partition(" ")[0]
    for pattern in (form.pattern(),) if form else _DATE_FORMS:
        if match := pattern.fullmatch(text):
            year, month, day = (int(match[name]) for name in ("year", "month", "day"))
            year += 2000 if year < 100 and len(match["year"]) == 2 else 0  # DBCENTURY: our choice
            return checked_date(year, month, day)
    raise sql_error(-1205 if text[:1].isdigit() else -1218)


def checked_date(year: int, month: int, day: int) -> datetime.date:
    """Return a date; SqlError names what is wrong with it."""
    if not 1 <= month <= 12:
        raise sql_error(-1205)
    if year < 1:
        raise sql_error(-1204)
    try:
        return datetime.date(year, month, day)
    except ValueError:
        raise sql_error(-1206) from None


def _store_boolean(_kind: EmulatedType, value: SqlValue) -> Stored:
    found = {"t": 1, "f": 0}.get(value.strip().lower()) if isinstance(value, str) else None
    if isinstance(value, bool):
        found = int(value)
    if found is None:
        raise sql_error(-1260)
    return found


def _store_object(kind: EmulatedType, value: SqlValue) -> Stored:
    if not isinstance(value, bytes | str):
        raise sql_error(-617)
    try:
        encoded = kind.encode(value)
    except ValueError:
        raise sql_error(-617) from None
    return encoded if kind.coltype in _SIMPLE_OBJECTS else value


def _store_interval(kind: EmulatedType, value: SqlValue) -> Stored:
    if not isinstance(value, str):
        raise sql_error(-1260)
    return parse_interval(kind, value)


_STORE: dict[Family, Callable[[EmulatedType, SqlValue], Stored]] = {
    Family.INTEGER: _store_integer,
    Family.FLOAT: _store_float,
    Family.DECIMAL: _store_decimal,
    Family.TEXT: _store_text,
    Family.DATE: _store_date,
    Family.DATETIME: parse_datetime,
    Family.INTERVAL: _store_interval,
    Family.BOOLEAN: _store_boolean,
    Family.OBJECT: _store_object,
}


def _load_decimal(kind: EmulatedType, stored: Stored) -> SqlValue:
    number = decimal_of(str(stored))
    scale = digits_of(kind)[1]
    return number if scale == FLOATING else number.quantize(Decimal(1).scaleb(-scale), context=WIDE)


def _load_text(kind: EmulatedType, stored: Stored) -> SqlValue:
    if kind.coltype not in CHARS:
        return stored
    text = str(stored).rstrip(" ")
    data = kind.encode(text)
    return text + " " * (len(data) - len(data.rstrip(b" ")))


def _load_date(_kind: EmulatedType, stored: Stored) -> datetime.date:
    try:
        return datetime.date.fromordinal(int(stored or 0) + _DAY_ZERO)
    except (ValueError, OverflowError):
        raise sql_error(-1210) from None


def _as_it_is(_kind: EmulatedType, stored: Stored) -> SqlValue:
    return stored


_LOAD: dict[Family, Callable[[EmulatedType, Stored], SqlValue]] = {
    Family.DECIMAL: _load_decimal,
    Family.TEXT: _load_text,
    Family.DATE: _load_date,
    Family.INTERVAL: render_interval,
    Family.BOOLEAN: lambda _kind, stored: bool(stored),
}


def _print_date(value: SqlValue) -> str:
    assert isinstance(value, datetime.date)
    return f"{value.month:02}/{value.day:02}/{value.year:04}"


def _print_decimal(value: SqlValue) -> str:
    assert isinstance(value, Decimal)
    return format(value, "f")


_PRINT: dict[Family, Callable[[SqlValue], str]] = {
    Family.DECIMAL: _print_decimal,
    Family.DATE: _print_date,
    Family.BOOLEAN: lambda value: "t" if value else "f",
}
_PRINT_VALUES: dict[type, Callable[[SqlValue], str]] = {
    Decimal: _print_decimal,
    datetime.date: _print_date,
    bool: _PRINT[Family.BOOLEAN],
}
