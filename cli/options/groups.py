"""Groups of commands."""

from __future__ import annotations

import click

from mtpp.wording import nearest, one_of


class CommandGroup(click.Group):
    """A group that answers a mistyped command with the nearest ones."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first word names, and the words behind it."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            near = [] if args[0].startswith("-") else nearest(args[0], self.list_commands(ctx))
            if not near:
                raise
            meant = one_of([repr(name) for name in near])
            raise click.UsageError(f"No such command {args[0]!r}. Did you mean {meant}?", ctx) from None
