"""Starts TensorFlow quietly, so that every run of a stage gives the same bits."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator

from fpgaprune.flow.file import set_tensorflow_up


def start_session(seed: int) -> None:
    """Load Keras, deterministic and seeded, without earlier models.

    Every stage starts from this state, even if the process ran other stages before.
    """
    set_tensorflow_up()
    with quiet_standard_error():
        import keras
        import tensorflow as tf

        tf.config.experimental.enable_op_determinism()
    # TensorFlow warns of a retrace at each new model, and a flow makes a dozen models.
    tf.get_logger().setLevel("ERROR")
    keras.backend.clear_session()
    keras.utils.set_random_seed(seed)


@contextlib.contextmanager
def quiet_standard_error() -> Iterator[None]:
    """Discard what native code writes to standard error in the block, unless the block raises.

    TensorFlow reports missing GPUs and CPU features there at import, before its log level counts.
    """
    if "tensorflow" in sys.modules:
        yield
        return
    sys.stderr.flush()
    with tempfile.TemporaryFile() as sink:
        kept = os.dup(2)
        os.dup2(sink.fileno(), 2)
        try:
            yield
        except BaseException:
            sink.seek(0)
            os.write(kept, sink.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)
