"""Task maps: which ranks run on which node.

A map is a list of blocks (first node, nodes, ranks on each, repeats), as in Flux RFC 34; PMI_process_mapping and Slurm's
SLURM_PMIX_MAPPING_SERV are the same without repeats (blocks run on, over and over, until all ranks are placed).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from slaunch.errors import AllocationError

Block = tuple[int, int, int, int]
_VECTOR = re.compile(r"\s*\(\s*vector\s*,\s*((?:\(\s*[0-9]+\s*,\s*[0-9]+\s*,\s*[0-9]+\s*\)\s*,?\s*)+)\)\s*")
_TRIPLE = re.compile(r"\(\s*([0-9]+)\s*,\s*([0-9]+)\s*,\s*([0-9]+)\s*\)")


def parse_pmi(text: str, source: str = "PMI_process_mapping") -> tuple[Block, ...]:
    """Return the blocks of `(vector,(0,2,4))`; equal blocks in a row become one with repeats. Empty text is an empty map.

    Raises:
        AllocationError: the text is not in this form, or a block is empty.
    """
    if not text:
        return ()
    match = _VECTOR.fullmatch(text)
    triples = [(int(a), int(b), int(c)) for a, b, c in _TRIPLE.findall(match[1])] if match else []
    if not triples or not all(nodes and ranks for _, nodes, ranks in triples):
        raise AllocationError("read which ranks run on which node", f"{source}={text!r}", "expected a map like (vector,(0,4,2))")
    blocks: list[Block] = []
    for triple in triples:
        if blocks and blocks[-1][:3] == triple:
            blocks[-1] = (*triple, blocks[-1][3] + 1)
        else:
            blocks.append((*triple, 1))
    return tuple(blocks)


def format_pmi(blocks: Sequence[Block]) -> str:
    """Return the map in PMI's form."""
    triples = [f"({first},{nodes},{ranks})" for first, nodes, ranks, repeats in blocks for _ in range(repeats)]
    return f"(vector,{','.join(triples)})" if triples else ""


def ranks_of_nodes(blocks: Sequence[Block]) -> tuple[tuple[int, ...], ...]:
    """Return the ranks on each node, node after node."""
    on: dict[int, list[int]] = {}
    rank = 0
    for first, nodes, ranks, repeats in blocks:
        for _ in range(repeats):
            for node in range(first, first + nodes):
                on.setdefault(node, []).extend(range(rank, rank + ranks))
                rank += ranks
    return tuple(tuple(on.get(node, ())) for node in range(max(on, default=-1) + 1))
