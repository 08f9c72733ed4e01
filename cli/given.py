"""Names that commands still take from here."""

from __future__ import annotations

from mtpp.api.evaluate import given_plan
from mtpp.api.user_assignment import assignment_document, labels_of_assignment

__all__ = ["assignment_document", "given_plan", "labels_of_assignment"]
