"""In-toto Statement v1, its envelope, and the two predicates that are attested of a comparison.

Sources: in-toto attestation framework, spec/v1 (statement, resource_descriptor, digest_set) and
spec/predicates/test-result v0.1; DSSE protocol and envelope v1.0.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field

from runner.model.base import Delta, Items, RunId, Sha256, Timestamp, Token, Value
from runner.model.observation import Count

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
TEST_RESULT: Final = "https://in-toto.io/attestation/test-result/v0.1"
MEASUREMENT: Final = "urn:ao-eval:attestation:measurement:v1"

_NAMED_BY_OTHERS = ConfigDict(validate_by_name=True, serialize_by_alias=True)
"""For documents whose member names are not ours to choose."""


class ResourceDescriptor(Value):
    """A software artifact, by name and digest."""

    name: Annotated[str, Field(min_length=1)]
    digest: dict[str, str]
    """`sha256` of bytes; `aoTreeV1` of a tree (`core.treehash`); `aoWitnessV1` of a live root."""


class ReadBack(Value):
    """A confinement profile as the engine reported it."""

    profile: dict[str, Any]
    """Names, ids and host paths left out."""


class AttestedSandbox(Value):
    """The sandbox as the engine described it, before each container was started."""

    engine: str
    oci_runtime: str
    containers: Count
    differences: Count
    profiles: Items[ReadBack]
    """Every distinct one."""
    profile_sha256: Sha256
    network: Literal["none"]
    interfaces: Items[str]
    capabilities: Items[str]
    no_new_privs: bool


class AttestedRoot(Value):
    """One live root, before and after."""

    path: str
    fatal: bool
    before_sha256: Sha256 | None
    after_sha256: Sha256 | None
    changes: Count
    changed_by: Token | None


class MeasurementPredicate(Value):
    """What is attested of one comparison; the scorecard and all evidence are subjects."""

    run_id: RunId
    generated_at: Timestamp
    runner_version: str
    integrity: Literal["clean", "violated", "unknown"]
    problems: Items[str]
    aggregate_delta: Delta | None
    valid_pairs: Count
    sandbox: AttestedSandbox
    live_state: Items[AttestedRoot]


class TestResultPredicate(Value):
    """Predicate test-result v0.1: the cases of the `context_on` (`skill_on`) leg."""

    __test__ = False  # Not a class of tests, whatever pytest thinks of its name.
    model_config = _NAMED_BY_OTHERS

    result: Literal["PASSED", "WARNED", "FAILED"]
    """A degraded case, or a measurement that was not clean, is never `PASSED`."""
    configuration: Items[ResourceDescriptor]
    """The suite, the image and, on the context axis, the context root."""
    passed_tests: Annotated[Items[str], Field(alias="passedTests")]
    warned_tests: Annotated[Items[str], Field(alias="warnedTests")]
    """Degraded: these support no claim."""
    failed_tests: Annotated[Items[str], Field(alias="failedTests")]


class _Statement(Value):
    model_config = _NAMED_BY_OTHERS

    type: Annotated[Literal["https://in-toto.io/Statement/v1"], Field(alias="_type")]
    subject: Annotated[Items[ResourceDescriptor], Field(min_length=1)]


class MeasurementStatement(_Statement):
    """Payload of `attestation.dsse.json`."""

    predicate_type: Annotated[
        Literal["urn:ao-eval:attestation:measurement:v1"], Field(alias="predicateType")
    ]
    predicate: MeasurementPredicate


class TestResultStatement(_Statement):
    """Payload of `test-result.dsse.json`."""

    __test__ = False

    predicate_type: Annotated[
        Literal["https://in-toto.io/attestation/test-result/v0.1"], Field(alias="predicateType")
    ]
    predicate: TestResultPredicate


class DsseSignature(Value):
    """One signature of an envelope."""

    keyid: Annotated[str, Field(min_length=1)]
    """A hint; what counts is which key verifies."""
    sig: Annotated[str, Field(min_length=1)]
    """Base64."""


class DsseEnvelope(Value):
    """DSSE envelope around an in-toto statement."""

    model_config = _NAMED_BY_OTHERS

    payload: Annotated[str, Field(min_length=1)]
    """Base64 of the statement's canonical JSON."""
    payload_type: Annotated[Literal["application/vnd.in-toto+json"], Field(alias="payloadType")]
    signatures: Items[DsseSignature]
    """Empty when no key was given: unsigned, and no verifier of envelopes accepts it."""
