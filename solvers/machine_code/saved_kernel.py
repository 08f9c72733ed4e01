"""Compiled kernels as bytes, and back."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterable
from typing import Any, cast


def saved(result: Any) -> bytes:
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


def restored(content: bytes, target: Any) -> Any:
    """Turn what :func:`saved` made back into a compiled kernel; None if that is not possible."""
    from numba.core.compiler import CompileResult
    from numba.core.runtime import rtsys

    rtsys.initialize(target)  # all that running needs; numba refreshes a target, at ten times the price, to compile
    try:
        inner, module = pickle.loads(content)
        result = CompileResult._rebuild(target, *pickle.loads(inner))
    except Exception:  # what it names has moved, or another build of LLVM wrote it
        return None
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
