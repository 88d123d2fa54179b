"""`check_names` refuses the configuration of a saved model that names code or other files."""

from __future__ import annotations

import builtins
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from fpgaprune.errors import shown

# Layers that hold foreign code, or a program of another framework.
_CODE = frozenset(
    ("Lambda", "__lambda__", "TFOpLambda", "SlicingOpLambda", "ClassMethod", "InstanceMethod", "InstanceProperty")
) | {"TorchModuleWrapper", "FlaxLayer", "JaxLayer", "TFSMLayer", "__typespec__"}
_CELLS = ("GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "SimpleRNN", "SimpleRNNCell", "StackedRNNCells")
_BY_AXES = (
    *("AveragePooling", "Conv", "ConvLSTM", "Cropping", "DepthwiseConv", "GlobalAveragePooling", "GlobalMaxPooling"),
    *("MaxPooling", "SeparableConv", "SpatialDropout", "UpSampling", "ZeroPadding", "AdaptiveAveragePooling"),
    "AdaptiveMaxPooling",
)
# Classes that a saved model may name without a module, as files of tf_keras do; none of them runs code or reads files.
_CLASSES = frozenset(
    (
        *_CELLS,
        *(f"{kind}{axes}D" for kind in _BY_AXES for axes in (1, 2, 3)),
        *(f"Conv{axes}DTranspose" for axes in (1, 2, 3)),
        *("Functional", "InputLayer", "InputSpec", "Model", "Sequential", "TensorShape", "DTypePolicy", "Policy"),
        *("Activation", "ActivityRegularization", "Add", "AdditiveAttention", "AlphaDropout", "Attention", "Average"),
        *("BatchNormalization", "Bidirectional", "CategoryEncoding", "CenterCrop", "Concatenate", "Dense"),
        *("Discretization", "Dot", "Dropout", "ELU", "EinsumDense", "Embedding", "Flatten", "GaussianDropout"),
        *("GaussianNoise", "GroupNormalization", "GroupQueryAttention", "HashedCrossing", "Hashing", "Identity"),
        *("IntegerLookup", "LayerNormalization", "LeakyReLU", "Masking", "Maximum", "MelSpectrogram", "Minimum"),
        *("MultiHeadAttention", "Multiply", "Normalization", "PReLU", "Permute", "Pipeline", "RMSNormalization"),
        *("RandomBrightness", "RandomContrast", "RandomCrop", "RandomFlip", "RandomRotation", "RandomTranslation"),
        *("RandomZoom", "ReLU", "RepeatVector", "Rescaling", "Reshape", "Resizing", "STFTSpectrogram", "Softmax"),
        *("SpectralNormalization", "StringLookup", "Subtract", "SyncBatchNormalization", "TextVectorization"),
        *("ThresholdedReLU", "TimeDistributed", "UnitNormalization", "Wrapper"),
        *("Constant", "GlorotNormal", "GlorotUniform", "HeNormal", "HeUniform", "LecunNormal", "LecunUniform"),
        *("Ones", "Orthogonal", "RandomNormal", "RandomUniform", "TruncatedNormal", "VarianceScaling", "Zeros"),
        *("L1", "L1L2", "L2", "OrthogonalRegularizer", "MaxNorm", "MinMaxNorm", "NonNeg", "UnitNorm"),
        *("PruneLowMagnitude", "ConstantSparsity", "PolynomialDecay"),
        *("__keras_tensor__", "__tensor__", "__numpy__", "__bytes__", "__ellipsis__", "__slice__", "__tuple__"),
    )
)
# Modules whose classes Keras itself finds by name.
_HOMES = re.compile(
    r"(tf_)?keras(\.src)?\.(activations|constraints|dtype_policies|initializers|layers|losses|metrics|ops|optimizers"
    r"|quantizers|random|regularizers)(\.\w+)*"
)
_MODULES = re.compile(r"(tf_)?keras(\.\w+)*|builtins|tensorflow_model_optimization(\.\w+)*")
_FUNCTION_HOMES = re.compile(r"builtins|(tf_)?keras(\.src)?\.(activations|initializers|losses|metrics|ops)(\.\w+)*")
_IDENTIFIER = re.compile(r"[A-Za-z]\w*(>\w+)?")
_FILES = ("vocabulary", "filepath", "filename", "saved_model_path")


def check_names(document: object, registered: Collection[str] = ()) -> None:
    """Check that each class and function that `document` names is Keras's, TF-MOT's, or in `registered`.

    Names are checked everywhere: in wrappers, activations, initializers, optimizers.

    Args:
        document: the JSON data of a saved model.
        registered: names that this process registered with Keras.

    Raises:
        ValueError: a name belongs to something else, stands for code, or refers to a file; one line names it.
    """
    for entry in _objects(document):
        pointed = next((key for key in _FILES if isinstance(entry.get(key), str) and entry[key]), None)
        if pointed is not None:
            raise ValueError(f"the model reads the file {shown(entry[pointed])} ({pointed}); put what it holds in it")
        if "class_name" in entry:
            _check_entry(entry, registered)


def require_layers(document: Mapping[str, object]) -> None:
    """Check that the model with the configuration `document` consists of layers that its file tells.

    Raises:
        ValueError: it is subclassed; what it computes is known to its Python code alone.
    """
    name, config = document.get("class_name"), document.get("config")
    if name not in _CLASSES and not (isinstance(config, Mapping) and "layers" in config):
        raise ValueError(
            f"it is a subclassed model, {shown(name)}, and only its code knows how its layers are connected; build the "
            "same layers as keras.Model(inputs, outputs), take over the weights with set_weights, and save that"
        )


def _check_entry(entry: dict[str, object], registered: Collection[str]) -> None:
    name, module, alias = (entry.get(key) for key in ("class_name", "module", "registered_name"))
    if not isinstance(name, str) or not isinstance(module, str | None) or not isinstance(alias, str | None):
        raise ValueError(f"the model names the class {shown(name)} of {shown(module)}; wanted texts")
    if name in _CODE:
        kind = "a Lambda layer" if "ambda" in name else f"the layer {name}"
        raise ValueError(f"the model has {kind}, whose code would run on loading; replace it by a layer")
    if (alias or name) in registered:
        return
    if module is not None and not _MODULES.fullmatch(module):
        raise ValueError(f"the model names the module {shown(module)}, whose code would run on loading")
    if name == "function":
        _check_function(entry.get("config"), module, registered)
    elif name not in _CLASSES and not (module is not None and _HOMES.fullmatch(module) and _IDENTIFIER.fullmatch(name)):
        raise ValueError(
            f"the model names the class {shown(name)}, which is neither Keras's nor registered by a file of yours that "
            "the data name (FILE.py:function)"
        )


def _check_function(name: object, module: str | None, registered: Collection[str]) -> None:
    if isinstance(name, str) and name in registered:
        return
    plain = isinstance(name, str) and _IDENTIFIER.fullmatch(name) is not None
    known = module is not None and _FUNCTION_HOMES.fullmatch(module) is not None
    if not plain or not known or (module == "builtins" and hasattr(builtins, str(name))):
        raise ValueError(f"the model names the function {shown(name)} of {shown(module)}, whose code would run")


def _objects(document: object) -> Iterator[dict[str, Any]]:
    rest = [document]
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            yield value
            rest += value.values()
        elif isinstance(value, list):
            rest += value
