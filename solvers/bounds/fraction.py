"""The fraction bound: how large a part of its stage each op is at least, which k stages cannot hold.

Let all stages cost at most L. For weights y(v) ≥ 0 of the ops, work unless said otherwise, let Y_v be at least y(S) for
every stage S of such a partition that holds v. Then Σ_{v ∈ S} y(v)/Y_v ≤ Σ_{v ∈ S} y(v)/y(S) ≤ 1, and so
Σ_v y(v)/Y_v ≤ k. Where it is more, or y(v) > Y_v for some v, there is no such partition, and OPT ≥ L + 1.

**The proof**: ``{"cutoff": L + 1, "stages": k, "weights": [[op, y], …], "ops": [[v, p, q, streamed, flow, drawn, apart],
…]}``. Ops and tensors are called as in :mod:`mtpp.solvers.bounds.node`, and w, C, flow and drawn are as there, but the
capacity of a tensor is p times its transfer. ``weights`` may be left out: then y(u) = work(u); an op that is not in it has
y(u) = 0; none is in it twice; y(u) ≥ 0 are integers. ``streamed`` is 0 or 1; p ≥ 0 and q > 0 are integers. ``apart``
lists ops u ≠ v that never share a stage with v: there is a path between u and v, in either direction, and the ops on all
paths between them, both included, have more weight w together than L + C.

With t(u) = p·w(u) − q·y(u), for every stage S ∋ v that costs at most L,

    q·y(S) ≤ q·y(S) + p·(L + C − w(S) − c(S)) = p·(L + C) − [Σ_{u ∈ S} t(u) + p·c(S)],

and by the flow what stands in brackets is at least t(v) − a(v) − Σ_{u ≠ v, not apart} max(0, a(u) − t(u)), the sum
over all ops, those that no flow reaches with a(u) = 0. Therefore

    Y_v = ⌊(p·(L + C) − t(v) + a(v) + Σ_{u ≠ v, not apart} max(0, a(u) − t(u))) / q⌋.

Y_v is never more than y of all ops, and if y = work, which it is where ``weights`` are left out, never more than L;
that holds for ops without a row. An op has one row at most. The claim is that Y_v < y(v) for some op v, or that the sum
of y(v)/Y_v over ops with y(v) > 0, in fractions, is more than k.
"""
