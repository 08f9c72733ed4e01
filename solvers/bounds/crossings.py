"""The crossings bound: what has to cross between consecutive stages, by minimum cuts in windows of work.

Let stages 1 … k cost at most L each, the last ones perhaps empty, and D_i hold the ops of the first i of them, so D_0
is empty and D_k has all ops. Weights w and the constant C are as in :mod:`mtpp.solvers.bounds.node`; W = w of all ops
and H = L + C, so that w(S) + c(S) ≤ H for each stage S. Let there be numbers

* made_i: at most the transfers of the tensors that stage i makes for later ones (1 ≤ i < k);
* read_i: at most the transfers of the tensors that stage i reads from earlier ones (1 < i ≤ k);
* across_i: at most the transfers of the tensors made in D_i and read outside (1 ≤ i < k);

all others being 0. What stages after i read is at least across_i or made_i, whichever is more, and all that they make
for each other. Hence a_i ≤ w(D_i) ≤ b_i for i = 0 … k, with

    b_i = min(W, i·H − Σ_{j ≤ i} (made_j + read_j)),
    a_i = max(0, W − (k − i)·H + Σ_{j > i} made_j + max(Σ_{j > i} read_j, max(across_i, made_i) + Σ_{j > i} made_j)).

An op is *out* of D_i if i = 0, or if i < k and it and all from which it can be reached have more weight than b_i. It is
*in* D_i if i = k, or if i > 0 and W less the weight of it and of all that can be reached from it is less than a_i.
The numbers grow by minimum cuts: D is a downset (with an op it has all that it reads from) that holds what is in, and
nothing that is out. For

* made_i, D = D_i, and the cut is the transfers of tensors from ops of D that are out of D_{i−1} to ops outside D;
* across_i, D = D_i, and the cut is the transfers of tensors from ops of D to ops outside D;
* read_i, D = D_{i−1}, and the cut is the transfers of tensors from ops of D to ops outside D that are in D_i.

**The proof**: ``{"cutoff": L + 1, "stages": k, "streamed": bool, "steps": [[kind, i, amount, flow, drawn], …]}``; kind
is ``made``, ``read`` or ``across``. In their order, each step sets that number to ``amount`` if that is more, with
windows from the numbers before it, all 0 in the beginning. Ops, tensors and rows of ``flow`` are as in
:mod:`mtpp.solvers.bounds.node`, but the flow has a direction: a positive amount is the producer's alone, for ``made``
one that is out of D_{i−1}, and it is at most the tensor's transfer; the readers' amounts are negative, for ``read``
only readers that are in D_i take any. A row ``[u, x, amount]`` of ``drawn``: amount > 0 goes from u to x, an op that u reads
from. With a(u) what u gets less what it gives out, a(u) ≥ 0 for every op that is not in D, and ``amount`` is at most
the sum of a(u) over ops that are out of D: for what is given out by D passes through tensors of the cut.

The claim is that in the end, or before any step (the steps after it are of no account), a_i > b_i for some i, or
made_i + read_i > H for some i, or some op is both in and out of some D_i.
"""
