"""Names of algorithms, bounds, formats of graphs, exporters, schedules and planners, in options and documents.

This module imports nothing, so that help and completion list names without a reader or a solver. The registry of a
family has an entry for each of its names, in the same order.
"""

from __future__ import annotations

AUTO, DOWNSET, ANNEAL, BRKGA, MLA, MLA_WEIGHTED, RANDOM, SERIES_PARALLEL, SLICE, EVEN, MEMORY, FILL = PARTITIONERS = (
    *("auto", "downset", "anneal", "brkga", "mla", "mla-weighted", "random", "series-parallel", "slice"),
    *("even", "memory", "fill"),
)

ENGINE_RULES = (EVEN, MEMORY, FILL)
"""Partitioners that are the rules of engines, as baselines."""

PIPER, EQUI, PIPEDREAM_2BW = LINE_PLANNERS = ("piper", "equi", "pipedream-2bw")
"""Planners of stages in a line, by the time per sample."""

GRAPHPIPE, PFEIFE = "graphpipe", "pfeife"
PLANNERS = (*LINE_PLANNERS, GRAPHPIPE, PFEIFE)

PARTITIONER_ALIASES = {PIPER: DOWNSET}
"""Other names of partitioners."""

ALGORITHMS = (AUTO, DOWNSET, PIPER, *PARTITIONERS[2:])
"""Names that ``--algorithm`` takes."""

SIMPLE, _, NODE, CROSSINGS, FRACTION, CAPACITY, NO_DAG, NO_CUT_IO, BOTTLENECK, *_STRONG = BOUNDS = (
    *("simple", DOWNSET, "node", "crossings", "fraction", "capacity"),
    *("bottleneck-no-dag", "bottleneck-no-cut-io", "bottleneck"),
    *("bottleneck-guess", "relaxation", "node-convex", "convex-weights", "position-weights", "configuration"),
    *("branch-and-bound", "exact-mip"),
)
BOTTLENECK_GUESS, RELAXATION, NODE_CONVEX, CONVEX_WEIGHTS, POSITION_WEIGHTS, CONFIGURATION, *_LAST = _STRONG
BRANCH_AND_BOUND, EXACT_MIP = _LAST
"""Lower bounds, from cheap to strong."""

NATIVE, PLACEMENT, _, NODE_LINK, GRAPHML, PIPEDREAM, TENSORFLOW, *_MODELS = FORMATS_READ = (
    *("native", "placement", PIPER, "node-link", "graphml", "pipedream", "tensorflow"),
    *("torch-export", "torch", "onnx", "language-model", "transformers"),
)
"""Formats of graphs that are read, in the order in which they are tried."""

TORCH_EXPORT, TORCH, ONNX, LANGUAGE_MODEL, FROM_TRANSFORMERS = _MODELS

DOT, CSV, MODEL_EXPLORER = "dot", "csv", "model-explorer"
FORMATS_WRITTEN = (NATIVE, NODE_LINK, GRAPHML, DOT, CSV, MODEL_EXPLORER)

CUT_NAMES, _, VLLM, MEGATRON, TFLITE_SEGMENTS = EXPORTERS = ("cut-names", TORCH, "vllm", "megatron", "tflite-segments")
"""Programs that plans of graphs are handed over to."""

ENGINES = (VLLM, "sglang", "tensorrt-llm", MEGATRON, "torchtitan", "deepspeed", "accelerate", "llama.cpp", "exo")
"""Engines that plans of language models are handed over to."""

FORMS_EMITTED = (CUT_NAMES, TORCH, *ENGINES, TFLITE_SEGMENTS)

RANDOM_GRAPHS = ("er", "ba", "ws", "sbm")
"""Erdős-Rényi, Barabási-Albert, Watts-Strogatz, stochastic block model: a new one goes to the end, for seeds count."""

TRANSFORMERS = ("decoder", "encoder", "encoder-decoder")

GPIPE, ONE_F_ONE_B, INTERLEAVED, BFS, ZERO_BUBBLE = SCHEDULES = ("gpipe", "1f1b", "interleaved", "bfs", "zero-bubble")
"""Schedules of the passes of an iteration."""

TIME_UNITS = ("ps", "ns", "us", "ms", "s")

PEAK_MODES = ("reserve", "order")
"""Activations of a stage: a fixed reserve, or the working memory of its ops run in the graph's order."""

CONVENTIONS = ("paper", "program")
"""Two rules of Piper in which its paper and its published program differ.

``paper``: synchronising gradients takes 4 · (d - 1) · w / d² bytes per sample, and any degree of data parallelism is
allowed. ``program``: 4 · (d - 1) · w / (d · N), spread over the batch, and d has to divide N.
"""

KNAPSACKS = ("exact", "heuristic")
"""Choice of configurations of a stage's layers: the best there are, or by the paper's bang per buck."""

ANY = "any"
IN_FLIGHT = (ANY, "least")
"""Micro-batches in flight: as many as shorten the iteration, or as few as cost no throughput with equal passes."""

LOOP_BATCHES = ("divisors", ANY)
"""Micro-batches of a loop to try: those that divide all of them, or any number."""

NEIGHBOURS, DIRECT = TRANSPORTS = ("neighbours", "direct")
FIXED, FREE = DEVICE_ORDERS = ("fixed", "free")
"""Stage i stands on device i, or devices may stand anywhere in the pipeline."""

BOTTLENECK_OBJECTIVE, LATENCY_OBJECTIVE = OBJECTIVES = ("bottleneck", "latency")
"""The most expensive stage, or all stages together: the time of one request on an idle pipeline."""

CONTEXT_OBJECTIVE, SEQUENCES_OBJECTIVE = CAPACITY_OBJECTIVES = ("context", "sequences")
"""The largest context, or the most sequences, that devices hold of a language model."""

ORDERS = ("file", "search")
SEARCHES = ("anneal", "beam")

TORCH_PIPELINING = "torch-pipelining"
BUFFERS = ("in-flight", TORCH_PIPELINING)
"""Micro-batches whose received tensors a stage has room for: those in flight, or all, as PyTorch's pipelining does."""

FORMS = (TORCH_PIPELINING,)
"""Programs that training plans are written for."""

CACHE_TYPES = ("bf16", "fp16", "fp32", "fp8", "int8", "int4", "q8_0", "q4_0")
"""Types of a cache of a language model."""

_, PREFILL_PHASE, BOTH_PHASES = PHASES = ("decode", "prefill", "both")
"""Steps of a language model: a further token of each sequence, a prompt of each."""

LAYOUT_ENGINES = (
    *("vllm", "sglang", "tensorrt-llm", "megatron", "megatron-flags", "megatron-bridge", "torchtitan", "deepspeed"),
    *("accelerate", "transformers", "llama.cpp", "exo", "petals"),
)
"""Engines whose layouts of layers are read."""

LAYOUT_RULES = (
    *("vllm", "sglang", "tensorrt-llm", "megatron-flags", "torchtitan", "deepspeed"),
    *("accelerate", "transformers", "llama.cpp", "exo"),
)
"""Engines that have a rule for all stages of a model."""
