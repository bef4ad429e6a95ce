"""DATETIME and INTERVAL values: parsed, cut to a qualifier and printed.

A DATETIME is stored as its text, an INTERVAL as a number of months or of hundred-thousandths of a
second. Error numbers are those of finderr; which one a text gets that is wrong in two ways is our
choice.
"""

from __future__ import annotations

import datetime
import re
from functools import lru_cache

from ...answers import SqlValue
from ...column_types.datetimes import EmulatedQualifier
from ...column_types.encoding import EmulatedType
from ...sql_errors import sql_error
from .families import qualifier_of

PARTS_OF_SECOND = 100_000
_FRACTION, _MONTH = 6, 1
_SEPARATORS = ("-", "-", " ", ":", ":")
_LIMITS = ((1, 9999), (1, 12), (1, 31), (0, 23), (0, 59), (0, 59))
_UNITS = (12, 1, 86400, 3600, 60, 1)  # of years and months; of the others in seconds
_WHOLE = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d+))?)?)?)?"
)
_DEFAULTS = ("1200", "01", "01", "00", "00", "00")  # of fields that a text leaves out


@lru_cache(maxsize=256)
def _pattern(qualifier: EmulatedQualifier, is_interval: bool) -> re.Pattern[str]:
    if qualifier.first == _FRACTION:
        return re.compile(r"(?P<sign>-?)0?\.?(?P<fraction>\d+)")
    lead = f"\\d{{1,{qualifier.lead_digits}}}" if is_interval else "\\d{1,4}"
    parts = [f"({lead})"]
    for field in range(qualifier.first + 1, qualifier.last_whole + 1):
        parts.append(rf"{_SEPARATORS[field - 1]}(\d{{1,2}})")
    fraction = r"(?:\.(?P<fraction>\d*))?" if qualifier.last == _FRACTION else "(?P<fraction>)"
    return re.compile("(?P<sign>-?)" + "".join(parts) + fraction)


def parse_datetime(kind: EmulatedType, value: SqlValue) -> str:
    """Return a moment as a DATETIME type keeps it; fields that the type has not are cut off."""
    qualifier = qualifier_of(kind)
    if isinstance(value, datetime.date):
        midnight = datetime.datetime.min.time()
        full = (
            value
            if isinstance(value, datetime.datetime)
            else datetime.datetime.combine(value, midnight)
        )
        return _cut(qualifier, *_fields_of(full))
    if not isinstance(value, str):
        raise sql_error(-1260)
    text = value.strip()
    if match := _pattern(qualifier, False).fullmatch(text):
        if match["sign"]:
            raise sql_error(-1263)
        numbers = [group for group in match.groups()[1:-1] if group is not None]
        return _shown(qualifier, numbers, match["fraction"] or "")
    if match := _WHOLE.fullmatch(text):
        numbers = [group or _DEFAULTS[n] for n, group in enumerate(match.groups()[:6])]
        return _cut(qualifier, numbers, match[7] or "")
    raise sql_error(_complaint(text))


def _fields_of(moment: datetime.datetime) -> tuple[list[str], str]:
    values = (moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second)
    return [str(value) for value in values], f"{moment.microsecond:06}"


def _cut(qualifier: EmulatedQualifier, numbers: list[str], fraction: str) -> str:
    kept = numbers[qualifier.first : qualifier.last_whole + 1] if qualifier.first < _FRACTION else []
    return _shown(qualifier, kept, fraction if qualifier.last == _FRACTION else "")


def _shown(qualifier: EmulatedQualifier, numbers: list[str], fraction: str) -> str:
    text = ""
    for field, number in enumerate(numbers, qualifier.first):
        low, high = _LIMITS[field]
        if not low <= int(number) <= high:
            raise sql_error(-1263)
        text += number.zfill(4 if field == 0 else 2)
        text += _SEPARATORS[field] if field < qualifier.last_whole else ""
    if qualifier.first == 0 and len(numbers) > 2:
        _must_be_a_day(numbers)
    if qualifier.last == _FRACTION:
        digits = qualifier.fraction_digits
        text += "." + fraction[:digits].ljust(digits, "0")
    return text


def _must_be_a_day(numbers: list[str]) -> None:
    try:
        datetime.date(*map(int, numbers[:3]))
    except ValueError:
        raise sql_error(-1263) from None


def _complaint(text: str) -> int:
    if re.fullmatch(r"[-\d:. ]+", text):
        return -1264 if text else -1261
    return -1262


def parse_interval(kind: EmulatedType, text: str) -> int:
    """Return the count of an INTERVAL that is written as its type prints it."""
    qualifier = qualifier_of(kind)
    match = _pattern(qualifier, True).fullmatch(text.strip())
    if match is None:
        raise sql_error(_interval_complaint(text.strip()))
    count, numbers = 0, match.groups()[1:-1] if qualifier.first < _FRACTION else ()
    for field, number in enumerate(numbers, qualifier.first):
        if field > qualifier.first and int(number) > (11 if field == _MONTH else _LIMITS[field][1]):
            raise sql_error(-1263)
        count += int(number) * _UNITS[field]
    if qualifier.first > _MONTH:
        fraction = (match["fraction"] or "")[: qualifier.fraction_digits].ljust(5, "0")
        count = count * PARTS_OF_SECOND + int(fraction)
    return -count if match["sign"] else count


def _interval_complaint(text: str) -> int:
    return -1261 if re.fullmatch(r"-?\d+[-\d:. ]*", text) else -1262


def render_interval(kind: EmulatedType, count: SqlValue) -> str:
    """Return the text of an INTERVAL; SqlError -1265 if its first field has too many digits."""
    assert isinstance(count, int)
    qualifier = qualifier_of(kind)
    sign, rest = "-" if count < 0 else "", abs(count)
    if qualifier.first > _MONTH:
        rest, fraction = divmod(rest, PARTS_OF_SECOND)
        shown = f"{fraction:05}"[: qualifier.fraction_digits]
        end = f".{shown}" if qualifier.last == _FRACTION else ""
    else:
        end = ""
    text = ""
    for field in range(qualifier.first, qualifier.last_whole + 1) if qualifier.first < 6 else ():
        number, rest = divmod(rest, _UNITS[field])
        text += str(number) if field == qualifier.first else f"{number:02}"
        text += _SEPARATORS[field] if field < qualifier.last_whole else ""
        if field == qualifier.first and len(text.rstrip("-: ")) > qualifier.lead_digits:
            raise sql_error(-1265)
    if qualifier.first == _FRACTION and rest:
        raise sql_error(-1265)
    return sign + text + end
