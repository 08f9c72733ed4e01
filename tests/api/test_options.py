"""Keywords of functions against the records that declare them."""

from __future__ import annotations

import inspect
from dataclasses import FrozenInstanceError, replace
from dataclasses import fields as dataclass_fields
from typing import Any

import pytest
from refusals import refusal

import mtpp
from mtpp.api.options import kinds, path_kinds
from mtpp.api.options.cells import Bounding, Certifying
from mtpp.api.options.graphs import Converting, Inspecting
from mtpp.api.options.language_models import Serving
from mtpp.api.options.machine import Describing, Devices, System
from mtpp.api.options.option import REQUIRED, Options, options_of
from mtpp.api.options.planners import PLANNERS
from mtpp.api.options.planning import Planning
from mtpp.api.options.profiling import Profiling
from mtpp.api.options.reading import Measured, Reading
from mtpp.api.options.running import Pipelining, Training, Workers
from mtpp.api.options.search import Comparing, Partitions, Scoring
from mtpp.api.options.simulating import Simulating
from mtpp.api.options.splitting import Planned, Splitting
from mtpp.api.options.verifying import Titled, Verifying
from mtpp.api.recipes import (
    CandleUno,
    Chain,
    Dlrm,
    Drawing,
    InTree,
    MultiBranch,
    MultiModalTransformer,
    RegalStyle,
    Transformer,
    TransformerTraining,
)
from mtpp.machine.device import Device
from mtpp.machine.presets import load_device

GRAPHS: tuple[type[Options], ...] = (RegalStyle, Transformer, MultiBranch, Chain, InTree)
TRAINED: tuple[type[Options], ...] = (TransformerTraining, MultiModalTransformer, Dlrm, CandleUno)

KEYWORDS: dict[str, tuple[tuple[type[Options], ...], tuple[str, ...]]] = {
    "bound": ((Bounding,), ("k", "export", "position", "overlapping")),
    "certify": ((Certifying,), ("k",)),
    "compare": ((Comparing,), ("k",)),
    "convert": ((Converting,), ()),
    "describe_machine": ((Describing,), ()),
    "device_map": ((), ()),
    "emit": ((Planned,), ()),
    "evaluate": ((Scoring,), ("assignment",)),
    "generate": ((Drawing,), ()),
    "partition": ((Partitions,), ()),
    "inspect": ((Inspecting, Serving), ()),
    "plan_training": ((Devices, Planning), ()),
    "profile": ((Profiling,), ()),
    "read": ((Reading,), ()),
    "read_layout": ((), ()),
    "report": ((Verifying, Titled), ()),
    "run_pipeline": ((Pipelining, Workers), ()),
    "run_training": ((Training, Workers), ()),
    "simulate": ((Simulating,), ()),
    "split": ((Planned, Splitting), ()),
    "sweep_training": ((Devices, Planning), ("devices", "topology", "machine")),
    "verify": ((Verifying,), ()),
}
"""Function → records whose fields are its keywords, and names of fields that it has in another way or not at all."""

OF_FUNCTIONS = dict.fromkeys(record for records, _ in KEYWORDS.values() for record in records)
RECORDS = (*OF_FUNCTIONS, System, Measured, *PLANNERS.values(), *GRAPHS, *TRAINED)
NEEDED = {"k": 2}
"""Values of fields that have none by default."""


def _made(record: type[Options]) -> Any:
    return record(**{name: NEEDED[name] for name, one in options_of(record).items() if one.default is REQUIRED})


@pytest.mark.parametrize("function", KEYWORDS)
def test_functions_have_the_keywords_of_their_records(function: str) -> None:
    """By name, and with the defaults that the records state."""
    records, others = KEYWORDS[function]
    declared = {name: one.default for record in records for name, one in options_of(record).items()}
    parameters = inspect.signature(getattr(mtpp, function)).parameters
    keywords = {name: one.default for name, one in parameters.items() if name in declared and name not in others}
    assert keywords == {name: default for name, default in declared.items() if name not in others}


@pytest.mark.parametrize("record", RECORDS)
def test_records_list_their_options(record: type[Options]) -> None:
    """Each with its sentence, in the docstring that readers and the reference see."""
    for name, one in options_of(record).items():
        assert f"\n{name}\n    {one.told}" in str(record.__doc__)
        assert one.help[0].isupper() or one.help.split()[0].islower()
        assert one.help.endswith((".", "]."))


@pytest.mark.parametrize("record", RECORDS)
def test_values_are_read_once(record: type[Options]) -> None:
    """What a record holds is what it would make of it again; a value of another kind is refused by its name."""
    first = _made(record)
    assert record(**first.values()) == first == replace(first)
    assert list(inspect.signature(record).parameters) == list(options_of(record))
    with pytest.raises(FrozenInstanceError):
        setattr(first, next(iter(options_of(record))), 1)
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        record(**first.values(), unknown=1)
    for name in options_of(record):
        assert refusal(record, **{**first.values(), name: object()}).parameter == name


WRONG: dict[type[kinds.Kind], tuple[Any, ...]] = {
    kinds.Whole: (-1, True, 0.5, float("nan"), "nonsense", [1], print),
    kinds.Size: (-1, True, 0.5, "50-200", (9, 5), (5, 6, 7), [5, 6]),
    kinds.Flag: (0, 1, "no", [True]),
    kinds.Choice: ("nonsense", 3, True, ["nonsense"]),
    kinds.Quantity: (-1, True, 0.5, float("nan"), "nonsense", print),
    kinds.Rate: (-1, 0, True, 0.5, float("nan"), "nonsense", print),
    kinds.Wholes: ([], "nonsense", [0.5], [True], 3.5),
    kinds.Module: ("", "a b", "a..b", "a;b", "3", 3, None),
    kinds.Cores: ([], "0,1", 3, [0.5], [-1], [True], print),
    path_kinds.Contents: (3, True, [1], {"x": 1}, {3: None}),
    path_kinds.InputPath: (3, True, 0.5, [1], print),
    kinds.Sizes: ("batch=2", [2], [("batch", 1)], *({"batch": size} for size in (True, 2.0, 0, "1"))),
    path_kinds.OutputPath: (3, True, "", print),
    kinds.StageCounts: ("2", [], [2, 0], True, 0.5),
    kinds.Names: (3, [1], print),
    kinds.Groups: ("a,b", [["a"]], ["a"], 3, [3], None),
    kinds.Ratio: ("1", 0.5, True, float("nan"), None),
    kinds.Cost: (True, [], print),
    kinds.Seconds: ("60", 0, True, float("nan"), float("inf")),
    kinds.MemoryLimit: ("lots", [], -1, 0, True, 0.5),
}
"""Wrong values by kind."""


@pytest.mark.parametrize("record", RECORDS)
def test_wrong_values_are_refused_by_name(record: type[Options]) -> None:
    """Those of each kind, the next ones outside its range, and None for a flag, which has a value by default."""
    for name, one in options_of(record).items():
        more: list[Any] = [None] if isinstance(one.kind, kinds.Flag) else []
        if isinstance(one.kind, kinds.Whole | kinds.Quantity):
            more.append(one.kind.least - 1)
        if isinstance(one.kind, kinds.Whole) and one.kind.most is not None:
            more.append(one.kind.most + 1)
        for value in (*WRONG.get(type(one.kind), ()), *more):
            assert (value, refusal(record, **{**_made(record).values(), name: value}).parameter) == (value, name)


@pytest.mark.parametrize("planner", ["best", "piper", ["piper"], 3, mtpp.Piper, object()])
def test_planners_are_records(planner: Any) -> None:
    """Their names are those of a shell, and a class holds no options; the refusal names the record to write."""
    with pytest.raises(mtpp.InputError, match=r"no planner with its options; write planner=mtpp\.Piper\(…\)") as caught:
        mtpp.plan_training({}, planner=planner)
    assert caught.value.parameter == "planner"


def test_refusals_name_the_planner_that_is_meant() -> None:
    """The class that is given in place of its record, the record that has no sweep, and the owner of a keyword."""
    with pytest.raises(mtpp.InputError, match=r"write planner=mtpp\.Pfeife\(…\)"):
        mtpp.plan_training({}, planner=mtpp.Pfeife)  # type: ignore[arg-type]
    with pytest.raises(mtpp.InputError, match=r"planner: mtpp\.Pfeife is not for this; write planner=mtpp\.Piper\(…\)"):
        mtpp.sweep_training({}, devices=[2], planner=mtpp.Pfeife())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"write planner=mtpp\.GraphPipe\(batch_size=…\)"):
        mtpp.plan_training({}, planner=mtpp.GraphPipe(), batch_size=8)
    with pytest.raises(TypeError, match=r"sweep_training\(\) got an unexpected keyword argument 'micro_batches'"):
        mtpp.sweep_training({}, devices=[2], micro_batches=8)


def test_objects_of_subclasses_stand_for_files() -> None:
    """A machine of the caller's own class is one."""

    class Own(Device):
        pass

    own = Own(**{one.name: getattr(load_device("reference"), one.name) for one in dataclass_fields(Device)})
    assert System(system=own).system is own
