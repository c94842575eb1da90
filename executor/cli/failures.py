"""Every way a command can fail, as one sentence on standard error and an exit code: 1 not fine, 2 usage, 3 unknown."""

import os
import traceback

from executor.cli.output import complain

UNKNOWN = 3
_FORBIDDEN = "42501"  # insufficient_privilege


def explain(error: BaseException) -> int:
    """Say what went wrong, in one sentence without a secret or a traceback, and give the exit code.

    Of an error nobody foresaw only its kind is told: its message may hold anything. FENCED_DEBUG=1 shows where it was.
    """
    if os.environ.get("FENCED_DEBUG") == "1":
        traceback.print_exception(error)
    if type(error).__name__ == "NoArgsIsHelpError":  # a group without a command: its message is its help
        complain(str(error))
        return 2
    sentence, code = _sentence(error)
    tell(sentence)
    return code


def tell(sentence: str) -> None:
    """One sentence on standard error, on one line."""
    line = " ".join(sentence.split())
    complain(f"fenced: {line}" if line.endswith((".", "?", "!")) else f"fenced: {line}.")


def _sentence(error: BaseException) -> tuple[str, int]:
    known = _ours(error)
    if known is not None:
        return known
    if hasattr(error, "format_message"):  # wrong usage, as Typer words it
        return f"{str(error.format_message()).rstrip('.')}; see fenced --help.", 2
    if isinstance(error, KeyboardInterrupt):
        return "interrupted.", 130
    kind = type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'a file'}: {error.strerror}.", 2
    return f"an unexpected error stopped this command ({kind}); run it again with FENCED_DEBUG=1 to see where.", UNKNOWN


def _primary(refused: object) -> str:
    """The first line of a database's refusal; it names a table or function, never a value."""
    return str(getattr(getattr(refused, "diag", None), "message_primary", "") or "permission denied")


def _ours(error: BaseException) -> tuple[str, int] | None:
    from executor.errors import ExecutorError

    if type(error).__name__ == "CommitUnknown":
        return (
            f"{str(error).rstrip('.')}; whether it was recorded is unknown, run the command again to find out.",
            UNKNOWN,
        )
    if isinstance(error, ExecutorError):
        return str(error), error.exit_code
    refused = getattr(error, "orig", None)
    if getattr(refused, "sqlstate", None) == _FORBIDDEN:
        return f"the database role lacks a right ({_primary(refused)}); grant it, or use the role that migrated.", 2
    if type(error).__module__ not in {"chain.errors", "chain.types", "signer.errors"}:
        return None
    kind = type(error).__name__
    unknown = kind in {"Unavailable", "Malformed", "RpcError"}
    return f"{str(error).rstrip('.')}.", UNKNOWN if unknown else 2
