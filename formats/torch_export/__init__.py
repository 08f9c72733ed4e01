"""Exported PyTorch programs (``.pt2``) as cost graphs, read without PyTorch, without a weight and without unpickling.

The steps, a file each: the text of the program taken from the archive (``archive``), its nodes and values with graphs
of ``torch.no_grad`` and the like inlined (``program``), symbolic sizes set (``symbols``), then one pass over the nodes
that folds what depends on no input and costs the rest (``walk`` and the tables of ``flops``); what is written in place
is kept together (``in_place``), and ``reader`` puts the graph together. The layout is that of PyTorch 2.13
(``torch/_export/serde/schema.py``, schema version 8).

Decisions
---------
* Views take no time. A view is whatever PyTorch says may share its input's storage. ``reshape`` moves its
  data where the strides in the file say that no view will do, as after a transposition.
* Integers and sizes are no ops: they are known once the symbolic sizes are.
* A folded constant counts as its readers see it: a dequantized weight as floats. Views of a parameter, transposed ones
  included, are that parameter; tied parameters are one.
* An op that writes in place has its result as a new version of the tensor. Ops are merged with it only where a reader
  would see the wrong version otherwise: those that read an older name of it afterwards, and all that touch a parameter,
  a buffer or an input of the program.
"""

from __future__ import annotations

from mtpp.formats.torch_export.archive import looks_like_archive
from mtpp.formats.torch_export.reader import ProgramReading, read_program, read_with_modules

__all__ = ["ProgramReading", "looks_like_archive", "read_program", "read_with_modules"]
