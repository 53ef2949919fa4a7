"""Any consistent step gives every rank once, whatever its shape and order."""

from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from slaunch.allocation import counts
from slaunch.allocation.hostlist import compress, expand
from slaunch.allocation.select import read, speaks
from slaunch.allocation.values import Task
from slaunch.errors import AllocationError


def place(per_node, order):
    """Ranks of each node in Slurm's distributions; "arbitrary" deals them out in a fixed odd way."""
    left = list(per_node)
    placed = [[] for _ in per_node]
    total = sum(per_node)
    nodes = list(range(len(per_node)))
    for rank in range(total):
        free = [node for node in nodes if left[node]]
        if order == "block":
            node = free[0]
        elif order == "cyclic":
            node = min(free, key=lambda node: (len(placed[node]), node))
        else:
            node = free[(rank * 7 + 3) % len(free)]
        placed[node].append(rank)
        left[node] -= 1
    return placed


@st.composite
def steps(draw):
    """The environments of all tasks of a step, with the host of each."""
    per_node = draw(st.lists(st.integers(1, 5), min_size=1, max_size=8))
    numbers = draw(st.lists(st.integers(1, 99), min_size=len(per_node), max_size=len(per_node), unique=True))
    text = compress(f"x{number:03d}" for number in numbers)
    order = draw(st.sampled_from(["block", "cyclic", "arbitrary"]))
    hosts = expand(text)
    common = {
        "SLURM_JOB_ID": "12",
        "SLURM_STEP_ID": "0",
        "SLURM_STEP_NODELIST": text,
        "SLURM_STEP_NUM_NODES": str(len(hosts)),
        "SLURM_STEP_NUM_TASKS": str(sum(per_node)),
        "SLURM_STEP_TASKS_PER_NODE": counts.compress(tuple(per_node)),
        "SLURM_DISTRIBUTION": order,
    }
    tasks = []
    for node, ranks in enumerate(place(per_node, order)):
        for local, rank in enumerate(ranks):
            own = {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(local), "SLURM_NODEID": str(node)}
            name = {"SLURMD_NODENAME": hosts[node]} if draw(st.booleans()) else {}
            tasks.append((hosts[node], {**common, **own, "SLURM_GTIDS": ",".join(map(str, ranks)), **name}))
    return tasks


@examples(60)
@given(steps())
def test_p06_every_rank_is_there_once_and_on_its_own_node(tasks):
    found = [(host, read(env, host=host), env) for host, env in tasks]
    assert all(isinstance(task, Task) for _, task, _ in found)
    assert sorted(task.slot.rank for _, task, _ in found) == list(range(len(tasks)))
    assert all(task.allocation.nodes[task.slot.node] == host for host, task, _ in found)
    assert len({(task.allocation.nodes, task.allocation.tasks_per_node) for _, task, _ in found}) == 1
    assert [task.slot.rank for _, task, env in found if speaks(env)] == [0]
    first = next(host for host, task, _ in found if task.slot.rank == 0)
    assert {task.allocation.root for _, task, _ in found} <= {first, ""}


@examples(60)
@given(steps(), st.data())
def test_a_step_without_one_of_its_variables_is_refused_or_read_alike(tasks, data):
    host, env = data.draw(st.sampled_from(tasks))
    needed = ["SLURM_STEP_NODELIST", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE", "SLURM_LOCALID"]
    gone = data.draw(st.sampled_from(needed))
    try:
        task = read({key: value for key, value in env.items() if key != gone}, host=host)
    except AllocationError as error:
        assert gone in error.seen
    else:
        raise AssertionError(f"{task} without {gone}")
