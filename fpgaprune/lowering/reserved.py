"""Lists the words that a generated C++ project cannot use as names."""

from __future__ import annotations

import re

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
    """Whether `name` can be the name of a C++ function, and so of a project."""
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) is not None and name not in RESERVED
