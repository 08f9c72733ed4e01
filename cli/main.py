"""The ``mtpp`` command: finds the subcommand, and turns every failure into one line and an exit code."""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import click

from mtpp import __version__
from mtpp.cli.flags import flag_of
from mtpp.cli.options.groups import CommandGroup
from mtpp.cli.terminal.output import OutputClosed
from mtpp.errors import LimitReached, MtppError
from mtpp.host import interrupts
from mtpp.host.ending import abandoned
from mtpp.host.interrupts import INTERRUPTED

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

BROKEN_PIPE = 141
INTERNAL_ERROR = 70

COMMANDS = {
    "partition": "Cut a model into k pipeline stages and prove how good the cut is.",
    "plan": "Plan how to train a model: pipeline, data and tensor parallelism, recomputation.",
    "simulate": "Simulate one iteration of a training pipeline, and draw it.",
    "bound": "Prove what no partition into k stages can beat.",
    "certify": "Partition many models and prove how good the partitions are, in one table.",
    "verify": "Check a plan or a table of certificates from scratch, proofs included.",
    "report": "Make a page of a result to look at: what is proven, stages, the graph, schedules.",
    "evaluate": "Score a partition that was made by hand or by another tool.",
    "inspect": "Show what a model is made of and what its ops cost.",
    "convert": "Write a model as a graph with costs, in another format.",
    "profile": "Measure on this machine what each op of an ONNX model takes.",
    "machine": "Write a machine file from a list of GPUs, or of this machine.",
    "systems": "List the systems that --system knows by name, with their figures.",
    "split": "Write one ONNX model per stage of a plan, and check that they compute the same.",
    "run": "Run the stages of a model as a pipeline: what was measured against what was predicted.",
    "compare": "Measure algorithms against each other on many models.",
    "generate": "Draw synthetic graphs for test beds.",
    "warmup": "Compile inner loops now, so that later runs start at once.",
    "completion": "Print what a shell needs to complete commands, options and files.",
}
"""Subcommand → its line of help. Kept here so that ``mtpp --help`` imports none of them."""


class Interrupted(BaseException):
    """The user ended the run; click would print an empty line at a KeyboardInterrupt."""


class LazyGroup(CommandGroup):
    """A group that imports a subcommand's module when it is called, not before."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one subcommand."""
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"mtpp.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        """Complete subcommands from the table, and options."""
        from click.shell_completion import CompletionItem

        named = [CompletionItem(name, help=line) for name, line in COMMANDS.items() if name.startswith(incomplete)]
        return named + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands from the table."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="mtpp", message="%(prog)s %(version)s")
def root() -> None:
    """Cut neural networks into pipeline stages, and prove how close to optimal the cut is.

    Exit codes: 0 done; 1 checked and false (invalid partition, failed verification, unmet requirement,
    infeasible); 2 usage or bad input; 3 (verify) nothing is false, but something claimed is unchecked; 70 a mistake
    in mtpp itself; 130 interrupted (the best answer so far is still written).
    """


def _terminate(signum: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def main() -> NoReturn:
    """Run the command line and exit with its code."""
    interrupts.tell(False)
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:  # called by another program than our own
        signal.signal(signal.SIGTERM, _terminate)
    # Imports make hundreds of thousands of objects that all stay: looking for garbage among them costs a tenth of a
    # second at every start.
    gc.set_threshold(200_000, 20, 20)
    if "_MTPP_COMPLETE" in os.environ:
        from mtpp.cli.terminal import completing

        completing.prepare()
    try:
        code = root.main(prog_name="mtpp", standalone_mode=False)
        if code == INTERRUPTED and not interrupts.told():
            _fail("interrupted", INTERRUPTED)
    except LimitReached as error:
        leave(_fail(_told(error), error.exit_code), at_once=True)
    except MtppError as error:
        code = _fail(_told(error), error.exit_code)
    except MemoryError:
        leave(_fail("there is not enough memory; raise --memory-limit, or free some", 1), at_once=True)
    except click.exceptions.NoArgsIsHelpError as error:
        interrupts.ignore()
        click.echo(error.format_message(), err=True)
        code = 2
    except click.ClickException as error:
        code = _fail(_usage_message(error), 2)
    except (Interrupted, KeyboardInterrupt, click.Abort):
        code = _fail("interrupted", INTERRUPTED)
    except OutputClosed:
        # The reader of our output has seen enough. Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = BROKEN_PIPE
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        if interrupts.asked():  # what a library made of it
            code = _fail("interrupted", INTERRUPTED)
        else:
            code = _fail(f"internal error: {type(error).__name__}: {error}; run again with --debug", INTERNAL_ERROR)
    leave(code if isinstance(code, int) else 0)


def leave(code: int, *, at_once: bool = False) -> NoReturn:
    """End the process: at once where work that was given up would be waited for, or much would be freed one by one.

    Another program that has called the command line in its own process goes on.
    """
    if interrupts.installed() and (at_once or abandoned()):
        interrupts.ignore()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(code)
    if interrupts.installed():
        gc.freeze()  # Python looks three times for garbage in all that is left, for a quarter of a second with numba
    interrupts.finish(code)
    sys.exit(code)


def _told(error: MtppError) -> str:
    """Return the line of an error with flags; sizes that were asked for as ``--dims auto`` alone are called that."""
    line, sizes = error.told(flag_of), f"{flag_of('dims')}: "
    given = {word.partition("=")[0] for word in sys.argv}
    if line.startswith(sizes) and "--dims" in given and flag_of("dims") not in given:
        return f"{flag_of('auto_dims')}: {line.removeprefix(sizes)}"
    return line


def _fail(message: str, code: int) -> int:
    interrupts.ignore()
    if "--debug" in sys.argv and sys.exc_info()[0] is not None:
        import traceback

        traceback.print_exc()
    if sys.stderr is None:  # closed; print would take standard output for it
        return code
    try:
        print(f"error: {' '.join(message.split())}", file=sys.stderr)
    except UnicodeEncodeError:
        print(f"error: {message.encode('ascii', 'backslashreplace').decode()}", file=sys.stderr)
    return code


def _usage_message(error: click.ClickException) -> str:
    text = error.format_message().rstrip(".?")
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "mtpp"
    if isinstance(error, click.BadParameter) and error.param is not None and error.message:
        text = f"{'/'.join(error.param.opts)}: {error.message.rstrip('.?')}"
    return f"{text}; see `{command} --help`"
