"""The closing block: how the job ended and why, for people."""

from __future__ import annotations

from collections.abc import Sequence

from slaunch.agent.values import Ended, Failure, Look, Peak, RunReport, Stopped, Verdict
from slaunch.report.style import BOLD, DIM, RED, clock, counted, duration, paint, signal_name, size

OTHERS_SHOWN = 5
ATTEMPTS_SHOWN = 10
PORT_TAKEN = (
    "another process holds that port: if it is one of slaunch's, start again, or let --max-restarts 1 choose new ones; "
    "if --start-port or the program fixes it, choose another"
)


def render(report: RunReport, colour: bool = False, quiet: bool = False) -> str:
    """One block of text; one line for a job that ended well, "" for that with `quiet`."""
    verdict = report.verdict
    if verdict.outcome == "success":
        lines = [] if quiet else [success(report), *(f"  memory: {used}" for used in memory(report.peaks))]
        more = [*attempts(report), *asked(report)] if not quiet else []
        lines += [f"  {label + ':':<8}{value}" for label, value in more]
        return "\n".join(lines + [f"  note:   {note}" for note in report.notes + leftovers(verdict)])
    lines = [paint(f"slaunch: {headline(report)}", RED + BOLD, colour)]
    lines += [f"  {label + ':':<8}{value}" for label, value in details(report)]
    if verdict.first is not None and verdict.first.tail:
        lines.append(f"  last lines of rank {verdict.first.rank}, from {verdict.first.log}:")
        lines += [paint(f"    | {line}", DIM, colour) for line in verdict.first.tail]
    return "\n".join(lines)


def success(report: RunReport) -> str:
    """The one line of a job that ended well."""
    where = f" on {counted(report.nodes, 'node')}" if report.nodes > 1 else ""
    logs = f"; logs in {report.log_dir}" if report.log_dir else ""
    took = duration(report.ended_s - report.started_s)
    restarted = f", at attempt {report.attempt}" if report.attempt else ""
    return f"slaunch: {counted(report.world, 'worker')}{where} ended well after {took}{restarted}{logs}"


def headline(report: RunReport) -> str:
    """What happened, in one line, with the exit code."""
    text = _HEADLINES[report.verdict.outcome](report.verdict)
    code = f"exit code {report.code}"
    return text if text.endswith(code) else f"{text} ({code})"


def _failure_headline(verdict: Verdict) -> str:
    first = verdict.first
    assert first is not None
    if first.told:
        return f"{worker_name(first)} failed: {first.detail}"
    return f"{worker_name(first)} {'was' if first.signal else 'failed with'} {ending(first)}"


def _signal_headline(verdict: Verdict) -> str:
    assert verdict.stopped is not None
    return f"stopped by {signal_name(verdict.stopped.signal)}"


def _lost_headline(verdict: Verdict) -> str:
    named = ", ".join(f"node {lost.node} ({lost.host})" for lost in verdict.lost[:OTHERS_SHOWN])
    more = f" and {verdict.gone - OTHERS_SHOWN} more" if verdict.gone > OTHERS_SHOWN else ""
    return f"lost the agent on {named}{more}: {verdict.lost[0].why}"


def _start_headline(verdict: Verdict) -> str:
    assert verdict.problem is not None
    return f"cannot {verdict.problem.wanted} on {verdict.problem_host}"


def _hang_headline(verdict: Verdict) -> str:
    silent_s = min(look.silent_s for look in verdict.hung)
    return f"hang: no worker has printed anything for {duration(silent_s)}"


def _time_headline(verdict: Verdict) -> str:
    return "the job has reached its --time-limit"


_HEADLINES = {
    "failure": _failure_headline,
    "signal": _signal_headline,
    "grown": lambda verdict: f"stopped for {', '.join(verdict.joined[:5])} to take part",
    "lost": _lost_headline,
    "start": _start_headline,
    "hang": _hang_headline,
    "time": _time_headline,
}


def worker_name(failure: Failure) -> str:
    """Which worker, as a person looks for it."""
    role = "" if failure.role == "worker" else f" ({failure.role})"
    return f"rank {failure.rank}{role} on {failure.host}"


def ending(failure: Failure) -> str:
    """How it ended."""
    if failure.told:
        return "already failing when slaunch told it to stop, as its peers had noticed"
    if failure.signal:
        return f"killed by {signal_name(failure.signal)}"
    return f"exit code {failure.code}"


def port_taken(failure: Failure) -> bool:
    """Whether it could not listen at its port, in the words of the system, of gRPC or of libuv (torch's store)."""
    text = "\n".join((failure.detail, *failure.tail)).lower()
    return failure.cause == "port" or "address already in use" in text or "eaddrinuse" in text


def details(report: RunReport) -> list[tuple[str, str]]:
    """The lines below the headline, as (label, value)."""
    verdict = report.verdict
    lines: list[tuple[str, str]] = []
    if verdict.problem is not None:
        lines += [("seen", verdict.problem.seen), ("do", verdict.problem.todo)]
    if verdict.stopped is not None:
        by = f", sent by {verdict.stopped.sender}" if verdict.stopped.sender else ""
        lines.append(("signal", f"arrived on {verdict.stopped.host} at {clock(verdict.stopped.time_s)}{by}"))
    lines += asked(report)
    lines += [("hung", doing(look)) for look in verdict.hung]
    if verdict.first is not None and not verdict.hung:
        lines += about_first(verdict.first, report)
    lines += [("also", line) for line in also(verdict)]
    lines += attempts(report)
    lines += [("note", note) for note in report.notes + leftovers(verdict)]
    lines += [("memory", used) for used in memory(report.peaks)]
    if report.log_dir:
        lines.append(("logs", report.log_dir))
    return lines


def asked(report: RunReport) -> list[tuple[str, str]]:
    """Who asked the workers to save, why the scheduler did, and what becomes of the job in its queue."""
    request = report.verdict.asked
    lines = [("asked", f"to save {by_what(request)}")] if request is not None else []
    lines += [("reason", report.reason)] if report.reason not in ("", report.queue) else []
    return [*lines, ("queue", report.queue)] if report.queue else lines


def by_what(request: Stopped) -> str:
    """What asked the workers to save."""
    if not request.signal:
        return "as the job's time ran out"
    by = f", sent by {request.sender}" if request.sender else ""
    return f"by {signal_name(request.signal)}, which arrived on {request.host} at {clock(request.time_s)}{by}"


def memory(peaks: Sequence[Peak]) -> list[str]:
    """Who held the most memory, in a line; none if nothing is known. The peaks of all workers are in the report for programs."""
    device = max(peaks, key=lambda peak: peak.device_bytes, default=NO_PEAK)
    host = max(peaks, key=lambda peak: peak.host_bytes, default=NO_PEAK)
    parts = [("devices", device.device_bytes, device), ("hosts", host.host_bytes, host)]
    told = [f"{kind} at most {size(held)} (rank {who.rank} on {who.host})" for kind, held, who in parts if held]
    return [", ".join(told)] if told else []


NO_PEAK = Peak(0, "", 0)


def about_first(first: Failure, report: RunReport) -> list[tuple[str, str]]:
    """Where, when and why the first worker failed."""
    who = f"rank {first.rank} (local rank {first.local_rank}, pid {first.pid}) on {first.host} (node {first.node})"
    when = f"{clock(first.time_s)}, {duration(first.time_s - report.started_s)} after the start"
    lines = [("first", f"{who}: {ending(first)}"), ("when", when)]
    if first.detail:
        lines.append(("cause", first.detail))
    if port_taken(first):
        lines.append(("do", PORT_TAKEN))
    if first.cause == "peer" and report.verdict.outcome == "failure":
        lines.append(("note", "it lost its connection to another worker, which may be the one to look at"))
    return lines


def attempts(report: RunReport) -> list[tuple[str, str]]:
    """How the attempts before the last one ended, and why no other one followed."""
    shown = report.earlier[-ATTEMPTS_SHOWN:]
    lines = [("before", f"{len(report.earlier) - len(shown)} more attempts")] if len(report.earlier) > len(shown) else []
    lines += [("before", earlier(ended)) for ended in shown]
    return [*lines, ("final", f"attempt {report.attempt}: {report.verdict.final}")] if report.verdict.final else lines


def earlier(ended: Ended) -> str:
    """How an attempt ended."""
    after = duration(ended.ended_s - ended.started_s)
    what = _HEADLINES[ended.verdict.outcome](ended.verdict)
    detail = f" ({ended.verdict.first.detail})" if ended.verdict.first is not None and ended.verdict.first.detail else ""
    return f"attempt {ended.attempt}, over after {after}: {what}{detail}"


def doing(look: Look) -> str:
    """What a silent worker did."""
    state = "stopped by a signal" if look.state == "T" else f"waiting in {look.wchan}" if look.wchan else "running"
    silent = f"silent for {duration(look.silent_s)}"
    return f"rank {look.rank} on {look.host} (pid {look.pid}): {state}, {look.cpu:.0%} of a CPU, {silent}"


def also(verdict: Verdict) -> list[str]:
    """What else went wrong, briefly."""
    if verdict.hung:
        return []
    shown = [f"{worker_name(failure)}: {ending(failure)}" for failure in verdict.others[:OTHERS_SHOWN]]
    more = verdict.failed - (verdict.first is not None and not verdict.first.told) - len(shown)
    if more > 0:
        shown.append(f"{counted(more, 'more worker')} failed by themselves")
    lost = () if verdict.outcome == "lost" else verdict.lost[:OTHERS_SHOWN]
    return shown + [f"node {gone.node} ({gone.host}): {gone.why}" for gone in lost]


def leftovers(verdict: Verdict) -> tuple[str, ...]:
    """Processes that could not be killed."""
    return tuple(
        f"process {stuck.pid} ({stuck.name}, state {stuck.state}) on {stuck.host} cannot be killed" for stuck in verdict.stuck
    )
