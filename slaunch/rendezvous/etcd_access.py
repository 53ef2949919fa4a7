"""How to be let in by an etcd that asks for a password or for certificates: with the options and variables of etcdctl.

The variables ETCDCTL_USER, ETCDCTL_CACERT, ETCDCTL_CERT and ETCDCTL_KEY arrive as options (etcdctl's manual, "global options").
"""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.errors import UsageError
from slaunch.frozen import dataclass
from slaunch.options import Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl

PASSWORD = "ETCDCTL_PASSWORD"  # noqa: S105 - the variable's name
HELP = (
    "give --etcd-user, --etcd-cacert, --etcd-cert and --etcd-key, or set etcdctl's variables, as for etcdctl; "
    "where both are wanted, the certificate must have no common name"
)


@dataclass(frozen=True)
class Access:
    """What etcd wants to see.

    Attributes:
        user, password: for its password check; "" = none.
        tls: for an encrypted connection, with the authorities to trust and this node's own certificate; None = not encrypted.
    """

    user: str = ""
    password: str = ""
    tls: ssl.SSLContext | None = None


OPEN = Access()


def access_of(options: Options, env: Mapping[str, str]) -> Access:
    """What the user gave for it.

    Raises:
        UsageError: there is a user without a password, or a file cannot be used.
    """
    user, colon, password = options.etcd_user.partition(":")
    if user and not colon:
        password = env.get(PASSWORD, "")
    if user and not password:
        raise UsageError("log in to etcd", f"user {user}, but no password", f"set {PASSWORD}, or give --etcd-user NAME:PASSWORD")
    return Access(user, password, tls_of(options))


def tls_of(options: Options) -> ssl.SSLContext | None:
    """The encryption that the certificates are for; None where none is given."""
    if not (options.etcd_cacert or options.etcd_cert):
        return None
    import ssl

    name, path = "--etcd-cacert", options.etcd_cacert
    try:
        context = ssl.create_default_context(cafile=options.etcd_cacert or None)
        if options.etcd_cert:
            name, path = "--etcd-cert and --etcd-key", f"{options.etcd_cert}, {options.etcd_key or 'no key'}"
            context.load_cert_chain(options.etcd_cert, options.etcd_key or None)
    except OSError as error:
        raise UsageError("read the certificates for etcd", f"{name} ({path}): {error.strerror or error}", HELP) from None
    return context
