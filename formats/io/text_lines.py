"""Text formats read line by line: decoding, and costs as they stand in text."""

from __future__ import annotations

from mtpp.errors import InputError
from mtpp.formats.io.json_shape import SIZE_LIMIT, shown
from mtpp.units import Exact, ceil_ratio, exact_decimal


def decoded(data: bytes, source: str) -> str:
    """Return UTF-8 text; a byte order mark is left out.

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 text (byte {error.start} is 0x{data[error.start]:02x})"
        raise InputError(problem, source=source, remedy="save it as UTF-8") from None


def cost_of(text: str, what: str, where: str) -> Exact:
    """Read a cost that is not negative, exactly."""
    try:
        value = exact_decimal(text.strip())
    except ValueError:
        raise InputError(f"{what} is {shown(text)}, not a number within reason", where=where) from None
    if value < 0:
        raise InputError(f"{what} cannot be negative", where=where)
    return value


def size_of(text: str, what: str, where: str) -> int:
    """Read a number of bytes; a fraction of one is rounded up."""
    size = ceil_ratio(*cost_of(text, what, where).as_integer_ratio())
    if size >= SIZE_LIMIT:
        raise InputError(f"{what} must be below 2^62 bytes", where=where)
    return size
