"""Forged copies of an evidence directory, by somebody who knows the product and has its code.

A forger edits documents and can then make the rest consistent again: records from their outputs,
the scorecard from the records, the renderings from the scorecard, the statements over it all. What
a forger does not have is the key.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from runner.app.storedrun import StoredRun
from runner.app.verifyaxis import remade, renderings
from runner.attest.dsse import wrap
from runner.attest.keys import SigningKey
from runner.attest.statement import ATTESTATION, TEST_RESULT_FILE, measurement, tested
from runner.core.canon import canonical, document
from runner.core.rederive import AnyDocuments
from runner.core.rejudge import derive
from runner.core.suitefile import read_suite
from runner.host.evidencefiles import EvidenceFiles
from runner.model.suite import SuiteFile

Json = dict[str, Any]


class Forger:
    """A copy of an evidence directory in the hands of a forger."""

    def __init__(self, source: Path, place: Path) -> None:
        shutil.copytree(source, place, symlinks=True)
        self.path = place

    # ---------------------------------------------------------------------------- single files

    def read(self, name: str) -> Json:
        """A document."""
        value: Json = json.loads((self.path / name).read_bytes())
        return value

    def write(self, name: str, value: Json) -> None:
        """A document in its canonical form."""
        (self.path / name).write_bytes(canonical(value))

    def edit(self, name: str, change: Callable[[Json], object]) -> None:
        """Change a document in place."""
        value = self.read(name)
        change(value)
        self.write(name, value)

    def edit_card(self, change: Callable[[Json], object]) -> None:
        """Change the scorecard."""
        self.edit("scorecard.json", change)

    def edit_record(self, leg: str, change: Callable[[Json], object]) -> None:
        """Change a record."""
        self.edit(f"legs/{leg}/record.json", change)

    def edit_case(self, leg: str, case_id: str, change: Callable[[Json], object]) -> None:
        """Change the row of a case in a record."""
        self.edit_record(leg, lambda record: change(row(record["case_results"], case_id)))

    def flip(self, name: str, at: int) -> None:
        """Flip one bit of a file."""
        data = bytearray((self.path / name).read_bytes())
        data[at % len(data)] ^= 1
        (self.path / name).write_bytes(bytes(data))

    def files(self) -> list[str]:
        """Every file."""
        return sorted(
            str(path.relative_to(self.path)) for path in self.path.rglob("*") if path.is_file()
        )

    def legs(self) -> Iterator[str]:
        """Every leg."""
        yield from sorted(path.name for path in (self.path / "legs").iterdir())

    # ------------------------------------------------------------------------ making it consistent

    def rejudge(self) -> None:
        """Make every record again from its outputs."""
        found, suite = self._documents()
        pairs = [found.records[start : start + 2] for start in range(0, len(found.records), 2)]
        for made in derive(suite, pairs, found.live.proof, self._blob):
            self.write(f"legs/{made.record.leg}/record.json", document(made.record))

    def reassemble(self) -> None:
        """Make the scorecard again from the records and the evidence."""
        found, suite = self._documents()
        made = remade(suite, found, self._blob)
        self.write("scorecard.json", document(made))

    def rerender(self) -> None:
        """Make the renderings again from the scorecard."""
        found, _ = self._documents()
        for name, render in renderings(found).items():
            made = render()
            (self.path / name).write_bytes(made.encode() if isinstance(made, str) else made)

    def reseal(self, key: SigningKey | None = None) -> None:
        """Make the statements again over whatever is there, unsigned or with a key of one's own."""
        found, _ = self._documents()
        (self.path / ATTESTATION).unlink(missing_ok=True)
        files = EvidenceFiles(self.path)
        try:
            digests = dict(files.digests)
        finally:
            files.close()
        result = canonical(document(wrap(tested(found.card, digests["scorecard.json"]), key)))
        (self.path / TEST_RESULT_FILE).write_bytes(result)
        files = EvidenceFiles(self.path)
        try:
            statement = measurement(found.card, found.sandbox, files.digests)
        finally:
            files.close()
        (self.path / ATTESTATION).write_bytes(canonical(document(wrap(statement, key))))

    def _documents(self) -> tuple[AnyDocuments, SuiteFile]:
        run = StoredRun(self.path)
        told: list[str] = []
        try:
            found = run.documents(lambda where, what: told.append(f"{where}: {what}"))
        finally:
            run.files.close()
        assert found is not None, told
        suite = read_suite((self.path / "suite.json").read_bytes(), found.card.suite_path)
        return found, suite

    def _blob(self, path: str) -> bytes:
        return (self.path / path).read_bytes()


def row(rows: list[Json], case_id: str) -> Json:
    """The row of a case."""
    return next(item for item in rows if item["case_id"] == case_id)
