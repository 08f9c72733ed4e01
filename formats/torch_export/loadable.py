"""Copies of archives that PyTorch may load: nothing pickled in them, no text that it would run as code."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import IO, Any

from mtpp.errors import InputError
from mtpp.formats.io.json_shape import shown
from mtpp.formats.io.large_file import Stored, opened
from mtpp.formats.torch_export.archive import CONSTANTS, DAMAGED, WEIGHTS, program_files, program_text
from mtpp.formats.torch_export.symbols import check_arithmetic

_RAW = re.compile(r"(weight|tensor)_\d+")
"""Names of files with the plain numbers of a tensor."""

_TARGET = re.compile(r"torch\.ops\.[a-z]\w*\.\w+(\.\w+)?|_operator\.[a-z]\w*|math\.[a-z]\w*|torch\.sym_[a-z]\w*")
"""What nodes may call: operators, and arithmetic on sizes."""

_NOT_ARITHMETIC = frozenset(
    ("_operator.attrgetter", "_operator.itemgetter", "_operator.methodcaller", "_operator.call")
)

_KNOWN_CONTAINERS = ("builtins.", "collections.", "torch.")
"""Beginnings of the names of containers that PyTorch always knows."""

_IN_MEMORY_BYTES = 256 << 20
"""Size of a copy beyond which it is in a temporary file."""

_AGAIN = "export it again, with plain tensors only"
_REGISTER = "name the module that registers it with ‹imports›, or export the model without it"
_DISTRUST = "do not trust it; export the model again"
_BATCHED = "torch._functorch.predispatch."
_DECOMPOSE = (
    "in Python, take its regions of torch.vmap apart and save it again: "
    "torch.export.save(torch.export.load(FILE).run_decompositions(), FILE)"
)


def loadable_copy(
    stored: Stored,
    source: str,
    sample_inputs: bytes,
    has: Callable[[str], bool] = lambda target: True,
    recorded: Sequence[str] = (),
) -> IO[bytes]:
    """Return a copy of an exported program that ``torch.export.load`` reads without running anything of it.

    Parameters
    ----------
    sample_inputs
        Pickled by the caller: they stand in place of the file's own, which PyTorch would unpickle.
    has
        Says whether PyTorch has an operator, such as ``torch.ops.aten.relu.default``.
    recorded
        Modules that a manifest or a plan names as those that register operators; messages name them.

    Raises
    ------
    InputError
        If the archive is not one that :func:`mtpp.formats.torch_export.archive.program_text` reads, if weights or
        constants are pickled, if a node calls what is no operator or none that PyTorch has, or a size is no arithmetic:
        PyTorch would evaluate it as Python.

    Notes
    -----
    O(size of the archive). Only the program, its weights and its constants are copied.
    """
    text = program_text(stored, source)
    _check_config(text.weights, "weight", source)
    _check_config(text.constants, "constant", source)
    program = {key: value for key, value in text.program.items() if key != "guards_code"}
    program["guards_code"] = []
    if "graph_module" in program:
        program["graph_module"] = _with_plain_containers(program["graph_module"])
    for where, key, value in _texts(program, ""):
        if key == "expr_str":
            _check_expression(value, f"{where}/{key}", source)
        elif key == "target" and where.rpartition("/")[0].endswith("/nodes"):
            _check_target(value, f"{where}/{key}", source)
            if not has(value):
                problem = f"the operator {value.removeprefix('torch.ops.')!r} is none of PyTorch's own"
                raise InputError(problem, source=source, where=f"{where}/{key}", remedy=_register(recorded))
    copy: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115, the caller closes it
    try:
        with opened(stored) as file, zipfile.ZipFile(file) as old:
            _write(copy, old, program, text.weights | text.constants, sample_inputs, source)
    except InputError:
        copy.close()
        raise
    except OSError as error:
        with suppress(OSError):  # what could not be written is tried once more
            copy.close()
        problem = f"PyTorch loads a copy of it, which cannot be made in {tempfile.gettempdir()}: "
        remedy = "have TMPDIR name a folder with more room"
        raise InputError(problem + (error.strerror or str(error)), source=source, remedy=remedy) from None
    except DAMAGED as error:
        copy.close()
        problem = f"the archive is truncated or damaged: {' '.join(str(error).split())[:200]}"
        raise InputError(problem, source=source, remedy="copy or export it again") from None
    copy.seek(0)
    return copy


def _with_plain_containers(module: Any) -> Any:
    """Return a graph module whose arguments and results are in containers of Python and PyTorch alone.

    Others, such as the results of a model of transformers, are known only where the package that made them is imported.
    A tuple in place of each keeps the tensors and their order.
    """
    if not isinstance(module, dict) or not isinstance(module.get("module_call_graph"), list):
        return module
    return {**module, "module_call_graph": [_plain_call(call) for call in module["module_call_graph"]]}


def _plain_call(call: Any) -> Any:
    signature = call.get("signature") if isinstance(call, dict) else None
    if not isinstance(signature, dict):
        return call
    plain = {key: _plain_tree(signature[key]) for key in ("in_spec", "out_spec") if key in signature}
    return {**call, "signature": {**signature, **plain}}


def _plain_tree(text: Any) -> Any:
    """Return a tree of containers, as PyTorch writes it, with tuples for those that it may not know."""

    def plain(one: dict[str, Any]) -> dict[str, Any]:
        kind = one.get("type")
        if "children_spec" not in one or not isinstance(kind, str) or kind.startswith(_KNOWN_CONTAINERS):
            return one
        return {**one, "type": "builtins.tuple", "context": "null"}

    try:
        return json.dumps(json.loads(text, object_hook=plain))
    except (RecursionError, TypeError, ValueError):
        return text  # PyTorch says why


def _register(recorded: Sequence[str]) -> str:
    return f"give {' '.join(f'‹imports› {name}' for name in recorded)}, as when it was made" if recorded else _REGISTER


def _write(
    copy: IO[bytes],
    old: zipfile.ZipFile,
    program: dict[str, Any],
    entries: dict[str, Any],
    sample_inputs: bytes,
    source: str,
) -> None:
    with zipfile.ZipFile(copy, "w") as new:
        root, model = program_files(set(old.namelist()), source)
        stem = model.rpartition("/")[2].removesuffix(".json")

        def put(name: str, content: bytes) -> None:
            new.writestr(zipfile.ZipInfo(f"program/{name}"), content)

        put(f"models/{stem}.json", json.dumps(program, default=float).encode())
        put(f"data/sample_inputs/{stem}.pt", sample_inputs)
        there = set(old.namelist())
        for folder in (WEIGHTS, CONSTANTS):
            config = f"data/{folder}/{stem}_{folder}_config.json"
            put(config, old.read(root + config) if root + config in there else b'{"config": {}}')
        folders = {"weight": WEIGHTS, "tensor": CONSTANTS}
        for name in sorted({str(entry["path_name"]) for entry in entries.values()}):
            inner = f"data/{folders[name.partition('_')[0]]}/{name}"
            if root + inner in there:
                with old.open(root + inner) as raw, new.open(f"program/{inner}", "w", force_zip64=True) as out:
                    shutil.copyfileobj(raw, out, 1 << 24)
        for name, content in (
            ("archive_format", b"pt2"),
            ("archive_version", b"0"),
            ("byteorder", b"little"),
            (".data/version", b"3\n"),
        ):
            put(name, old.read(root + name) if root + name in there else content)


def _check_config(config: dict[str, Any], what: str, source: str) -> None:
    for name, entry in config.items():
        if not isinstance(entry, dict) or not isinstance(entry.get("path_name"), str):
            raise InputError("is damaged", source=source, where=f"{what} {name!r}", remedy="export it again")
        if entry.get("use_pickle") is not False or not _RAW.fullmatch(entry["path_name"]):
            problem = f"{what} {name!r} is pickled, and is not unpickled: that could run any program"
            raise InputError(problem, source=source, where=shown(entry["path_name"]), remedy=_AGAIN)


def _check_expression(value: Any, where: str, source: str) -> None:
    try:
        check_arithmetic(value)
    except (AttributeError, RecursionError, TypeError, ValueError):
        problem = f"the size {shown(value)} is no arithmetic of sizes, and is not evaluated"
        raise InputError(problem, source=source, where=where, remedy=_DISTRUST) from None


def _check_target(value: Any, where: str, source: str) -> None:
    if not isinstance(value, str) or not _TARGET.fullmatch(value) or value in _NOT_ARITHMETIC:
        if isinstance(value, str) and value.startswith(_BATCHED):
            problem = "the program has a region of torch.vmap, which stages cannot be cut from"
            raise InputError(problem, source=source, where=where, remedy=_DECOMPOSE)
        problem = f"a node calls {shown(value)}, which is no operator"
        raise InputError(problem, source=source, where=where, remedy=_DISTRUST)


def _texts(value: Any, where: str) -> Iterator[tuple[str, str, Any]]:
    """Yield the items of all objects in a document, with where they are."""
    waiting = [(where, value)]
    while waiting:
        at, one = waiting.pop()
        if isinstance(one, dict):
            for key, inner in one.items():
                if isinstance(inner, dict | list):
                    waiting.append((f"{at}/{key}", inner))
                if key in ("expr_str", "target"):
                    yield at, key, inner
        elif isinstance(one, list):
            waiting += [(f"{at}/{i}", inner) for i, inner in enumerate(one) if isinstance(inner, dict | list)]
