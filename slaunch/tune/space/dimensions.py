"""The dimensions that the tuner knows by name, in the order of the columns, and their short names."""

from __future__ import annotations

from slaunch.frozen import dataclass


@dataclass(frozen=True)
class Dimension:
    """A dimension: its name in the configuration, short names in predicates, and what it is."""

    name: str
    short: tuple[str, ...]
    help: str


DEGREES = (
    Dimension("mp_degree", ("mp", "tp"), "tensor parallelism"),
    Dimension("sharding_degree", ("sharding",), "sharding of parameters, gradients and optimizer states"),
    Dimension("pp_degree", ("pp",), "pipeline parallelism"),
    Dimension("dp_degree", ("dp",), "data parallelism"),
    Dimension("cp_degree", ("cp",), "context parallelism: the sequence split over devices"),
    Dimension("ep_degree", ("ep",), "expert parallelism, inside data parallelism"),
)
"""Degrees of parallelism. All but ep_degree multiply to the number of devices."""

COUNTS = (
    Dimension("sharding_stage", ("stage",), "sharding stage, 1 to 3"),
    Dimension("micro_batch_size", ("mbs",), "samples of a micro batch"),
    Dimension("vpp_degree", ("vpp",), "model chunks of a pipeline stage (interleaving)"),
)

SWITCHES = (
    Dimension("use_recompute", ("recompute",), "recompute activations"),
    Dimension("recompute_granularity", ("granularity",), "what is recomputed: full, full_attn or core_attn"),
)

FURTHER = (
    Dimension("recompute_layers", ("layers_recomputed",), "recomputed layers of each pipeline stage"),
    Dimension("sequence_parallel", ("sp",), "split the sequence like the tensors"),
    Dimension("optimizer_offload", ("offload",), "keep optimizer states in the host's memory"),
)
"""Present in a setting only if the configuration names them."""

OPTIONAL = ("cp_degree", "ep_degree", *(each.name for each in FURTHER))

ALL = (*DEGREES, *COUNTS, *SWITCHES, *FURTHER)

NAMES = tuple(each.name for each in ALL)

DERIVED = {
    "acc_steps": "micro batches of a step on each replica",
    "global_batch_size": "samples of a step",
    "num_gpus": "devices of the trial",
    "nodes": "nodes of the trial",
    "num_layers": "the model's layers",
    "hidden_size": "the model's width",
    "num_attention_heads": "the model's heads",
    "seq_length": "the model's sequence length",
}
"""Further names in predicates."""

SHORT = {"gbs": "global_batch_size", "acc": "acc_steps", "gpus": "num_gpus", "layers": "num_layers"}
ALIASES = SHORT | {short: each.name for each in ALL for short in each.short}
"""Short names, as predicates may use them."""

RESERVED = frozenset(NAMES) | frozenset(DERIVED) | frozenset(ALIASES)
"""Names that an own dimension must not take."""
