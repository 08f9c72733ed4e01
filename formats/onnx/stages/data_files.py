"""Weights that lie beside a model: under which names the stages share them.

Every file that the model refers to gets a name of our own, so that no name in a model becomes one on the disk. Files
are copied, not linked: onnx refuses external data with several hard links, since a link can smuggle a file in.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import onnx

from mtpp.errors import InputError
from mtpp.formats.onnx.external_data import ExternalPlace, external_place

_CHUNK_BYTES = 1 << 22


class DataFiles:
    """The files of external data of a model, each under a safe name.

    Parameters
    ----------
    tensors
        All tensors of the model: their places are checked.
    folder
        Of the model's file; None for a model from standard input, which has nothing beside it.

    Attributes
    ----------
    files
        Safe name → path of the file, of those that exist.
    absent
        Safe names of those that do not.
    """

    def __init__(self, tensors: Iterable[onnx.TensorProto], folder: Path | None, source: str) -> None:
        self._folder = folder
        self._source = source
        self._names: dict[str, str] = {}
        self.files: dict[str, Path] = {}
        self.absent: list[str] = []
        for tensor in tensors:
            place = self._place(tensor)
            if place is None or place.location in self._names:
                continue
            name = f"weights-{len(self._names)}.bin"
            self._names[place.location] = name
            if place.is_there:
                self.files[name] = place.path
            else:
                self.absent.append(name)

    def _place(self, tensor: onnx.TensorProto) -> ExternalPlace | None:
        if tensor.data_location == onnx.TensorProto.EXTERNAL and self._folder is None:
            raise InputError(
                "its contents lie in a file beside the model",
                source=self._source,
                where=f"tensor {tensor.name!r}",
                remedy="give the file of the model in place of standard input",
            )
        return external_place(tensor, self._folder or Path(), self._source)

    def rename(self, tensors: Iterable[onnx.TensorProto]) -> None:
        """Let tensors refer to their contents under the safe names."""
        for tensor in tensors:
            place = self._place(tensor)
            if place is None:
                continue
            entries = {entry.key: entry.value for entry in tensor.external_data}
            entries["location"] = self._names[place.location]
            del tensor.external_data[:]
            for key, value in entries.items():
                tensor.external_data.add(key=key, value=value)

    def copy(self, folder: Path) -> None:
        """Copy the files that exist into *folder*, flushed to the disk."""
        for name, path in self.files.items():
            with self._open(path) as file, (folder / name).open("xb") as copy:
                shutil.copyfileobj(file, copy, _CHUNK_BYTES)
                copy.flush()
                os.fsync(copy.fileno())

    def _open(self, path: Path) -> BinaryIO:
        try:
            # A link that was put there since the place was checked is not followed.
            return os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb")
        except OSError as error:
            raise InputError(f"{path.name!r} cannot be read: {error.strerror or error}", source=self._source) from None
