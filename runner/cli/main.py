"""Entry point: commands are imported on use, errors become one line and an exit code."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click

from runner import __version__, settings
from runner.errors import AoEvalError, InputError, InternalError

COMMANDS = {
    "ab": "Run a suite with and without context and compare the two legs.",
    "run": "Run one leg of a suite.",
    "validate": "Check suites and documents of ours; no engine needed.",
    "verify": "Check the evidence of a comparison, offline; with --key also who made it.",
    "outcomes": "Compile rubrics and ingest scores without leaking a holdout.",
    "doctor": "Report whether this machine can run legs; changes nothing.",
    "reap": "Remove what dead runs left on the engine and on disk.",
    "images": "Build the images.",
    "schema": "Print, list or check the JSON Schemas.",
}


_ONE_WISH_SECONDS = 1.0


class Interrupted(BaseException):
    """A signal asked us to stop; carries its number."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(signal.Signals(number).name)


class LazyGroup(click.Group):
    """A group whose commands are modules, imported on use: start-up is part of every run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Commands in the order of the table above."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        # Imports make a few hundred thousand objects that live as long as the process: looking
        # through them for garbage, then and at every later collection, is a tenth of the start.
        gc.disable()
        try:
            module = importlib.import_module(f"runner.cli.{cmd_name}")
        finally:
            gc.freeze()
            gc.enable()
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Evaluate deterministic suites with and without agent context, in sandboxed containers.",
)
@click.version_option(__version__, prog_name="ao-eval")
@click.pass_context
def app(ctx: click.Context) -> None:
    """The command line; options left out are taken from the configuration file."""
    defaults = settings.configured(Path.cwd())
    if defaults:
        _check_configuration(ctx, defaults)
    ctx.default_map = dict.fromkeys(COMMANDS, defaults)


def _check_configuration(ctx: click.Context, defaults: dict[str, Any]) -> None:
    """Refuse settings that no command knows: a misspelt one must not be silently without effect."""
    known: set[str | None] = set()
    for name in ("ab", "run"):
        command = app.get_command(ctx, name)
        known |= {parameter.name for parameter in command.params} if command else set()
    for name in defaults:
        if name not in known:
            raise InputError(
                f"no option is called {name.replace('_', '-')!r}",
                where="ao-eval.toml or [tool.ao-eval]",
                remedy="see `ao-eval ab --help`",
            )


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit.

    Every error is one line on standard error; the exit code says whose fault it is (README).
    """
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)
    sys.unraisablehook = _not_lost
    sys.exit(_run(arguments))


def _interrupt(number: int, frame: FrameType | None) -> None:
    del frame
    first = time.monotonic()

    def again(number: int, frame: FrameType | None) -> None:
        """Do not wait for a clean-up that hangs; containers end with us, `reap` removes the rest.

        An exception would only cut the clean-up into pieces.
        """
        del frame
        # `timeout` sends one wish twice: to the command and to its group.
        if time.monotonic() - first > _ONE_WISH_SECONDS:
            os.write(2, b"ao-eval: interrupted again; run `ao-eval reap` to remove what is left\n")
            os._exit(128 + number)

    signal.signal(signal.SIGINT, again)
    signal.signal(signal.SIGTERM, again)
    raise Interrupted(number)


def _not_lost(lost: sys.UnraisableHookArgs) -> None:
    """A signal that came inside a callback that swallows exceptions is raised again outside it."""
    stop = lost.exc_value
    if not isinstance(stop, Interrupted):
        sys.__unraisablehook__(lost)
        return

    def once_more(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise Interrupted(stop.number)

    signal.signal(signal.SIGALRM, once_more)
    signal.setitimer(signal.ITIMER_REAL, 0.01)


def _run(arguments: list[str] | None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    try:
        # Not `app.main`: it turns an interruption and a closed pipe into codes of its own.
        with app.make_context("ao-eval", list(given)) as context:
            code: Any = app.invoke(context)
        return code if isinstance(code, int) else 0
    except AoEvalError as error:
        _say(error.line())
        return error.exit_code
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        of = getattr(error, "ctx", None)
        hint = f"; see `{of.command_path} --help`" if of is not None else ""
        _say(f"{error.format_message().rstrip('.')}{hint}")
        return InputError.exit_code
    except (Interrupted, KeyboardInterrupt) as stop:
        number = stop.number if isinstance(stop, Interrupted) else signal.SIGINT
        _say(f"interrupted by {signal.Signals(number).name}; nothing is left running")
        return 128 + number
    except BrokenPipeError:
        # The reader of our output went away; that is not worth a message.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except Exception as error:
        if settings.environment().get("AO_EVAL_TRACEBACK"):
            raise
        _say(
            f"internal error: {type(error).__name__}: {str(error)[:500]}; "
            "set AO_EVAL_TRACEBACK=1 to see where"
        )
        return InternalError.exit_code


def _say(message: str) -> None:
    line = " ".join(message.split())
    printable = "".join(c if c.isprintable() else "?" for c in line)
    click.echo(f"ao-eval: {printable}", err=True)
