"""Digest of what a kernel does: its bytecode, the constants that it reads, and the same of all that it calls.

Paths, line numbers, comments and docstrings do not count, so that a kernel keeps its machine code wherever it is
installed; the value of a constant and the body of a function in another file do.
"""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from hashlib import sha256
from types import CodeType, FunctionType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

LIBRARIES = ("math", "numpy")
"""Modules whose functions kernels may call; their versions belong to the key of machine code."""

_CODE: WeakKeyDictionary[CodeType, str] = WeakKeyDictionary()


class NoDigest(Exception):
    """A kernel cannot be told from others by its parts."""


def kernel_digest(kernel: Any) -> bytes:
    """Return the SHA-256 of what a kernel does.

    Parameters
    ----------
    kernel
        With the attributes ``py_func`` and ``targetoptions`` of numba's dispatchers.

    Raises
    ------
    NoDigest
        If it, or what it calls, reads a global value other than numbers, text, tuples, arrays, records, types of
        numbers, other kernels and the modules of :data:`LIBRARIES`. If it stands inside a function: all that such a
        function makes has one name in machine code, where a name stands for one kernel. If kernels call each other in
        a circle: numba cannot load them, each before the other.

    Notes
    -----
    Values are read anew at each call, since numba takes those that hold when it compiles.
    """
    parts: dict[int, str] = {}
    calls: dict[int, set[int]] = {}
    waiting = [kernel]
    while waiting:
        one = waiting.pop()
        if id(one) not in parts:
            called: list[Any] = []
            parts[id(one)] = _own_part(one, called)
            waiting += called
            calls[id(one)] = {id(other) for other in called if other is not one}
    try:
        TopologicalSorter(calls).prepare()
    except CycleError:
        raise NoDigest(f"{_place(kernel.py_func)} calls kernels that call each other") from None
    first, *others = parts.values()
    return sha256("\n".join([first, *sorted(others)]).encode()).digest()


def _own_part(kernel: Any, called: list[Any]) -> str:
    """Describe a kernel by itself; add those that it calls to *called*."""
    function: FunctionType = kernel.py_func
    if "<locals>" in function.__qualname__:
        raise NoDigest(f"{_place(function)} is made by a function")
    code = function.__code__
    text = _CODE.get(code)
    if text is None:
        text = _CODE[code] = repr(_code_parts(code, function.__doc__))
    values = [
        (name, _value(function.__globals__[name], called))
        for name in sorted(set(_names(code)))
        if name in function.__globals__
    ]
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
        code.co_name,
        code.co_code,
        constants,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags),
        code.co_exceptiontable,
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
    if isinstance(value, np.generic):
        return f"{value.dtype.str} {value.tobytes().hex()}"
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
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
    raise NoDigest(f"{type(value).__name__} {value!r}")


def _type(cls: Any, called: list[Any]) -> str:
    """Describe a type that a kernel calls; others, as enumerations, have values that it could read as well."""
    if issubclass(cls, np.generic) or cls.__module__ == "builtins":
        return f"type {_place(cls)}"
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        defaults = [(name, _value(value, called)) for name, value in cls._field_defaults.items()]
        return f"type {_place(cls)} {cls._fields} {defaults}"
    raise NoDigest(f"type {_place(cls)}")


def _place(named: Any) -> str:
    return f"{named.__module__}.{named.__qualname__}"
