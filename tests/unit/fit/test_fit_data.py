"""`fit` takes data of several inputs as a data function gives them."""

import numpy as np
import pytest

from fpgaprune.fit import data_source
from fpgaprune.flow import load_data

X, Y = np.zeros((6, 2)), np.arange(6) % 3


@pytest.mark.parametrize("form", [lambda x: {"left": x, "right": x[:, :1]}, lambda x: [x, x[:, :1]]])
def test_a_mapping_or_a_list_of_inputs_arrives(tmp_path, form):
    data = {"x_train": form(X), "y_train": Y, "x_test": form(X), "y_test": Y, "x_valid": None}
    found = load_data(data_source({**data, "sample_weight_train": np.ones(6)}, tmp_path))
    assert [array.shape for array in found.x_train] == [(6, 2), (6, 1)]
    assert found.sample_weight_train.tolist() == [1.0] * 6
