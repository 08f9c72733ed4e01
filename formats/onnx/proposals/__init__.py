"""Sizes proposed for dimensions that a model leaves open, each tried out by reading the model with it.

What an open size stands for follows from names, ranks and types (:mod:`mtpp.formats.modelled.size_roles`); that decides
which sizes are tried and in which order (``candidates``). A trial walks over the graph as reading does, and counts what
does not come out even on the way (``fit``). ``search`` varies the sizes that the op at which a trial ended depends on
(``variables``).

A proposal is a size with which every op's operands fit; that it is the one the model was made for, nobody says.
"""

from mtpp.formats.onnx.proposals.search import propose

__all__ = ["propose"]
