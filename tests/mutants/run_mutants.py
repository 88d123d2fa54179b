"""How many random mutants of a package its fast tests notice.

    make mutants PACKAGES="certify estimate" NUMBER=40 SEED=0

Each mutant changes one operator, number or condition. The tests that run its line are run, up to the first that fails:
the mutant is killed. What survives is printed with its line; a mutant that computes the same as the original stands in
`equivalent.toml` with the reason, and is counted apart. The tests of a package are the unmarked ones of its folder in
`tests/unit`, those of `tests/contract`, `tests/property` and `tests/teeth` whose names begin with its own, and those
that `_MORE` names.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
for name, value in {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "PYTHONPATH": str(ROOT),
    "CUDA_VISIBLE_DEVICES": "-1",
}.items():
    os.environ[name] = value
sys.path.insert(0, str(ROOT))
sys.pycache_prefix = str(ROOT / "build" / "mutants" / "pycache")

from covering import Covering, Named, read_covering  # noqa: E402
from forked import Chosen, change, load, run, run_tests  # noqa: E402
from sites import Mutant, sample  # noqa: E402

BUILD = ROOT / "build" / "mutants"
# A test of minutes: networks of Keras's own applications.
_SLOW = ("test_remove_applications.py",)
# Tests of a package that stand elsewhere.
_MORE = {
    "certify": ["tests/teeth/test_certificate.py", "tests/unit/test_firmware.py"],
    "commands": ["tests/unit/test_cli.py"],
    "estimate": ["tests/golden/test_estimates.py"],
    "train": ["tests/contract/test_lock*.py", "tests/teeth/test_lock*.py"],
}
_WITHOUT_TENSORFLOW = ("hypothesis", "numpy", "onnx", "h5py", "scipy.optimize", "matplotlib.figure", "jinja2")
_TENSORFLOW = ("tensorflow", "keras", "sklearn.metrics")
_NO_TENSORFLOW = ("certify", "emulate", "estimate", "rtl", "fabric", "report", "vendor", "advice")


def _test_files(package: str) -> list[Path]:
    patterns = [f"tests/{kind}/test_{package}*.py" for kind in ("contract", "property", "teeth")]
    patterns += [f"tests/unit/{package}/**/test_*.py", *_MORE.get(package, [])]
    return sorted({path for pattern in patterns for path in ROOT.glob(pattern) if path.name not in _SLOW})


def _equivalent() -> dict[tuple[str, str, str], str]:
    entries = tomllib.loads((Path(__file__).parent / "equivalent.toml").read_text()).get("mutant", [])
    return {(entry["path"], entry["old"], entry["new"]): entry["why"] for entry in entries}


def _key(row: Mapping[str, object]) -> tuple[object, ...]:
    return tuple(row[name] for name in ("path", "old", "new", "operator", "occurrence"))


def _judge(mutant: Mutant, covering: Covering | Named) -> dict[str, object]:
    """Whether the tests notice a mutant, and which did."""
    tests = covering.tests(mutant.path, mutant.line)
    if tests is not None and not tests:
        return {"fate": "survived", "by": "no test runs it", "seconds": 0.0}

    def work() -> dict[str, object]:
        change(ROOT, mutant.path, mutant.source(ROOT))
        chosen = Chosen(tests)
        code = run_tests(ROOT, covering.in_order(tests), [chosen])
        return {"failed": chosen.failed or (f"pytest ended with {code}" if code else None)}

    outcome = run(work, 10 + 2 * covering.seconds(tests))
    if outcome.said is None:
        return {"fate": "killed", "by": "its time or its process ended", "seconds": outcome.seconds}
    failed = outcome.said["failed"]
    by = failed or ("the named tests" if tests is None else f"{len(tests)} tests")
    return {"fate": "killed" if failed else "survived", "by": by, "seconds": outcome.seconds}


def _run_package(package: str, options: argparse.Namespace) -> dict[str, int]:
    files = sorted((ROOT / "fpgaprune" / package).rglob("*.py"))
    mutants = sample(ROOT, files, options.number, options.seed)
    covering = Named(options.tests, options.seconds)
    if not options.tests:
        covering = read_covering(ROOT, BUILD / "covering", files, _test_files(package))
    kept = BUILD / f"{package}-{options.seed}.json"
    before = {_key(row): row for row in json.loads(kept.read_text())} if options.again and kept.exists() else {}
    equivalent, rows = _equivalent(), []
    for mutant in mutants:
        why = equivalent.get(_key(asdict(mutant))[:3])
        row = {"fate": "equivalent", "by": why, "seconds": 0.0} if why else before.get(_key(asdict(mutant)), {})
        if row.get("fate", "survived") == "survived":
            row = _judge(mutant, covering)
        rows.append(row | asdict(mutant))
        if options.all or row["fate"] == "survived":
            print(f"{row['fate']} ({row['by']}, {row['seconds']:.1f} s) {mutant.path}:{mutant.line}", flush=True)
            print(f"    - {mutant.old}\n    + {mutant.new}", flush=True)
        kept.write_text(json.dumps(rows, indent=1))
    return {fate: sum(row["fate"] == fate for row in rows) for fate in ("killed", "equivalent", "survived")}


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the survivors and a table; 1 where a package's share is below `--least`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="+", help="folders of fpgaprune, as certify")
    parser.add_argument("--number", type=int, default=40, help="random mutants of each package")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--least", type=float, default=0.0, help="the share, 0..1, below which the exit code is 1")
    parser.add_argument(
        "--again", action="store_true", help="judge only those that survived the last run, if there was"
    )
    parser.add_argument("--tests", nargs="+", default=[], help="files to judge by in place of the package's own tests")
    parser.add_argument("--seconds", type=float, default=60.0, help="what these take of processor time")
    parser.add_argument("--all", action="store_true", help="print killed mutants, too")
    options = parser.parse_args(arguments)
    BUILD.mkdir(parents=True, exist_ok=True)
    load(_WITHOUT_TENSORFLOW)
    if set(options.packages) - set(_NO_TENSORFLOW):
        load(_TENSORFLOW)
    table = {}
    for package in options.packages:
        table[package] = _run_package(package, options)
    print("\n| package | mutants | killed | equivalent | survived | share |\n| --- | --- | --- | --- | --- | --- |")
    short = False
    for package, fates in table.items():
        judged = fates["killed"] + fates["survived"]
        share = fates["killed"] / judged if judged else 1.0
        short |= share < options.least
        print(f"| {package} | {sum(fates.values())} | {' | '.join(map(str, fates.values()))} | {100 * share:.0f} % |")
    return int(short)


if __name__ == "__main__":
    sys.exit(main())
