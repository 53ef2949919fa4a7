"""What an agent tells its workers while they run, and what it watches for their sake: the effects of requests to save."""

from __future__ import annotations

import os
import selectors
import signal
from collections.abc import Callable, Mapping
from math import inf

from slaunch.agent.clerk import Clerk
from slaunch.agent.crew import Crew
from slaunch.agent.events import Ask, EndKnown, Resume, ShowEnd, Suspend
from slaunch.agent.halted import Halted
from slaunch.agent.notice import STOPPING, Notice
from slaunch.agent.silence import Silence

GAP_S = 5.0
"""The loop turns several times a second: after a longer pause the agent itself was stopped, or the machine was."""


class Telling:
    """One agent's.

    Args:
        notice: what workers can read.
        crew, silence: the agent's.
        remark: takes a line that the user may want to know.
    """

    def __init__(self, notice: Notice, crew: Crew, silence: Silence, remark: Callable[[str], None]) -> None:
        self._notice = notice
        self._crew = crew
        self._silence = silence
        self._halted = Halted(crew.watched, remark)
        self._clerk: Clerk | None = None
        self._turned = inf

    def ask_the_scheduler(self, env: Mapping[str, str], warn_s: float, selector: selectors.BaseSelector) -> None:
        """From now on the scheduler is asked for the time left: this is the hub's agent."""
        tell = lambda left_s: self._crew.events.append(EndKnown(left_s))  # noqa: E731
        self._clerk = Clerk(env, warn_s, tell, selector, self._crew.spared)

    @property
    def due(self) -> float:
        """When there is something to do, on the monotonic clock."""
        return min(self._halted.due, self._clerk.due if self._clerk else inf)

    def tick(self, now: float) -> None:
        """Do it, if it is time."""
        if now > self._turned + GAP_S:
            self._silence.renew()
            self._halted.renew()
        self._turned = now
        self._halted.tick(now)
        if self._clerk:
            self._clerk.tick(now)

    def do(self, action: Ask | ShowEnd | Suspend | Resume) -> None:
        """What the supervisor wants."""
        match action:
            case Ask(number, reason):
                self._notice.ask(reason)
                if number:
                    self._crew.forward(number)
            case ShowEnd(left_s):
                self._notice.ends_in(left_s)
            case Suspend():
                self._crew.signal_all(signal.SIGSTOP)
                os.kill(os.getpid(), signal.SIGSTOP)
            case Resume():
                self._crew.signal_all(signal.SIGCONT)
                self._halted.renew()

    def stopping(self) -> None:
        """The workers are being stopped."""
        self._notice.ask(STOPPING)

    def renew(self) -> None:
        """The workers of this attempt have ended; others may follow."""
        self._notice.renew()
        self._halted.renew()

    def close(self) -> None:
        """End what has been started."""
        if self._clerk:
            self._clerk.close()
