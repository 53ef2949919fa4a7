"""Estimate the memory of a setting of a GPT, as `memory_estimation_tool` of the tuner: MiB on the fullest device.

    python memory.py --mp_degree 8 --micro_batch_size 4 --num_layers 48 --hidden_size 6144 --max_sequence_length 2048 ...

Take it as a start for your own model. It counts mixed precision with Adam (weights and gradients of 2 bytes, 12 bytes of
optimizer states for each parameter) and the activations of a transformer with an attention that keeps no scores, by
V. Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022: s b h (10 + 24 / t) bytes a layer.
"""

import argparse

MIB = 1 << 20
NUMBERS = ("mp_degree", "pp_degree", "sharding_degree", "sharding_stage", "micro_batch_size")
MODEL = ("num_layers", "hidden_size", "vocab_size", "max_sequence_length")


def states(given: argparse.Namespace) -> float:
    """Bytes of weights, gradients and optimizer states on the first stage: its layers and the embedding."""
    layers = given.num_layers / given.pp_degree * 12 * given.hidden_size**2
    parameters = (layers + given.vocab_size * given.hidden_size) / given.mp_degree
    kinds = {"optimizer": (12, 1), "gradients": (2, 2), "weights": (2, 3)}  # bytes, and the stage that shards them
    return sum(
        parameters * size / (given.sharding_degree if given.sharding_stage >= stage else 1) for size, stage in kinds.values()
    )


def activations(given: argparse.Namespace) -> float:
    """Bytes that the first stage keeps for the backward pass: of as many micro batches as there are stages."""
    one = given.max_sequence_length * given.micro_batch_size * given.hidden_size
    layer = one * (10 + 24 / given.mp_degree)
    if given.use_recompute == "True" and given.recompute_granularity in ("None", "full"):
        return given.num_layers * one * 2 + layer  # the inputs of all layers, and one layer that is computed again
    return given.num_layers * layer


def main() -> None:
    options = argparse.ArgumentParser()
    for name in (*NUMBERS, *MODEL):
        options.add_argument(f"--{name}", type=int, default=1)
    for name in ("use_recompute", "recompute_granularity"):
        options.add_argument(f"--{name}", default="None")
    given, _ = options.parse_known_args()
    print(round((states(given) + activations(given)) / MIB))


if __name__ == "__main__":
    main()
