"""One task of a job that meets, with the product's own readers and probe; prints one line of JSON on how it went.

With options that make things go wrong: see `parse`.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import sys
import time

from slaunch.allocation.select import read
from slaunch.channel.star import Lost, Message
from slaunch.errors import SlaunchError
from slaunch.frozen import replace
from slaunch.node.probe import probe
from slaunch.options import Options, Program
from slaunch.rendezvous.meet import meet


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--way", default="auto")
    parser.add_argument("--nodes", default="", help="pretend that the launcher tells these nodes")
    parser.add_argument("--timeout", type=float, default=30.0)
    parser.add_argument("--network", default="")
    parser.add_argument("--master", default="")
    parser.add_argument("--nnodes", type=int, default=0)
    parser.add_argument("--job", default="")
    parser.add_argument("--without", default="", help="variables to remove, once the place is known")
    parser.add_argument("--broken-pmi", action="store_true", help="a process manager that does not answer")
    parser.add_argument("--asleep", type=int, default=-1, help="this rank never meets")
    parser.add_argument("--late", default="-1:0", help="RANK:SECONDS: this rank comes later")
    parser.add_argument("--rounds", type=int, default=1, help="how often to agree")
    parser.add_argument("--reverse", action="store_true", help="pretend that the launcher's ranks are the other way round")
    parser.add_argument("--differ", type=int, default=-1, help="this rank has another script")
    parser.add_argument("--die", default="", help="RANK:PHASE: this rank ends itself before 'meet' or 'agree'")
    parser.add_argument("--out", default="", help="folder for the line of JSON, in place of standard output")
    parser.add_argument("--child", action="store_true", help="start MPI's child and end, without a word to it")
    return parser.parse_args()


def main() -> int:
    asked, env = parse(), dict(os.environ)
    task = read(env, "auto", os.uname().nodename)
    if asked.reverse:
        task = replace(task, slot=replace(task.slot, rank=task.slot.size - 1 - task.slot.rank))
    if asked.nodes:
        nodes = tuple(asked.nodes.split(","))
        task = replace(task, allocation=replace(task.allocation, nodes=nodes, tasks_per_node=(), root=nodes[0]))
    rank = task.slot.rank
    if rank == asked.asleep:
        time.sleep(asked.timeout)
        return 0
    late, seconds = asked.late.split(":")
    time.sleep(float(seconds) if rank == int(late) else 0)
    for name in asked.without.split(","):
        env.pop(name, None)
    if asked.broken_pmi:
        env["PMI_PORT"] = "127.0.0.1:1"
    options = Options(
        Program("true", kind="script"),
        nproc_per_node=1,
        rendezvous=asked.way,
        rendezvous_timeout_s=asked.timeout,
        network=asked.network,
        master=asked.master,
        nnodes=(asked.nnodes, asked.nnodes),
        job_id=asked.job,
    )
    facts, reserved = probe(env, options)
    facts = replace(facts, problems=(), program_digest="other" if rank == asked.differ else "same")
    if asked.child:
        return leave_child(env)
    with reserved:
        return attend(asked, task, facts, options, env)


def leave_child(env) -> int:
    from slaunch.rendezvous.mpi import Child

    child = Child(env, 60)
    child.read(time.monotonic() + 30)
    print(json.dumps({"child": child._pid}), flush=True)
    os.kill(os.getpid(), 9)
    return 1


def attend(asked, task, facts, options, env) -> int:
    rank = task.slot.rank
    told = {"rank": rank, "pid": os.getpid(), "host": facts.host}

    def say(line):
        if rank == 0:
            print(f"slaunch: {line}", file=sys.stderr, flush=True)

    def die_before(phase):
        if asked.die == f"{rank}:{phase}":
            os.kill(os.getpid(), 9)

    try:
        die_before("meet")
        with meet(task, facts, options, env, say) as meeting:
            found = meeting.membership
            die_before("agree")
            for turn in range(asked.rounds):
                meeting.agree(f"plan-{turn}")
            star = meeting.star()
            told |= {"way": found.way, "facts": len(found.facts), "secret": hash_of(found.secret)}
            told |= {"pids": [each.pid for each in found.facts], "hosts": [each.host for each in found.facts]}
            told |= {"star": greet(star), "mpi4py": "mpi4py" in sys.modules, "children": children()}
            told |= {"reason": found.reason, "rank": found.rank, "size": len(found.facts)}
            star.close()
    except SlaunchError as error:
        told |= {"error": type(error).__name__, "code": error.exit_code, "seen": error.seen, "local": error.local}
        told |= {"todo": error.todo, "children": children()}
    if asked.out:
        with open(f"{asked.out}/{os.getpid()}.{facts.host}", "w") as file:
            json.dump(told, file)
    else:
        print(json.dumps(told), flush=True)
    return int(told.get("code", 0))


def greet(star) -> str:
    """Every spoke speaks, then the hub answers all; "ok" if everything arrived."""
    if not star.is_hub:
        star.send(0, {"from": star.index})
        return "ok" if receive(star, 1) == [Message(0, {"all": "here"})] else "no answer"
    got = receive(star, star.size - 1)
    star.broadcast({"all": "here"})
    star.flush(10.0)
    return "ok" if sorted(each.body["from"] for each in got) == list(range(1, star.size)) else f"got {got}"


def receive(star, count) -> list[Message | Lost]:
    end, got = time.monotonic() + 20, []
    with selectors.DefaultSelector() as selector:
        star.register(selector)
        while len(got) < count and time.monotonic() < end:
            for key, _ in selector.select(0.1):
                key.data()
            star.tick(time.monotonic())
            got += star.take()
    return got


def hash_of(secret: bytes) -> str:
    from hashlib import sha256

    return sha256(secret).hexdigest()


def children() -> int:
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return len(file.read().split())


if __name__ == "__main__":
    sys.exit(main())
