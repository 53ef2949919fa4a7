"""Where the user says that nodes meet."""

from __future__ import annotations

from slaunch.errors import UsageError

ETCD, HTTP = "etcd://", "http://"


def parse_master(text: str) -> list[tuple[str, int]]:
    """Host and port of `host:port`, `[ipv6]:port`, `http://host:port`, `etcd://host:port,host:port`.

    Raises:
        UsageError: it is none of these.
    """
    rest = text.removeprefix(HTTP).removeprefix(ETCD).rstrip("/")
    found = [endpoint(part, text) for part in rest.split(",")]
    if len(found) > 1 and not text.startswith(ETCD):
        raise bad_master(text)
    return found


def endpoint(part: str, text: str) -> tuple[str, int]:
    """One host and port."""
    host, colon, port = part.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not port.isdecimal() or not 0 < int(port) < 65536 or (":" in host and not bracketed):
        raise bad_master(text)
    host = host[1:-1] if bracketed else host
    if not host or any(letter in host for letter in " /@[]"):
        raise bad_master(text)
    return host, int(port)


def bad_master(text: str) -> UsageError:
    """The error of an unreadable --master."""
    return UsageError(
        "read where the nodes meet", f"--master {text}", "give HOST:PORT, [IPV6]:PORT or etcd://HOST:PORT,HOST:PORT"
    )
