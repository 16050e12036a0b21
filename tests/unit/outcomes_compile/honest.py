"""Honest rubrics of twelve domains, with holdouts as their tasks really have.

Texts and holdouts are of the same domain and share its vocabulary, so that a scan which takes a
common word, a short number or a part of a word for an answer is found out here.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.unit.outcomes_compile import builders as b

PER_DOMAIN = 27


class Domain(NamedTuple):
    """One kind of task."""

    name: str
    instructions: tuple[str, ...]
    criteria: tuple[str, ...]
    holdout: tuple[Any, ...]


GENERAL = (
    "Answers in complete sentences and stays under 150 words.",
    "The answer is concise; it does not repeat the question.",
    "Cites at least 2 sources (e.g. https://example.org/a?x=1&y=2) for every claim.",
    "Uses plain language: no jargon, no filler, <= 3 paragraphs.",
    "Expected output: a JSON object with the keys `reply` and `reasons`; nothing before or after.",
    "States what is uncertain, and why; a guess is marked as one.",
    "Target audience is a beginner; every technical term is explained once.",
    "10 points if complete, 5 points if one part is missing, 0 points otherwise.",
    "At least 80% of the statements can be checked against the given text.",
    "Gives no answer at all rather than a wrong one when the data does not allow it.",
    "The tone is friendly \u2013 na\u00efve enthusiasm isn\u2019t \u201cfriendly\u201d.",
    "Follows RFC 2119 wording (MUST, SHOULD, MAY) where it gives rules.",
    "Ground truth is not needed for this one: judge the reasoning only.",
    "Format: `key = value` pairs, one a line; see README.md, section 4.1.",
)

DOMAINS = (
    Domain(
        "geography",
        (
            "Name the capital of the country in the question.",
            "Answer a question about rivers, mountains or borders.",
        ),
        (
            "Names exactly one city, in its English spelling.",
            "Does not confuse the largest city with the seat of government.",
            "Gives the continent, and the neighbours to the north and the south.",
            "Mentions the official language if there is only 1.",
        ),
        (
            "Ouagadougou", "Paris", "Bogotá", "N'Djamena", "Sri Jayawardenepura Kotte", "Oslo",
            "Rome", "Lima", "Nile", "Mont Blanc", "Danube", "東京", "Київ",
        ),
    ),
    Domain(
        "arithmetic word problems",
        ("Solve the word problem and show each step.", "Work out the total. Units matter."),
        (
            "Shows every intermediate result, with its unit.",
            "Rounds only at the end, to 2 decimals.",
            "Each of the 3 to 6 steps follows from the one before.",
            "Scores 1 if the method is right and 0.25 for each correct step otherwise.",
        ),
        (
            1, 2, 3, 8, 12, 18, 42, 64, 96, "126", 343, 1430, "2,310", "17.5", 0.75, "3/8",
            "70000", "$18", -7, 1e-05,
        ),
    ),
    Domain(
        "multiple choice",
        ("Choose one of the options A, B, C and D and say why.",),
        (
            "Names one option only, as a capital letter.",
            "Explains why each of the other three options is worse.",
            "Does not hedge between A and B.",
        ),
        ("A", "B", "C", "D", "a", "(c)", "D."),
    ),
    Domain(
        "yes or no",
        ("Decide whether the claim follows from the passage: yes, no, or unknown.",),
        (
            "Says yes, no or unknown in the first word.",
            "Quotes the sentence of the passage that decides; true and false are both accepted.",
            "An incorrect quotation fails this criterion, a correct one passes.",
        ),
        (True, False, "yes", "no", "unknown", "Yes", "NO"),
    ),
    Domain(
        "sentiment",
        ("Label the review as positive, negative or neutral.",),
        (
            "The label is one of positive, negative, neutral.",
            "Gives the phrase that carries the sentiment, however low its weight.",
            "Mixed reviews: the more recent experience has a high weight.",
        ),
        ("positive", "negative", "neutral", "Positive"),
    ),
    Domain(
        "chemistry",
        ("Name the substance that is described.", "Balance the equation."),
        (
            "Uses the systematic name in addition to the common one.",
            "The classification of the reaction and its application are explained.",
            "States the oxidation numbers before and after, in a table with 4 columns.",
            "Notes safety precautions, with concentration and location of storage.",
        ),
        (
            "cation", "H2O", "NaCl", "potassium permanganate", "2-methylpropane", "ester", "argon",
            "6.022e23", "CO2", "sp3", "pH 7.4", "benzene",
        ),
    ),
    Domain(
        "code",
        ("Fix the failing function; return the whole file.", "Explain what the regex matches."),
        (
            "The code runs under Python 3.11 without warnings.",
            "Handles the empty list, None, and `x < 0` without raising an exception.",
            "No function is longer than 40 lines; camelCase is not used in snake_case files.",
            "Complexity is O(n log n) or better, see `sort(key=lambda p: (-p[1], p[0]))`.",
            "Escapes such as \\n, \\t and %20 are left as they are; &amp; stays &amp;.",
        ),
        (
            "return sorted(xs, key=len)", "off-by-one", "IndexError", "O(n^2)", "^[a-z]+$",
            "x <= 5",
            "SELECT id FROM t", "useEffect", "0x1F", "i++", "C++", "foldl", "O(1)",
        ),
    ),
    Domain(
        "medicine",
        ("Suggest the most likely diagnosis from the case notes.",),
        (
            "Names one diagnosis first and at most two alternatives.",
            "Justifies it by findings in the notes, not by prevalence alone.",
            "Recommends when to see a doctor; doses are given per kg and per day.",
            "Is careful: no reassurance where a red flag is present.",
        ),
        (
            "appendicitis", "acute myocardial infarction", "gout", "iron deficiency anaemia",
            "Kawasaki disease", "5 mg", "HIV", "DVT", "otitis media", "mumps",
        ),
    ),
    Domain(
        "history",
        ("Answer with a year or a name, then one sentence of context.",),
        (
            "The first token of the reply is a year or a surname.",
            "Context names cause and consequence, as a historian of today (2023) would.",
            "Distinguishes Old Style from New Style dates.",
            "Says which century is meant, e.g. the 15th or the 19th.",
        ),
        (
            1066, 1492, "1789", "14 July 1789", "Westphalia", "Magna Carta", "Charlemagne",
            "1848", "Queen Victoria", "1990-10-03", "Attila", "Hus",
        ),
    ),
    Domain(
        "law and finance",
        ("Compute the refund by the shop's rules and explain it to the customer.",),
        (
            "Names the rule that applies and its paragraph.",
            "States an amount in EUR and how it comes about.",
            "Mentions the deadline of 30 days, and the 2.5% handling fee where it applies.",
            "Is polite and brief: at most 1,500 characters.",
        ),
        (
            "84.37 EUR", "Amber-Lantern-4711", 84.37, "$1,250.00", "12.75%", "no refund",
            "the voucher is used up first", "19 %", 0.19, "partial refund of 40.00",
        ),
    ),
    Domain(
        "translation",
        ("Übersetze den Satz ins Deutsche.", "Traduis la phrase en français, s'il te plaît."),
        (
            "Der Ton ist höflich; die Anrede „Sie“ wird durchgehalten.",
            "Les accents sont corrects, les guillemets français aussi.",
            "文法は正しく、意味は変わらない。",
            "Стиль перевода естественный.",
        ),
        (
            "Das Wetter ist heute schön.", "Il fait beau aujourd'hui.", "straße", "garçon",
            "猫が好き", "добрый день", "na ja", "été", "Haus",
        ),
    ),
    Domain(
        "extraction",
        ("Extract the fields of the invoice as JSON.",),
        (
            "The object has the fields number, date, total and currency, in any order.",
            "Dates are ISO 8601; amounts are numbers, not text.",
            "Fields that are absent are null; nothing is invented.",
            "sha256 of the file is repeated as given, 64 hex digits, lower case.",
        ),
        (
            {"number": "INV-2024-00731", "date": "2024-03-07", "total": 1193.5, "currency": "CHF"},
            {"number": "R/88/19", "date": None, "total": "77.10", "currency": "SEK"},
            ["Widget, blue (x4)", "Sprocket M8"],
        ),
    ),
)  # fmt: skip


def honest() -> Iterator[tuple[str, dict[str, Any]]]:
    """Rubrics that carry no holdout value, with the name of their domain."""
    randomness = random.Random(3)
    for domain in DOMAINS:
        for number in range(PER_DOMAIN):
            own = randomness.sample(domain.criteria, randomness.randint(1, len(domain.criteria)))
            general = randomness.sample(GENERAL, randomness.randint(0, 6))
            texts = own + general
            randomness.shuffle(texts)
            holdout = list(domain.holdout)
            randomness.shuffle(holdout)
            made = b.document(
                *texts,
                ids=[f"{randomness.choice(IDS)}-{place}" for place in range(len(texts))],
                instructions=randomness.choice(domain.instructions),
                task_id=f"{domain.name.replace(' ', '-')}-{number:03d}",
                weight=randomness.choice([1, 2, 3, 5, 10, 100, 0.5, 0.25, 0.2, 1.5, 0.333333]),
                holdout=holdout,
                split=randomness.choice(["dev", "holdout"]),
            )
            made["task"] |= {
                "domain": domain.name,
                "harness_ref": "harness/v3",
                "stats": {
                    "metric": "accuracy",
                    "paired": True,
                    "min_n_samples": 30,
                    "decision_rule": {
                        "kind": "bootstrap_ci",
                        "confidence": 0.95,
                        "min_delta": 0.02,
                    },
                },
                "samples": {"dev": "samples-dev.jsonl", "holdout": "samples-holdout.jsonl"},
            }
            yield f"{domain.name} {number}", made


IDS = ("answer-quality", "target-audience", "format", "tone", "c", "correctness", "safety", "Style")
