"""Every optimizer x every case of the lock, on bare variables."""

import importlib.util
import sys
from itertools import product
from pathlib import Path

import pytest

from tests.quick import quick

_FILE = Path(__file__).with_name("lock_contract.py")
_SPEC = importlib.util.spec_from_file_location("lock_contract", _FILE)
contract = importlib.util.module_from_spec(_SPEC)
sys.modules["lock_contract"] = contract
_SPEC.loader.exec_module(contract)

every_row = pytest.mark.parametrize("row", contract.ROWS, ids=lambda row: row.name)


# Each keeps slots of another kind, or changes them in another way.
FEW = [row for row in contract.ROWS if row.name in ("adam", "ftrl", "loss_scale", "multi", "user_subclass", "muon")]


def rows(now, options):
    """Every row with every option: those of `now` each time, by the name of the option, the others at night."""
    pairs = [(row, option) for row in now for option in now[row]]
    return pytest.mark.parametrize(
        ("row", "option"), quick(pairs, product(contract.ROWS, options), lambda pair: f"{pair[0].name}-{pair[1]}")
    )


few_rows = pytest.mark.parametrize("row", quick(FEW, contract.ROWS, lambda row: row.name))


@rows({row: ["plain"] for row in FEW}, ["plain", "weight decay", "ema overwrite"])
def test_from_the_first_step(row, option):
    contract.from_the_first_step(row, **contract.OPTIONS[option])


@rows({row: ["plain", "ema overwrite"] if row in FEW[:3] else ["plain"] for row in contract.ROWS}, contract.OPTIONS)
def test_after_free_steps(row, option):
    contract.after_free_steps(row, **contract.OPTIONS[option])


@few_rows
def test_odd_bits_stay(row):
    contract.odd_bits_stay(row)


@few_rows
def test_masks_that_change(row):
    contract.masks_that_change(row)


@pytest.mark.slow
def test_random_masks_on_each_of_200_steps_under_adam():
    contract.masks_that_change(next(row for row in contract.ROWS if row.name == "adam"), steps=200)


@pytest.mark.slow
@every_row
def test_eager_loop(row):
    contract.after_free_steps(row, eager=True)


@pytest.mark.slow
@every_row
def test_step_with_infinite_gradient(row):
    contract.step_with_infinite_gradient(row)


@pytest.mark.slow
@every_row
def test_sparse_gradients(row):
    contract.sparse_gradients(row)


@pytest.mark.slow
@every_row
def test_jit_compile(row):
    contract.from_the_first_step(row, jit=True)
