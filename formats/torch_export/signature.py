"""Signature of an exported program: what goes in and is stored, what it returns, and what it rewrites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_REWRITES = {
    "buffer_mutation": "buffer_name",
    "parameter_mutation": "parameter_name",
    "user_input_mutation": "user_input_name",
}
"""Kinds of outputs that something stored becomes, with the key of its name."""

PARAMETER, BUFFER, CONSTANT, USER = "parameter", "buffer", "tensor_constant", "user_input"


@dataclass(frozen=True, slots=True)
class ProgramInput:
    """Input of a program: a tensor of the user, or one that is stored under the name *target*."""

    kind: str
    name: str
    target: str


def input_of(spec: Mapping[str, Any]) -> ProgramInput | None:
    """Return what an entry of the signature brings in; None for what is no tensor."""
    ((kind, value),) = spec.items()
    if kind == "user_input":
        argument = value["arg"]
        return ProgramInput(USER, argument["as_tensor"]["name"], "") if "as_tensor" in argument else None
    if kind in (PARAMETER, BUFFER, CONSTANT):
        return ProgramInput(kind, value["arg"]["name"], value[f"{kind}_name"])
    return None


def number_of(spec: Mapping[str, Any]) -> str | None:
    """Return the name of an input that is a whole number which may differ from run to run; None for all others."""
    argument = spec.get("user_input", {}).get("arg", {})
    name = argument["as_sym_int"].get("as_name") if "as_sym_int" in argument else None
    return name if isinstance(name, str) else None


def results_of(
    specs: Sequence[Mapping[str, Any]], outputs: Sequence[Mapping[str, Any]]
) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the tensors that a program returns, and those that buffers, parameters and inputs become."""
    if len(specs) != len(outputs):
        return [arg["as_tensor"]["name"] for arg in outputs if "as_tensor" in arg], []
    returned, rewritten = [], []
    for spec in specs:
        ((kind, value),) = spec.items()
        if kind in _REWRITES:
            rewritten.append((value["arg"]["name"], value[_REWRITES[kind]]))
        elif isinstance(value.get("arg"), dict) and "as_tensor" in value["arg"]:
            returned.append(value["arg"]["as_tensor"]["name"])
    return returned, rewritten
