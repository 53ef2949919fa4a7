"""What the tests of the hub's door share."""

import pytest
from support.stars import Loop, make_hub


@pytest.fixture
def door():
    """A hub that waits for one spoke, and its port."""
    hub, port = make_hub()
    loop = Loop(hub)
    yield loop, hub, port
    loop.close()
