"""The command line: `fenced`. One module per kind of command; everything heavy is imported when a command needs it."""

import os
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from executor.cli import acting, planning, reading, registering, serving, starting, validating
from executor.cli.failures import explain

__all__ = ["build", "main"]

_HELP = """Run scheduled on-chain actions from wallets you control, and never one of them twice.

Begin with `fenced init`. Exit codes: 0 fine, 1 what was asked about is not fine, 2 wrong usage or configuration,
3 could not find out."""
_PANELS = {
    "Set up": (starting.init, validating.validate, registering.migrate, registering.apply),
    "Run": (serving.run, serving.demo, serving.devnet, serving.doctor, serving.audit),
    "Read": (reading.status, reading.accounts, reading.executions, reading.show),
    "Act": (planning.plan, acting.trigger, acting.pause, acting.resume, acting.halt, acting.reopen, acting.resolve),
}
_PASSED_ON: dict[str, Any] = {
    "context_settings": {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    "add_help_option": False,
}


class Grouped(TyperGroup):
    """The list of commands in the order and groups of `_PANELS`. Plain text: Rich alone would take twice the time of all else."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  (overrides Typer's)
        """Write the commands to the help page, a section for each group."""
        width = max(map(len, self.commands))
        for panel in _PANELS:
            members = [(name, one) for name, one in self.commands.items() if vars(one).get("rich_help_panel") == panel]
            with formatter.section(panel):
                formatter.write_dl([(name.ljust(width), _brief(one)) for name, one in members])


def _brief(command: Any) -> str:
    """The first sentence of a command's help."""
    text: str = command.help or ""
    return " ".join(text.split("\n\n", maxsplit=1)[0].split()).partition(". ")[0].rstrip(".")


def build() -> typer.Typer:
    """The application with all its commands."""
    app = typer.Typer(
        name="fenced",
        help=_HELP,
        cls=Grouped,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    for panel, commands in _PANELS.items():
        for command in commands:
            special = _PASSED_ON if command is serving.devnet else {}
            app.command(rich_help_panel=panel, **special)(command)
        if panel == "Run":
            app.add_typer(serving.database_commands, name="db", rich_help_panel=panel)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; `arguments` are those of the process if not given."""
    try:
        code = build()(args=None if arguments is None else list(arguments), prog_name="fenced", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough, as in `fenced executions | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except typer.Abort:
        code = explain(KeyboardInterrupt())
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  the last line of defence: no traceback reaches a person
        code = explain(error)
    sys.exit(code if isinstance(code, int) else 0)
