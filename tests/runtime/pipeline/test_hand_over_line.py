"""Lines through times of messages: latency and bandwidth as they were, and what is no line."""

from __future__ import annotations

import math

import pytest

from mtpp.runtime.pipeline.hand_over_line import HandOverLine, Message
from mtpp.runtime.pipeline.message_probe import sizes


def _messages(*pairs: tuple[int, float]) -> list[Message]:
    return [Message(size, seconds, sent=True) for size, seconds in pairs]


def test_points_on_a_line() -> None:
    """5 µs and 2 GB/s, whatever the sizes; nothing is left over."""
    line = HandOverLine.through(_messages(*((size, 5e-6 + size / 2e9) for size in (1 << 10, 1 << 16, 1 << 24))))
    assert line.latency_s == pytest.approx(5e-6)
    assert line.bandwidth_bytes_per_s == pytest.approx(2e9)
    assert line.residual == pytest.approx(0, abs=1e-9)
    assert line.seconds(10**6) == pytest.approx(505e-6)


def test_deviations_count_by_their_share() -> None:
    """Of 1.1 and 0.9 times the line at each size it is the line again, 10 % off but for the square."""
    points = [(size, factor * (1e-5 + size / 1e9)) for size in (1000, 10**5, 10**7) for factor in (0.9, 1.1)]
    line = HandOverLine.through(_messages(*points))
    scale = (1 / 0.9 + 1 / 1.1) / (1 / 0.9**2 + 1 / 1.1**2)
    assert line.latency_s == pytest.approx(scale * 1e-5)
    assert line.bandwidth_bytes_per_s == pytest.approx(1e9 / scale)
    deviations = [scale / 0.9 - 1, scale / 1.1 - 1]
    assert line.residual == pytest.approx(math.sqrt(sum(one**2 for one in deviations) / 2))


@pytest.mark.parametrize(
    ("points", "latency", "bandwidth"),
    [
        ([(1000, 3e-6), (1000, 3e-6)], 3e-6, math.inf),
        ([(1000, 4e-6), (100_000, 4e-6)], 4e-6, math.inf),
        ([(1000, 8e-6), (100_000, 4e-6)], None, math.inf),  # larger ones are faster: all is latency
        ([(1000, 1e-6), (10_000, 2e-5)], 0, None),  # no latency would be negative enough
    ],
)
def test_neither_part_is_negative(
    points: list[tuple[int, float]], latency: float | None, bandwidth: float | None
) -> None:
    """The best line of the other part alone stands in its place."""
    line = HandOverLine.through(_messages(*points))
    assert latency is None or line.latency_s == pytest.approx(latency)
    assert bandwidth is None or line.bandwidth_bytes_per_s == bandwidth
    assert line.latency_s >= 0
    assert line.bandwidth_bytes_per_s > 0


def test_no_line() -> None:
    """There has to be a message, and it has to take its time."""
    for messages in ([], _messages((1, 0.0))):
        with pytest.raises(ValueError, match="no messages"):
            HandOverLine.through(messages)


def test_sizes_span_those_of_the_pipeline() -> None:
    """By factors of four, up to the largest that crosses, and not without end."""
    assert sizes(0) == (1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18)
    assert sizes(10**6)[-1] == 1 << 20
    assert sizes(10**9)[-1] == 1 << 24
