"""FlowConfig: what may be said, and the one line that answers anything else."""

import io
import json
import zipfile

import h5py
import numpy as np
import pytest

from fpgaprune.errors import ConfigError, DataError
from fpgaprune.flow.engine import check_flow, parse_config, read_config
from fpgaprune.flow.file import PolynomialConfig, check_schedule, named_function
from fpgaprune.flow.task import check_data, load_data


def flow(tmp_path, text):
    path = tmp_path / "flow.toml"
    path.write_text(text)
    return path


def test_the_default_is_whole():
    config = read_config(None)
    assert config.data.source == "digits"
    data = check_flow(config)
    assert data.x_train.shape[1:] == (8, 8, 1)
    assert len(data.x_train) + len(data.x_test) == 1797
    assert data.classes == 10


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("sed = 1", ["sed is not a known key", "did you mean 'seed'?", "allowed here: name, seed, data"]),
        ("[select]\nsparsty = 0.5", ["select.sparsty is not a known key", "did you mean 'sparsity'?"]),
        ("[select]\nsparsity = 1.5", ["select.sparsity is 1.5", "wanted at most 1"]),
        ("[select]\nsparsity = -0.1", ["select.sparsity is -0.1", "wanted at least 0"]),
        ("[select]\ncriterion = 'magic'", ["select.criterion is 'magic'", "wanted one of l1, l2"]),
        ("[select]\nsparsity = {'conv*' = 2}", ["select.sparsity.conv* is 2", "wanted at most 1"]),
        ("[select]\ngranularity = '4:2'", ["granularity", "4:2"]),
        ("[select]\ngranularity = 'block(4, 0)'", ["select", "block shape is (4, 0)"]),
        ("[select]\ngranularity = 'rows'", ["granularity 'rows' is unknown", "block(4, 4)"]),
        ("[select]\nfixed = 'fixed<8>'", ["select.fixed", "fixed-point type 'fixed<8>' cannot be read"]),
        ("[select]\nfixed = {'conv*' = 'int8'}", ["select.fixed", "fixed-point type 'int8' cannot be read"]),
        ("[select]\nclose = ['gamma']", ["select.close.0 is 'gamma'", "'bias', 'batch_norm' or 'dead_inputs'"]),
        ("[select]\nsamples = 0", ["select.samples is 0", "wanted at least 1"]),
        ("[select]\nnormalize = 'sum'", ["select.normalize is 'sum'", "wanted one of none, mean"]),
        ("[select]\ncost = 'LUTs'", ["select.cost: cost 'LUTs' is unknown", "adders(6)"]),
        ("[select]\ncost = 'adders(1)'", ["select", "1-bit weights", "wanted 2 to 32 bits"]),
        ("[finetune.schedule]\nkind = 'linear'", ["finetune.schedule", "'one_shot', 'polynomial_decay'"]),
        (
            "[finetune.schedule]\nkind = 'polynomial_decay'\nend_stp = 4",
            ["finetune.schedule.end_stp is not a known key", "did you mean 'end_step'?", "regrow_fraction"],
        ),
        (
            "[finetune.schedule]\nkind = 'rounds'\nregrow_fraction = 1",
            ["finetune.schedule.regrow_fraction is 1", "less than 1"],
        ),
        ("[select]\nlocks = ['conv2/kernel[a]']", ["select.locks", "has the index 'a'"]),
        ("[target]\npart = 'xc7z021'", ["part 'xc7z021' is unknown", "xc7z020"]),
        ("[target]\nio_type = 'io_wild'", ["target.io_type is 'io_wild'", "io_parallel"]),
        ("[hls]\nweight_bits = 64", ["hls.weight_bits is 64", "32"]),
        ("[hls]\nbackend = 'Vitus'", ["hls.backend is 'Vitus'", "wanted one of Vitis, Vivado"]),
        ("[hls]\nprecision = 'fixd<6,1>'", ["fixed-point type 'fixd<6,1>' cannot be read"]),
        ("[export]\nopset = 19", ["export.opset is 19", "wanted at most 18"]),
        ("[export]\nbatch = 0", ["export.batch is 0", "wanted at least 1"]),
        ("[export]\nbatch = 1.5", ["export.batch is 1.5; wanted a whole number"]),
        ("[finetune]\nquantised = 'maybe'", ["finetune.quantised is 'maybe'; wanted true or false"]),
        ("[target]\nclock_ns = 0", ["target.clock_ns is 0; wanted more than 0"]),
        ("[hls]\nmax_loss = 5", ['hls.max_loss: 5 has no unit: write "5 %"']),
        ("[hls.layers.conv1]\nweight = 'eight bits'", ["'eight bits' cannot be read"]),
        ("[hls.layers.conv1]\nstrategy = 'fast'", ["hls.layers.conv1.strategy is 'fast'", "latency"]),
        ("name = 'a b'", ["name is 'a b'", "a letter first"]),
        ("seed = ", ["is not TOML"]),
    ],
)
def test_one_line_says_what_is_wrong(tmp_path, text, parts):
    path = flow(tmp_path, text)
    with pytest.raises(ConfigError) as error:
        read_config(path)
    message = str(error.value)
    assert "\n" not in message
    assert str(path) in message
    for part in parts:
        assert part in message


@pytest.mark.parametrize("line", ["cost = 'adders 6'", "granularity = 'rows'", "fixed = 'int8'", "sparsity = 1.57"])
def test_what_is_wrong_is_said_once(tmp_path, line):
    wrong = line.split("= ")[1].strip("'")
    with pytest.raises(ConfigError) as error:
        read_config(flow(tmp_path, f"[select]\n{line}"))
    assert str(error.value).count(wrong) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[select]\nlocks = ['conv9/kernel[0]']", "select: 'conv9/kernel' matches no weight"),
        ("[select]\nlocks = ['conv2/kernel[:, :, 29, 99]']", "index 99 on axis 3, which has 32 entries"),
        ("[select]\npaths = ['dens/*']", "select: 'dens/\\*' matches no weight"),
        ("[select]\nfixed = {'dens/*' = 'fixed<8,1>'}", "select: 'dens/\\*' matches no weight"),
        ("[select]\ncriterion = 'no_such_module_:f'", "select: criterion 'no_such_module_:f' cannot be imported"),
        ("[train]\nmodel = 'gone.keras'", r"train.model: .*gone.keras does not exist"),
    ],
)
def test_what_does_not_fit_the_weights_is_refused(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message):
        check_flow(read_config(flow(tmp_path, text)))


def scheduled(text, *, select="sparsity = 0.8", finetune="epochs = 2", train=""):
    return f"[train]\n{train}\n[select]\n{select}\n[finetune]\n{finetune}\n[finetune.schedule]\n{text}"


@pytest.mark.parametrize(
    "text",
    [
        "kind = 'one_shot'",
        "kind = 'polynomial_decay'",
        "kind = 'polynomial_decay'\nbegin_step = 10\nend_step = 80\nfrequency = 7\nregrow_fraction = 0.1",
        "kind = 'constant_sparsity'\nbegin_step = 20",
        "kind = 'rounds'",
        "kind = 'rounds'\nrewind_to = 3",
    ],
)
def test_schedules_that_end_at_the_asked_sparsity_are_taken(tmp_path, text):
    check_flow(read_config(flow(tmp_path, scheduled(text))))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # 1,437 samples in batches of 32 are 90 steps in two epochs.
        (scheduled("kind = 'polynomial_decay'\nend_step = 90"), r"comes to sparsity 0\.7.* in 90 steps; wanted 0\.8"),
        (scheduled("kind = 'polynomial_decay'\nend_step = 80\nfrequency = 7"), "a whole number of times 'frequency'"),
        (scheduled("kind = 'polynomial_decay'\nbegin_step = 60\nend_step = 50"), "ends at step 50; wanted one after"),
        (scheduled("kind = 'constant_sparsity'\nbegin_step = 90"), "comes to sparsity 0 in 90 steps"),
        (scheduled("kind = 'rounds'", select="sparsity = 0.0"), "wanted one fraction above 0 for 'rounds'"),
        (scheduled("kind = 'rounds'", select="sparsity = {'conv*/kernel' = 0.5}"), "wanted one fraction above 0"),
        (
            scheduled("kind = 'rounds'\nregrow_fraction = 0.1", select="granularity = '2:4'"),
            "regrow_fraction: granularity '2:4' always keeps n of m; leave it out",
        ),
        (scheduled("kind = 'rounds'\nrewind_to = 9", train="epochs = 8"), "is epoch 9; the training has 8 epochs"),
        (scheduled("kind = 'rounds'\nrewind_to = 'gone.keras'"), r"rewind_to: .*gone\.keras does not exist"),
        (scheduled("kind = 'rounds'\nrewind_to = 1", train="model = 'm.keras'"), "but train.model skips the training"),
    ],
)
def test_schedules_that_cannot_end_at_the_asked_sparsity_are_refused(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message) as error:
        check_flow(read_config(flow(tmp_path, text)))
    assert "\n" not in str(error.value) or "2 mistakes" in str(error.value)


@pytest.mark.parametrize("steps", [1, 2, 7, 79])
@pytest.mark.parametrize("epochs", [2, 7, 32, 180])
def test_a_schedule_without_numbers_reaches_its_end_whatever_the_length(epochs, steps):
    config = PolynomialConfig(kind="polynomial_decay")
    check_schedule(config, epochs, steps, 0.85, "kernel")
    made = config.over(epochs, steps, 0.85)
    changes = [step for step in range(epochs * steps) if made(step)[0]]
    assert made(changes[-1]) == (True, 0.85)
    if epochs >= 7:
        assert {step % steps for step in changes} == {0}
        assert min(0.5 * epochs, 13) <= len(changes) <= 26


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"gone\.toml does not exist"):
        read_config(tmp_path / "gone.toml")


def arrays(**changes):
    rng = np.random.default_rng(0)
    plain = {
        "x_train": rng.random((20, 8, 8, 1)),
        "y_train": np.arange(20) % 3,
        "x_test": rng.random((6, 8, 8, 1)),
        "y_test": np.arange(6) % 3,
    }
    return {key: value for key, value in {**plain, **changes}.items() if value is not None}


def test_an_npz_beside_the_flow_file_is_read(tmp_path):
    np.savez(tmp_path / "mine.npz", **arrays())
    data = check_flow(read_config(flow(tmp_path, "[data]\nsource = 'mine.npz'")))
    assert (data.classes, data.x_train.dtype, data.y_train.dtype) == (3, np.float32, np.int64)


def saved_model(path, sample, units):
    """As much of a .keras file as is looked at before TensorFlow is loaded."""
    layers = [
        {"class_name": "InputLayer", "config": {"name": "x", "batch_shape": [None, *sample]}},
        {"class_name": "Dense", "config": {"name": "out", "units": units, "use_bias": True}},
    ]
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        file.create_group("layers")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", json.dumps({"config": {"layers": layers}}))
        archive.writestr("model.weights.h5", buffer.getvalue())


@pytest.mark.parametrize(
    ("sample", "units", "message"),
    [
        ((28, 28, 1), 10, r"takes samples of shape \(28, 28, 1\); data 'digits' has \(8, 8, 1\)"),
        ((64,), 10, r"takes samples of shape \(64,\)"),
        ((8, 8, 1), 3, "labels 0 to 9; wanted 0 to 2, because "),
    ],
)
def test_a_model_that_the_data_do_not_fit_is_refused(tmp_path, sample, units, message):
    saved_model(tmp_path / "mine.keras", sample, units)
    with pytest.raises(ConfigError, match=message):
        check_flow(read_config(flow(tmp_path, "[train]\nmodel = 'mine.keras'")))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y_test": None}, "has no y_test; wanted x_train, y_train, x_test, y_test; it holds \\['x_train'"),
        ({"x_train": None, "x_train_left": np.zeros((20, 8))}, "one key for each, as x_train.left; it holds"),
        ({"x_train": None, "x": np.zeros((20, 8)), "y": np.zeros(20)}, r"split x and y yourself: .*x_test=x\[-n:\]"),
        ({"y_train": np.zeros(19, int)}, r"y_train has shape \(19,\); wanted \(20, \.\.\.\)"),
        ({"y_train": np.zeros((20, 3), int)}, r"labels of y_train have shape \(3,\), of y_test \(\)"),
        ({"y_train": np.zeros(20)}, "y_train holds float64, y_test int64"),
        ({"y_train": np.array(list("abcdefghijklmnopqrst"))}, "wanted real numbers"),
        ({"x_train": np.zeros((20, 8, 8, 1), complex)}, "wanted real numbers"),
        ({"y_train": np.full(20, -1)}, "from -1 to -1; wanted class numbers"),
        ({"x_test": np.zeros((6, 8, 9, 1))}, r"samples of x_train have shape \(8, 8, 1\), of x_test \(8, 9, 1\)"),
        ({"x_test": np.zeros((0, 8, 8, 1)), "y_test": np.zeros(0, int)}, "one sample or more"),
        ({"x_train": np.full((20, 8, 8, 1), np.nan)}, "x_train hold NaN or infinity"),
    ],
)
def test_data_of_wrong_form_are_refused(tmp_path, changes, message):
    np.savez(tmp_path / "bad.npz", **arrays(**changes))
    with pytest.raises(DataError, match=message):
        load_data(str(tmp_path / "bad.npz"))


def test_pickled_data_are_never_opened(tmp_path):
    np.savez(tmp_path / "evil.npz", allow_pickle=True, **arrays(x_train=np.array([object()], dtype=object)))
    with pytest.raises(DataError, match=r"no \.npz of plain arrays"):
        load_data(str(tmp_path / "evil.npz"))


def test_a_function_gives_data(tmp_path, monkeypatch):
    (tmp_path / "their_data.py").write_text(
        "import numpy as np\n"
        "def load():\n"
        "    return dict(x_train=np.zeros((4, 8, 8, 1)), y_train=np.arange(4), x_test=np.zeros((2, 8, 8, 1)),\n"
        "                y_test=np.arange(2))\n"
        "def nothing():\n"
        "    return 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert load_data("their_data:load").classes == 4
    for source, message in {
        "their_data:gone": "cannot be imported",
        "no_such_module_:f": "cannot be imported",
        "their_data:nothing": "returned int; wanted a mapping",
        "digitz": "is unknown; wanted 'digits'",
    }.items():
        with pytest.raises(DataError, match=message):
            load_data(source)


def test_a_function_that_loads_tensorflow_finds_it_set_up(tmp_path, monkeypatch):
    """Its module may load TensorFlow before a stage begins; the bits of a run shall not depend on that."""
    for name in ("TF_ENABLE_ONEDNN_OPTS", "TF_CPP_MIN_LOG_LEVEL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "own.py").write_text(
        "import os\nseen = [os.environ.get('TF_' + name) for name in ('ENABLE_ONEDNN_OPTS', 'CPP_MIN_LOG_LEVEL')]\n"
        "def loss(y, z):\n    return seen\n"
    )
    assert named_function(f"{tmp_path}/own.py:loss", "train.loss", ConfigError)(0, 0) == ["0", "3"]


def test_a_part_of_ones_own_lies_beside_the_flow(tmp_path, monkeypatch):
    (tmp_path / "board.toml").write_text(
        'family = "Mine"\nvendor = "AMD"\nsource = "my board"\ndate = 2026-01-02\n'
        'part = [{ name = "mine1", lut = 9 }]\n'
    )
    (tmp_path / "flow.toml").write_text('[target]\npart = "board.toml"\n')
    monkeypatch.chdir(tmp_path.parent)
    target = read_config(tmp_path / "flow.toml").target.target()
    assert (target.part.lut, target.order_number) == (9, "mine1")
    (tmp_path / "flow.toml").write_text('[target]\npart = "absent.toml"\n')
    with pytest.raises(ConfigError, match=r"flow\.toml: .*absent\.toml does not exist"):
        read_config(tmp_path / "flow.toml")


@pytest.mark.parametrize("part", ["mine.toml", "mine.toml:m"])
def test_files_of_a_flow_become_absolute_and_so_does_a_part_of_ones_own(tmp_path, monkeypatch, part):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(
        'family = "M"\nvendor = "AMD"\nsource = "s"\ndate = "2026-01-01"\n[[part]]\nname = "m"\n'
        "lut = 1000\nff = 1000\ndsp = 1\nbram18 = 1\n"
    )
    document = {"data": {"source": "x.npz"}, "train": {"model": "n.keras"}, "target": {"part": part}}
    flow = parse_config(document, "x").beside(tmp_path)
    assert flow.data.source == str(tmp_path / "x.npz")
    assert flow.train.model == tmp_path / "n.keras"
    assert flow.target.part == str(tmp_path / part)
    assert parse_config({}, "x").beside(tmp_path) == parse_config({}, "x")


@pytest.mark.parametrize("name", ["auto", "main", "2d", "my net"])
def test_a_name_that_no_function_can_have_is_refused_before_anything_runs(name):
    with pytest.raises(ConfigError, match=f"name is '{name}'; wanted letters, digits and '_'"):
        parse_config({"name": name}, "flow.toml")


def test_choices_are_made_on_validation_samples_where_there_are_any():
    rng = np.random.default_rng(0)
    arrays = {
        f"{axis}_{part}": rng.random((4, 3)) if axis == "x" else np.arange(4)
        for part in ("train", "test", "valid")
        for axis in "xy"
    }
    data = check_data("mine", arrays)
    assert np.array_equal(data.choosing[0], arrays["x_valid"].astype(np.float32))
    without = check_data("mine", {key: array for key, array in arrays.items() if "valid" not in key})
    assert without.choosing[0] is without.x_train
    assert data.digest() != without.digest()
    with pytest.raises(DataError, match="has one of x_valid and y_valid; wanted both or none"):
        check_data("mine", {key: array for key, array in arrays.items() if key != "y_valid"})
    with pytest.raises(DataError, match=r"of x_valid \(2,\); wanted equal ones"):
        check_data("mine", arrays | {"x_valid": np.zeros((4, 2))})
