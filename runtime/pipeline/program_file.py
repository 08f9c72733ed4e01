"""An exported PyTorch program opened in a worker process, run on shared memory."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.formats.io.large_file import LargeFile
from mtpp.formats.modelled.size_terms import AUTO, OTHERS, SizeTerms
from mtpp.formats.results.stage_records import CPU
from mtpp.formats.torch_export.archive import program_text
from mtpp.formats.torch_export.program import read_nodes
from mtpp.formats.torch_export.signature import USER
from mtpp.runtime.element_types import Contents, unpacked
from mtpp.runtime.pipeline.model_file import Declared, ModelFile
from mtpp.runtime.pytorch.flat_program import flat_module, leaves
from mtpp.runtime.pytorch.importing import import_registering
from mtpp.runtime.pytorch.library import first_line, pytorch
from mtpp.runtime.pytorch.loading import load_program
from mtpp.runtime.pytorch.node_kinds import is_mutable
from mtpp.runtime.pytorch.tensors import as_array, as_tensor
from mtpp.runtime.session import SessionChoices
from mtpp.wording import counted

if TYPE_CHECKING:
    from torch.export import ExportedProgram

SUFFIX = ".pt2"


class ProgramFile(ModelFile):
    """An exported program, run by PyTorch."""

    def open(self, choices: SessionChoices) -> OpenedProgram:
        """Return the program, loaded: see :meth:`ModelFile.open`."""
        torch = pytorch()
        if choices.optimise:
            raise InputError(
                "PyTorch runs the ops of a program as they are", parameter="optimise", remedy="leave it out"
            )
        torch.set_num_threads(choices.threads)
        import_registering(choices.imports)
        loaded = load_program(LargeFile.at(self.path), self.display, self.seed, recorded=self.recorded)
        own = None if self.whole else [name for name, _, _ in self.outputs]
        found = opened(loaded.exported, self.display, own, place=self.place)
        torch.set_grad_enabled(False)
        for name, _, _ in self.outputs:
            if name not in found.results:
                raise self._error(f"output {name!r}", "it has none, as the manifest says")
        return found

    def check_place(self) -> None:
        """See :meth:`ModelFile.check_place`."""
        if self.place == CPU:
            return
        cuda = pytorch().cuda
        count = cuda.device_count() if cuda.is_available() else 0
        if int(self.place.partition(":")[2]) >= count:
            raise self._no_place("PyTorch", counted(count, "CUDA device") if count else "no CUDA")

    def check_declared(self) -> None:
        """Hold the manifest against the file: see :meth:`ModelFile.check_declared`."""
        display = self.display
        program = read_nodes(program_text(LargeFile.at(self.path), display), self._sizes(), display, spare=True)
        inputs = [(self._loaded_name(one.name), one.name) for one in program.inputs if one.kind == USER]
        outputs = list(zip(self._named(program.outputs), program.outputs, strict=True))
        for what, names, expected, every in (
            ("input", inputs, self.inputs, True),
            ("output", outputs, self.outputs, False),
        ):
            types = [(name, program.types[own]) for name, own in names]
            found = [Declared(name, kind.name, kind.shape) for name, kind in types]
            known = {name for name, _ in names}
            # The program's own numbers are no tensors of the file: whether it makes them, shows when it is opened.
            numbers = [one[0] for one in expected if self.whole and not one[2] and one[0] not in known]
            self._check(what, found, [one for one in expected if one[0] not in numbers], all_of_them=every)

    def _loaded_name(self, name: str) -> str:
        """Return the name that an input has once the program is loaded.

        PyTorch gives one that is called like something of Python's own, as ``input``, a number.
        """
        known = {own for own, _, _ in self.inputs} | set(self.spare)
        return f"{name}_1" if name not in known and hasattr(builtins, name) and f"{name}_1" in known else name

    def _named(self, results: Sequence[str]) -> Sequence[str]:
        """Return the name of each result: the program's own of the whole model, those of the manifest of a stage."""
        if self.whole:
            return results
        if len(results) != len(self.outputs):
            raise self._error("outputs", f"it makes {len(results)}, not {len(self.outputs)} as the manifest says")
        return [name for name, _, _ in self.outputs]

    def _sizes(self) -> SizeTerms:
        """Return the sizes of the program's free dimensions: its inputs give them, or only its data when it runs."""
        given = {f"{name}:{axis}": size for name, _, shape in self.inputs for axis, size in enumerate(shape) if size}
        return {**given, **self.numbers, OTHERS: AUTO}


def opened(
    exported: ExportedProgram, display: str, names: Sequence[str] | None = None, *, place: str = CPU
) -> OpenedProgram:
    """Return a loaded program, ready to run.

    Parameters
    ----------
    names
        Of what it returns, in order; None: those that it has for them itself.
    place
        Where it runs.
    """
    if place != CPU:
        from torch.export.passes import move_to_device_pass

        exported = move_to_device_pass(exported, place)
    module = flat_module(exported)
    results = list(exported.graph_signature.user_outputs)
    if names is not None and len(names) != len(results):
        problem = f"it makes {len(results)} tensors, not {len(names)} as the manifest says"
        raise InputError(problem, source=display, remedy="split the model again")
    return OpenedProgram(
        module,
        tuple((node.name, node.meta.get("val")) for node in module.graph.nodes if node.op == "placeholder"),
        tuple(one if isinstance(one, str) else None for one in (results if names is None else names)),
        display,
        writes=any(
            is_mutable(node) for part in module.modules() for node in getattr(getattr(part, "graph", None), "nodes", ())
        ),
        place=place,
    )


@dataclass
class OpenedProgram:
    """A module, and what its parameters and results are called.

    Attributes
    ----------
    inputs
        Names of its parameters, each with what it is where it is no tensor.
    results
        Names of what it returns, None for what has none.
    writes
        Whether an operator writes in place: inputs are then copied, for it may write these.
    place
        Where it runs; inputs are brought there.
    """

    module: Any
    inputs: tuple[tuple[str, Any], ...]
    results: tuple[str | None, ...]
    display: str
    writes: bool = False
    place: str = CPU

    def shared(self, views: Mapping[str, Contents]) -> dict[str, Any]:
        """Return arrays as tensors on the same memory."""
        return {name: as_tensor(unpacked(array)) for name, array in views.items()}

    def array(self, value: Any) -> Contents:
        """Return a tensor as an array."""
        return as_array(value)

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the outputs by name."""
        torch = pytorch()
        try:
            with torch.no_grad():
                made = self.module(*(self._entering(inputs.get(name, other)) for name, other in self.inputs))
        except Exception as error:  # whatever its ops raise
            raise InputError(f"PyTorch cannot run it: {first_line(error)}", source=self.display) from None
        named = zip(self.results, leaves(made), strict=True)
        return {name: value for name, value in named if name is not None}

    def _entering(self, value: Any) -> Any:
        if not isinstance(value, pytorch().Tensor):
            return value
        there = value.to(self.place)
        return there.clone() if self.writes and there is value else there

    def run_into(
        self, inputs: Mapping[str, Any], outputs: Mapping[str, Any], others: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Run, and copy the outputs to where they belong."""
        made = self.run(inputs)
        for name, room in outputs.items():
            value = pytorch().as_tensor(made[name])  # a whole program also makes numbers
            if value.shape != room.shape:
                raise InputError(
                    f"its shape is {list(value.shape)}, not {list(room.shape)} as the manifest says",
                    source=self.display,
                    where=f"output {name!r}",
                    remedy="split the model again, with the sizes that it has",
                )
            room.copy_(value)
        return {name: made[name] for name in others}
