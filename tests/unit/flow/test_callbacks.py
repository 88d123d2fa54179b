"""Callbacks of the user see a fine-tuning of a flow, whatever its schedule."""

from pathlib import Path

import numpy as np
import pytest

from fpgaprune.errors import ConfigError, LockError
from fpgaprune.flow import STAGES
from fpgaprune.flow.engine import parse_config
from fpgaprune.flow.run import Silent

from .test_resume import SCHEDULES, finetuned

SEEN = """
import keras

class Seen(keras.callbacks.Callback):
    def __init__(self, folder):
        super().__init__()
        self.file = folder / "seen.txt"

    def on_epoch_end(self, epoch, logs=None):
        with open(self.file, "a") as text:
            print(epoch, sorted(logs), file=text)

def make(folder):
    return RETURNED

def moved(folder):
    return keras.callbacks.LambdaCallback(on_train_end=lambda logs: None), Mover()

class Mover(keras.callbacks.Callback):
    def on_train_end(self, logs=None):
        kernel = self.model.get_layer("a").kernel
        kernel.assign(kernel + 1)
"""


def own(folder, returned="Seen(folder)", function="make"):
    (folder / "mine.py").write_text(SEEN.replace("RETURNED", returned))
    return f"{folder / 'mine.py'}:{function}"


@pytest.mark.parametrize(
    ("schedule", "epochs", "returned"),
    [("one_shot", 4, "Seen(folder)"), ("gradual", 4, "[Seen(folder)]"), ("rounds", 8, "Seen(folder)")],
)
def test_callbacks_see_each_epoch_of_each_schedule(tmp_path, returned, schedule, epochs):
    finetuned(tmp_path, SCHEDULES[schedule], Silent(), callbacks=own(tmp_path, returned))
    lines = (tmp_path / "seen.txt").read_text().splitlines()
    assert [line.split()[0] for line in lines] == [str(number % 4) for number in range(epochs)]
    assert "loss" in lines[0]


def test_callbacks_do_not_change_the_weights(tmp_path):
    plain, _ = finetuned(tmp_path, SCHEDULES["one_shot"], Silent())
    seen, _ = finetuned(tmp_path, SCHEDULES["one_shot"], Silent(), key="two", callbacks=own(tmp_path))
    assert all(np.array_equal(a, b) for a, b in zip(plain, seen, strict=True))


def test_a_callback_that_moves_a_locked_element_is_found_out(tmp_path):
    with pytest.raises(LockError, match=r"locked elements of 'a/kernel' moved .* a callback"):
        finetuned(tmp_path, SCHEDULES["one_shot"], Silent(), callbacks=own(tmp_path, function="moved"))


def test_what_is_no_callback_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"finetune.callbacks '.*mine.py:make' returned a int; wanted a Keras callb"):
        finetuned(tmp_path, SCHEDULES["one_shot"], Silent(), callbacks=own(tmp_path, "3"))
    with pytest.raises(ConfigError, match=r"finetune.callbacks is 'mine.py'; wanted 'package.module:function'"):
        parse_config({"finetune": {"callbacks": "mine.py"}}, "flow")


def test_changed_code_of_callbacks_is_another_run(tmp_path):
    settings = {"callbacks": own(tmp_path)}
    config = parse_config({"finetune": settings}, "flow")
    (stage,) = (stage for stage in STAGES if stage.name == "finetune")
    before = stage.settings(config)
    Path(settings["callbacks"].split(":")[0]).write_text("def make(folder):\n    return []\n")
    assert stage.settings(config) != before
