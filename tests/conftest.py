"""Settings for every test: quiet TensorFlow, explicit seeds, caches below the tests' own folder."""

import atexit
import gc
import os
import sys

import pytest
from hypothesis import settings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# As plain Python da4ml needs a second for networks as small as the tests'; compiling it takes three minutes.
os.environ.setdefault("NUMBA_DISABLE_JIT", "1")
# Test files run in a process each for every core, and networks are small: more threads would wait for each other.
for variable in ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
# A machine with other work may take ten times as long, and no test is about time.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")


def pytest_collection():
    """Leave the garbage of imports: looking for it took a fifth of the time in which tests are collected."""
    gc.disable()


def pytest_collection_finish():
    """What was imported stays, so no later search for garbage looks at it; and networks make few circles."""
    gc.freeze()
    gc.set_threshold(50_000, 10, 2)
    gc.enable()
    # Python looks through all objects several times before it ends.
    atexit.register(gc.freeze)


@pytest.fixture(scope="module", autouse=True)
def own_names():
    """Keras numbers the layers of each test file from the start, whichever files ran before it in this process.

    What earlier files leave to live, as networks in caches, no later search for garbage looks at: each flow searches
    ten times, and took twice as long at the end of all tests as at their start.
    """
    gc.collect()
    gc.freeze()
    if "keras" in sys.modules:
        sys.modules["keras"].utils.clear_session(free_memory=False)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """What is compiled once for all simulations is compiled once for all tests, whichever process they run in."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("FPGAPRUNE_CACHE", str(folder / "cache"))
        yield
