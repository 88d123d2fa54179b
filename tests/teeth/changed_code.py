"""Runs the product with one piece of its text changed, as a mutant does, until the test ends."""

import inspect
from types import CodeType, FunctionType


def change(monkeypatch, module, old, new):
    """Put `new` in the place of `old`, which stands once in the text of `module`.

    The functions of which it is a part get the changed code, so whoever imported them runs it too.
    """
    text = inspect.getsource(module)
    assert text.count(old) == 1, f"{module.__name__} has {text.count(old)} times {old!r}; wanted it once"
    assert old.count("\n") == new.count("\n"), "the lines below would move"
    before, after = codes(text, module), codes(text.replace(old, new), module)
    changed = [name for name in before if before[name] != after[name]]
    assert changed, f"{old!r} and {new!r} compile to the same"
    functions = {function.__qualname__: function for function in functions_of(module)}
    found = [name for name in changed if name in functions]
    assert found, f"{old!r} is in no function of {module.__name__}, but in {changed}"
    for name in found:
        monkeypatch.setattr(functions[name], "__code__", after[name])


def codes(text, module):
    """Qualified name -> code of each function in `text`, those in functions among them."""
    found, left = {}, [compile(text, module.__file__, "exec")]
    while left:
        inner = [constant for constant in left.pop().co_consts if isinstance(constant, CodeType)]
        found |= {code.co_qualname: code for code in inner}
        left += inner
    return found


def functions_of(module):
    """The functions and methods that `module` defines, without their decorators."""
    own = [thing for thing in vars(module).values() if getattr(thing, "__module__", None) == module.__name__]
    classes = [thing for thing in own if isinstance(thing, type)]
    for thing in [*own, *(member for one in classes for member in vars(one).values())]:
        function = inspect.unwrap(getattr(thing, "fget", None) or getattr(thing, "__func__", thing))
        if isinstance(function, FunctionType) and function.__code__.co_filename == module.__file__:
            yield function
