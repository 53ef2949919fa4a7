"""Secrets from the environment and from a file that all nodes see. (MUNGE: see tests/cluster.)"""

import os
import stat

import pytest

from slaunch.channel import munge, secret
from slaunch.channel.handshake import HandshakeError
from slaunch.errors import UsageError

IDENTITY = "cluster/42/0/0/0"


@pytest.fixture
def no_munge(monkeypatch):
    """A machine without libmunge."""
    monkeypatch.setattr(munge, "LIBRARY", "libmunge-is-not-here.so")


@pytest.fixture
def env(tmp_path):
    return {secret.FOLDER_VARIABLE: str(tmp_path / "shared")}


def test_the_environments_secret_comes_first(env):
    env[secret.VARIABLE] = secret.fresh_text()
    offered = secret.offer(IDENTITY, env)
    assert (offered.door.by, offered.door.hint, offered.path) == ("given", "", "")
    assert secret.find(IDENTITY, env, "given", "") == offered.door.secret
    offered.withdraw()


def test_a_secret_of_the_users_own_will_do():
    ours, others = ({secret.VARIABLE: text} for text in ("correct horse battery staple", "another text of some length"))
    offered = secret.offer(IDENTITY, ours).door.secret
    assert secret.find(IDENTITY, ours, "given", "") == offered
    assert secret.find(IDENTITY, others, "given", "") != offered


@pytest.mark.parametrize("value", [None, "", "too short"])
def test_a_spoke_without_the_environments_secret_says_so(value):
    env = {} if value is None else {secret.VARIABLE: value}
    with pytest.raises(HandshakeError, match="has its secret from SLAUNCH_SECRET, which is not set to at least 16 letters here"):
        secret.find(IDENTITY, env, "given", "")


def test_a_short_secret_is_the_users_error():
    with pytest.raises(UsageError, match="SLAUNCH_SECRET has 3 letters"):
        secret.offer(IDENTITY, {secret.VARIABLE: "abc"})


def test_a_file_where_there_is_no_munge(no_munge, env, tmp_path):
    offered = secret.offer(IDENTITY, env)
    assert (offered.door.by, offered.door.hint) == ("file", "")
    assert secret.find(IDENTITY, env, "file", "") == offered.door.secret
    assert stat.S_IMODE(os.stat(offered.path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(tmp_path / "shared").st_mode) == 0o700
    assert os.listdir(tmp_path / "shared") == [os.path.basename(offered.path)]
    offered.withdraw()
    offered.withdraw()
    assert os.listdir(tmp_path / "shared") == []
    with pytest.raises(HandshakeError, match=r"has its secret in a file, but here .*No such file"):
        secret.find(IDENTITY, env, "file", "")


def test_the_file_is_in_the_home_folder_by_default():
    assert secret.secret_path(IDENTITY, {"HOME": "/home/me"}).startswith("/home/me/.slaunch/secret-")
    assert secret.secret_path(IDENTITY, {"HOME": "/home/me"}) != secret.secret_path(
        IDENTITY + "1", {"HOME": "/home/me"}
    )


def test_a_stale_file_is_replaced(no_munge, env):
    first, second = secret.offer(IDENTITY, env), secret.offer(IDENTITY, env)
    assert secret.find(IDENTITY, env, "file", "") == second.door.secret != first.door.secret


@pytest.mark.parametrize("harm", ["readable", "link", "folder"])
def test_a_file_that_others_may_have_written_or_read_is_not_used(no_munge, env, harm, tmp_path):
    path = secret.offer(IDENTITY, env).path
    if harm == "readable":
        os.chmod(path, 0o644)
    elif harm == "link":
        os.rename(path, tmp_path / "elsewhere")
        os.symlink(tmp_path / "elsewhere", path)
    else:
        os.chmod(os.path.dirname(path), 0o777)
    with pytest.raises(HandshakeError, match=r"others can read|in a file, but here|others can write"):
        secret.find(IDENTITY, env, "file", "")


@pytest.mark.skipif(os.getuid() != 0, reason="needs to give a file to another user")
def test_another_users_file_is_not_used(no_munge, env):
    os.chown(secret.offer(IDENTITY, env).path, 12345, -1)
    with pytest.raises(HandshakeError, match="others can read or have written"):
        secret.find(IDENTITY, env, "file", "")


def test_where_nothing_works_all_three_ways_are_named(no_munge, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(secret.RendezvousError) as error:
        secret.offer(IDENTITY, {secret.FOLDER_VARIABLE: str(tmp_path / "file" / "sub")})
    assert "SLAUNCH_SECRET is not set" in error.value.seen
    assert "libmunge-is-not-here.so" in error.value.seen
    assert "Not a directory" in error.value.seen
    assert "SLAUNCH_SECRET_DIR" in error.value.todo


def test_an_unknown_way_is_refused():
    with pytest.raises(HandshakeError, match="does not know"):
        secret.find(IDENTITY, {}, "telepathy", "")


def test_p67_munge_that_is_not_there_is_named(no_munge):
    with pytest.raises(HandshakeError, match="libmunge-is-not-here"):
        secret.find(IDENTITY, {}, "munge", "MUNGE:x:")


def test_a_spoke_names_munge_as_the_hubs_way(env):
    with pytest.raises(HandshakeError, match="has its secret in a MUNGE credential, but munge: "):
        secret.find(IDENTITY, env, "munge", "MUNGE:nonsense:")
