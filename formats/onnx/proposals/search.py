"""Search for sizes with which a model can be read: trials, each varying what the op at which one ended depends on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import onnx

from mtpp.errors import InputError
from mtpp.formats.modelled.open_sizes import OpenSize, OpenSizes, is_misfit, text_of
from mtpp.formats.modelled.size_roles import Role
from mtpp.formats.onnx.dimensions import OpenTensor
from mtpp.formats.onnx.proposals.fit import Fit
from mtpp.formats.onnx.proposals.variables import Follow, Sizes, Variable, Variables

MOST_NODES = 60_000
"""Nodes that all trials together may walk over before no more are begun: some seconds."""

_ROUNDS = 6
_MOST_VARIABLES = 200
_LARGEST_SIDE, _LARGEST = 2**13, 2**20
"""Sizes up to which one is looked for that leaves as many elements as an op needs."""

_NEAR = 16
"""Sizes beside such a one, below and above, among which one is looked for of which all comes out even."""

_STEPS = (1, 2, 4, 8, 16, 32, 64)
_ALONG_TIME = frozenset((Role.SAMPLES, Role.FRAMES))
_STEPPED = _ALONG_TIME | {Role.DEPTH, Role.HEIGHT, Role.TOKENS, Role.WIDTH}

Attempt = Callable[[Mapping[str, int], Fit], InputError | None]
"""Walks over the model with sizes; returns why it ended, None where it came to the end."""


@dataclass(frozen=True)
class _Trial:
    """One walk with sizes."""

    sizes: Sizes
    fit: Fit
    error: InputError | None

    @property
    def fits(self) -> bool:
        """Whether every node could run."""
        return self.error is None


class _Search:
    def __init__(
        self, variables: Variables, given: Mapping[str, int], attempt: Attempt, *, strict: bool = True
    ) -> None:
        self.variables = variables
        self._strict = strict
        self._given, self._attempt = given, attempt
        self._walked = 0
        self._trials: dict[tuple[tuple[str, int], ...], _Trial] = {}

    @property
    def spent(self) -> bool:
        """Whether no more trials are to be made."""
        return self._walked > MOST_NODES

    def run(self) -> _Trial:
        """Return the best trial: one that fits, if any of those made did."""
        best = self._settled(self.variables.defaults())
        for _ in range(_ROUNDS):
            if best.fits:
                return self._refined(best)
            if best.error is None or not is_misfit(best.error) or self.spent:
                break
            reached = best.fit.done
            for group in self.variables.groups_and_members(self.variables.affecting(reached)):
                best = self._varied(best, group)
                if best.fits:
                    break
            if not best.fits and best.fit.done <= reached:
                best = self._counted_out(best)
                if not best.fits and best.fit.done <= reached:
                    break
        return best

    def changed(self, trial: _Trial, sizes: Mapping[str, int]) -> _Trial:
        """Return the trial with some sizes changed, and with what follows from them."""
        return self._settled(self.variables.completed({**trial.sizes, **sizes}))

    def _settled(self, sizes: Sizes) -> _Trial:
        """Walk with sizes; those that depend on data are entered as they are met."""
        while True:
            tried = self._trial(sizes)
            error = tried.error
            if not isinstance(error, OpenTensor) or error.misfit or len(self.variables) > _MOST_VARIABLES:
                return tried
            entered = self.variables.enter(error)
            if not entered:  # its rank, or its element type, is what is not known
                return tried
            for group in self.variables.groups(entered):
                sizes = {**sizes, **self.variables.first(group)}

    def _trial(self, sizes: Sizes) -> _Trial:
        key = tuple(sorted(sizes.items()))
        if key not in self._trials:
            fit = Fit(strict=self._strict)
            error = self._attempt({**self._given, **sizes}, fit)
            self._walked += fit.done
            self._trials[key] = _Trial(sizes, fit, error)
        return self._trials[key]

    def _varied(self, best: _Trial, group: Sequence[Variable]) -> _Trial:
        """Return the best trial over the sizes of a group: one that fits, else the one that came farthest."""
        for tier in self.variables.tiers(group):
            best = self._best_of(best, tier)
            if best.fits and not any(best.fit.score[:2]):
                break
        return best

    def _counted_out(self, best: _Trial) -> _Trial:
        """Return a trial past the op at which *best* ended: with a size that leaves as many elements as it needs."""
        reached = best.fit.done
        if best.fit.counts is None:
            return best
        for group in self.variables.groups_and_members(self.variables.affecting(reached)):
            size = self._size_that_counts(best, group)
            if size is not None:
                near = ({one.key: size + step for one in group} for step in range(-_NEAR, _NEAR + 1) if size + step > 0)
                return self._best_of(self.changed(best, dict.fromkeys((one.key for one in group), size)), near)
        return best

    def _size_that_counts(self, best: _Trial, group: Sequence[Variable]) -> int | None:
        """Return a size of a group with which the op at which *best* ended can run; None if there is none.

        By bisection: the larger a size, the more elements are left.
        """
        reached = best.fit.done
        low, high = 1, _LARGEST_SIDE if group[0].role in (Role.HEIGHT, Role.WIDTH) else _LARGEST
        while low <= high and not self.spent:
            size = (low + high) // 2
            tried = self.changed(best, {one.key: size for one in group})
            if tried.fits or tried.fit.done > reached:
                return size
            has, needs = tried.fit.counts or (0, 1) if tried.fit.done == reached else (0, 1)
            if has == needs:
                return None
            low, high = (size + 1, high) if has < needs else (low, size - 1)
        return None

    def _best_of(self, best: _Trial, tier: Iterable[Mapping[str, int]]) -> _Trial:
        """Return the best of *best* and trials with the sizes of a tier; the first one of which all comes out even."""
        for sizes in tier:
            if self.spent or (best.fits and not any(best.fit.score)):
                break
            tried = self.changed(best, sizes)
            if tried.fits:
                if not best.fits or tried.fit.score < best.fit.score:
                    best = tried
            elif not best.fits and tried.fit.done > best.fit.done:
                best = tried
        return best

    def _refined(self, best: _Trial) -> _Trial:
        """Return a trial of which more comes out even: sizes as common, or windows that end where a wave does."""
        for group in self.variables.groups():
            if not any(best.fit.score):
                break
            now = {one.key: best.sizes[one.key] for one in group}
            if group[0].role is Role.DATA:
                sizes = dict.fromkeys((*best.fit.declared_sizes, *group[0].limits, 1))
                best = self._best_of(best, [{one.key: size for one in group} for size in sizes])
            elif group[0].role in (Role.HEIGHT, Role.WIDTH):
                best = self._best_of(best, next((tier for tier in self.variables.tiers(group) if now in tier), ()))
            elif group[0].role is not Role.BATCH and any(best.fit.score[:2]):
                best = self._varied(best, group)
            if group[0].role in _ALONG_TIME:
                best = self._best_of(best, _even_sizes(best, group))
        return best

    def told(self, best: _Trial, *, explore: bool, untried: bool = False) -> list[OpenSize]:
        """Return every open size with its proposal.

        Parameters
        ----------
        explore
            Whether to say also by which steps others would fit.
        untried
            Whether sizes that lead to a tensor of unknown shape are proposals too.
        """
        found = []
        for one in self.variables:
            if one.key not in best.sizes:  # open in another trial, and not in this one
                continue
            proposal = best.sizes.get(one.key) if best.fits or untried else None
            note = one.origin or (self._steps(best, one) if explore and best.fits else "")
            found.append(OpenSize(one.key, tuple(one.places), one.role, proposal, note))
        return found

    def _steps(self, best: _Trial, one: Variable) -> str:
        """Say which sizes near a proposal fit as well, where not all of them do."""
        if one.role not in _STEPPED or self.variables.follows(one) or self.spent:
            return ""
        for step in _STEPS:
            if self.changed(best, {one.key: best.sizes[one.key] + step}).fits:
                return "" if step == 1 else f"in steps of {step}"
        return "no other near it fits"


def _even_sizes(trial: _Trial, group: Sequence[Variable]) -> list[dict[str, int]]:
    """Return sizes at which the first window that leaves something over would leave nothing."""
    if not trial.fit.uneven:
        return []
    first = trial.fit.uneven[0]
    over = first.room % first.stride
    now = trial.sizes[group[0].key]
    return [{one.key: size for one in group} for size in (now + first.stride - over, now - over) if size > 0]


def propose(
    graph: onnx.GraphProto,
    parameters: Collection[str],
    given: Mapping[str, int],
    source: str,
    attempt: Attempt,
    *,
    take: bool,
) -> Sizes:
    """Return sizes of all that *given* leaves open.

    Parameters
    ----------
    graph, parameters
        The main graph, and the names of its initializers.
    attempt
        Walks over the graph with sizes; shows nodes to a :class:`Fit`.
    take
        Whether sizes that fit are to be returned; else they are only told.

    Raises
    ------
    OpenSizes
        If nothing that was tried fits, or sizes are only to be told.
    InputError
        If something else is wrong with the model.

    Notes
    -----
    The same sizes for the same model: what is spent on trials is counted in nodes. A size that fits is one with which
    every op's operands do; that it is the one the model was made for, nobody says.
    """
    search = _Search(Variables(graph, parameters, given), given, attempt)
    best = search.run()
    if not best.fits and search.variables.names_sums():  # an exporter's name for a size need not be its sum
        for follow in (Follow.ROLES, Follow.NOTHING):
            other = _Search(Variables(graph, parameters, given, follow), given, attempt)
            found = other.run()
            if found.fits:
                search, best = other, found
                break
    if not best.fits and best.fit.excuses:  # shape inference may be wrong, and the file's own shapes right
        search = _Search(Variables(graph, parameters, given), given, attempt, strict=False)
        best = search.run()
    error = best.error
    if error is not None:
        if not len(search.variables) or not (is_misfit(error) or isinstance(error, OpenTensor)):
            raise error
        if isinstance(error, OpenTensor) and not error.misfit:  # no size of the inputs tells its shape
            if take:
                raise error
            raise OpenSizes(search.told(best, explore=False, untried=True), source, beside=error) from None
        raise OpenSizes(search.told(best, explore=False), source, why_none=text_of(error)) from None
    if not take:
        raise OpenSizes(search.told(best, explore=True), source)
    return best.sizes
