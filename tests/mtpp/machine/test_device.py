"""Systems: the presets and their sources, TOML files, and the arithmetic of the roofline and the link."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpp.errors import InputError
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.presets import DEFAULT_PRESET, load_device, preset_named, preset_tables

NUMBERS = ("peak_flops", "memory_bandwidth", "bandwidth", "fast_memory", "activation_reserve", "stage_memory")
PRESETS = sorted(preset_tables())

MINIMAL = 'peak_flops = "1TFLOP/s"\nmemory_bandwidth = "10GB/s"\nbandwidth = "25GiB/s"\n'


def written(folder: Path, text: str) -> str:
    """Write a system file and return its path."""
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_default_is_the_reference_system() -> None:
    """Without a name the documented round numbers hold, exactly."""
    assert DEFAULT_PRESET == "reference"
    assert load_device() == Device("reference", 20 * 10**12, 200 * 10**9, Link(25 * 10**9))


def test_the_promised_presets_are_there() -> None:
    """The systems named in the documentation exist."""
    assert {"reference", "a100", "h100", "tpu-v4i", "edge-tpu", "laptop-cpu"} <= set(PRESETS)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_loads(name: str) -> None:
    """Each preset is a system of its own name with positive rates, and reads back from its own document."""
    system = load_device(name)
    assert system.name == name
    assert min(system.peak_flops_per_s, system.memory_bandwidth_bytes_per_s, system.link.bandwidth_bytes_per_s) > 0
    assert Device.from_document(system.to_document()) == system
    assert system.describe().startswith(f"{name}: ")


@pytest.mark.parametrize("name", PRESETS)
def test_every_number_of_a_preset_has_its_source(name: str) -> None:
    """No number without a source, no source without a number, and a description that says what is meant."""
    table = preset_tables()[name]
    given_numbers = {key for key in table if key in NUMBERS}
    assert set(table["sources"]) == given_numbers
    assert all(len(source) > 15 for source in table["sources"].values())
    assert len(table["description"]) > 30


@pytest.mark.parametrize("name", PRESETS)
def test_links_are_slower_than_memories(name: str) -> None:
    """A link faster than the unit's own memory would be a slip of the pen."""
    system = load_device(name)
    assert system.link.bandwidth_bytes_per_s < system.memory_bandwidth_bytes_per_s


def test_published_figures() -> None:
    """Figures derived from what data sheets print: half of a two-way total, bits as bytes."""
    assert load_device("a100").link.bandwidth_bytes_per_s * 2 == 600 * 10**9
    assert load_device("h200").peak_flops_per_s * 2 == 1979 * 10**12
    assert load_device("b200").link.bandwidth_bytes_per_s * 2 == 1800 * 10**9
    assert load_device("tpu-v4i").link.bandwidth_bytes_per_s * 8 == 400 * 10**9
    assert load_device("tpu-v4i").fast_memory_bytes == 8 * 2**30
    assert load_device("laptop-cpu").peak_flops_per_s == 8 * 1_900_000_000 * 32
    assert load_device("cpu-server").memory_bandwidth_bytes_per_s == 8 * 8 * 3200 * 10**6


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    """A TOML file gives a system called after the file, or by its name; optional keys are read with their units."""
    assert load_device(written(tmp_path, MINIMAL)) == Device("mine", 10**12, 10**10, Link(25 * 2**30))
    text = (
        MINIMAL + 'name = "box"\nfast_memory = "24MiB"\nactivation_reserve = "1.5MB"\npeak = "order"\nsource = "us"\n'
        'stage_memory = "1GB"\n'
    )
    assert load_device(written(tmp_path, text)) == Device(
        "box", 10**12, 10**10, Link(25 * 2**30), 24 * 2**20, 1_500_000, peak="order", memory_bytes=10**9
    )


def test_a_preset_can_be_copied_into_a_file(tmp_path: Path) -> None:
    """The body of a preset, sources included, is a valid system file."""
    lines = [f'{key} = "{value}"' for key, value in preset_tables()["edge-tpu"].items() if isinstance(value, str)]
    lines += ["[sources]", *(f'{key} = "{value}"' for key, value in preset_tables()["edge-tpu"]["sources"].items())]
    copied = load_device(written(tmp_path, "\n".join(lines)))
    assert copied == load_device("edge-tpu").overriding(name="mine")


@pytest.mark.parametrize(
    ("text", "where", "problem"),
    [
        (MINIMAL + 'colour = "red"\n', "colour", "unknown key"),
        (MINIMAL + "[table]\nx = 1\n", "table", "unknown key"),
        (MINIMAL.replace('"10GB/s"', "10"), "memory_bandwidth", "has no unit"),
        (MINIMAL.replace("10GB/s", "10"), "memory_bandwidth", "has no unit"),
        (MINIMAL.replace("10GB/s", "10GB"), "memory_bandwidth", "unknown unit"),
        (MINIMAL.replace("10GB/s", "0GB/s"), "memory_bandwidth", "above zero"),
        (MINIMAL.replace("1TFLOP/s", "-1TFLOP/s"), "peak_flops", "above zero"),
        (MINIMAL.replace("bandwidth =", "# bandwidth =").replace("memory_# ", "memory_"), "bandwidth", "missing key"),
        (MINIMAL + 'peak = "guess"\n', None, "unknown peak mode"),
        (MINIMAL + "peak = 3\n", None, "unknown peak mode"),
        (MINIMAL + 'fast_memory = "1MiB"\nactivation_reserve = "2MiB"\n', None, "above the fast memory"),
        (MINIMAL + 'stage_memory = "1MiB"\nactivation_reserve = "2MiB"\n', None, "above the stage memory"),
        ("peak_flops =", None, "not a TOML file"),
        ("x = " + "[" * 100_000, None, "nested too deeply"),
    ],
)
def test_broken_files_name_the_file_and_the_place(tmp_path: Path, text: str, where: str | None, problem: str) -> None:
    """Every fault in a system file is one line with the file, the key and what is wrong."""
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=problem) as caught:
        load_device(path)
    assert caught.value.source == path
    assert caught.value.where == where


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A directory and bytes that are no text are refused by name."""
    with pytest.raises(InputError, match="directory") as caught:
        load_device(str(tmp_path))
    assert caught.value.source == str(tmp_path)
    (tmp_path / "noise.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not a TOML file"):
        load_device(str(tmp_path / "noise.toml"))


@pytest.mark.parametrize("spelling", ["RTX-4090", "rtx4090", "RTX 4090", "NVIDIA GeForce RTX 4090", "rtx_4090"])
def test_presets_in_other_spellings(spelling: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case, punctuation and the maker do not count; a file of that very name comes first."""
    monkeypatch.chdir(tmp_path)
    assert load_device(spelling) == load_device("rtx-4090")
    (tmp_path / spelling).write_text(MINIMAL)
    assert load_device(spelling).name != "rtx-4090"


def test_presets_are_told_apart_by_their_plain_names() -> None:
    """No two presets are the same but for spelling."""
    assert [preset_named(name.upper().replace("-", " ")) for name in PRESETS] == PRESETS
    assert preset_named("m4 ultra") is None  # never sold


@pytest.mark.parametrize("name", ["a1000", "", "no/such/file.toml", "x" * 5000])
def test_unknown_systems(name: str) -> None:
    """What is neither a preset nor a readable file is refused; a mistyped name lists the presets."""
    with pytest.raises(InputError) as caught:
        load_device(name)
    assert "\n" not in str(caught.value)
    if name == "a1000":
        assert "a100" in str(caught.value.remedy)


@pytest.mark.parametrize(
    "change",
    [
        {"bandwidth_bytes_per_s": 0},
        {"peak_flops_per_s": -1},
        {"memory_bandwidth_bytes_per_s": 2.5e9},
        {"bandwidth_bytes_per_s": "25GB/s"},
        {"bandwidth_bytes_per_s": True},
        {"fast_memory_bytes": -1},
        {"activation_reserve_bytes": -1},
        {"activation_reserve_bytes": None},
        {"fast_memory_bytes": 10, "activation_reserve_bytes": 11},
        {"stage_memory_bytes": -1},
        {"stage_memory_bytes": 10, "activation_reserve_bytes": 11},
        {"peak": "sometimes"},
        {"colour": "red"},
    ],
)
def test_documents_that_are_no_system(change: dict[str, object]) -> None:
    """A plan's system object with a wrong type, sign, mode or key is refused."""
    with pytest.raises(InputError):
        Device.from_document({**load_device().to_document(), **change})


def test_a_reserve_may_fill_the_fast_memory() -> None:
    """The reserve is refused above the fast memory only; without a limit there is nothing to exceed."""
    system = load_device().overriding(fast_memory_bytes=10, activation_reserve_bytes=10)
    assert (system.fast_memory_bytes, system.activation_reserve_bytes) == (10, 10)
    assert load_device().overriding(activation_reserve_bytes=11).fast_memory_bytes is None


def test_every_memory_is_described() -> None:
    """The one line for people names the limits that there are, and how activations count."""
    system = load_device().overriding(memory_bytes=2**20)
    assert system.describe().endswith(
        "no fast-memory limit, at most 1 MiB per stage, 0 B of it reserved for activations"
    )
    system = system.overriding(fast_memory_bytes=2**19, peak="order")
    assert system.describe().endswith("fast memory 512 KiB, at most 1 MiB per stage, activations as run in order")
    assert load_device().overriding(peak="order").describe() == load_device().describe()


def test_override_keeps_what_is_not_given() -> None:
    """None means "not given"; the original stays as it was."""
    system = load_device("a100")
    assert system.overriding(bandwidth_bytes_per_s=None) == system
    assert system.overriding(bandwidth_bytes_per_s=7).link.bandwidth_bytes_per_s == 7
    assert system.link.bandwidth_bytes_per_s == 300 * 10**9


@given(
    flops=st.integers(min_value=0, max_value=10**18),
    traffic=st.integers(min_value=0, max_value=10**15),
    peak=st.integers(min_value=1, max_value=10**16),
    memory=st.integers(min_value=1, max_value=10**14),
)
def test_modelled_work_is_the_roofline_rounded_up(flops: int, traffic: int, peak: int, memory: int) -> None:
    """Work is the least integer of picoseconds that is not below either limit."""
    exact = max(Fraction(flops, peak), Fraction(traffic, memory)) * 10**12
    work = Device("s", peak, memory, Link(1)).modelled_work_ps(flops, traffic)
    assert work - 1 < exact <= work


@given(st.integers(min_value=0, max_value=2**50), st.integers(min_value=1, max_value=10**15))
def test_link_times_are_rounded_up(count: int, bandwidth: int) -> None:
    """Transfer is the least integer of picoseconds in which the link moves that many bytes."""
    time = Device("s", 1, 1, Link(bandwidth)).link.streaming_ps(count)
    assert (time - 1) * bandwidth < count * 10**12 <= time * bandwidth
