"""The tables of softmax in Quartus projects, and which layers a backend refuses."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fpgaprune.design import Design
from fpgaprune.design.templates import as_built
from fpgaprune.errors import HlsError, UnsupportedLayerError
from fpgaprune.fixed import FixedType
from fpgaprune.hls import layer_of
from fpgaprune.hls.quartus_tables import write_tables
from fpgaprune.lowering.backends import BACKENDS
from fpgaprune.lowering.convertible_layers import check_kinds
from fpgaprune.lowering.quartus_softmax import check_softmax

LOGITS, SUMS = FixedType(6, 3), FixedType(18, 8)


def design(*sources, names=("out_1", "out_2")):
    layers = [layer_of("x", "Input", (), (4,), {"result": LOGITS})]
    for name, source in zip(names, sources, strict=False):
        layers.append(layer_of(f"{name}_dense", "Dense", ("x",), (4,), {"result": source}))
        types = {"result": LOGITS, "exp_table": SUMS, "inv_table": SUMS}
        attributes = {"implementation": "stable", "table_size": 4}
        layers.append(layer_of(name, "Softmax", (f"{name}_dense",), (4,), types, attributes=attributes))
    return as_built(Design("net", tuple(layers), tuple(names[: len(sources)])))


def test_the_tables_are_those_of_the_types_that_the_layer_reads(tmp_path):
    folder = tmp_path / "firmware" / "nnet_utils" / "activation_tables"
    folder.mkdir(parents=True)
    for name in ("exp_table", "invert_table"):
        (folder / f"{name}.tb").write_text(
            f"#ifdef A\n#endif\nstatic const typename CONFIG_T::table_t {name}[9] = {{1, 2}};\n"
        )
    write_tables(tmp_path, design(LOGITS))
    # Two bits below the sign of fixed<6,3> stand for -3 to -1, and 0 for itself; those of fixed<18,8> for 32 to 96.
    assert (folder / "exp_table.tb").read_text() == (
        "#ifdef A\n#endif\nstatic const typename CONFIG_T::exp_table_t exp_table[4] = "
        "{1.0, 0.049787068368, 0.135335283237, 0.367879441171};\n"
    )
    assert "CONFIG_T::inv_table_t invert_table[4] = {1.7976931348623157e+308, 0.03125, 0.015625, 0.010416666667};" in (
        (folder / "invert_table.tb").read_text()
    )


def test_softmax_layers_of_one_type_share_their_tables():
    check_softmax(design())
    check_softmax(design(LOGITS, LOGITS))
    with pytest.raises(HlsError, match="softmax 'out_2' and 'out_1' need different tables"):
        check_softmax(design(LOGITS, FixedType(7, 3)))


@pytest.mark.parametrize("kind", [FixedType(6, 3, signed=False), FixedType(6, 0)])
def test_what_the_writer_makes_no_table_for_is_refused(kind):
    with pytest.raises(HlsError, match="need a sign and an integer bit or more"):
        check_softmax(design(kind))


@pytest.mark.parametrize(
    ("backend", "io_type", "kind", "message"),
    [
        ("Quartus", "io_parallel", "Cropping2D", "leaves the output unset"),
        ("oneAPI", "io_stream", "Cropping1D", "leaves the output unset"),
        ("Catapult", "io_parallel", "Average", "cannot hold one half"),
        ("Catapult", "io_stream", "Maximum", "does not compile: choose io_parallel"),
        ("Catapult", "io_stream", "Permute", "does not compile: choose io_parallel"),
    ],
)
def test_a_layer_that_a_backend_builds_wrongly_is_refused(backend, io_type, kind, message):
    layer = type(kind, (), {"name": "odd"})()
    model = SimpleNamespace(layers=[layer], get_layer=lambda _: layer)
    with pytest.raises(UnsupportedLayerError, match=f"'odd' is a {kind}.*{message}"):
        check_kinds(model, BACKENDS[backend], io_type, "resource")
    check_kinds(model, BACKENDS["Vitis"], io_type, "resource")
