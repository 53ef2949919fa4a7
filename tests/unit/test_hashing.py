"""The library's own HMAC-SHA256 is the standard one."""

import hashlib
import hmac
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slaunch.hashing import compare_digest, hmac_sha256, sha256

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("key", "message", "code"),
    [
        (b"\x0b" * 20, b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
        (b"Jefe", b"what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
        (
            b"\xaa" * 131,
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        ),
    ],
)
def test_the_vectors_of_rfc_4231(key, message, code):
    assert hmac_sha256(key, message).hex() == code


@given(st.binary(max_size=200), st.binary(max_size=300))
def test_it_is_the_standard_library_s(key, message):
    assert hmac_sha256(key, message) == hmac.digest(key, message, "sha256")
    assert sha256(message).hexdigest() == hashlib.sha256(message).hexdigest()


def test_comparing():
    assert compare_digest(b"same", b"same") and not compare_digest(b"same", b"sane")


def test_an_interpreter_without_an_own_implementation_has_openssl_s():
    program = (
        "import sys; sys.modules['_sha2'] = sys.modules['_sha256'] = None\n"
        "from slaunch.hashing import hmac_sha256; print(hmac_sha256(b'Jefe', b'what do ya want for nothing?').hex()[:8])\n"
        "print('_hashlib' in sys.modules)"
    )
    argv = [sys.executable, "-S", "-c", program]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, env={"PYTHONPATH": str(ROOT)})
    assert done.stdout.split() == ["5bdcc146", "True"], done.stderr
