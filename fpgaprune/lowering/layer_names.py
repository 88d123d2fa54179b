"""Chooses the names of layers in a C++ project, which may be no words of C++, and of layers that this package adds.

A model may call a layer `conv-1`, `1st` or `for`; in the project it is then `conv_1`, `layer_1st` or `for_layer`. The
design, the certificate and the report keep the model's name; `LayerSpec.project_name` is the name in the project.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from fpgaprune.network import cloned, copied, producer

if TYPE_CHECKING:
    import keras


# ISO/IEC 14882:2020, table 5 and its alternative tokens, and names from the headers that every project includes.
_WORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do
double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace
new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires return
short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef
typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
main std nnet hls ac printf exit abs exp log sin cos tanh time signal
"""
# Names in hls4ml's templates of the top function, the test bench and the bridge, and macros of their headers.
_PROJECT_WORDS = """
INPUT_NUMBERS OUTPUT_NUMBERS CHECKPOINT RESULTS_LOG RTL_SIM NUM_TEST_SAMPLES NULL EOF DEBUG INFINITY NAN HUGE_VAL
RAND_MAX BUFSIZ M_E M_PI I errno stdin stdout stderr assert linux unix major minor
fin fpr fout iline pline e in pr cstr current i ii it ptr argc argv weights loaded_weights strtok atof atoi free
malloc memcpy offset name data trace_data allocate_trace_storage free_trace_storage collect_trace_output
golden_differences input_t result_t model_default_t read_all write_all dup dup2 read write
"""
RESERVED = frozenset(_WORDS.split())
PROJECT_WORDS = frozenset(_PROJECT_WORDS.split())
PROJECT_NAMES = "wanted letters, digits and '_', a letter first, and no word of C++ or its library, as 'auto' or 'main'"


def is_project_name(name: str) -> bool:
    """Return whether `name` can be the name of a C++ function, and so of a project."""
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) is not None and name not in RESERVED


# Longer names would not fit into the file names of every tool.
_LONGEST = 64
# hls4ml puts one of these in front of a layer's name to name a layer that it adds.
_ADDED = ("zp1d_", "zp2d_", "clone_", "repack_", "bn_", "transpose_", "broadcast_")
# hls4ml reserves 'input' and, by mistake, each of its letters.
_KEPT = frozenset({"input", *"input"})
# The project gives such names to its arrays, types and configurations, and to copies of an input.
_NUMBERED = re.compile(r"(layer|config|[a-z]{1,2})\d+.*|.*_(t|ap|float|double|stream|vec|it)")


def free_name(name: str, taken: Collection[str]) -> str:
    """Return `name`, or `name` with a number such that it is not in `taken`."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found


def project_names(names: Iterable[str], inputs: Collection[str] = (), project: str = "") -> dict[str, str]:
    """Map layer name to its name in the project: the same if C++ and hls4ml allow it; all are distinct.

    Args:
        names: the names of all layers.
        inputs: the names of the inputs, which become variables of the top function.
        project: the name of the top function.
    """
    names = list(names)
    wanted = {name: _allowed(name, name in inputs, project) for name in names}
    shadowed = {f"{prefix}{name}" for name in names for prefix in _ADDED}
    found: dict[str, str] = {}
    taken: set[str] = set()
    # Names that can stay are settled first, so that only names change that must.
    for name in sorted(names, key=lambda name: wanted[name] != name):
        plain = f"layer_{wanted[name]}" if wanted[name] in shadowed else wanted[name]
        number, candidate = 1, plain
        while candidate.lower() in taken:
            number += 1
            candidate = f"{plain}_{number}"
        taken.add(candidate.lower())
        found[name] = candidate
    return {name: found[name] for name in names}


def names_of(folded: keras.Model, project: str = "") -> dict[str, str]:
    """Return `project_names` of the layers of the functional model `folded` in a project called `project`."""
    inputs = {producer(tensor).name for tensor in folded.inputs}
    return project_names([layer.name for layer in folded.layers], inputs, project)


def _allowed(name: str, is_input: bool, project: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = re.sub(r"[^A-Za-z0-9_]", "_", plain)[:_LONGEST]
    if not re.match(r"[A-Za-z]", plain):
        plain = f"layer_{plain.lstrip('_')}"
    if plain in _KEPT or plain in RESERVED:
        return f"{plain}_layer"
    if is_input and (plain == project or plain in PROJECT_WORDS or _NUMBERED.fullmatch(plain)):
        return f"{plain}_layer"
    return plain


def renamed(functional: keras.Model, names: Mapping[str, str]) -> keras.Model:
    """Return a copy of `functional` whose layers have the names in `names`; `functional` itself if no name changes.

    Args:
        functional: a functional model; it is not changed.
        names: from `names_of`. TensorFlow, too, accepts only such names.
    """
    if all(names[layer.name] == layer.name for layer in functional.layers):
        return functional

    def clone(layer: keras.Layer) -> keras.Layer:
        return copied(layer, name=names[layer.name])

    return cloned(functional, clone, names=names)
