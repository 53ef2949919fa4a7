"""Whose output the console shows, and which way it takes there."""

from __future__ import annotations

from slaunch.agent.console import BUSY_S, Console
from slaunch.agent.crew import Worker
from slaunch.agent.messages import Shown, pack
from slaunch.channel.star import Star
from slaunch.options import Options
from slaunch.plan.values import Plan

MESSAGES_A_SECOND = 2000.0
"""What the hub takes from all nodes together; in large jobs each sends less often."""


def console_for(plan: Plan, options: Options, star: Star) -> Console:
    """This node's console. Where a limit holds for several workers, the hub's is everybody's, and each node has its share."""
    if not (shows_several(plan, options) and options.tee_limit):
        return Console(1, match=options.tee_match)
    share = options.tee_limit / star.size
    if star.is_hub:
        return Console(1, share, options.tee_match)
    busy_s = max(BUSY_S, star.size / MESSAGES_A_SECOND)

    def relay(text: bytes) -> None:
        star.send(star.hub, pack(Shown(text.decode(errors="replace"))))

    return Console(1, share, options.tee_match, relay, busy_s)


def watch_output(console: Console, worker: Worker, plan: Plan, options: Options) -> None:
    """Copy the output of a worker that the user chose; with its rank in front if there are several."""
    spec, tee = worker.spec, options.tee
    chosen = spec.rank in tee or -1 in tee or spec.local_rank in options.tee_local or (spec.first and spec.node == 0)
    if not chosen or spec.local_rank in options.mute_local:
        return
    prefix = f"[{spec.rank}] " if shows_several(plan, options) else ""
    if options.tee_stream != "err":
        console.add(worker.log, worker.log_start, prefix, bool(worker.err_log))
    if worker.err_log and options.tee_stream != "out":
        console.add(worker.err_log, worker.err_start, prefix, True)


def shows_several(plan: Plan, options: Options) -> bool:
    """Whether several workers may share the console."""
    return plan.world > 1 and (len(options.tee) > 1 or -1 in options.tee or bool(options.tee_local))
