"""Compilation of kernels: on first use, kept on disk, without the interpreter lock."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn, TypeVar, cast

import numba
from numba.core import event

from mtpp.solvers.compilation import tell_watchers, work_begins, work_ends
from mtpp.solvers.kernel_cache import PART_SUFFIX, SUFFIX, KernelCache

F = TypeVar("F", bound=Callable[..., object])

_OPTIONS = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
"""Of all kernels; none is called from C."""


def kernel(function: F) -> F:
    """Compile *function* on its first call, keep the result on disk, and release the GIL while it runs."""
    dispatcher = numba.njit(**_OPTIONS)(function)
    if hasattr(dispatcher, "py_func"):  # numba may be told to compile nothing
        _take_over(dispatcher, SUFFIX)
    return cast(F, dispatcher)


def subroutine(function: F) -> F:
    """Compile *function* as :func:`kernel` does, for other kernels alone to call: without an entry from Python.

    Turning the arguments of an entry from Python's values takes as long to compile as a small kernel itself. It may
    call itself, but not be one of several that call each other: numba finds those by that entry.
    """
    dispatcher = numba.njit(**_OPTIONS, no_cpython_wrapper=True)(function)
    if hasattr(dispatcher, "py_func"):
        _take_over(dispatcher, PART_SUFFIX)
        dispatcher._insert = _not_offered
        dispatcher._compile_for_args = partial(_refuse, function.__name__)
    return cast(F, dispatcher)


def _take_over(dispatcher: Any, suffix: str) -> None:
    """Give a kernel our cache, and have other kernels call it with few types of numbers."""
    typed = dispatcher.get_call_template
    dispatcher.get_call_template = lambda args, named: typed(
        tuple(map(_plain_type, args)), {name: _plain_type(kind) for name, kind in named.items()}
    )
    dispatcher._cache = KernelCache(dispatcher, suffix)


def _plain_type(kind: Any) -> Any:
    """Return the type that a number is passed as from kernel to kernel, so that none is compiled twice for one use.

    To numba ``0`` is another type than a variable, and what was read from an array of int32 another than a sum.
    """
    kind = numba.types.unliteral(kind)
    return numba.types.int64 if kind in (numba.types.int8, numba.types.int16, numba.types.int32) else kind


def _not_offered(*overload: object) -> None:
    """Keep numba's entry from Python, which there is none of, out of the table that calls look it up in."""


def _refuse(name: str, *arguments: object) -> NoReturn:
    raise TypeError(f"{name} is for other kernels to call; make it a kernel to call it from Python")


def inlined(function: F) -> F:
    """Compile *function* into each kernel that calls it: for the small ones inside the hottest loops.

    A call passes tuples of arrays by value and counts references to each array; that takes longer than a small loop.
    """
    return cast(F, numba.njit(**_OPTIONS, inline="always")(function))


class _Compilations(event.Listener):  # type: ignore[misc]  # numba is not typed
    def on_start(self, event: object) -> None:
        tell_watchers()
        work_begins()

    def on_end(self, event: object) -> None:
        work_ends()


event.register("numba:compile", _Compilations())
