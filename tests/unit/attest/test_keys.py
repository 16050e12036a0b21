"""Keys: what is accepted, and how each mistake is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization as ser
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from runner.attest.keys import load_public_key, load_signing_key
from runner.errors import InputError

PASSWORD = b"not a secret"


def pem(
    key: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey, password: bytes = b""
) -> bytes:
    how = ser.BestAvailableEncryption(password) if password else ser.NoEncryption()
    return key.private_bytes(ser.Encoding.PEM, ser.PrivateFormat.PKCS8, how)


def public_pem(key: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(ser.Encoding.PEM, ser.PublicFormat.SubjectPublicKeyInfo)


def keep(path: Path, data: bytes, mode: int = 0o600) -> Path:
    path.write_bytes(data)
    path.chmod(mode)
    return path


def test_private_and_public_halves_have_one_key_id(tmp_path: Path) -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    signing = load_signing_key(keep(tmp_path / "key.pem", pem(key)))
    public = load_public_key(keep(tmp_path / "pub.pem", public_pem(key)))
    assert signing.key_id == public.key_id
    assert len(signing.key_id) == 64
    assert signing.warnings == ()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o610])
def test_a_key_that_others_may_use_is_warned_of(tmp_path: Path, mode: int) -> None:
    path = keep(tmp_path / "key.pem", pem(ed25519.Ed25519PrivateKey.generate()), mode)
    (warning,) = load_signing_key(path).warnings
    assert "chmod 600" in warning


def test_mistakes_with_a_signing_key_are_told_in_one_line_that_quotes_nothing(
    tmp_path: Path,
) -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    wrong = {
        "cannot be read": tmp_path / "missing",
        "is not an Ed25519 key": keep(
            tmp_path / "ec", pem(ec.generate_private_key(ec.SECP256R1()))
        ),
        "is encrypted": keep(tmp_path / "enc", pem(key, PASSWORD)),
        "is no private key in PEM form": keep(tmp_path / "pub", public_pem(key)),
        "is too large for a key": keep(tmp_path / "large", b"x" * 70_000),
        "is not a regular file": fifo,
    }
    for problem, path in wrong.items():
        with pytest.raises(InputError, match=problem) as caught:
            load_signing_key(path)
        assert "\n" not in caught.value.line()
        assert str(path) in caught.value.line()
    broken = keep(tmp_path / "broken", pem(key).replace(b"MC4", b"AAA"))
    with pytest.raises(InputError, match="is no private key") as caught:
        load_signing_key(broken)
    assert "AAA" not in caught.value.line()


def test_mistakes_with_a_public_key_are_told(tmp_path: Path) -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    other = ec.generate_private_key(ec.SECP256R1())
    wrong = {
        "is a private key": keep(tmp_path / "private", pem(key)),
        "is not an Ed25519 key": keep(tmp_path / "ec", public_pem(other)),
        "is no public key in PEM form": keep(tmp_path / "text", b"hello"),
        "cannot be read": tmp_path / "missing",
    }
    for problem, path in wrong.items():
        with pytest.raises(InputError, match=problem):
            load_public_key(path)


def test_commands_that_use_no_key_do_not_import_the_cryptography_library() -> None:
    program = (
        "import sys, runner.cli.ab, runner.app.run_ab, runner.attest.dsse, runner.attest.keys\n"
        "import runner.attest.statement\n"
        "print([name for name in sys.modules if name.startswith(('cryptography', 'securesys'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_without_the_extra_the_user_is_told_what_to_install(tmp_path: Path) -> None:
    path = keep(tmp_path / "key.pem", pem(ed25519.Ed25519PrivateKey.generate()))
    program = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from pathlib import Path\nfrom runner.attest.keys import load_signing_key\n"
        "from runner.errors import PrerequisiteError\n"
        "try:\n    load_signing_key(Path(sys.argv[1]))\n"
        "except PrerequisiteError as error: print(error.exit_code, error.line())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("3 ")
    assert "pip install 'ao-eval[attest]'" in done.stdout
