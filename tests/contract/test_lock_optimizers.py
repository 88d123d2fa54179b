"""Every optimizer x every case of the lock, on bare variables."""

import importlib.util
import sys
from pathlib import Path

import pytest

_FILE = Path(__file__).with_name("lock_contract.py")
_SPEC = importlib.util.spec_from_file_location("lock_contract", _FILE)
contract = importlib.util.module_from_spec(_SPEC)
sys.modules["lock_contract"] = contract
_SPEC.loader.exec_module(contract)

every_row = pytest.mark.parametrize("row", contract.ROWS, ids=lambda row: row.name)


def options(quick, among=tuple(contract.OPTIONS)):
    """Every option of `among`; all but `quick` are slow."""
    return pytest.mark.parametrize(
        "option", [pytest.param(name, marks=[] if name in quick else [pytest.mark.slow]) for name in among]
    )


@options(quick=["plain"], among=["plain", "weight decay", "ema overwrite"])
@every_row
def test_from_the_first_step(row, option):
    contract.from_the_first_step(row, **contract.OPTIONS[option])


@options(quick=["ema overwrite"])
@every_row
def test_after_free_steps(row, option):
    contract.after_free_steps(row, **contract.OPTIONS[option])


@every_row
def test_odd_bits_stay(row):
    contract.odd_bits_stay(row)


@every_row
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
