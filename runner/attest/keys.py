"""Ed25519 keys from PEM files. The cryptography library is imported only when a key is used."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from runner.errors import InputError, PrerequisiteError

if TYPE_CHECKING:
    from securesystemslib.signer import CryptoSigner, SSlibKey

_LARGEST = 64 * 1024
_PRIVATE = b"PRIVATE KEY-----"


class SigningKey(NamedTuple):
    """A private key and what is worth knowing of its file."""

    signer: CryptoSigner
    warnings: tuple[str, ...]

    @property
    def key_id(self) -> str:
        """Key id, as the signatures name it."""
        return str(self.signer.public_key.keyid)


class PublicKey(NamedTuple):
    """A key that signatures are checked with."""

    key: SSlibKey

    @property
    def key_id(self) -> str:
        """SHA-256 over the canonical form of the key (securesystemslib)."""
        return str(self.key.keyid)


def load_signing_key(path: Path) -> SigningKey:
    """Read a private key: PEM, PKCS #8, Ed25519, not encrypted.

    Args:
        path: `--sign-key`.

    Raises:
        InputError: It is missing, unreadable, or no such key. No message quotes the file.
        PrerequisiteError: The libraries are not installed.
    """
    where = f"--sign-key {path}"
    data, mode = _read(path, where)
    if _PRIVATE not in data:
        raise InputError("is no private key in PEM form", where=where, remedy=_HOW)
    signer_of = _libraries().CryptoSigner
    private = _private(data, where)
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    if not isinstance(private, Ed25519PrivateKey):
        raise InputError("is not an Ed25519 key", where=where, remedy=_HOW)
    warnings: tuple[str, ...] = ()
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        warnings = (f"{where}: others than its owner may use the key; chmod 600 it",)
    return SigningKey(signer_of(private), warnings)


def load_public_key(path: Path) -> PublicKey:
    """Read a public key: PEM, SubjectPublicKeyInfo, Ed25519.

    Args:
        path: `--key`.

    Raises:
        InputError: It is missing, unreadable, or no such key.
        PrerequisiteError: The libraries are not installed.
    """
    where = f"--key {path}"
    data, _ = _read(path, where)
    if _PRIVATE in data:
        raise InputError(
            "is a private key", where=where, remedy="`openssl pkey -in FILE -pubout` has its public"
        )
    key_of = _libraries().SSlibKey
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        public = load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InputError("is no public key in PEM form", where=where) from error
    if not isinstance(public, Ed25519PublicKey):
        raise InputError("is not an Ed25519 key", where=where)
    return PublicKey(key_of.from_crypto(public))


_HOW = "`openssl genpkey -algorithm ed25519 -out FILE` makes one"


def _private(data: bytes, where: str) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        return load_pem_private_key(data, None)
    except TypeError as error:
        raise InputError(
            "is encrypted", where=where, remedy="`openssl pkey -in FILE -out PLAIN` decrypts it"
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InputError("is no private key in PEM form", where=where, remedy=_HOW) from error


def _read(path: Path, where: str) -> tuple[bytes, int]:
    """Content and permission bits of a regular file."""
    try:
        # A FIFO must not hang us before its type is known.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=where) from error
    with os.fdopen(descriptor, "rb") as file:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise InputError("is not a regular file", where=where)
        if info.st_size > _LARGEST:
            raise InputError("is too large for a key", where=where)
        return file.read(_LARGEST), stat.S_IMODE(info.st_mode)


def _libraries() -> Any:
    try:
        import cryptography  # noqa: F401
        from securesystemslib import signer
    except ImportError as error:
        raise _missing() from error
    return signer


def _missing() -> PrerequisiteError:
    return PrerequisiteError(
        "signatures need the libraries of the extra `attest`",
        where="securesystemslib[crypto]",
        remedy="pip install 'ao-eval[attest]'",
    )
