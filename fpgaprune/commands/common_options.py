"""Options of several commands, and the parsing of their texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from fpgaprune.errors import ConfigError
from fpgaprune.files import shipped_names
from fpgaprune.values import loss_text, parse_loss

DATA_HELP = "'digits', an .npz file, or package.module:function (its code runs)."
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ClockNs = Annotated[
    float | None,
    typer.Option(help="Clock period in ns; if left out, that of the board's oscillator, else 5. Key target.clock_ns."),
]
MaxLoss = Annotated[
    str | None,
    typer.Option(help="Largest allowed loss with its unit: 0.5% is half a point of accuracy. Key verdict.max_loss."),
]
Replace = Annotated[
    bool, typer.Option("--replace", help="Lose what the folder holds of another network; without it, that is refused.")
]
Sparsity = Annotated[
    list[str] | None,
    typer.Option(
        help="Fraction of kernels, or of the units of --granularity, to lock, 0..1; 'conv2/kernel=0.8' is for one "
        "weight. May be repeated."
    ),
]
GRANULARITY_HELP = (
    "A unit: weight, kernel, filter, input_channel, n:m, n:all, 'block(4, 4)' or 'multiplier(resource_unrolled, 9)'."
)


def read_max_loss(given: str | None) -> str | None:
    """Return what `--max-loss` asks for, as a flow file writes it.

    Raises:
        ConfigError: it is no loss with its unit.
    """
    if given is None:
        return None
    try:
        return loss_text(parse_loss(given))
    except ValueError as error:
        raise ConfigError(f"--max-loss: {error}") from error


# Read from the names of files: what knows boards would be loaded before every --help.
SERIAL_BOARDS = shipped_names("boards", ".toml")


def one_of(names: Sequence[str]) -> str:
    """`a, b or c`."""
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else "".join(names)


def parse_sparsity(given: list[str] | None, option: str = "--sparsity") -> Any:
    """Return one fraction, a mapping of globs to fractions, or None if the option is left out.

    Raises:
        ConfigError: a text is neither a fraction nor `glob=fraction`.
    """
    shares = by_pattern(given, option)
    if isinstance(shares, str):
        return _fraction(shares, option)
    return None if shares is None else {pattern: _fraction(share, option) for pattern, share in shares.items()}


def by_pattern(given: list[str] | None, option: str) -> str | dict[str, str] | None:
    """Return the value of an option, or a mapping of globs to values if they are written as `glob=value`.

    Raises:
        ConfigError: there are several values, and one of them has no glob.
    """
    if not given:
        return None
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    if not all("=" in text for text in given):
        raise ConfigError(f"{option} is given {', '.join(given)}; wanted one value, or 'glob=value' each time")
    return dict(text.split("=", 1) for text in given)


def _fraction(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ConfigError(f"{option} is {text!r}; wanted a fraction such as 0.8, or 'conv2/kernel=0.8'") from error
