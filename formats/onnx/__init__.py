"""ONNX models as cost graphs: shapes, parameters and modelled work, read without a single weight.

The steps, a file each: payloads cut out (``wire``) and the rest parsed (``loading``), local functions inlined
(``local_functions``), sizes of symbolic dimensions set (``dimensions``), then one walk in topological order (``walk``)
that finds the types of each node's outputs (``shapes``), evaluates the small constants they depend on (``values``),
folds what depends on no input, and costs the rest (``costs`` and the ``flops_*`` tables) with the bodies of control
flow inside (``control_flow``); ``reader`` puts the graph together.

Decisions
---------
* A constant operand that only configures an op (a shape, axes, a count) is no parameter and no traffic: older
  operator sets wrote it as an attribute (:data:`mtpp.formats.onnx.flops.costs.CONFIGURATION_INPUTS`).
* Views (Reshape, Squeeze, Identity …) take no time; lookups (Gather) read the rows they take, not the table.
* A folded parameter counts as its readers see it: a dequantized weight as floats. Views of one tensor, transposed
  ones included, are one parameter.
* An element of a string tensor counts as a pointer; a map has no size and must not be read by an op.
"""

from mtpp.formats.onnx.loading import looks_like_onnx
from mtpp.formats.onnx.reader import Reading, read_onnx, read_with_nodes

__all__ = ["Reading", "looks_like_onnx", "read_onnx", "read_with_nodes"]
