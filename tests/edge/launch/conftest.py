"""What tests of whole launches share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.etcds import Server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A real etcd."""
    made = Server(tmp_path)
    yield made
    made.close()
