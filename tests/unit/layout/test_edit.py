"""What is to be written into a flow file."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from fpgaprune.layout import Edit, flow_text
from tests.unit.estimate.designs import cnn

names = st.text(min_size=1, max_size=8)
values = (
    st.integers(0, 99)
    | st.booleans()
    | st.text(max_size=8)
    | st.floats(0, 1, allow_nan=False).map(lambda x: round(x, 3))
)
tables = st.dictionaries(
    names.filter(lambda key: key != "layers"), values | st.dictionaries(names, values, max_size=2), max_size=3
)


@given(
    st.dictionaries(st.sampled_from(("select", "hls", "target")), tables.filter(bool), max_size=3), st.none() | tables
)
def test_the_text_is_toml_that_says_the_same(settings, layers):
    if layers:
        settings.setdefault("hls", {})["layers"] = {name: {"reuse_factor": 4} for name in layers}
    assert tomllib.loads(flow_text(settings)) == settings


def test_the_text_reads_as_a_person_writes_it():
    settings = {
        "target": {"strategy": "resource", "reuse_factor": 16},
        "hls": {"layers": {"conv2": {"reuse_factor": 8}}, "weight_bits": 6},
        "select": {"sparsity": {"*/kernel": 0.9}},
    }
    assert flow_text(settings) == (
        '[target]\nstrategy = "resource"\nreuse_factor = 16\n\n'
        '[select]\nsparsity = { "*/kernel" = 0.9 }\n\n'
        "[hls]\nweight_bits = 6\n\n[hls.layers]\nconv2 = { reuse_factor = 8 }"
    )


def test_two_changes_are_one():
    first = Edit(("a", "b"), {"hls": {"x": 1, "layers": {"p": {"q": 1}}}}, cnn())
    second = Edit(
        ("b", "c"), {"hls": {"x": 2, "layers": {"p": {"r": 2}}}, "target": {}}, cnn(seed=1), keeps_function=False
    )
    both = first.then(second)
    assert both.knobs == ("a", "b", "c")
    assert both.settings == {"hls": {"x": 2, "layers": {"p": {"q": 1, "r": 2}}}, "target": {}}
    assert both.design == second.design
    assert not both.keeps_function
