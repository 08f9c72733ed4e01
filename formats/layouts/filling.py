"""Devices filled in order by bytes: the rule of accelerate, and that of transformers 5, which grew from it.

accelerate 1.15 ``utils/modeling.py`` (``infer_auto_device_map``, ``fallback_allocate``) and transformers 5.24
``integrations/accelerate.py``. Modules are taken in order of definition. One that does not fit is opened into its own
parameters and children; one that cannot be opened moves on to the next device, and no later module comes back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mtpp.formats.layouts.request import refusal
from mtpp.language_models.modules import Modules, ModuleTensor, ModuleTree

Device = int | str
DISK, CPU, MPS = "disk", "cpu", "mps"


class Entry(NamedTuple):
    """Module, parameter or buffer that waits for a device."""

    name: str
    node: ModuleTree | ModuleTensor

    def inside(self) -> list[Entry]:
        """Own parameters and children; buffers are left out."""
        node = self.node
        if not isinstance(node, ModuleTree):
            return []
        own = [Entry(f"{self.name}.{t.name}", t) for t in node.tensors if not t.buffer]
        return own + [Entry(f"{self.name}.{child.name}", child) for child in node.children]


Sizes = Mapping[str, int]
"""Bytes of modules, parameters and buffers by their full names; tied parameters at one name."""


@dataclass
class Filling:
    """One run of the rule.

    Attributes
    ----------
    modules
        The model.
    limits
        Bytes of each device, in the order in which they are filled; ``disk`` has none.
    sizes
        Bytes by full name.
    undividable
        Names of classes that are never opened.
    transformers
        The rule of transformers 5 instead of accelerate's.
    fallback
        An empty device takes a later module that fits.
    """

    modules: Modules
    limits: Mapping[Device, int]
    sizes: Sizes
    undividable: Collection[str]
    transformers: bool = False
    fallback: bool = False
    waiting: list[Entry] = field(init=False)
    placed: dict[str, Device] = field(init=False, default_factory=dict)
    used: dict[Device, int] = field(init=False)
    _largest: int = field(init=False, default=0)
    _largest_names: list[str] = field(init=False, default_factory=list)
    _current: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        """Begin with the children of the model and its own tensors."""
        root = self.modules.root
        own = [Entry(t.name, t) for t in root.tensors]
        children = [Entry(child.name, child) for child in root.children]
        parameters = [entry for entry in own if not entry.node.buffer]  # type: ignore[union-attr]
        self.waiting = [*parameters, *children, *(entry for entry in own if entry not in parameters)]
        self.devices = [*self.limits, *([] if DISK in self.limits else [DISK])]
        gpus = [device for device in self.devices if device not in (CPU, DISK)]
        self.reserving = [MPS] if MPS in gpus else [*gpus[:1], CPU]
        self.used = dict.fromkeys(self.devices, 0)

    def run(self) -> dict[str, Device]:
        """Device of each module, or of each part of a module that was opened."""
        self._find_largest(self.waiting)
        while self.waiting:
            self._take(self.waiting.pop(0))
        return self.placed

    def _find_largest(self, entries: Sequence[Entry]) -> None:
        """Look for the largest module that nobody opens: a leaf, or one of the undividable classes."""
        self._largest, self._largest_names = 0, []
        rest = list(reversed(entries))
        while rest:
            entry = rest.pop()
            children = entry.node.children if isinstance(entry.node, ModuleTree) else ()
            if children and not self._whole(entry):
                rest += [Entry(f"{entry.name}.{child.name}", child) for child in reversed(children)]
                continue
            size = self.sizes.get(entry.name, 0)
            if size > self._largest:
                self._largest, self._largest_names = size, [entry.name]
            elif size == self._largest:
                self._largest_names.append(entry.name)

    def _find_largest_module(self) -> None:
        self._find_largest([entry for entry in self.waiting if isinstance(entry.node, ModuleTree)])

    def _whole(self, entry: Entry) -> bool:
        return isinstance(entry.node, ModuleTree) and entry.node.class_name in self.undividable

    def _closed(self, entry: Entry) -> bool:
        return not isinstance(entry.node, ModuleTree) or not entry.node.children or self._whole(entry)

    def _take(self, entry: Entry) -> None:
        name = entry.name
        self._largest_names = [n for n in self._largest_names if n != name and not n.startswith(f"{name}.")]
        if not self._largest_names:
            self._find_largest_module()
        ties = self._outside_ties(name)
        device = self.devices[self._current]
        reserve = self._largest if device in self.reserving else 0
        room = None if device == DISK else self.limits[device] - reserve - self.used[device]
        tied, size = self._with_ties(name, ties, self.waiting)
        if room is None or size <= room:
            self._place(entry, tied, size, device)
            return
        alone = self.sizes.get(name, 0)
        if ties and alone <= room and self._open_tied(entry, tied):
            return
        if (self.transformers or alone >= room) and not self._closed(entry):
            self.waiting = entry.inside() + self.waiting
            self._find_largest_module()
            return
        if self.fallback and not self.used[device] and self._fall_back(entry, size, device):
            return
        self.used[device] += reserve
        self._current += 1
        self.waiting.insert(0, entry)

    def _outside_ties(self, name: str) -> list[str]:
        """Parameters outside a module that are tied to one inside."""
        found = []
        for group in self.modules.tied:
            outside = [p for p in group if f"{name}." not in f"{p}."]
            if 0 < len(outside) < len(group):
                found += outside
        return found

    def _with_ties(self, name: str, ties: Sequence[str], entries: Sequence[Entry]) -> tuple[list[Entry], int]:
        """Modules that hold the other ends of ties, and the bytes of the module together with them."""
        tied = []
        for parameter in ties:
            holder = next((entry for entry in entries if parameter.startswith(f"{entry.name}.")), None)
            if holder is None:
                raise refusal("IndexError", f"list index out of range (no module holds {parameter} any more)")
            tied.append(holder)
        size = self.sizes.get(name, 0)
        if self.transformers:
            tied = list({entry.name: entry for entry in tied}.values())
            return tied, size + sum(self.sizes.get(entry.name, 0) for entry in tied)
        added = zip(ties, tied, strict=True)
        return tied, size + sum(self.sizes.get(e.name, 0) - self.sizes.get(p, 0) for p, e in added)

    def _place(self, entry: Entry, tied: Sequence[Entry], size: int, device: Device) -> None:
        self.used[device] += size
        self.placed[entry.name] = device
        for other in tied:
            index = next((i for i, waiting in enumerate(self.waiting) if waiting.name == other.name), None)
            if index is not None:
                self.waiting.pop(index)
            self.placed[other.name] = device

    def _open_tied(self, entry: Entry, tied: Sequence[Entry]) -> bool:
        """Open the first tied module that can be; True if there is one."""
        for other in tied:
            if self._closed(other):
                continue
            index = next(i for i, waiting in enumerate(self.waiting) if waiting.name == other.name)
            self.waiting[index : index + 1] = other.inside()
            self.waiting.insert(0, entry)
            self._find_largest_module()
            return True
        return False

    def _fall_back(self, entry: Entry, size: int, device: Device) -> bool:
        """Let a later module that fits go first; True if there is one."""
        if device == DISK:
            return False
        found = self._first_that_fits(self.limits[device] - max(self._largest, size))
        if found is None:
            return False
        names = found.split(".")
        for depth in range(1, len(names)):
            parent = ".".join(names[:depth])
            index = next((i for i, waiting in enumerate(self.waiting) if waiting.name == parent), None)
            if index is not None:
                self.waiting[index : index + 1] = self.waiting[index].inside()
        index = next(i for i, waiting in enumerate(self.waiting) if waiting.name == found)
        self.waiting = [self.waiting.pop(index), entry, *self.waiting]
        return True

    def _first_that_fits(self, limit: int) -> str | None:
        if limit < 0:
            return None
        search = list(self.waiting)
        while search:
            entry = search.pop(0)
            _, size = self._with_ties(entry.name, self._outside_ties(entry.name), search)
            if size <= limit:
                return entry.name
            if not self._closed(entry):
                search = entry.inside() + search
        return None


def merged(placed: Mapping[str, Device], module: str = "") -> dict[str, Device]:
    """Map in which modules whose parts are all on one device stand for them."""
    found = dict(placed)
    _merge(found, module)
    return found


def _merge(placed: dict[str, Device], module: str) -> None:
    prefix = f"{module}." if module else ""
    below = [name for name in placed if name.startswith(prefix)]
    if len(below) > 1 and len({placed[name] for name in below}) == 1:
        device = placed[below[0]]
        for name in below:
            del placed[name]
        placed[module] = device
        return
    depth = module.count(".") + 2 if module else 1
    for child in dict.fromkeys(".".join(name.split(".")[:depth]) for name in below if len(name) > len(module)):
        _merge(placed, child)
