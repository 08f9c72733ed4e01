"""Cache of compiled kernels: numba's own, with stamps of all that a kernel calls, and code that a package ships.

numba goes by the path and the contents of the one file that a kernel stands in. So it does not find code again in
another folder, and finds old code still after a callee or a constant in another file has changed. Here the name of a
file says what the kernel does (:mod:`.kernel_stamp`), the types of its arguments, the processor, and the compiler.
"""

from __future__ import annotations

import os
import pickle
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.util import MAGIC_NUMBER
from itertools import count
from pathlib import Path
from secrets import randbits
from typing import Any, NamedTuple, cast

import llvmlite
import numba
import numpy as np
from numba.core import config
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.core.serialize import dumps

from mtpp.solvers.compilation import work_begins, work_ends
from mtpp.solvers.kernel_stamp import NoStamp, kernel_stamp, signature_text

SUFFIX = ".kernel"
PART_SUFFIX = ".part"
"""Of code that only other kernels call: no package ships it, for they contain it."""

SHIPPED = Path(__file__).resolve().parent / "compiled"
"""Code that came with the package, for every processor of its architecture; never written to."""

_BESIDE_SOURCE = Path(__file__).resolve().parent / "__pycache__"
_MAGIC = b"mtpp machine code 3\n"
_DIGITS = 24
_GENERIC = ("generic", "", False)
"""What :func:`_processor` returns of one that has nothing but what all of its architecture have."""

_KEPT_VERSIONS = 4
"""Of a kernel, its types and processor, in one folder: several installations and checkouts may share it."""


@cache
def own_folders() -> tuple[Path, ...]:
    """Return the folders of code for this processor: the first that can be written keeps new code.

    ``NUMBA_CACHE_DIR`` names the only one; else it is in the user's folder for caches, or where that cannot be written,
    beside the source.
    """
    from numba.misc.appdirs import AppDirs

    if config.CACHE_DIR:
        return (Path(config.CACHE_DIR).absolute(),)
    users = Path(AppDirs(appname="mtpp", appauthor=False).user_cache_dir) / "kernels"
    return (*((users,) if users.is_absolute() else ()), _BESIDE_SOURCE)


class CodeName(NamedTuple):
    """Name of a file of code.

    Attributes
    ----------
    kernel
        Module and name of the kernel, for people.
    source
        Digest of what it does and of what compiles it.
    target
        Digest of the types of its arguments and of the processor.
    suffix
        :data:`SUFFIX` or :data:`PART_SUFFIX`.
    """

    kernel: str
    source: str
    target: str
    suffix: str = SUFFIX

    def __str__(self) -> str:
        return f"{self.kernel}-{self.source}-{self.target}{self.suffix}"


class CodeFiles(IndexDataCacheFile):  # type: ignore[misc]  # numba is not typed
    """Files of code in one folder, each written whole or not at all, and read only whole and under its own name.

    numba numbers such files in an index, which two processes that write at once may give one number. Here a name says
    all of it, and the time of a file says when it was last of use.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder), "", None)
        self._folder = folder

    def load(self, name: CodeName) -> bytes | None:
        """Return the code of that name, None if there is no such file, or it is broken."""
        path = self._folder / str(name)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        head = len(_MAGIC) + sha256().digest_size
        if data[:head] != _MAGIC + _checksum(path, data[head:]):
            return None
        if self._folder != SHIPPED:
            with suppress(OSError):
                os.utime(path)
        return data[head:]

    def save(self, name: CodeName, content: bytes) -> None:
        """Write code, and remove the versions of its kernel that were of no use for longest.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        path = self._folder / str(name)
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._open_for_write(str(path)) as file:
            file.write(_MAGIC + _checksum(path, content) + content)
        with suppress(OSError):
            others = set(self._folder.glob(str(name._replace(source="*")))) - {path}
            for old in sorted(others, key=lambda one: one.stat().st_mtime_ns)[: 1 - _KEPT_VERSIONS]:
                old.unlink()


def _checksum(path: Path, content: bytes) -> bytes:
    return sha256(path.name.encode() + b"\0" + content).digest()


class _Anywhere:
    """Place of a kernel, in numba's terms: its code has a name that does not depend on it."""

    def __init__(self, file: str) -> None:
        self._py_file = file

    def ensure_cache_path(self) -> None:
        """Make no folder yet."""

    def get_cache_path(self) -> str:
        return str(own_folders()[0])

    def get_source_stamp(self) -> None:
        """Return none: what a kernel calls may not be there yet."""


class CodeBytes(CompileResultCacheImpl):  # type: ignore[misc]
    """Compiled kernels as bytes, and back.

    A kernel's module in LLVM's code, which only kernels that call it are compiled with, is set apart from the rest:
    reading that takes longer than all else. A module with no more than its names stands in for it.
    """

    def __init__(self, function: Any) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Anywhere(function.__code__.co_filename)
        self._filename_base = ""

    def reduce(self, result: Any) -> bytes:
        """Turn a compiled kernel into bytes."""
        (name, kind, (machine_code, module)), described, *rest = super().reduce(result)
        rest[4] = ""  # types by line of source, with paths
        defined = {function.name for function in result.library.get_defined_functions()}
        names = [n for n in (described.llvm_func_name, described.llvm_cpython_wrapper_name) if n in defined]
        library = (name, kind, (machine_code, _names_alone(names)))
        return cast(bytes, dumps((dumps((library, described, *rest)), zlib.compress(module))))

    def rebuild(self, target: Any, content: bytes) -> Any:
        """Turn bytes back into a compiled kernel; None if what they name has moved, or another LLVM wrote them."""
        from numba.core.runtime import rtsys

        rtsys.initialize(target)  # all that running needs; numba refreshes a target, at ten times the price, to compile
        try:
            inner, module = pickle.loads(content)
            result = super().rebuild(target, pickle.loads(inner))
        except Exception:
            return None
        _put_off(result.library, module)
        return result


def _names_alone(names: Iterable[str]) -> bytes:
    from llvmlite.binding import parse_assembly

    lines = [f'define void @"{name}"() {{ ret void }}' for name in names]
    return cast(bytes, parse_assembly("\n".join(lines)).as_bitcode())


def _put_off(library: Any, module: bytes) -> None:
    """Have a library read its module only when another kernel is compiled with it."""

    def read() -> Any:
        from llvmlite.binding import parse_bitcode

        del library._get_module_for_linking
        library._shared_module = parse_bitcode(zlib.decompress(module))
        return library._shared_module

    library._get_module_for_linking = read


# numba counts functions from 1 in each process, and makes names in machine code of their numbers. Code of two processes
# would be taken for one another where functions, or types of arguments, have one name.
FunctionIdentity._unique_ids = count(randbits(62))


class KernelCache(FunctionCache):  # type: ignore[misc]
    """Machine code of one kernel: what numba asks before it compiles, and gives what it compiled."""

    _impl_class = CodeBytes

    def __init__(self, dispatcher: Any, suffix: str) -> None:
        super().__init__(dispatcher.py_func)
        self._dispatcher = dispatcher
        self._suffix = suffix
        self._asked: dict[object, tuple[str, str] | None] = {}

    def flush(self) -> None:
        """Do nothing: files of what a kernel was before are never taken for it."""

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the compiled kernel for a signature, None if it has to be compiled."""
        work_begins()
        try:
            # What numba bakes in is what holds now, not what holds when it is done.
            asked = self._asked[signature] = self._ask(signature)
            result = None if asked is None else next(self._found(*asked, target), None)
            if result is None:  # it is compiled next
                _register_without_blas()
            return result
        finally:
            work_ends()

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep what was compiled for a signature; nothing happens where no folder can be written."""
        asked = self._asked.pop(signature, None)
        if asked is not None and self._impl.check_cachable(result):
            content = self._impl.reduce(result)
            name = self._code_name(*asked, _processor(result.target_context))
            for folder in own_folders():
                with suppress(OSError):
                    return CodeFiles(folder).save(name, content)

    def _ask(self, signature: Any) -> tuple[str, str] | None:
        """Return what the kernel does and the types of its arguments; None if code of it cannot be told from other."""
        with suppress(NoStamp):
            return kernel_stamp(self._dispatcher), signature_text(getattr(signature, "args", signature))
        return None

    def _found(self, source: str, types: str, target: Any) -> Iterator[Any]:
        places = [(SHIPPED, _GENERIC), *((folder, _processor(target)) for folder in own_folders())]
        for folder, processor in places:
            content = CodeFiles(folder).load(self._code_name(source, types, processor))
            if content is not None and (result := self._impl.rebuild(target, content)) is not None:
                yield result

    def _code_name(self, source: str, types: str, processor: object) -> CodeName:
        function = self._dispatcher.py_func
        kernel = re.sub(r"[^\w.]", "", f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}")
        return CodeName(kernel, digest(source, compiler()), digest(types, processor), self._suffix)


def _processor(target: Any) -> tuple[str, str, bool]:
    """Return name and features of the processor that code is compiled for, and if it calls Intel's vector functions."""
    _, name, features = target.codegen().magic_tuple()
    return name, features, bool(config.USING_SVML)


@cache
def compiler() -> str:
    """Describe all besides the kernel, its signature and the processor that machine code depends on."""
    from llvmlite.binding import get_process_triple

    options = ("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE")
    python = (sys.implementation.cache_tag, getattr(sys, "abiflags", ""), MAGIC_NUMBER.hex())
    versions = (numba.__version__, llvmlite.__version__, np.__version__.partition(".")[0])
    return repr((get_process_triple(), python, versions, [str(getattr(config, option, None)) for option in options]))


def digest(*parts: object) -> str:
    """Return a digest of values, by their text."""
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
