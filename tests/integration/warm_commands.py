"""The command line in a process of its own for each call, forked from one that has loaded the libraries.

Loading TensorFlow takes longer than most commands. The parent computes nothing: a child starts as a new process does.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path


def command(arguments: list[str], folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run `fpgaprune` with `arguments` in `folder`, as `subprocess.run` would; it has 600 s."""
    with tempfile.TemporaryDirectory() as place:
        said = [Path(place, name) for name in ("stdout", "stderr")]
        parent = _parent()
        asked = {"arguments": arguments, "folder": str(folder), "environment": dict(environment)}
        parent.stdin.write(json.dumps({**asked, "said": [str(file) for file in said]}) + "\n")
        parent.stdin.flush()
        answer = parent.stdout.readline()
        assert answer, "the parent of the warm commands has ended"
        return subprocess.CompletedProcess(arguments, int(answer), *(file.read_text() for file in said))


@functools.cache
def _parent() -> subprocess.Popen[str]:
    parent = subprocess.Popen(
        [sys.executable, "-P", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    atexit.register(_end, parent)
    return parent


def _end(parent: subprocess.Popen[str]) -> None:
    with parent:
        parent.kill()


def _serve() -> None:
    import keras  # noqa: F401
    import matplotlib  # noqa: F401
    import onnx  # noqa: F401
    import sklearn  # noqa: F401
    import tensorflow  # noqa: F401

    from fpgaprune import flow
    from fpgaprune.cli import main

    for name in dir(flow):
        # A face loads the module behind a name when the name is asked for.
        getattr(flow, name)
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if not child:
            _become(asked)
            main()
            os._exit(0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


def _become(asked: dict) -> None:
    """Take over the folder, the environment, the arguments and the output of the call."""
    import signal

    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for at, file in enumerate(asked["said"], start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), at)
    sys.argv = ["fpgaprune", *asked["arguments"]]
    signal.alarm(600)


if __name__ == "__main__":
    _serve()
