"""Cache of machine code of one kernel, in the place of numba's own."""

from __future__ import annotations

import sys
from functools import cache
from hashlib import sha256
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np

from mtpp.solvers.compilation import work_begins, work_ends
from mtpp.solvers.machine_code.code_folders import BESIDE_SOURCE, SHIPPED, CodeFolders, CodeName
from mtpp.solvers.machine_code.kernel_digest import NoDigest, kernel_digest
from mtpp.solvers.machine_code.saved_kernel import restored, saved
from mtpp.solvers.machine_code.signature_text import signature_text

_FORMAT = 1
_DIGITS = 24


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


class KernelCache:
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
        work_begins()
        try:
            return self._load(signature, target)
        finally:
            work_ends()

    def _load(self, signature: Any, target: Any) -> Any:
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
            result = None if content is None else restored(content, target)
            if result is not None:
                return result
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep what was compiled for a signature; nothing happens where it cannot be written."""
        told = self._told.pop(signature, None)
        if told is not None and not result.lifted and not result.library.has_dynamic_globals:
            source, types = told
            name = CodeName(self._label, source, _digest(types, _processor(result.target_context)))
            code_folders().keep(name, saved(result))

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
