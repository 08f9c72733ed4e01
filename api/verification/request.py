"""Request for a verification: the result, the models it is about, and what it is held to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mtpp.api.inputs.model import MAX_INPUT_BYTES
from mtpp.api.options.reading import Formats
from mtpp.host.deadline import Deadline

if TYPE_CHECKING:
    from mtpp.api.verification.supplied_model import SuppliedModel
    from mtpp.formats.io.source import Source
    from mtpp.formats.modelled.size_terms import SizeTerms

MAX_RESULT_BYTES = 256 * 2**20
"""Size beyond which a result is refused unless told otherwise: it has many more objects than a model of that size."""


@dataclass(frozen=True)
class VerifyRequest:
    """Terms of a verification.

    Attributes
    ----------
    result
        Path of a document, ``-`` for standard input, or its content.
    models
        Paths of models and, for tables, of folders of them; models that are at hand.
    deadline
        When work has to end; what is not checked by then is unchecked.
    shallow
        Whether exhaustive searches are left out.
    costs
        Path of the file with the measured costs that the result was made with.
    read_as
        Things that the formats of the models leave open.
    system_due, dims_due
        Values that the result's system and dimensions have to have, by their names in documents; of all dimensions that
        are not named under ``*``, ``auto`` for the sizes that are proposed for the model.
    memory_bytes
        That a search may take; None: its own limit.
    max_model_bytes, max_result_bytes
        Larger files are refused.
    trusted_size
        Whether the result may take any amount of memory once it is read.
    unfound
        Why there is no model although one was looked for: the claim to be about it is unchecked then. None otherwise.
    """

    result: str | Source
    models: tuple[str | SuppliedModel, ...] = ()
    deadline: Deadline = field(default_factory=Deadline)
    shallow: bool = False
    costs: str | None = None
    read_as: Formats = field(default_factory=Formats)
    system_due: Mapping[str, Any] = field(default_factory=dict)
    dims_due: SizeTerms = field(default_factory=dict)
    memory_bytes: int | None = None
    max_model_bytes: int = MAX_INPUT_BYTES
    max_result_bytes: int = MAX_RESULT_BYTES
    trusted_size: bool = False
    unfound: str | None = None

    @property
    def display(self) -> str:
        """The name of the result in messages."""
        return self.result if isinstance(self.result, str) else self.result.display
