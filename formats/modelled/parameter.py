"""Constants of a model: tensors that its file holds, and those that its nodes make of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, eq=False)
class Parameter:
    """Tensor that depends on no input of the model.

    Attributes
    ----------
    name
        Of the stored tensor, unique in the model: views of one tensor share it.
    bytes
        Size as readers see it.
    parts
        Constants that nodes make it of; None for a tensor that the file holds as it is, or that is made of none: then
        it counts as it is made.
    """

    name: str
    bytes: int
    parts: Sequence[Parameter] | None = None

    @cached_property
    def stored(self) -> Mapping[str, int]:
        """Bytes of the stored tensors that it is made of, by name.

        O(constants on the way), each met once.
        """
        found: dict[str, int] = {}
        seen = {id(self)}
        waiting = [self]
        while waiting:
            one = waiting.pop()
            if one.parts is None:
                found[one.name] = one.bytes
            elif "stored" in one.__dict__:
                found |= one.stored
            else:
                waiting += [part for part in reversed(one.parts) if id(part) not in seen]
                seen.update(map(id, one.parts))
        return found
