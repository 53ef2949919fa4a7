"""What a node finds that comes to a meeting which is over, as the job runs already."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slaunch.channel.spoke import Spoke


class LateError(Exception):
    """The job has begun: this node has come to the hub of its agents. `secret`: by which it proved itself."""

    def __init__(self, spoke: Spoke, secret: bytes) -> None:
        super().__init__("the job has begun")
        self.spoke, self.secret = spoke, secret
