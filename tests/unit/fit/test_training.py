"""How trials are trained: as the flow says, or at a higher rate; large networks for fewer epochs."""

import tomllib
from pathlib import Path

import keras
import numpy as np
import pytest

from fpgaprune.fit import Knobs, Training, expected_seconds, most_samples
from fpgaprune.flow import Dataset, parse_config
from fpgaprune.network import save_keras
from tests.unit.fit.made_up import TOLERANCE, MadeUp, made


def dense():
    return keras.Sequential([keras.Input((1,)), keras.layers.Dense(2)])


def convolution():
    return keras.Sequential([keras.Input((1, 1)), keras.layers.Conv1D(2, 1), keras.layers.Flatten()])


def data(samples):
    x = np.zeros((samples, 1), np.float32)
    return Dataset("mine", x, np.zeros(samples, np.int64), x, np.zeros(samples, np.int64))


def flow(**finetune):
    return parse_config({"finetune": finetune}, "flow.toml")


@pytest.mark.parametrize(
    ("samples", "finetune", "epochs"),
    [
        (90_000, {}, 16),
        # 4,000 steps, of 4 in an epoch.
        (100, {}, 1000),
        (100, {"batch_size": 10}, 400),
        (100, {"epochs": 16}, 16),
        (100, {"epochs": 0}, 0),
    ],
)
def test_of_few_samples_the_best_network_sees_each_more_often(samples, finetune, epochs):
    made = Training.from_flow(flow(**finetune), data(samples), dense())
    assert made.whole == made.long == epochs
    assert made.keeps_epochs == ("epochs" in finetune)
    assert made.settings == {}


@pytest.mark.parametrize(
    ("optimizer", "norm", "said", "rate"),
    [
        (keras.optimizers.SGD(0.05, momentum=0.9), True, {}, 0.005),
        (keras.optimizers.SGD(0.05, momentum=0.9), True, {"epochs": 3}, 0.005),
        (keras.optimizers.SGD(0.05, momentum=0.9), True, {"learning_rate": 0.02}, None),
        (keras.optimizers.SGD(0.05, momentum=0.9), False, {}, None),
        (keras.optimizers.Adam(0.05), True, {}, None),
    ],
)
def test_where_batchnorm_is_folded_away_sgd_takes_smaller_steps(tmp_path, optimizer, norm, said, rate):
    inner = keras.Sequential([keras.Input((1,)), *[keras.layers.BatchNormalization()] * norm, keras.layers.Dense(2)])
    mine = keras.Sequential([keras.Input((1,)), inner])
    mine.compile(optimizer, "mse")
    save_keras(mine, tmp_path / "mine.keras")
    asked = {"train": {"model": str(tmp_path / "mine.keras")}, "finetune": said}
    found = Training.from_flow(parse_config(asked, "flow.toml"), data(100), mine).settings
    assert found == (
        {} if rate is None else {part: {"learning_rate": pytest.approx(rate)} for part in ("finetune", "quantise")}
    )


@pytest.mark.parametrize(("whole", "short"), [(16, 4), (3, 2), (1, 1), (0, 0)])
def test_a_first_trial_takes_a_fourth_of_the_epochs(whole, short):
    assert Training.from_flow(flow(epochs=whole), data(100), dense()).short == short


@pytest.mark.parametrize(
    ("samples", "batch_size", "rate", "epochs"),
    [(4096, 64, 0.005 * 2**0.5, 32), (18_000, 256, 0.005 * 8**0.5, 32), (100_000, 256, 0.005 * 8**0.5, 32)],
)
def test_many_samples_are_taken_in_larger_steps_at_a_higher_rate(samples, batch_size, rate, epochs):
    made = Training.at_higher_rate(flow(), data(samples), convolution())
    assert made.settings["finetune"] == {"batch_size": batch_size, "learning_rate": pytest.approx(rate)}
    assert made.settings["quantise"] == {"learning_rate": pytest.approx(rate)}
    assert (made.short, made.whole) == (epochs // 4, epochs)
    assert made.long == 3 * epochs


@pytest.mark.parametrize(
    ("samples", "batch_size", "epochs"), [(100, 32, 1000), (2300, 64, 112), (20_000, 512, 100), (10**5, 512, 32)]
)
def test_a_dense_network_is_trained_as_the_recipe_however_few_its_samples_are(samples, batch_size, epochs):
    made = Training.at_higher_rate(flow(), data(samples), dense())
    assert made.settings["finetune"]["batch_size"] == batch_size
    assert (made.whole, made.restarts) == (epochs, True)


def test_a_search_begins_with_the_flow_file_of_the_examples():
    example = tomllib.loads((Path(__file__).parents[3] / "examples" / "trained_bits.toml").read_text())
    # The example has the data of 8 × 8 MNIST.
    made, network = Training.at_higher_rate(flow(), data(20_000), dense()), Knobs("weight").recipe.settings()
    assert network["select"] == example["select"]
    assert network["quantise"]["hold"] == example["quantise"]["hold"]
    assert network["hls"] == {"precision": "widths", **example["hls"]}
    own = {key: value for key, value in example["finetune"].items() if key not in ("epochs", "quantised", "schedule")}
    assert made.settings == {"finetune": own, "quantise": {"learning_rate": example["quantise"]["learning_rate"]}}
    assert made.whole >= example["finetune"]["epochs"]


def test_a_whole_training_at_a_higher_rate_starts_anew_unless_it_goes_on():
    asked = Training.from_flow(flow(), data(18_000), dense())
    bolder = Training.at_higher_rate(flow(), data(18_000), dense())
    good = made(Knobs("weight"), MadeUp().best_layout(Knobs("weight")), TOLERANCE)
    other = Knobs("weight", 0.5)
    assert bolder.starts_from(good, other, bolder.whole) is None
    assert bolder.starts_from(good, other, bolder.long) is None
    assert bolder.starts_from(good, other, bolder.short) is good
    assert bolder.starts_from(good, Knobs("weight"), bolder.whole) is good
    assert bolder.starts_from(None, other, bolder.short) is None
    assert asked.starts_from(good, other, asked.whole) is good


def test_a_large_network_is_cut_and_a_narrow_one_is_trained_for_longer():
    made = Training.at_higher_rate(flow(), data(18_000), convolution())
    assert not made.is_cut
    large = keras.Sequential([keras.Input((400,)), keras.layers.Dense(1200), keras.layers.Dense(1200)])
    cut = made.of(data(18_000), large)
    assert cut.is_cut
    assert (cut.whole, cut.long, cut.wanted_epochs, cut.settings) == (10, 10, 32, made.settings)
    again = cut.of(data(18_000), dense())
    assert (again.short, again.whole, again.long) == (8, 32, 96)
    assert not Training.from_flow(flow(epochs=3), data(18_000), large).is_cut


def test_few_samples_of_a_convolution_are_trained_on_as_the_flow_says():
    assert Training.at_higher_rate(flow(), data(4095), convolution()) is None


@pytest.mark.parametrize("said", [{"epochs": 3}, {"batch_size": 8}, {"learning_rate": 0.1}, {"fit": "mine:train"}])
def test_what_the_flow_says_of_the_training_is_kept(said):
    assert Training.at_higher_rate(flow(**said), data(18_000), dense()) is None


@pytest.mark.parametrize(
    ("optimizer", "rate"),
    [
        (keras.optimizers.Adam(2e-4), 0.005 * 2**0.5),
        (keras.optimizers.AdamW(2e-3), 0.01 * 2**0.5),
        (keras.optimizers.Adam(0.02), 0.02),
        (keras.optimizers.Adam(4e-3), 0.015),
        (keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(2e-3, 10)), 0.01 * 2**0.5),
        (keras.optimizers.SGD(0.01), None),
    ],
)
def test_the_rate_follows_that_of_the_network(optimizer, rate, tmp_path):
    model = convolution()
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    save_keras(model, tmp_path / "mine.keras")
    config = parse_config({"train": {"model": str(tmp_path / "mine.keras")}}, "flow.toml")
    made = Training.at_higher_rate(config, data(4096), model)
    assert (None if made is None else made.settings["finetune"]["learning_rate"]) == (
        None if rate is None else pytest.approx(rate)
    )


def test_a_large_network_is_trained_for_fewer_epochs_on_fewer_samples():
    large = keras.Sequential([keras.Input((1,)), keras.layers.Dense(100_000), keras.layers.Dense(10)])
    assert most_samples(large) < 20_000 < most_samples(dense())
    made = Training.at_higher_rate(flow(), data(18_000), large)
    assert made.whole == 4
    # 2**24 values of all layers, for each of so many samples.
    assert made.settings["finetune"]["batch_size"] == 128
    assert Training.from_flow(flow(), data(most_samples(large)), large).whole == 4
    # What the user says holds.
    assert Training.from_flow(flow(epochs=50), data(18_000), large).whole == 50


def test_in_less_than_ten_minutes_a_trial_of_a_large_network_has_fewer_samples_down_to_a_last_number():
    large = keras.Sequential([keras.Input((1,)), keras.layers.Dense(30_000), keras.layers.Dense(10)])
    usual = most_samples(large)
    assert 4000 < usual < 60_000
    assert most_samples(large, 10.0) == most_samples(large, 30.0) == usual
    assert most_samples(large, 5.0) == usual // 2
    assert most_samples(large, 0.1) == 4000
    # What the least epochs have no time for in ten minutes, they have not in less.
    huge = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1_000_000), keras.layers.Dense(10)])
    assert most_samples(huge, 0.1) == most_samples(huge) < 4000
    assert most_samples(dense(), 5.0) == most_samples(dense())


def test_each_step_of_a_recurrent_layer_takes_time():
    def recurrent(steps):
        return keras.Sequential([keras.Input((steps, 4)), keras.layers.GRU(32), keras.layers.Dense(10)])

    one, two, many = (expected_seconds(recurrent(steps), data(100), 25) for steps in (1, 2, 41))
    assert many - one == pytest.approx(40 * (two - one))
    both = keras.Sequential([keras.Input((41, 4)), keras.layers.Bidirectional(keras.layers.GRU(32))])
    beside = one - (two - one)
    assert 1.9 * (many - beside) < expected_seconds(both, data(100), 25) - beside < 2.1 * (many - beside)


def test_an_epoch_of_few_samples_takes_time_and_so_does_each_step():
    """40 samples of an LSTM were trained for 2,000 epochs: five minutes of a search of four."""
    lstm = keras.Sequential([keras.Input((100, 6)), keras.layers.LSTM(12), keras.layers.Dense(4)])
    epoch = expected_seconds(lstm, data(40), 32)
    assert 0.02 < epoch < 0.1, "64 ms were measured"
    assert expected_seconds(lstm, data(40), 4) > 4 * epoch
    asked = Training.from_flow(flow(), data(40), lstm, 10.0)
    assert asked.whole == int(10.0 / epoch) < 2000


def test_a_short_search_trains_for_fewer_epochs_but_its_best_network():
    usual = Training.at_higher_rate(flow(), data(18_000), convolution())
    epoch = expected_seconds(convolution(), data(18_000), usual.batch_size)
    short = Training.at_higher_rate(flow(), data(18_000), convolution(), 8.5 * epoch)
    assert (short.short, short.whole, short.long) == (2, 8, usual.long)
    # That is no large network, so it need not lose filters first.
    assert not short.is_cut
    asked = Training.from_flow(flow(), data(100), dense(), 0.0)
    assert (asked.whole, asked.long) == (4, 1000)
    assert Training.from_flow(flow(epochs=50), data(100), dense(), 0.0).whole == 50
