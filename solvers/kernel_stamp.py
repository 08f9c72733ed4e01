"""Stamp of a kernel: its bytecode, the values that it reads, the same of all that it calls, and types of arguments.

Paths, line numbers, comments and docstrings do not count, so that a kernel keeps its machine code wherever it is
installed; the value of a constant and the body of a function in another file do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from hashlib import sha256
from types import CodeType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

LIBRARIES = ("math", "numpy")
"""Modules whose functions kernels may call; their versions belong to the stamp of the compiler."""

_CODE: WeakKeyDictionary[CodeType, str] = WeakKeyDictionary()
_PARTS: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""Kernel → its own part of stamps when it was first asked for."""

_NUMBERS = ("Integer", "Float", "Complex", "Boolean", "IntegerLiteral", "BooleanLiteral")
_TOLD_BY_NAME = frozenset((*_NUMBERS, "NoneType", "UnicodeType", "StringLiteral", "Array"))
"""Types of numba, as their classes are called, whose text says all of them."""


class NoStamp(Exception):
    """A kernel cannot be told from others by its parts."""


def kernel_stamp(kernel: Any) -> str:
    """Return the SHA-256 of what a kernel does, in hexadecimal digits.

    Parameters
    ----------
    kernel
        With the attributes ``py_func`` and ``targetoptions`` of numba's dispatchers.

    Raises
    ------
    NoStamp
        If it, or what it calls, reads a global value other than numbers, text, tuples, plain arrays, records, types of
        numbers, other kernels and the modules of :data:`LIBRARIES`. If it stands inside a function, or two of them
        have one name: a name stands for one kernel in machine code. If kernels call each other in a circle: numba
        cannot load them, each before the other. If a value has changed since a stamp was asked for: machine code in
        this process may have either.

    Notes
    -----
    Values are read anew at each call, since numba takes those that hold when it compiles.
    """
    parts: dict[int, str] = {}
    calls: dict[int, set[int]] = {}
    waiting = [kernel]
    places: dict[str, Any] = {}
    while waiting:
        one = waiting.pop()
        if id(one) not in parts:
            called: list[Any] = []
            part = parts[id(one)] = _own_part(one, called)
            waiting += called
            calls[id(one)] = {id(other) for other in called if other is not one}
            place = _place(one.py_func)
            if places.setdefault(place, one) is not one:
                raise NoStamp(f"there are two kernels {place}")
            if _PARTS.setdefault(one, part) != part:
                raise NoStamp(f"a value that {place} reads has changed")
    try:
        TopologicalSorter(calls).prepare()
    except CycleError:
        raise NoStamp(f"{_place(kernel.py_func)} calls kernels that call each other") from None
    first, *others = parts.values()
    return sha256("\n".join([first, *sorted(others)]).encode()).hexdigest()


def _own_part(kernel: Any, called: list[Any]) -> str:
    """Describe a kernel by itself; add those that it calls to *called*."""
    function = kernel.py_func
    if "<locals>" in function.__qualname__:
        raise NoStamp(f"{_place(function)} is made by a function")
    code, globals_ = function.__code__, function.__globals__
    text = _CODE.get(code)
    if text is None:
        text = _CODE[code] = repr(_code_parts(code, function.__doc__))
    values = [(name, _value(globals_[name], called)) for name in sorted(set(_names(code))) if name in globals_]
    defaults = [_value(value, called) for value in function.__defaults__ or ()]
    named = [(name, _value(value, called)) for name, value in sorted((function.__kwdefaults__ or {}).items())]
    options = sorted((name, repr(value)) for name, value in kernel.targetoptions.items())
    return repr((_place(function), text, values, defaults, named, options))


def _names(code: CodeType) -> Iterator[str]:
    """Give the names of globals and attributes that a code object uses, those of functions inside it included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _code_parts(code: CodeType, doc: str | None) -> tuple[object, ...]:
    constants = [_constant(value) for value in code.co_consts]
    if doc is not None and code.co_consts[:1] == (doc,):
        constants[0] = "None"
    return (
        (code.co_name, code.co_code, constants, code.co_exceptiontable),
        (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
        (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags),
    )


def _constant(value: object) -> str:
    if isinstance(value, CodeType):
        return repr(_code_parts(value, None))
    if isinstance(value, frozenset):
        return repr(sorted(map(_constant, value)))
    if isinstance(value, tuple):
        return repr([_constant(item) for item in value])
    return f"{type(value).__name__} {value!r}"


def _value(value: Any, called: list[Any]) -> str:
    """Describe a global value that a kernel reads; add it to *called* if it is a kernel."""
    if hasattr(value, "py_func") and hasattr(value, "targetoptions"):
        called.append(value)
        return f"kernel {_place(value.py_func)}"
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, np.generic | np.ndarray) and (value.dtype.names or value.dtype.hasobject):
        raise NoStamp(f"{type(value).__name__} of {value.dtype}")
    if isinstance(value, np.generic):
        return f"{value.dtype.str} {value.tobytes().hex()}"
    if isinstance(value, np.ndarray):
        flags = value.flags.c_contiguous, value.flags.f_contiguous, value.flags.aligned
        return f"array {value.dtype.str} {value.shape} {flags} {sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, type):
        return _type(value, called)
    if isinstance(value, tuple):
        return f"{_type(type(value), called)} {[_value(item, called) for item in value]}"
    if isinstance(value, ModuleType) and value.__name__.partition(".")[0] in LIBRARIES:
        return f"module {value.__name__}"
    if isinstance(value, np.ufunc):
        return f"function numpy.{value.__name__}"
    home = str(getattr(value, "__module__", ""))
    if callable(value) and hasattr(value, "__name__") and home.partition(".")[0] in (*LIBRARIES, "builtins"):
        return f"function {home}.{value.__name__}"
    raise NoStamp(f"{type(value).__name__} {value!r}")


def _type(cls: Any, called: list[Any]) -> str:
    """Describe a type that a kernel calls; others, as enumerations, have values that it could read as well."""
    if issubclass(cls, np.generic) or cls.__module__ == "builtins":
        return f"type {_place(cls)}"
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        defaults = [(name, _value(value, called)) for name, value in cls._field_defaults.items()]
        return f"type {_place(cls)} {cls._fields} {defaults}"
    raise NoStamp(f"type {_place(cls)}")


def _place(named: Any) -> str:
    return f"{named.__module__}.{named.__qualname__}"


def signature_text(types: Iterable[Any]) -> str:
    """Return the types of a kernel's arguments as text.

    numba's own text of a named tuple leaves out its fields and where its class stands; both are part of it here.

    Raises
    ------
    NoStamp
        If there is a type among them that text may not tell from others, such as that of a function, which numba names
        by an address.
    """
    return ", ".join(map(_type_text, types))


def _type_text(kind: Any) -> str:
    name = type(kind).__name__
    inner = getattr(kind, "types", None)
    if isinstance(inner, tuple):
        cls = getattr(kind, "instance_class", None)
        named = "" if cls is None else f" {cls.__module__}.{cls.__qualname__} {getattr(cls, '_fields', '')}"
        return f"{name}{named} ({', '.join(map(_type_text, inner))})"
    if name == "Optional":
        return f"{name} ({_type_text(kind.type)})"
    if name == "Omitted" and (kind.value is None or isinstance(kind.value, bool | int | float)):
        return f"{name} {type(kind.value).__name__} {kind.value!r}"
    if name not in _TOLD_BY_NAME:
        raise NoStamp(f"argument {kind}")
    return str(kind)
