"""The node bound: some stage holds op v, and no set of ops that holds v costs less, by a minimum cut.

f(S) is at least w(S) + c(S) − C for any stage S: w are weights of ops, c(S) the transfers of the tensors that S cuts, C
a constant. *Plain*: w = work and C = 0. *Streamed* (only with a fast memory M): w(u) = work(u) + ⌊β·param_bytes(u)⌋ and
C = ⌊β·(M − r)⌋, β being the ticks of one byte on the link, a rational, and r the activation reserve, 0 where peaks
depend on the order. For ⌈x − y⌉ ≥ ⌊x⌋ − ⌊y⌋.

A stage has, with two ops, all ops on the paths between them. Minimum cuts know that of paths that end in v: with an op
u from which v can be reached, S has those successors of u from which v can be reached, and the same against the
direction of the edges. Such an op *draws* the other one.

**The proof**: ``{"op": v, "streamed": bool, "flow": [[tensor, op, amount, op, amount, …], …], "drawn": [[u, x, amount],
…]}``. Ops are called by any of their members' numbers in the file, tensors by their place among those that at least two
ops touch. Row of a tensor: so much goes from the op into the tensor, out of it if negative; amounts of a row sum to 0,
the positive ones to at most the tensor's transfer. Row of ``drawn``: amount > 0 goes from u right to x, without a
limit on it; u draws x, which is to say

* x reads from u, and there is a path from x to v; or
* u reads from x, and there is a path from v to x;

neither is v. Let a(u) be what u gets less what it gives out, tensors and drawn ops together. The proof holds if
a(u) ≤ w(u) for all u ≠ v, and then the bound is w(v) − a(v) − C: for a stage S ∋ v gives out no more than c(S) on
balance, as nothing that is drawn leaves it, so Σ_{u ∈ S} −a(u) ≤ c(S), and Σ_{u ∈ S, u ≠ v} (w(u) − a(u)) ≥ 0.
"""
