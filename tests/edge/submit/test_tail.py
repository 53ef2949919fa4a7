"""Files are copied as they grow."""

import io
import os
import time
from pathlib import Path

from slaunch.submit.tail import Tail, old_bytes


def test_a_file_that_comes_later_grows_and_is_begun_anew(tmp_path: Path) -> None:
    out, path = io.BytesIO(), tmp_path / "job.out"
    tail = Tail(str(path), out)
    assert not tail.copy()
    path.write_bytes(b"one\ntw")
    assert tail.copy()
    with path.open("ab") as file:
        file.write(b"o\n")
    assert tail.copy()
    assert not tail.copy()
    path.write_bytes(b"again\n")  # shorter: the job has started again, and does not append
    assert tail.copy()
    tail.close()
    assert out.getvalue() == b"one\ntwo\nagain\n"


def test_what_was_there_before_is_left_out_and_lines_have_their_task(tmp_path: Path) -> None:
    out, path = io.BytesIO(), tmp_path / "job.out"
    path.write_bytes(b"another job's\n")
    tail = Tail(str(path), out, b"[3] ", start=path.stat().st_size)
    with path.open("ab") as file:
        file.write(b"mine\nlast, not com")
    tail.copy()
    with path.open("ab") as file:
        file.write(b"plete")
    tail.copy()
    tail.close()
    assert out.getvalue() == b"[3] mine\n[3] last, not complete\n"


def test_what_is_new_may_be_the_jobs_own(tmp_path: Path) -> None:
    path = tmp_path / "job.out"
    assert old_bytes(str(path)) == 0
    path.write_bytes(b"12345")
    assert old_bytes(str(path)) == 0
    os.utime(path, (time.time() - 60, time.time() - 60))
    assert old_bytes(str(path)) == 5


def test_a_large_file_is_copied_whole(tmp_path: Path) -> None:
    out, path = io.BytesIO(), tmp_path / "job.out"
    text = b"".join(b"%d\n" % number for number in range(60_000))
    path.write_bytes(text)
    Tail(str(path), out).copy()
    assert out.getvalue() == text
