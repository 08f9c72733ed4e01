"""A model to be opened in a worker process, its inputs and outputs held against those expected."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from mtpp.errors import InputError
from mtpp.formats.results.stage_records import CPU, TEXT
from mtpp.runtime.element_types import Contents, element_type
from mtpp.runtime.pipeline.memory import Shape
from mtpp.runtime.session import SessionChoices

Expected = tuple[str, str, Shape]
"""Name, name of the type, and shape of a tensor."""


class OpenedModel(Protocol):
    """A model in memory, ready to run; values are tensors of the library that runs it."""

    def shared(self, views: Mapping[str, Contents]) -> dict[str, Any]:
        """Return arrays as values on the same memory: nothing is copied but elements that share bytes."""

    def array(self, value: Any) -> Contents:
        """Return a value as an array."""

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the outputs for these inputs, by name; raise InputError if it fails."""

    def run_into(
        self, inputs: Mapping[str, Any], outputs: Mapping[str, Any], others: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Run with outputs going to memory that is there; return *others*, whose sizes only the run tells, by name."""


class Declared(NamedTuple):
    """An input or output as a file describes it.

    Attributes
    ----------
    type
        numpy's name, or another one where numpy has none.
    shape
        None where not even its rank is declared; a size that is left open is no whole number.
    """

    name: str
    type: str
    shape: Sequence[int | str | None] | None


@dataclass(frozen=True)
class ModelFile(ABC):
    """A file, and what of it is needed.

    Attributes
    ----------
    path
        Of the file.
    inputs, outputs
        What the manifest says of them.
    seed
        Of weights whose files are absent.
    whole
        Whether it is the model that was split, which may make more than is wanted.
    spare
        Inputs of it that no result depends on: any value will do.
    numbers
        Inputs of it that are numbers and decide sizes.
    place
        Where it runs: ``"cpu"`` or ``"cuda:0"``.
    recorded
        Python modules that the manifest names: they register operators, and are not imported for that.
    called
        Name in messages, where that is not the path.
    """

    path: Path
    inputs: tuple[Expected, ...]
    outputs: tuple[Expected, ...]
    seed: int
    whole: bool = False
    spare: tuple[str, ...] = ()
    numbers: Mapping[str, int] = field(default_factory=dict)
    place: str = CPU
    recorded: tuple[str, ...] = ()
    called: str = ""

    @property
    def display(self) -> str:
        """Name in messages."""
        return self.called or str(self.path)

    @abstractmethod
    def check_place(self) -> None:
        """Raise InputError where what runs the file has no such device."""

    @abstractmethod
    def open(self, choices: SessionChoices) -> OpenedModel:
        """Return the model, ready to run; raise InputError where the file is not as the manifest says."""

    @abstractmethod
    def check_declared(self) -> None:
        """Hold what the manifest says against what the file declares, before anything is set aside for it.

        Sizes that the file leaves open show only when it runs.
        """

    def _check(self, what: str, found: Sequence[Declared], expected: Sequence[Expected], *, all_of_them: bool) -> None:
        found_by_name = {tensor.name: tensor for tensor in found}
        for name, dtype, shape in expected:
            problem = None
            if name not in found_by_name:
                problem = f"it has none, and {', '.join(map(repr, found_by_name)) or 'no other'} instead"
            else:
                own = found_by_name.pop(name)
                sizes = own.shape if own.shape is None else list(own.shape)
                fits = sizes is None or (
                    len(sizes) == len(shape)
                    and all(
                        not isinstance(size, int) or wanted in (None, size)
                        for size, wanted in zip(sizes, shape, strict=True)
                    )
                )
                if own.type != dtype and not (own.type == TEXT and element_type(dtype) is None):
                    problem = f"it is of type {own.type}, not {dtype}"
                elif not fits:
                    problem = f"its shape is {sizes}, not {list(shape)}"
            if problem:
                raise self._error(f"{what} {name!r}", f"{problem}, as the manifest says")
        unknown = [name for name in found_by_name if name not in self.spare]
        if all_of_them and unknown:
            raise self._error(f"{what} {unknown[0]!r}", "the manifest does not say what to feed it")

    def _no_place(self, runtime: str, has: str) -> InputError:
        """Return the error of a place that the library which runs the file does not have."""
        problem = f"is to run on {self.place}, and {runtime} here has {has}"
        return InputError(problem, source=self.display, remedy="put its device elsewhere, and split the plan again")

    def _error(self, where: str, problem: str) -> InputError:
        return InputError(problem, source=self.display, where=where, remedy="split the model again")

    def _bytes(self) -> bytes:
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", source=self.display) from None
