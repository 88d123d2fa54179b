"""Lists the classes of Keras layers that can be converted, and alternatives to others, without loading Keras."""

from __future__ import annotations

from collections.abc import Mapping

from fpgaprune.network import IDENTITIES

# The classes that become operations of a design.
SUPPORTED = frozenset(
    {
        *("InputLayer", "Dense", "Conv1D", "Conv2D", "DepthwiseConv1D", "DepthwiseConv2D", "BatchNormalization"),
        *("SeparableConv1D", "SeparableConv2D"),  # by `split_separable`
        *("Conv1DTranspose", "Conv2DTranspose"),  # by `without_transposed`
        *("Activation", "ReLU", "LeakyReLU", "PReLU", "ELU", "Softmax"),
        *("MaxPooling1D", "MaxPooling2D", "AveragePooling1D", "AveragePooling2D"),
        *("GlobalMaxPooling1D", "GlobalMaxPooling2D", "GlobalAveragePooling1D", "GlobalAveragePooling2D"),
        *("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate"),
        *("Flatten", "Reshape", "Permute", "ZeroPadding1D", "ZeroPadding2D", "Cropping1D", "Cropping2D"),
        *("UpSampling1D", "UpSampling2D", "GRU", "LSTM", "SimpleRNN"),
        *("Rescaling", "Normalization"),  # by `with_layers`
        *("RepeatVector", "TimeDistributed", "EinsumDense", "Dot", "Bidirectional"),  # by `flattened`
        *IDENTITIES,
    }
)
# fpgaprune's own layers that become operations.
_OWN = (
    ("RoundedChannels", "fpgaprune.quantise.channels"),
    ("ReversedSteps", "fpgaprune.lowering.reversed_steps"),
)
_INSTEAD: Mapping[str, str] = {
    "Conv3D": "Conv2D layers",
    "Conv3DTranspose": "Conv2DTranspose layers",
    "LayerNormalization": "BatchNormalization",
    "GroupNormalization": "BatchNormalization",
    "UnitNormalization": "BatchNormalization",
    "Lambda": "layers of Keras that compute the same",
    "MultiHeadAttention": "convolutions and Dense layers",
    "GroupQueryAttention": "convolutions and Dense layers",
    "Attention": "convolutions and Dense layers",
    "Masking": "sequences of one length, padded by a value that the network is trained with: hardware runs every step",
    "RandomCrop": "data of the size that the network takes, or Cropping2D: it crops at inference, too",
    "RandomHeight": "data of one size: it changes the size of its input",
    "RandomWidth": "data of one size: it changes the size of its input",
    "Resizing": "data of the size that the network takes",
    "CenterCrop": "Cropping2D",
    "ConvLSTM1D": "Conv1D and GRU",
    "ConvLSTM2D": "Conv2D layers",
    "RNN": "GRU, LSTM or SimpleRNN, whose steps hardware knows",
    "Embedding": "data that are encoded before they reach the network",
}


def class_problem(name: str, kind: str, module: str, *, nested: bool = False) -> str | None:
    """Say why a layer of class `kind` cannot be converted, and what to do; None if the class can be converted.

    Args:
        name: name of the layer.
        kind: name of its class.
        module: module of its class; a user's own layer is not from Keras.
        nested: whether it is a model itself.
    """
    own = module.split(".")[0] != "keras"
    if (kind in SUPPORTED and not own) or (kind, module) in _OWN:
        return None
    # The article follows the pronunciation: an LSTM.
    article = "an" if kind[0] in "AEIO" or kind[:2] in ("LS",) else "a"
    near = f"Keras's {kind}" if own and kind in SUPPORTED else _INSTEAD.get(kind)
    instead = f"use {near}" if near else f"fpgaprune converts {', '.join(sorted(SUPPORTED))}"
    if nested:
        why = "a model inside the model, which cannot be unfolded: put its layers into the model itself"
    elif own:
        why = f"a layer of your own, of which no hardware is known: build it of layers of Keras; {instead}"
    else:
        why = f"for which there is no hardware here; {instead}"
    return f"layer {name!r} is {article} {kind}, {why}"
