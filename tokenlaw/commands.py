"""Commands that take an option once: of two, one would be dropped and nobody told."""

from typing import Any

from typer.core import TyperCommand, TyperOption

from tokenlaw.errors import BadUse


class Once(TyperCommand):
    """A command that refuses an option with a value that stands there twice."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for place, option in enumerate(given):
            once = isinstance(option, TyperOption) and not (option.multiple or option.is_flag)
            if once and option in given[:place]:
                raise BadUse(f"{max(option.opts, key=len)} is given twice; give it once")
        return super().parse_args(ctx, args)
