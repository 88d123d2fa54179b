"""Activations that are looked up are as exact as the bits that she pays for."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np

import fpgaprune as fp

from ._asking import refused

_TARGET = fp.Target.of("xc7z020clg400-1")


def _images() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(60, 10, 10, 1)).astype("float32")


def _network(activation: str) -> keras.Model:
    keras.utils.set_random_seed(1)
    maps = [keras.layers.Conv2D(6, 3, activation=activation, name=f"conv{place}") for place in range(3)]
    return keras.Sequential([keras.Input((10, 10, 1)), *maps, keras.layers.Flatten(), keras.layers.Dense(4)])


def _error(activation: str, bits: int) -> float:
    """The largest difference to Keras, as a fraction of how much the outputs vary."""
    model, x = _network(activation), _images()
    wanted = model.predict(x, verbose=0)
    found = fp.emulate(fp.make_design(model, _TARGET, x, fp.Precision(bits, bits, 20)), x)
    return float(np.abs(found - wanted).max() / np.abs(wanted - wanted.mean(axis=0)).max())


def an_image_network_of_tanh_gains_from_more_bits(folder: Path) -> None:
    """Three convolutions with tanh are within half a per cent of Keras at 12 bits; they were 3 % off at any width."""
    assert _error("tanh", 12) < 0.005


def an_image_network_of_silu_gains_from_more_bits(folder: Path) -> None:
    """Three convolutions with silu are nearer to Keras at 12 bits than at 8, by a factor of four."""
    assert _error("silu", 12) < _error("silu", 8) / 4


def her_table_size_is_taken_and_its_error_is_said(folder: Path) -> None:
    """A project with a table of 256 entries says by how much a value can be off, and how many entries would do."""
    model, x = _network("tanh"), _images()
    project = fp.to_hls(model, _TARGET, x, folder / "hls", layers={"conv0_tanh": {"table_size": 256}})
    assert project.design["conv0_tanh"].operation.table_size == 256
    assert "256 entries, so a value can be off by 0.031" in project.notes[0]


def a_table_size_of_a_layer_without_a_table_is_refused(folder: Path) -> None:
    """She names the convolution where its activation has the table: one line names the layers that have one."""
    refused(
        lambda: fp.make_design(_network("tanh"), _TARGET, _images(), layers={"conv0": {"table_size": 256}}),
        "layer 'conv0' has table_size 256 and no table; these layers have one: conv0_tanh, conv1_tanh, conv2_tanh",
    )
