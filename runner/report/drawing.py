"""Tables and texts of a terminal, shared by what is drawn with them.

Text goes to rich as `Text`, never as markup: a label `[red]` is five characters, not a colour.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from runner.model.record import Status
from runner.report.text import NOTHING, signed, visible

_WIDEST = 110
_NARROWEST = 50

STATUS_STYLE: dict[Status, str] = {
    Status.PASS: "green",
    Status.FAIL: "red",
    Status.ERROR: "yellow",
    Status.SKIPPED: "yellow",
    Status.INCONCLUSIVE: "yellow",
}


def to_string(parts: Iterable[RenderableType], width: int, *, color: bool) -> str:
    """Draw the parts below each other.

    Args:
        parts: What is drawn.
        width: Columns of the terminal; between 50 and 110 are used.
        color: Write ANSI styles.
    """
    buffer = io.StringIO()
    # An empty environment: what is drawn depends on the arguments alone.
    console = Console(
        file=buffer,
        width=min(max(width, _NARROWEST), _WIDEST),
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
    for part in parts:
        console.print(part)
    return "\n".join(line.rstrip(" ") for line in buffer.getvalue().split("\n"))


def table(first: str, *rest: str) -> Table:
    """A table whose first column takes the room that the others leave."""
    table = Table(box=box.SIMPLE_HEAD, expand=True, pad_edge=False, padding=(0, 1), show_edge=False)
    table.add_column(first, ratio=1, overflow="fold", header_style="dim")
    for name in rest:
        table.add_column(name, justify="right", no_wrap=len(rest) < 5, header_style="dim")
    return table


def noted(case_id: str, note: str | None, *, degraded: bool = False) -> RenderableType:
    """A case and, below it, what is to be said of it."""
    name = Text(visible(case_id))
    if note is None:
        return name
    style = "yellow" if degraded else "dim"
    return Group(name, Padding(Text(note, style=style, overflow="fold"), (0, 0, 0, 2)))


def status(status: Status) -> Text:
    """A status in its colour."""
    return Text(status.value, style=STATUS_STYLE[status])


def delta(value: float | None) -> Text:
    """A delta in its colour; the mark for nothing where there is none."""
    if value is None:
        return Text(NOTHING, style="yellow")
    rounded = round(value, 4)
    return Text(signed(value), style="green" if rounded > 0 else "red" if rounded < 0 else "dim")


def facts(rows: Iterable[tuple[str, RenderableType]]) -> Table:
    """Names and values, a line each."""
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    for name, value in rows:
        table.add_row(Text(name), value)
    return table


def bullets(lines: Sequence[str], style: str) -> Table:
    """What must not be overlooked, a line each."""
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    for line in lines:
        table.add_row(Text("!", style=style), Text(line, style=style))
    return table
