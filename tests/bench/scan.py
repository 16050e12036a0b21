"""The leak scan against one plain pass of the multi-pattern matcher that it is built on."""

from __future__ import annotations

import functools
import gc
import json
import random
import statistics
import time
from collections.abc import Callable

from ahocorasick_rs import AhoCorasick, Implementation

from runner.core.outcomes.holdout import HoldoutValue
from runner.core.outcomes.leakscan import scan

PAYLOAD_BYTES = 1_000_000
VALUES = 10_000
PASSES = 4


def words(randomness: random.Random, count: int) -> list[str]:
    """Made-up words with the lengths and roughly the letters of English ones."""
    letters = "etaoinshrdlucmfwypvbgkqjxz"
    weights = [12, 9, 8, 8, 7, 7, 6, 6, 6, 4, 4, 3, 3, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1]
    return [
        "".join(randomness.choices(letters, weights, k=randomness.randint(2, 11)))
        for _ in range(count)
    ]


def criteria(randomness: random.Random, size: int) -> list[dict[str, object]]:
    """Criteria of so many bytes, some with accents, escapes, numbers and code."""
    vocabulary = words(randomness, 20_000)
    vocabulary += ["50%", "1,000", "café", "naïve", "<b>", "&amp;", "camelCase", "x_1", "2024"] * 5
    made: list[dict[str, object]] = []
    left = size - 700
    while left > 0:
        sentences = [" ".join(randomness.choices(vocabulary, k=16)) + "." for _ in range(5)]
        text = " ".join(sentence[0].upper() + sentence[1:] for sentence in sentences)
        made.append({"description": text, "id": f"c{len(made)}", "weight": 1})
        left -= len(text.encode()) + 45
    return made


def answers(randomness: random.Random, count: int) -> list[str]:
    """Answers of other words than the rubric's: names, words, phrases, sentences, numbers."""
    vocabulary = [word + "ezj" for word in words(randomness, 20_000)]
    texts = []
    for number in range(count):
        if number % 10 == 0:
            texts.append(str(randomness.randint(10_000, 10_000_000) / 100))
            continue
        phrase = " ".join(randomness.choices(vocabulary, k=1 + number % 5))
        texts.append(phrase.capitalize() if number % 2 else phrase)
    return texts


@functools.cache
def inputs() -> tuple[bytes, list[HoldoutValue]]:
    """A rubric of 1 MB and 10,000 holdout values that are not in it."""
    randomness = random.Random(20240607)
    rubric = {
        "schema_version": 1,
        "source_task_id": "bench",
        "judge_content_hash": "sha256:" + "0123456789abcdef" * 4,
        "criteria": criteria(randomness, PAYLOAD_BYTES),
    }
    texts = answers(randomness, VALUES)
    values = [HoldoutValue(index, "bench", text) for index, text in enumerate(texts)]
    return json.dumps(rubric, ensure_ascii=False).encode(), values


def seconds(action: Callable[[], object]) -> float:
    """Processor seconds: other work on the machine adds nothing to them."""
    gc.collect()
    start = time.process_time()
    action()
    return time.process_time() - start


def pair() -> tuple[float, float]:
    """Processor seconds of the scan and of one pass, construction and search, as every view has.

    One pass is a tenth of a second at most, most of it memory that the kernel hands out: the median
    of several, half of them before the scan and half after it.
    """
    payload, values = inputs()
    text, patterns = payload.decode(), [value.text for value in values]

    def plain() -> None:
        matcher = AhoCorasick(patterns, implementation=Implementation.ContiguousNFA)
        matcher.find_matches_as_indexes(text, overlapping=True)

    def full() -> None:
        if scan(payload, values):
            raise RuntimeError("an answer was found in a rubric that has none")

    before = [seconds(plain) for _ in range(PASSES)]
    scanned = seconds(full)
    after = [seconds(plain) for _ in range(PASSES)]
    return scanned, statistics.median(before + after)
