"""Envelopes: the specification's own vector, an independent reader, and every way to break one."""

from __future__ import annotations

import base64

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization as ser
from cryptography.hazmat.primitives.asymmetric import ed25519
from hypothesis import given
from hypothesis import strategies as st
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import CryptoSigner, SSlibKey

from runner.attest.dsse import EnvelopeError, pae, signed_by, unwrap, wrap
from runner.attest.keys import PublicKey, SigningKey
from runner.core.canon import canonical, document
from runner.model.attestation import (
    STATEMENT_TYPE,
    TEST_RESULT,
    DsseEnvelope,
    DsseSignature,
    ResourceDescriptor,
    TestResultPredicate,
    TestResultStatement,
)

SIGNER = CryptoSigner(ed25519.Ed25519PrivateKey.from_private_bytes(b"k" * 32))
KEY = SigningKey(SIGNER, ())
PUBLIC = PublicKey(SIGNER.public_key)
STRANGER = PublicKey(CryptoSigner.generate_ed25519().public_key)
STATEMENT = TestResultStatement(
    type=STATEMENT_TYPE,
    subject=(ResourceDescriptor(name="scorecard.json", digest={"sha256": "0" * 64}),),
    predicate_type=TEST_RESULT,
    predicate=TestResultPredicate(
        result="PASSED",
        configuration=(),
        passed_tests=("context_on/a",),
        warned_tests=(),
        failed_tests=(),
    ),
)


def test_pre_authentication_encoding_is_that_of_the_specification() -> None:
    # Test vector of the DSSE protocol page.
    found = pae("http://example.com/HelloWorld", b"hello world")
    assert found == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


def test_lengths_are_those_of_bytes() -> None:
    assert pae("ä", "ö".encode()) == "DSSEv1 2 ä 2 ö".encode()


def test_a_signed_envelope_is_accepted_by_another_implementation() -> None:
    envelope = document(wrap(STATEMENT, KEY))
    theirs = Envelope.from_dict(envelope)
    assert list(theirs.verify([SIGNER.public_key], 1)) == [KEY.key_id]
    with pytest.raises(VerificationError):
        theirs.verify([STRANGER.key], 1)


def test_the_signature_is_plain_ed25519_over_the_encoding() -> None:
    envelope = wrap(STATEMENT, KEY)
    raw = base64.b64decode(envelope.signatures[0].sig)
    payload = base64.b64decode(envelope.payload)
    public = ed25519.Ed25519PrivateKey.from_private_bytes(b"k" * 32).public_key()
    public.verify(raw, pae("application/vnd.in-toto+json", payload))
    with pytest.raises(InvalidSignature):
        public.verify(raw, payload)
    as_pem = public.public_bytes(ser.Encoding.PEM, ser.PublicFormat.SubjectPublicKeyInfo)
    assert SSlibKey.from_crypto(ser.load_pem_public_key(as_pem)).keyid == KEY.key_id


def test_the_payload_is_the_statement_under_the_names_of_the_framework() -> None:
    payload, value = unwrap(wrap(STATEMENT, None))
    assert set(value) == {"_type", "subject", "predicateType", "predicate"}
    assert set(value["predicate"]) == {
        "result", "configuration", "passedTests", "warnedTests", "failedTests",
    }  # fmt: skip
    assert canonical(value).rstrip(b"\n") == payload
    assert TestResultStatement.model_validate(value) == STATEMENT


def test_without_a_key_nobody_signed() -> None:
    envelope = wrap(STATEMENT, None)
    assert envelope.signatures == ()
    assert signed_by(envelope, [PUBLIC]) == ()


def test_only_the_key_that_signed_is_reported_whatever_the_hint_says() -> None:
    envelope = wrap(STATEMENT, KEY)
    assert signed_by(envelope, [PUBLIC]) == (PUBLIC.key_id,)
    assert signed_by(envelope, [STRANGER]) == ()
    assert signed_by(envelope, [STRANGER, PUBLIC]) == (PUBLIC.key_id,)
    hinted = DsseSignature(keyid=STRANGER.key_id, sig=envelope.signatures[0].sig)
    forged = envelope.model_copy(update={"signatures": (hinted,)})
    assert signed_by(forged, [STRANGER]) == ()
    assert signed_by(forged, [PUBLIC]) == (PUBLIC.key_id,)


@given(st.data())
def test_one_flipped_bit_of_payload_or_signature_is_no_signature(data: st.DataObject) -> None:
    envelope = wrap(STATEMENT, KEY)
    payload = bytearray(base64.b64decode(envelope.payload))
    raw = bytearray(base64.b64decode(envelope.signatures[0].sig))
    target = data.draw(st.sampled_from([payload, raw]))
    target[data.draw(st.integers(0, len(target) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    signature = DsseSignature(keyid=KEY.key_id, sig=base64.b64encode(raw).decode())
    forged = DsseEnvelope(
        payload=base64.b64encode(payload).decode(),
        payload_type=envelope.payload_type,
        signatures=(signature,),
    )
    assert signed_by(forged, [PUBLIC]) == ()


def test_url_safe_base64_is_read_as_the_specification_demands() -> None:
    envelope = wrap(STATEMENT, KEY)
    raw = base64.b64decode(envelope.signatures[0].sig)
    spelt = base64.urlsafe_b64encode(raw).decode()
    other = envelope.model_copy(
        update={"signatures": (DsseSignature(keyid=KEY.key_id, sig=spelt),)}
    )
    assert signed_by(other, [PUBLIC]) == (PUBLIC.key_id,)


@pytest.mark.parametrize("payload", ["%%%", "e30", "e31=", "e3o=", "eyJhIjoxLCJhIjoyfQ==", "bm8="])
def test_what_is_no_strict_json_in_strict_base64_is_refused(payload: str) -> None:
    envelope = DsseEnvelope(
        payload=payload, payload_type="application/vnd.in-toto+json", signatures=()
    )
    with pytest.raises(EnvelopeError, match="payload"):
        unwrap(envelope)
