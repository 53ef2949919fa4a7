"""Where tasks that have not met yet get a common secret from.

In this order, as the hub decides; the spokes follow it:

    given   a variable that slaunch puts into the environment of the step it starts itself
    munge   the hub makes a random secret and hands it out inside a MUNGE credential that only the same user can read
    file    the hub writes a random secret to a file of mode 0600 in a folder that all nodes share

The hub tells a spoke which one, and the spoke never trusts the hub for it: the credential must be this user's own, the file must
be in its own folder and belong to it. Which secret it was, the handshake proves.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from slaunch.channel.door import Door
from slaunch.channel.handshake import HandshakeError
from slaunch.errors import RendezvousError, UsageError
from slaunch.frozen import dataclass
from slaunch.hashing import sha256

VARIABLE = "SLAUNCH_SECRET"
"""Set by slaunch for the step it starts; removed from the workers' environment."""
FOLDER_VARIABLE = "SLAUNCH_SECRET_DIR"
"""Folder for the file; by default `.slaunch` in the home directory. All nodes must see it."""
SECRET_BYTES = 32
LEAST_LETTERS = 16


def fresh() -> bytes:
    """A new random secret."""
    return os.urandom(SECRET_BYTES)


def fresh_text() -> str:
    """A new random secret as the value of `VARIABLE`."""
    return fresh().hex()


@dataclass(frozen=True)
class Offered:
    """What the hub has to offer: its door, and what it has to clean up."""

    door: Door
    path: str = ""

    def withdraw(self) -> None:
        """Remove the file, if there is one."""
        if self.path:
            try:
                os.unlink(self.path)
            except OSError:
                pass


def offer(identity: str, env: Mapping[str, str]) -> Offered:
    """The hub's part: a secret, and how the spokes find it.

    Raises:
        RendezvousError: none of the ways works here.
        UsageError: the environment's secret is no good.
    """
    if VARIABLE in env:
        if len(env[VARIABLE]) < LEAST_LETTERS:
            seen = f"{VARIABLE} has {len(env[VARIABLE])} letters"
            raise UsageError("protect the job's network channel", seen, f"give it at least {LEAST_LETTERS}")
        return Offered(Door(identity, given(env), "given"))
    secret = fresh()
    try:
        return Offered(Door(identity, secret, "munge", credential(identity, secret)))
    except HandshakeError as error:
        no_munge = str(error)
    path = secret_path(identity, env)
    try:
        write_secret(path, secret)
    except OSError as error:
        raise no_secret(no_munge, f"{path}: {error.strerror}") from None
    return Offered(Door(identity, secret, "file"), path)


def find(identity: str, env: Mapping[str, str], by: str, hint: str) -> bytes:
    """A spoke's part: the secret that the hub speaks of.

    Raises:
        HandshakeError: it is not to be had that way.
    """
    if by == "given":
        return given(env)
    if by == "munge":
        return opened(identity, hint)
    if by == "file":
        try:
            return read_secret(secret_path(identity, env))
        except OSError as error:
            raise HandshakeError(f"has its secret in a file, but here {error.filename}: {error.strerror}") from None
    raise HandshakeError("offers a secret in a way that this version does not know")


def given(env: Mapping[str, str]) -> bytes:
    """The secret of the environment: any text of some length, slaunch's own or the user's."""
    text = env.get(VARIABLE, "")
    if len(text) < LEAST_LETTERS:
        raise HandshakeError(f"has its secret from {VARIABLE}, which is not set to at least {LEAST_LETTERS} letters here")
    return sha256(text.encode()).digest()


def credential(identity: str, secret: bytes) -> str:
    """The secret inside a MUNGE credential that names the meeting."""
    from slaunch.channel import munge

    try:
        return munge.encode(secret + identity.encode())
    except munge.MungeError as error:
        raise HandshakeError(str(error)) from None


def opened(identity: str, hint: str) -> bytes:
    """The secret out of the hub's credential."""
    from slaunch.channel import munge

    try:
        content = munge.decode(hint)
    except munge.MungeError as error:
        raise HandshakeError(f"has its secret in a MUNGE credential, but {error}") from None
    if content[SECRET_BYTES:] != identity.encode():
        raise HandshakeError("shows the credential of another meeting")
    return content[:SECRET_BYTES]


def secret_path(identity: str, env: Mapping[str, str]) -> str:
    """The file of this meeting."""
    folder = env.get(FOLDER_VARIABLE) or os.path.join(env.get("HOME") or os.path.expanduser("~"), ".slaunch")
    return os.path.join(folder, f"secret-{sha256(identity.encode()).hexdigest()[:24]}")


def write_secret(path: str, secret: bytes) -> None:
    """Write the file anew, readable by its owner only, whole or not at all."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    draft = f"{path}.{os.uname().nodename}.{os.getpid()}"
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        os.write(handle, secret)
        os.fsync(handle)
    finally:
        os.close(handle)
    os.rename(draft, path)


def read_secret(path: str) -> bytes:
    """Read the file, if it is ours and nobody else's.

    Raises:
        OSError: it is not there.
        HandshakeError: others have access to it.
    """
    folder = os.stat(os.path.dirname(path))
    if folder.st_uid not in (os.getuid(), 0) or (folder.st_mode & 0o022 and not folder.st_mode & stat.S_ISVTX):
        raise HandshakeError(f"has its secret in a file, but others can write to {os.path.dirname(path)}")
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        state = os.fstat(handle)
        if state.st_uid != os.getuid() or stat.S_IMODE(state.st_mode) & 0o077 or not stat.S_ISREG(state.st_mode):
            raise HandshakeError(f"has its secret in {path}, which others can read or have written")
        return os.read(handle, SECRET_BYTES)
    finally:
        os.close(handle)


def no_secret(munge: str, file: str) -> RendezvousError:
    """The error where no way works."""
    return RendezvousError(
        "give the tasks of this job a common secret, without which strangers could take part in it",
        f"{VARIABLE} is not set; {munge}; {file}",
        f"let slaunch start the step itself, or start munged, or set {FOLDER_VARIABLE} to a writable folder that all nodes share",
    )
