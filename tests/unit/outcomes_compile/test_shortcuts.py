"""Shortcuts of the scan change nothing: each against the plain way to the same result."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.core.outcomes import fold, innerwords, unwrap
from runner.core.outcomes.digests import HASHES, digests_in, digests_of
from runner.core.outcomes.foldings import folded_all
from runner.core.outcomes.payload import Piece

TEXTS = st.text(st.sampled_from("abcxyzABC019_ -.,:\n\u00e9\u0430\u200b\u6771\u00df"), max_size=40)


@given(st.lists(TEXTS, max_size=6))
@settings(max_examples=500)
def test_texts_folded_together_are_folded_as_each_alone(texts: list[str]) -> None:
    for text, item in zip(texts, folded_all([Piece("", text) for text in texts]), strict=True):
        words = fold.words(fold.plain(text))
        similar = fold.words(fold.lookalike(text))
        assert (item.plain, item.words, item.squeezed) == (fold.plain(text), words, "".join(words))
        assert (item.similar, item.blended) == (similar, "".join(similar))


@given(TEXTS)
@settings(max_examples=500)
def test_words_in_words_and_spaced_letters_are_those_of_the_patterns(text: str) -> None:
    (item,) = folded_all([Piece("", text)])
    mixed = [
        part
        for word in re.findall(r"[A-Za-z0-9]+", text)
        if re.search(r"[a-z][A-Z]|[0-9][A-Za-z]|[A-Za-z][0-9]", word)
        for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+", word)
    ]
    spaced = re.findall(r"(?<!\w)\w(?:\W{1,3}\w(?!\w)){2,}", text)
    if sum(len(word) == 1 for word in item.words) < 3:
        spaced = []
    found = {piece.origin: piece.text for piece in innerwords.inner_pieces([item])}
    assert ("inside a word" in found) == (max(map(len, mixed), default=0) >= 3)
    assert found.get("inside a word", " ".join(mixed)) == " ".join(mixed)
    assert ("spaces and punctuation" in found) == bool(spaced)


@given(st.text("ABCxyz019+/-_ .", max_size=60))
@settings(max_examples=500)
def test_the_noise_holds_every_alignment_of_base64(text: str) -> None:
    run = re.sub("[^A-Za-z0-9+/_-]", "", text).translate(str.maketrans("-_", "+/"))
    seen = [data.lstrip(b"\0") for view, data in unwrap.noise(text) if view == "base64"]
    for offset in range(4):
        body = run[offset:][: len(run[offset:]) // 4 * 4]
        assert any(base64.b64decode(body).lstrip(b"\0") in data for data in seen)


@given(st.binary(max_size=12))
@settings(max_examples=1000)
def test_bytes_are_read_as_utf_16_of_one_script_only(data: bytes) -> None:
    wanted = []
    for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
        try:
            text = fold.visible(data.decode(encoding).strip("\0\ufeff\r\n\t "))
        except UnicodeDecodeError:
            continue
        scripts = {ord(char) >> 8 for char in text} - {0}
        if "".join(text.split()).isprintable() and (encoding == "utf-8" or len(scripts) <= 1):
            wanted.append(text)
    assert list(unwrap._texts(data)) == wanted


@pytest.mark.parametrize("length", HASHES)
@pytest.mark.parametrize("value", ["Paris", " Paris\n", "paris", "\u00c9tat", ""])
def test_digests_are_of_the_value_its_line_and_its_lower_case(length: int, value: str) -> None:
    start = getattr(hashlib, HASHES[length].name)
    forms = (value, f"{value.strip()}\n", value.strip().lower())
    assert {*digests_of(value, length)} == {start(form.encode()).digest() for form in forms}


@given(st.lists(st.text("0123456789abcdefABCDEFxyz \u00e9", max_size=70), max_size=4))
def test_digests_in_texts_are_hex_runs_of_their_length(texts: list[str]) -> None:
    runs = [run for text in texts for run in re.findall("[0-9A-Fa-f]{32,}", text)]
    wanted = {bytes.fromhex(run) for run in runs if len(run) in {32, 40, 64}}
    assert {*digests_in([Piece("", text) for text in texts])} == wanted
    made = hashlib.sha1(b"x").hexdigest()
    (found,) = digests_in([Piece("/a", "none"), Piece("/b", f"is {made}, or so")]).values()
    assert found.pointer == "/b"
