"""MUNGE: credentials that only one user's processes, on any node of the cluster, can make and read.

Four functions of libmunge (munge(3), munge_ctx(3)) by ctypes; the library is on every node of a cluster whose Slurm uses it.
"""

from __future__ import annotations

import ctypes
import os

LIBRARY = "libmunge.so.2"
OPT_SOCKET, OPT_UID_RESTRICTION = 8, 9  # munge_opt_t in munge.h
EXPIRED, REWOUND, REPLAYED = 15, 16, 17  # munge_err_t in munge.h


class MungeError(Exception):
    """MUNGE is not there, or refuses. The text says which and why."""


def encode(payload: bytes, socket_path: str = "") -> str:
    """A credential with `payload` inside that only processes of this user can decode.

    Args:
        payload: the content.
        socket_path: munged's socket; empty = the library's default.

    Raises:
        MungeError: it cannot be made.
    """
    library = load()
    credential = ctypes.c_char_p()
    context = make_context(library, socket_path)
    try:
        code = library.munge_ctx_set(context, OPT_UID_RESTRICTION, ctypes.c_uint(os.getuid()))
        code = code or library.munge_encode(ctypes.byref(credential), context, payload, len(payload))
        check(library, context, code)
        return (credential.value or b"").decode("ascii")
    finally:
        library.munge_ctx_destroy(context)
        libc_free(credential)


def decode(credential: str, socket_path: str = "") -> bytes:
    """The content of a credential that a process of this same user has made.

    One that has expired, lies in the future or was decoded on this machine before is taken too: clocks of nodes differ, and
    several tasks of a node decode the same one. So the caller must ensure by other means that it is fresh.

    Args:
        credential: what `encode` gave, elsewhere.
        socket_path: munged's socket; empty = the library's default.

    Raises:
        MungeError: it cannot be decoded, or another user made it.
    """
    library = load()
    payload, length, uid = ctypes.c_void_p(), ctypes.c_int(0), ctypes.c_uint(0)
    context = make_context(library, socket_path)
    try:
        code = library.munge_decode(
            credential.encode("ascii", "replace"),
            context,
            ctypes.byref(payload),
            ctypes.byref(length),
            ctypes.byref(uid),
            None,
        )
        if code not in (EXPIRED, REWOUND, REPLAYED):
            check(library, context, code)
        if uid.value != os.getuid():
            raise MungeError(f"the credential was made by user {uid.value}, not by {os.getuid()}")
        return ctypes.string_at(payload, length.value) if payload else b""
    finally:
        library.munge_ctx_destroy(context)
        libc_free(payload)


def load() -> ctypes.CDLL:
    """The library, with the types of its functions."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise MungeError(f"{LIBRARY}: {error}") from None
    library.munge_ctx_create.restype = ctypes.c_void_p
    library.munge_ctx_destroy.argtypes = [ctypes.c_void_p]
    library.munge_ctx_destroy.restype = None
    library.munge_ctx_strerror.argtypes = [ctypes.c_void_p]
    library.munge_ctx_strerror.restype = ctypes.c_char_p
    library.munge_strerror.restype = ctypes.c_char_p
    library.munge_encode.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
    library.munge_decode.argtypes = [ctypes.c_char_p, *[ctypes.c_void_p] * 5]
    return library


def make_context(library: ctypes.CDLL, socket_path: str) -> ctypes.c_void_p:
    """A context, to be destroyed by the caller."""
    context = ctypes.c_void_p(library.munge_ctx_create())
    if socket_path:
        library.munge_ctx_set(context, OPT_SOCKET, ctypes.c_char_p(os.fsencode(socket_path)))
    return context


def check(library: ctypes.CDLL, context: ctypes.c_void_p, code: int) -> None:
    """Raise what a return code means."""
    if code:
        text = library.munge_ctx_strerror(context) or library.munge_strerror(code) or b"unknown error"
        raise MungeError(f"munge: {text.decode('utf-8', 'replace')}")


def libc_free(pointer: ctypes.c_void_p | ctypes.c_char_p) -> None:
    """Free what the library has allocated."""
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    free(pointer)
