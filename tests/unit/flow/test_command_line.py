"""A flow from a command line: from a model with a few options, and from a flow file with some beside it."""

from pathlib import Path

import pytest

from fpgaprune.errors import ConfigError
from fpgaprune.flow.engine import as_options, command_line, flow_from_options, name_of, parse_config, read_config

GIVEN = {"data": "x.npz", "part": "zcu104", "sparsity": 0.6}


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path("my-net.v2.keras")
    path.write_bytes(b"")
    return path


def test_a_model_and_three_options_are_a_flow(model):
    assert flow_from_options(model, **GIVEN) == parse_config(
        {
            "name": "my_net_v2",
            "data": {"source": "x.npz"},
            "train": {"model": "my-net.v2.keras"},
            "select": {"sparsity": 0.6},
            "target": {"part": "zcu104"},
        },
        "test",
    )


def test_every_option_sets_its_key(model):
    config = flow_from_options(model, "other", **GIVEN, clock_ns=4.0, epochs=3)
    assert (config.name, config.target.clock_ns, config.finetune.epochs) == ("other", 4.0, 3)


def test_a_pattern_says_its_own_share(model):
    given = {name: GIVEN[name] for name in ("data", "part")}
    for pattern in ("2:4", "6:all"):
        select = flow_from_options(model, **given, granularity=pattern).select
        assert (select.granularity, select.sparsity) == (pattern, 0.0)
    with pytest.raises(ConfigError, match="--sparsity is missing"):
        flow_from_options(model, **given, granularity="weight")
    with pytest.raises(ConfigError, match=r"^--granularity: .*'2:0'"):
        flow_from_options(model, **given, granularity="2:0")


def test_the_largest_loss_is_asked_for_only_where_it_is_given(model, monkeypatch):
    documents = []
    monkeypatch.setattr(command_line, "parse_config", lambda document, _: documents.append(document))
    flow_from_options(model, **GIVEN)
    flow_from_options(model, **GIVEN, max_loss="1 %")
    assert [document.get("verdict") for document in documents] == [None, {"max_loss": "1 %"}]


@pytest.mark.parametrize(
    ("left", "message"),
    [
        ((), "--data, --part, --sparsity are missing"),
        (("data", "part"), "--sparsity is missing"),
    ],
)
def test_a_model_without_its_options_says_which(model, left, message):
    with pytest.raises(ConfigError) as caught:
        flow_from_options(model, **{name: GIVEN[name] for name in left})
    assert str(caught.value) == (
        f"{model} is a network, and {message}; use 'fpgaprune run {model} --data DATA.npz --part PART --sparsity 0.6'"
    )


def test_a_model_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"model file .*gone\.keras does not exist"):
        flow_from_options(tmp_path / "gone.keras", **GIVEN)


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("resnet8", "resnet8"),
        ("my net-2", "my_net_2"),
        ("8layers", "net_8layers"),
        ("main", "net_main"),
        ("_x_", "x"),
        ("réseau", "r_seau"),
        ("---", "net"),
    ],
)
def test_a_name_is_made_of_the_file(stem, name):
    assert name_of(Path(f"{stem}.keras")) == name
    assert parse_config({"name": name}, "test").name == name


FLOW = """
name = "mine"
[data]
source = "mine.npz"
[select]
sparsity = 0.5
criterion = "l2"
[finetune]
epochs = 4
[finetune.schedule]
kind = "rounds"
rewind_to = "early.keras"
[target]
part = "xc7a35t"
"""


def test_an_option_beside_a_flow_file_replaces_that_key_and_no_other(tmp_path):
    path = tmp_path / "flow.toml"
    path.write_text(FLOW)
    config = flow_from_options(path, sparsity=0.7, part="zcu104")
    whole = read_config(path)
    assert (config.select.sparsity, config.target.part) == (0.7, "zcu104")
    assert config.select.criterion == "l2"
    for section in ("name", "data", "train", "finetune", "hls", "measure"):
        assert getattr(config, section) == getattr(whole, section)
    assert config.data.source == str(tmp_path / "mine.npz")
    assert config.finetune.rewind_file == tmp_path / "early.keras"


def test_data_of_an_option_lie_where_the_command_runs_not_beside_the_flow_file(tmp_path):
    path = tmp_path / "flow.toml"
    path.write_text(FLOW)
    assert flow_from_options(path, data="here.npz").data.source == "here.npz"


def test_without_options_the_flow_is_the_file(tmp_path):
    path = tmp_path / "flow.toml"
    path.write_text(FLOW)
    assert flow_from_options(path) == read_config(path)
    assert flow_from_options(None) == read_config(None)
    assert flow_from_options(None, part="pynq-z2", name="two").target.part == "pynq-z2"


def test_a_value_that_is_not_allowed_is_one_line(model):
    with pytest.raises(ConfigError, match=r"^--sparsity is 2; .*wanted at most 1"):
        flow_from_options(model, **{**GIVEN, "sparsity": 2})
    with pytest.raises(ConfigError, match=r"options: .*part 'xc7z02' is unknown"):
        flow_from_options(None, part="xc7z02")


def test_a_flow_whose_model_is_no_keras_model_says_so_before_it_runs(tmp_path):
    path = tmp_path / "flow.toml"
    path.write_text('[train]\nmodel = "net.tflite"\n')
    with pytest.raises(ConfigError, match=r"train\.model: .*net\.tflite is a graph of TensorFlow; wanted a network"):
        flow_from_options(path)


def test_a_wrong_option_is_named_as_it_was_typed(model):
    with pytest.raises(ConfigError, match="--epochs is -1"):
        flow_from_options(model, **GIVEN, epochs=-1)
    said = "train longer (finetune.epochs), use more bits (hls.weight_bits), or allow more (verdict.max_loss)"
    assert as_options(said) == "train longer (--epochs), use more bits (hls.weight_bits), or allow more (--max-loss)"
    assert as_options("own.select.sparsity, select.sparsity_of") == "own.select.sparsity, select.sparsity_of"
