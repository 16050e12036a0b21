"""Create the container of a leg, read it back, and compare, before anything in it is started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from runner.app.session import Readback, Session
from runner.app.workspace import Workspace
from runner.core.confine import Placement, leg_container
from runner.core.readback import bind_sources, differences, profile
from runner.host.absence import reaches
from runner.model.leg import LegPlan


class Created(NamedTuple):
    """A container that is there and was not started.

    Attributes:
        container_id: Its id; the session knows it.
        name: Its name on the engine.
        problems: Ways in which it is not what was asked for; with one it must not be started.
    """

    container_id: str
    name: str
    problems: tuple[str, ...]


def create_container(
    session: Session,
    plan: LegPlan,
    workspace: Workspace,
    ordinal: int,
    *,
    root: Path | None,
    marks: str | None,
) -> Created:
    """Create a container of a leg and hold what the engine says of it against what was asked for.

    Args:
        session: The run.
        plan: The leg.
        workspace: What the container writes to.
        ordinal: Counts the containers of the leg.
        root: Staged context root.
        marks: Folder of the read trace's marks.

    Raises:
        EngineFailure: The engine failed.
    """
    name = session.name(plan.leg, ordinal)
    spec = leg_container(
        name=name,
        image_id=session.image.id,
        env=plan.env,
        labels={**session.labels, "ao-eval.leg": plan.leg, "ao-eval.attempt": str(ordinal)},
        placement=Placement(
            agent=str(session.stage.agent),
            workspace_volume=workspace.volume,
            context_root=None if root is None else str(root),
            upper=None if workspace.upper is None else str(workspace.upper),
            hooks=None if session.stage.hooks is None else str(session.stage.hooks),
            marks=marks,
        ),
        case_user=session.case_user,
        resources=session.resources,
        runtime=session.runtime,
    )
    container_id = session.engine.create(spec)
    session.own_container(container_id)
    found = session.engine.inspect(container_id)
    differing = differences(spec, found, api=session.api, image_env=session.image.env)
    sources = (*bind_sources(found), *_layers(session, workspace))
    reaching = tuple(_reaching(session, sources))
    session.record(Readback(plan.leg, ordinal, profile(found), differing, sources), reaching)
    problems = []
    if differing:
        fields = ", ".join(item.field for item in differing)
        problems.append(f"{plan.leg}: created container differs in {fields}")
    if reaching:
        problems.append(f"{plan.leg}: a mount reaches live state")
    return Created(container_id, name, tuple(problems))


def _layers(session: Session, workspace: Workspace) -> tuple[str, ...]:
    """Host folders that the workspace volume shows, as the engine has them."""
    if workspace.upper is None:
        return ()
    options = session.engine.inspect_volume(workspace.volume).get("Options") or {}
    parts = dict(part.partition("=")[::2] for part in str(options.get("o", "")).split(",") if part)
    return tuple(value for name, value in parts.items() if name.endswith("dir"))


def _reaching(session: Session, sources: tuple[str, ...]) -> Iterator[str]:
    for source in sources:
        for live in session.live_roots:
            reach = reaches(Path(source), live)
            if reach is not None:
                yield f"{source} {reach} {live}"
