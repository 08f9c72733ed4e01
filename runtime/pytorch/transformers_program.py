"""Programs of language models: built by transformers from a configuration without weights, and exported op by op."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.runtime.pytorch.exporting import export_module
from mtpp.runtime.pytorch.meta_model import meta_model

if TYPE_CHECKING:
    from torch.export import ExportedProgram


def program_of(values: Mapping[str, Any], source: str, tokens: int, batch: int) -> ExportedProgram:
    """Export a model on prompts; no code but that of transformers is run, and no weight is made.

    Parameters
    ----------
    values
        Keys of a configuration.
    source
        What messages call it.
    tokens, batch
        Size of the prompts, which the program keeps.

    Raises
    ------
    InputError
        If transformers is absent, does not know the architecture or refuses the configuration, or PyTorch cannot
        export the model.
    """
    model = meta_model(values, source)
    if model is None:
        known = str(values.get("model_type", ""))[:80]
        remedy = "pip install 'mtpp[hf]'"
        raise InputError(f"transformers is not there, or does not know {known!r}", source=source, remedy=remedy)
    import torch

    inputs = torch.zeros((batch, tokens), dtype=torch.long, device="meta")
    return export_module(model.eval(), (), {"input_ids": inputs, "use_cache": False}, None, source)
