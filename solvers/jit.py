"""Compilation of kernels: on first use, kept on disk, without the interpreter lock."""

from __future__ import annotations

import pickle
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from hashlib import sha256
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

import llvmlite
import numba
import numpy as np

from mtpp.solvers.machine_code.code_folders import BESIDE_SOURCE, SHIPPED, CodeFolders, CodeName
from mtpp.solvers.machine_code.kernel_digest import NoDigest, kernel_digest
from mtpp.solvers.machine_code.signature_text import signature_text

F = TypeVar("F", bound=Callable[..., object])

_OPTIONS = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
"""Of all kernels; none is called from C."""

_FORMAT = 1
_DIGITS = 24


def kernel(function: F) -> F:
    """Compile *function* on its first call, keep the result on disk, and release the GIL while it runs."""
    dispatcher = numba.njit(**_OPTIONS)(function)
    if hasattr(dispatcher, "py_func"):  # numba may be told to compile nothing
        _take_over(dispatcher)
    return cast(F, dispatcher)


def subroutine(function: F) -> F:
    """Compile *function* as :func:`kernel` does, for other kernels alone to call: without an entry from Python.

    Turning the arguments of an entry from Python's values takes as long to compile as a small kernel itself.
    """
    dispatcher = numba.njit(**_OPTIONS, no_cpython_wrapper=True)(function)
    if hasattr(dispatcher, "py_func"):
        _take_over(dispatcher)
        dispatcher._insert = _not_offered
        dispatcher._compile_for_args = partial(_refuse, function.__name__)
    return cast(F, dispatcher)


def _take_over(dispatcher: Any) -> None:
    """Give a kernel our cache, and have other kernels call it with few types of numbers."""
    typed = dispatcher.get_call_template
    dispatcher.get_call_template = lambda args, named: typed(
        tuple(map(_plain_type, args)), {name: _plain_type(kind) for name, kind in named.items()}
    )
    dispatcher._cache = _KernelCache(dispatcher)


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


def on_disk(kernel: object) -> bool:
    """Return whether a kernel has machine code on disk, for some signature; only a forecast."""
    cached = getattr(kernel, "_cache", None)
    return isinstance(cached, _KernelCache) and cached.on_disk()


@contextmanager
def watched_compilation(say: Callable[[], None]) -> Iterator[None]:
    """Call *say* once if anything is compiled while this is entered, in whichever thread."""
    from numba.core import event

    class Watcher(event.Listener):  # type: ignore[misc]  # numba is not typed
        said = False

        def on_start(self, event: object) -> None:
            if not self.said:
                self.said = True
                say()

        def on_end(self, event: object) -> None:
            pass

    with event.install_listener("numba:compile", Watcher()):
        yield


@cache
def code_folders() -> CodeFolders:
    """Return the folders of machine code of this process.

    ``NUMBA_CACHE_DIR`` names the only one for new code; else it is beside the source, or where that cannot be written,
    in the user's folder for caches.
    """
    from numba.core import config
    from numba.misc.appdirs import AppDirs

    if config.CACHE_DIR:
        return CodeFolders(SHIPPED, (Path(config.CACHE_DIR).absolute(),))
    users = Path(AppDirs(appname="mtpp", appauthor=False).user_cache_dir) / "kernels"
    return CodeFolders(SHIPPED, (BESIDE_SOURCE, *((users,) if users.is_absolute() else ())))


class _KernelCache:
    """Machine code of one kernel: what numba asks before it compiles, and gives what it compiled.

    It takes the place of numba's own cache, which goes by the path and the time stamp of one source file: code is not
    found again in another folder, and is found still after a callee in another file has changed.
    """

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher
        self._told: dict[object, tuple[str, str] | None] = {}

    @property
    def cache_path(self) -> str:
        """Folder that new code is kept in, if it can be written."""
        return str(code_folders().own[0])

    def enable(self) -> None:
        """Do nothing: it is always on."""

    def disable(self) -> None:
        """Do nothing."""

    def flush(self) -> None:
        """Do nothing: files of what a kernel was before are never taken for it."""

    def on_disk(self) -> bool:
        """Return whether there is code of this kernel for any signature."""
        source = self._source()
        return source is not None and code_folders().has_any(CodeName(self._label, source, ""))

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the compiled kernel for a signature, None if it has to be compiled."""
        # What numba bakes in is what holds now, not what holds when it is done.
        told = self._told[signature] = self._tell(signature)
        result = None if told is None else self._found(*told, target)
        if result is None:  # it is compiled next
            _register_without_blas()
        return result

    def _tell(self, signature: Any) -> tuple[str, str] | None:
        """Return what the kernel does and the types of its arguments; None if code of it cannot be told from other."""
        source = self._source()
        try:
            return None if source is None else (source, signature_text(getattr(signature, "args", signature)))
        except NoDigest:
            return None

    def _found(self, source: str, types: str, target: Any) -> Any:
        folders = code_folders()
        for find, processor in ((folders.find_shipped, _GENERIC), (folders.find_own, _processor(target))):
            content = find(CodeName(self._label, source, _digest(types, processor)))
            result = None if content is None else _restored(content, target)
            if result is not None:
                return result
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep what was compiled for a signature; nothing happens where it cannot be written."""
        told = self._told.pop(signature, None)
        if told is not None and not result.lifted and not result.library.has_dynamic_globals:
            source, types = told
            name = CodeName(self._label, source, _digest(types, _processor(result.target_context)))
            code_folders().keep(name, _saved(result))

    @property
    def _label(self) -> str:
        function = self._dispatcher.py_func
        return f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"

    def _source(self) -> str | None:
        """Return a digest of what this kernel does and of what compiles it; None if that cannot be told."""
        try:
            return _digest(kernel_digest(self._dispatcher).hex(), _compiler())
        except NoDigest:
            return None


_GENERIC = ("generic", "", False)
"""What :func:`_processor` returns of one that has nothing but what all of its architecture have."""


def _processor(target: Any) -> tuple[str, str, bool]:
    """Return name and features of the processor that code is compiled for, and if it calls Intel's vector functions."""
    from numba.core import config

    _, name, features = target.codegen().magic_tuple()
    return name, features, bool(config.USING_SVML)


@cache
def _compiler() -> str:
    """Describe all besides the kernel, its signature and the processor that machine code depends on."""
    from llvmlite.binding import get_process_triple
    from numba.core import config

    options = ("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE")
    return repr(
        (
            _FORMAT,
            get_process_triple(),
            sys.implementation.cache_tag,
            getattr(sys, "abiflags", ""),
            MAGIC_NUMBER.hex(),
            numba.__version__,
            llvmlite.__version__,
            np.__version__.partition(".")[0],
            [str(getattr(config, option, None)) for option in options],
        )
    )


def _digest(*parts: object) -> str:
    return sha256(repr(parts).encode()).hexdigest()[:_DIGITS]


def _saved(result: Any) -> bytes:
    """Turn a compiled kernel into bytes.

    Its module in LLVM's code, which only kernels that call it are compiled with, is set apart from the rest: reading
    that takes longer than all else. A module with no more than its names stands in for it.
    """
    from numba.core.serialize import dumps

    (name, kind, (machine_code, module)), described, *rest = result._reduce()
    rest[4] = ""  # types by line of source, with paths
    defined = {function.name for function in result.library.get_defined_functions()}
    names = [n for n in (described.llvm_func_name, described.llvm_cpython_wrapper_name) if n in defined]
    library = (name, kind, (machine_code, _names_alone(names)))
    return cast(bytes, dumps((dumps((library, described, *rest)), zlib.compress(module))))


def _names_alone(names: Iterable[str]) -> bytes:
    from llvmlite.binding import parse_assembly

    lines = [f'define void @"{name}"() {{ ret void }}' for name in names]
    return cast(bytes, parse_assembly("\n".join(lines)).as_bitcode())


def _restored(content: bytes, target: Any) -> Any:
    """Turn what :func:`_saved` made back into a compiled kernel; None if that is not possible."""
    from numba.core.compiler import CompileResult
    from numba.core.runtime import rtsys

    rtsys.initialize(target)  # all that running needs; numba refreshes a target, at ten times the price, to compile
    try:
        inner, module = pickle.loads(content)
        parts = pickle.loads(inner)
    except Exception:  # what it names has moved
        return None
    result = CompileResult._rebuild(target, *parts)
    _put_off(result.library, module)
    return result


def _put_off(library: Any, module: bytes) -> None:
    """Have a library read its module only when another kernel is compiled with it."""

    def read() -> Any:
        from llvmlite.binding import parse_bitcode

        del library._get_module_for_linking
        library._shared_module = parse_bitcode(zlib.decompress(module))
        return library._shared_module

    library._get_module_for_linking = read


def _register_without_blas() -> None:
    """Let numba register its array functions, which compiling needs, without a look for BLAS.

    That look imports scipy.linalg, for a fifth of a second, for ``np.dot`` and the like, which no kernel uses. numba
    looks again when it compiles one of them, for whoever else uses it in this process.
    """
    if "numba.np.arraymath" in sys.modules:
        return
    from numba.np import linalg

    look, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        linalg.ensure_blas = look
