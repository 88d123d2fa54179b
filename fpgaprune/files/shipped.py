"""Finds the files that come with fpgaprune, in a checkout or in an installed wheel."""

from importlib import resources
from pathlib import Path

from fpgaprune.errors import TargetError


def shipped_folder(name: str) -> Path | None:
    """Find the folder `name` that comes with fpgaprune: in the package (wheel) or beside it (checkout); or None."""
    package = Path(str(resources.files("fpgaprune")))
    return next((folder for folder in (package / name, package.parent / name) if folder.is_dir()), None)


def shipped_names(folder: str, ending: str) -> tuple[str, ...]:
    """Return the names, without their `ending`, of the files in a folder of `hw`, sorted; none if `hw` is missing."""
    home = shipped_folder("hw")
    return () if home is None else tuple(sorted(path.stem for path in (home / folder).glob(f"*{ending}")))


def hardware_path(*names: str) -> Path:
    """Return the path of a file or folder of `hw/`.

    Raises:
        TargetError: there is no such folder.
    """
    home = shipped_folder("hw")
    if home is None:
        package = resources.files("fpgaprune")
        raise TargetError(f"the hardware data folder 'hw' is missing beside {package}; install fpgaprune again")
    return home.joinpath(*names)
