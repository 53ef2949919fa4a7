"""What Horovod's workers may keep in the store, and what a request is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slaunch.gloo_store import HEAD_BYTES, WORLDS, Store, Visit

PUT = b"PUT /global/0 HTTP/1.1\r\nHost: 10.0.0.1\r\ncontent-length: 3\r\n\r\na\0\n"


def visit(data, store=None):
    made = Visit(None, 0.0)
    made.take(data, store or Store(2))
    return made.reply


def test_a_scope_is_tidied_up_when_all_ranks_are_done_and_not_before():
    store = Store(2)
    for rank in "01":
        assert store.answer("PUT", f"/global/{rank}", b"a") == (200, b"")
    store.answer("PUT", "/global/more", b"b")
    store.answer("PUT", "/local_n1/0", b"c")
    assert store.answer("DELETE", "/global/0", b"") == (200, b"")
    assert store.answer("DELETE", "/global/0", b"") == (200, b"")
    assert store.answer("GET", "/global/0", b"") == (200, b"a")
    store.answer("DELETE", "/global/1", b"")
    assert [store.answer("GET", f"/global/{key}", b"")[0] for key in ("0", "1", "more")] == [404, 404, 404]
    assert store.answer("GET", "/local_n1/0", b"") == (200, b"c")


def test_one_who_was_never_there_may_leave():
    assert Store(1).answer("DELETE", "/cross_0/0", b"") == (200, b"")


@pytest.mark.parametrize("path", ["/", "/global", "/global/", "//0", "global/0", "/global/0/1", "http://x/global/0"])
def test_other_paths_are_refused(path):
    assert Store(1).answer("GET", path, b"") == (400, b"")


def test_other_methods_are_refused():
    assert Store(1).answer("POST", "/global/0", b"") == (405, b"")


def test_it_is_full_when_more_is_put_than_a_job_of_this_size_needs_and_has_room_again_after_a_meeting():
    store = Store(1)
    value = bytes(store.value_limit - 1000)
    scopes = [f"/s{number}" for number in range(WORLDS + 1)]
    assert [store.answer("PUT", f"{scope}/0", value)[0] for scope in scopes] == [200] * WORLDS + [507]
    assert store.answer("PUT", "/s0/0", value) == (200, b"")
    store.answer("DELETE", "/s0/0", b"")
    assert store.answer("PUT", f"{scopes[-1]}/0", value) == (200, b"")


@given(st.lists(st.integers(1, len(PUT)), max_size=5))
def test_a_request_may_come_in_any_pieces(cuts):
    store, made, last = Store(1), Visit(None, 0.0), 0
    for cut in sorted({*cuts, len(PUT)}):
        assert made.reply == b""
        made.take(PUT[last:cut], store)
        last = cut
    assert made.reply.startswith(b"HTTP/1.0 200 OK\r\n")
    assert store.answer("GET", "/global/0", b"") == (200, b"a\0\n")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"hello\r\n\r\n", b"400"),
        (b"PUT /a/b HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"400"),
        (b"PUT /a/b HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", b"400"),
        (b"PUT /a/b HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", b"413"),
        (b"x" * HEAD_BYTES, b"400"),
    ],
)
def test_what_is_no_request_is_refused_at_once(data, status):
    assert visit(data).split(b" ")[1] == status


def test_half_a_request_waits():
    assert visit(PUT[:-1]) == b""
