"""Starts `holdfast` and `python -m holdfast`: the relay without heavy imports, every other command through click."""

import sys
from types import TracebackType


def main() -> None:
    """Run the command that the arguments name; ends the process with its exit status."""
    sys.excepthook = _print_fault
    arguments = sys.argv[1:]
    if arguments[:1] == ["stdio"] and not _needs_cli(arguments):
        from holdfast.transport.client.relay import main as relay

        sys.exit(relay(arguments[1:]))
    from holdfast.cli.main import cli
    from holdfast.config.environment import limit_blas_threads

    limit_blas_threads()
    cli(prog_name="holdfast")


def _print_fault(kind: type[BaseException], fault: BaseException, trace: TracebackType | None) -> None:
    """Print where the process broke down; Python would print the message, too, which may hold what passed through a relay."""
    if not isinstance(fault, Exception):
        sys.__excepthook__(kind, fault, trace)
        return
    from holdfast.errors import describe_fault

    sys.stderr.write(f"holdfast: {describe_fault(fault).message}\n")


def _needs_cli(arguments: list[str]) -> bool:
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "-h" in options or any(option.startswith(("--in-process", "--help", "--settings")) for option in options)


if __name__ == "__main__":
    main()
