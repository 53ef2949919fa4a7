"""What the user may write after --master."""

import pytest

from slaunch.errors import UsageError
from slaunch.rendezvous.endpoints import parse_master


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("10.0.0.1:6070", [("10.0.0.1", 6070)]),
        ("node1.cluster:6070", [("node1.cluster", 6070)]),
        ("http://10.0.0.1:6070", [("10.0.0.1", 6070)]),
        ("http://10.0.0.1:6070/", [("10.0.0.1", 6070)]),
        ("[fd00::1]:6070", [("fd00::1", 6070)]),
        ("etcd://e1:2379", [("e1", 2379)]),
        ("etcd://e1:2379,[::1]:2380", [("e1", 2379), ("::1", 2380)]),
        ("etcd://etcd:2379", [("etcd", 2379)]),  # W39: only the prefix is taken off
    ],
)
def test_f4_f5_f6_p26_w38_w39_good_ones(text, found):
    assert parse_master(text) == found


@pytest.mark.parametrize(
    "text",
    [
        *("", "10.0.0.1", "10.0.0.1:", ":6070", "10.0.0.1:0", "10.0.0.1:65536", "10.0.0.1:x", "fd00::1:6070", "a:1,b:2"),
        *("etcd://", "u@h:1", "[]:1", "http://", "etcd://a:1,", "h:-1", "h :1"),
    ],
)
def test_w38_bad_ones_are_named_with_what_is_allowed(text):
    with pytest.raises(UsageError, match="give HOST:PORT"):
        parse_master(text)
