"""Values in PostgreSQL's binary format: what a statement is given.

Arrays go out as one parameter a column (`unnest`), packed here; the adapters of the driver take several times
as long for the same bytes, and a batch is mostly arrays.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

Parameter = bytes | None  # None is null
_INT2, _INT4, _INT8, _FLOAT8 = (struct.Struct(code) for code in (">h", ">i", ">q", ">d"))
_HEAD = struct.Struct(">iiIii")  # dimensions, has nulls, element type, length, lower bound
_NULL = _INT4.pack(-1)
_OID_BOOL, _OID_BYTEA, _OID_INT8, _OID_INT4, _OID_TEXT, _OID_TID, _OID_UUID = 16, 17, 20, 23, 25, 27, 2950
_UUID_LENGTH = "00000010"  # in hexadecimal, before each element
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_IS_UUID, _ARE_UUIDS = re.compile(_UUID).fullmatch, re.compile(f"(?:{_UUID},)*").fullmatch


def int8(value: int | None) -> Parameter:
    """A bigint."""
    return None if value is None else _INT8.pack(value)


def int4(value: int) -> Parameter:
    """An integer."""
    return _INT4.pack(value)


def float8(value: float) -> Parameter:
    """A double."""
    return _FLOAT8.pack(value)


def boolean(value: object) -> Parameter:
    """A boolean, by truth."""
    return b"\x01" if value else b"\x00"


def text(value: str | None) -> Parameter:
    """A text."""
    return None if value is None else value.encode()


def uuid(value: str) -> bytes:
    """A UUID from its usual text."""
    return bytes.fromhex(value.replace("-", ""))


def is_message_id(value: str) -> bool:
    """Whether a caller's text can be a message id at all: a UUID in its usual form."""
    return _IS_UUID(value) is not None


def are_message_ids(values: Sequence[str]) -> bool:
    """The same of all of them; many times as fast."""
    joined = ",".join([*values, ""])
    return len(joined) == 37 * len(values) and _ARE_UUIDS(joined) is not None  # a comma inside one is longer


def int8s(values: Sequence[int]) -> bytes:
    """A bigint array without nulls."""
    return _numbers(_OID_INT8, "iq", 8, values)


def int4s(values: Sequence[int]) -> bytes:
    """An integer array without nulls."""
    return _numbers(_OID_INT4, "ii", 4, values)


def int8s_or_null(values: Sequence[int | None]) -> bytes:
    """A bigint array in which None is null."""
    return _array(_OID_INT8, [None if value is None else _INT8.pack(value) for value in values])


def booleans(values: Sequence[object]) -> bytes:
    """A boolean array, by truth."""
    return _array(_OID_BOOL, [b"\x01" if value else b"\x00" for value in values])


def texts(values: Sequence[str | None]) -> bytes:
    """A text array."""
    return _alike(values) or _array(
        _OID_TEXT, [None if value is None else value.encode() for value in values]
    )


def byteas(values: Sequence[bytes | None]) -> bytes:
    """A bytea array."""
    return _array(_OID_BYTEA, values)


def uuids(values: Sequence[str]) -> bytes:
    """A UUID array from usual texts."""
    lengths_and_digits = _UUID_LENGTH.join(["", *values]).replace("-", "")
    return _head(_OID_UUID, len(values)) + bytes.fromhex(lengths_and_digits)


def tids(values: Sequence[bytes]) -> bytes:
    """An array of places of rows, as the server gave them."""
    return _array(_OID_TID, values)


def _head(element: int, count: int) -> bytes:
    return _HEAD.pack(1, 0, element, count, 1) if count else struct.pack(">iiI", 0, 0, element)


def _numbers(element: int, code: str, size: int, values: Sequence[int]) -> bytes:
    count = len(values)
    if count > 1 and values.count(values[0]) == count:  # most columns of a batch
        return _head(element, count) + struct.pack(">" + code, size, values[0]) * count
    pairs = [x for value in values for x in (size, value)]
    return _head(element, count) + struct.pack(">" + code * count, *pairs)


def _alike(values: Sequence[str | None]) -> bytes | None:
    """A text array of ASCII texts of one length, such as receipt handles; None of others."""
    try:
        [size] = set(map(len, values))  # type: ignore[arg-type]  # a null has none
    except (TypeError, ValueError):
        return None
    joined = _INT4.pack(size).decode("latin-1").join(["", *values])  # type: ignore[list-item]
    return _head(_OID_TEXT, len(values)) + joined.encode() if joined.isascii() else None


def _array(element: int, values: Sequence[bytes | None]) -> bytes:
    if values and values[0] is None and values.count(None) == len(values):  # most columns that may be null
        return _head(element, len(values)) + _NULL * len(values)
    pack = _INT4.pack
    parts: list[bytes] = [_head(element, len(values))]
    for value in values:
        if value is None:
            parts.append(_NULL)
        else:
            parts += pack(len(value)), value
    return b"".join(parts)
