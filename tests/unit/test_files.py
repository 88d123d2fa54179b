"""Files that cannot be written: one line that names the place, and what stood there before still does."""

import errno
import os
import resource
import subprocess
import sys
import tempfile

import numpy as np
import pytest

from fpgaprune import cli
from fpgaprune.errors import SHOWN, ConfigError, FpgaPruneError, StorageError, shown
from fpgaprune.files import locked_file, make_folder, require_unlocked, storage_error, write_bytes
from fpgaprune.files import whole_files as files
from fpgaprune.flow.run import RunDirectory
from fpgaprune.values import MaskSet

REFUSALS = {
    errno.ENOSPC: "the disk is full; free some space",
    errno.EDQUOT: "your quota of disk space is used up",
    errno.EROFS: "that place can only be read; name another folder",
    errno.EACCES: "you may not do that there; change the permissions",
    errno.EFBIG: "larger than this process may write",
}
PLACES = ("os.fsync", "os.replace", "tempfile.mkstemp", "os.chmod")


def refusing(number):
    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    return refuse


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("number", REFUSALS)
def test_what_stood_there_still_does_and_nothing_is_left_over(tmp_path, monkeypatch, place, number):
    target = tmp_path / "masks.npz"
    target.write_bytes(b"before")
    monkeypatch.setattr(f"fpgaprune.files.whole_files.{place}", refusing(number))
    with pytest.raises(StorageError, match=REFUSALS[number]) as error:
        MaskSet({"a": np.ones(3, bool)}).save(target)
    assert str(target) in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.errno == number
    assert [entry.name for entry in tmp_path.iterdir()] == ["masks.npz"]
    assert target.read_bytes() == b"before"


def test_a_file_in_the_place_of_a_folder(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(StorageError, match=r"out.* cannot be written: .*: a file stands where a folder is wanted"):
        write_bytes(tmp_path / "out" / "a.json", b"")
    with pytest.raises(StorageError, match="a file stands where a folder is wanted"):
        make_folder(tmp_path / "out" / "deeper")


def test_a_folder_in_the_place_of_a_file(tmp_path):
    (tmp_path / "a.json").mkdir()
    with pytest.raises(StorageError, match=r"a\.json cannot be written: .*a folder stands where a file is wanted"):
        write_bytes(tmp_path / "a.json", b"")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


def test_of_a_copy_the_file_that_was_written_is_named():
    error = OSError(errno.ENOSPC, "No space left on device", "template.h", None, "project/template.h")
    assert str(storage_error(error)).startswith("project/template.h cannot be written")


def test_a_full_folder_for_temporary_files_is_told_from_a_missing_file():
    error = FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp', '/var/tmp']")
    assert "name one with TMPDIR" in str(storage_error(error))


@pytest.mark.parametrize("number", REFUSALS)
def test_a_manifest_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch, number):
    run = RunDirectory(tmp_path / "run")
    with run.locked():
        run.write_manifest()
        monkeypatch.setattr(files.os, "fsync", refusing(number))
        with pytest.raises(StorageError, match=r"manifest\.json cannot be written"):
            run.record("train", "key", {}, {}, {}, 1.0)
    monkeypatch.undo()
    assert RunDirectory.existing(tmp_path / "run").manifest["stages"] == {}


def test_a_file_beyond_the_limit_of_the_process_is_one_line(tmp_path):
    # The real system, not a fake: the process may write files of 4 KiB.
    program = (
        "import numpy as np, sys; from fpgaprune import cli; from fpgaprune.values import MaskSet\n"
        "rng = np.random.default_rng(0)\n"
        "cli.app = lambda: MaskSet({'a': rng.random(100_000) > 0.5}).save(sys.argv[1])\n"
        "cli.main()\n"
    )
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # noqa: E731
    target = tmp_path / "masks.npz"
    target.write_bytes(b"before")
    command = [sys.executable, "-c", program, str(target)]
    done = subprocess.run(command, preexec_fn=limit, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"{target} cannot be written: File too large: the file is larger than this process may write" in done.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["masks.npz"]
    assert target.read_bytes() == b"before"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_full_standard_output_is_one_line():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "fpgaprune", "parts", "zcu104"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "No space left on device: the disk is full" in done.stderr


@pytest.mark.parametrize("number", REFUSALS)
def test_what_any_library_cannot_write_ends_the_command_in_one_line(monkeypatch, capsys, number):
    def fail():
        raise OSError(number, os.strerror(number), "/some/file")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    problem = capsys.readouterr().err
    assert ended.value.code == 2
    assert problem.startswith(f"error: /some/file cannot be written or read: {os.strerror(number)}: ")
    assert problem.count("\n") == 1


def test_values_are_shown_cut():
    assert shown("a" * 5000) == repr("a" * 5000)[:SHOWN] + "..."
    assert shown(10**5000) == "a int that is too long to show"
    assert len(str(ConfigError(f"key {'9' * 5000} is unknown"))) < 100
    assert str(FpgaPruneError("a/" * 100)) == "a/" * 100


def test_temporary_files_that_nobody_can_make_are_one_line(monkeypatch, capsys):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(cli, "app", lambda: tempfile.mkdtemp())
    with pytest.raises(SystemExit):
        cli.main()
    assert "name one with TMPDIR" in capsys.readouterr().err


def test_a_lock_of_a_file_says_who_holds_it_and_is_free_afterwards(tmp_path):
    def in_use(owner):
        return FpgaPruneError(f"used by {owner}")

    path = tmp_path / "lock"
    require_unlocked(path, in_use)
    assert not path.exists()
    with locked_file(path, in_use):
        for refused in (lambda: require_unlocked(path, in_use), lambda: locked_file(path, in_use).__enter__()):
            with pytest.raises(FpgaPruneError, match=f"used by process {os.getpid()}$"):
                refused()
    require_unlocked(path, in_use)
    with locked_file(path):
        assert path.read_text() == f"process {os.getpid()}"
