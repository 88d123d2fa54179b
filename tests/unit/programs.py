"""Programs that tests put in the place of tools, and a PATH on which they are found first."""

from pathlib import Path

from fpgaprune import processes


def write_program(path: Path, text: str) -> Path:
    """The executable file `path` with `text`."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def play_tools(folder: Path, monkeypatch, tools) -> Path:
    """`folder`, whose `bin` goes before PATH; the variables of `tools` are unset, and stopped tools end soon."""
    for name in tools:
        monkeypatch.delenv(processes.tool_variable(name), raising=False)
    monkeypatch.setattr(processes, "GRACE_S", 0.3)
    (folder / "bin").mkdir(exist_ok=True)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:/usr/bin:/bin")
    return folder
