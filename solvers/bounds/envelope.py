"""Lower bounds of equal devices on machines whose devices differ: they hold on the envelope, and so on the machine."""

from __future__ import annotations

from dataclasses import replace

from mtpp.inference.certificate import ENVELOPE, LowerBound
from mtpp.inference.instance import Instance


def on_envelope(lower: LowerBound, instance: Instance) -> LowerBound:
    """Return a bound on the envelope of an instance as one on the instance; the proof says so where they differ.

    A proof that names the order of devices is on these, and stays as it is.
    """
    if instance.equal_devices or "order" in lower.proof:
        return lower
    return replace(lower, proof={**lower.proof, ENVELOPE: True})
