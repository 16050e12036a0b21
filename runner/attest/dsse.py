"""Envelopes: a statement, its type and signatures (DSSE v1.0, JSON form)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from runner.core.canon import canonical, document
from runner.core.strictjson import StrictJsonError, loads
from runner.model.attestation import PAYLOAD_TYPE, DsseEnvelope, DsseSignature
from runner.model.base import Value

if TYPE_CHECKING:
    from runner.attest.keys import PublicKey, SigningKey

MAX_BYTES = 512 * 1024 * 1024


class EnvelopeError(ValueError):
    """The bytes are no envelope of ours; the message says why in a few words."""


def wrap(statement: Value, key: SigningKey | None) -> DsseEnvelope:
    """Put a statement into an envelope, signed when there is a key.

    Without one the list of signatures is empty: that is an envelope which nobody signed, and every
    verifier of envelopes refuses it as such. A file of another kind would be taken for something
    else.

    Args:
        statement: An in-toto statement.
        key: Who signs.
    """
    payload = canonical(document(statement)).rstrip(b"\n")
    signatures: tuple[DsseSignature, ...] = ()
    if key is not None:
        signature = key.signer.sign(pae(PAYLOAD_TYPE, payload))
        raw = bytes.fromhex(signature.signature)
        signatures = (DsseSignature(keyid=signature.keyid, sig=_text(raw)),)
    return DsseEnvelope(payload=_text(payload), payload_type=PAYLOAD_TYPE, signatures=signatures)


def pae(payload_type: str, payload: bytes) -> bytes:
    """Pre-authentication encoding: what is signed."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def unwrap(envelope: DsseEnvelope) -> tuple[bytes, Any]:
    """The payload's bytes and the JSON value in them; says nothing of signatures.

    Raises:
        EnvelopeError: It is not base64, or not strict JSON in canonical form.
    """
    payload = _bytes(envelope.payload, "payload")
    try:
        value = loads(payload, max_bytes=MAX_BYTES)
    except StrictJsonError as error:
        raise EnvelopeError(f"payload: {error}") from error
    return payload, value


def signed_by(envelope: DsseEnvelope, keys: Sequence[PublicKey]) -> tuple[str, ...]:
    """Ids of the given keys that signed the envelope.

    Every signature is tried with every key: the key id in an envelope is an unauthenticated hint.

    Raises:
        EnvelopeError: A payload or signature is not base64.
    """
    from securesystemslib.exceptions import UnverifiedSignatureError
    from securesystemslib.signer import Signature

    signed = pae(envelope.payload_type, _bytes(envelope.payload, "payload"))
    found = []
    for number, item in enumerate(envelope.signatures):
        raw = _bytes(item.sig, f"signatures/{number}/sig")
        for key in keys:
            try:
                key.key.verify_signature(Signature(key.key_id, raw.hex()), signed)
            except UnverifiedSignatureError:
                continue
            found.append(key.key_id)
    return tuple(dict.fromkeys(found))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: str, where: str) -> bytes:
    """Base64, standard or URL-safe as the specification demands, in its one canonical spelling."""
    standard = text.replace("-", "+").replace("_", "/")
    try:
        data = base64.b64decode(standard, validate=True)
    except (binascii.Error, ValueError) as error:
        raise EnvelopeError(f"{where} is not base64") from error
    if _text(data) != standard:
        raise EnvelopeError(f"{where} is not canonical base64")
    return data
