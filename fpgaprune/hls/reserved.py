"""Words that a generated C++ project cannot use as names."""

from __future__ import annotations

import re

# ISO/IEC 14882:2020, table 5 and its alternative tokens; what the headers that every project includes define besides.
_WORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do
double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace
new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires return
short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef
typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
main std nnet hls ac printf exit abs exp log sin cos tanh time signal
"""
RESERVED = frozenset(_WORDS.split())
PROJECT_NAMES = "wanted letters, digits and '_', a letter first, and no word of C++ or its library, as 'auto' or 'main'"


def is_project_name(name: str) -> bool:
    """`name` can be the name of a C++ function, and so of a project."""
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) is not None and name not in RESERVED
