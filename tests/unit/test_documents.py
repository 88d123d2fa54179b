"""JSON, TOML and .npz files: what is none of them is refused in one line that says where."""

import io
import json
import tomllib
import zipfile

import numpy as np
import pytest

from fpgaprune.errors import ConfigError, MaskError
from fpgaprune.files import parse_json, read_json, read_npz, read_toml, toml_key, toml_value
from fpgaprune.values import MaskSet


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1', "not JSON: .* in line 1, column 8"),
        ('{"a": 1, "a": 2}', "the name 'a' stands twice in one object"),
        ('{"a": [NaN]}', "it holds NaN"),
        ('{"a": -Infinity}', "it holds -Infinity"),
        ('{"a": 1e999}', "the number '1e999' is too large"),
        ('{"a": 99999999999999999999999}', "has more than 64 bits"),
        ("9" * 5000, r"the whole number '9{59}\.\.\. has more than 64 bits"),
        ("[" * 5000 + "]" * 5000, "nested too deep"),
        ("[" * 300 + "]" * 300, "nested too deep"),
        ('["\\ud800"]', "not UTF-8 text: surrogates not allowed"),
        (b"\xff\xfe", "not UTF-8 text: invalid start byte at byte 0"),
    ],
)
def test_no_json_is_one_line(text, message):
    with pytest.raises(ValueError, match=message) as error:
        parse_json(text)
    assert "\n" not in str(error.value)


def test_what_tools_write_passes_where_that_is_wanted(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"a": NaN, "a": 1e999}')
    assert read_json(path, ConfigError, "a record", "delete it", strict=False) == {"a": float("inf")}
    path.write_text('{"a": ')
    with pytest.raises(ConfigError, match=r"a\.json is not a record: not JSON: .*; delete it"):
        read_json(path, ConfigError, "a record", "delete it", strict=False)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a = ", "is not TOML: Invalid value"),
        (b"a = " + b"[" * 5000, "nested too deep"),
        (b"a = " + b"9" * 5000, "is not TOML: "),
        (b"a = 99999999999999999999999", "has more than 64 bits"),
        (b"\xff", "not UTF-8 text"),
    ],
)
def test_no_toml_is_one_line(tmp_path, content, message):
    (tmp_path / "a.toml").write_bytes(content)
    with pytest.raises(ConfigError, match=message) as error:
        read_toml(tmp_path / "a.toml", ConfigError, "flow file")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


def test_a_folder_is_no_document(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        read_toml(tmp_path, ConfigError, "flow file")


def member(header, content=b""):
    head = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + content


def archive(declared=None, **members):
    """An .npz file of `members`, whose directory says of each that it takes `declared` bytes; None says the truth."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members.items():
            made.writestr(f"{name}.npy", content)
            made.filelist[-1].file_size = declared or len(content)
    return buffer.getvalue()


def header(kind="'<f4'", shape="(2,)"):
    return f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a whole .npz"),
        (archive(a=member(header(), b"12345678"))[:-40], "not a whole .npz"),
        (archive(a=member(header("'|O'"), b"12345678")), "wanted plain numbers, nothing is unpickled"),
        (archive(a=member(header(shape="(1000000, 1000000)"))), "has shape .1000000, 1000000. and 0 bytes"),
        (archive(a=member(header(shape="(-2,)"))), "has shape"),
        (archive(a=member(header(shape="(9, 9)"), b"1234")), "has shape .9, 9. and 4 bytes"),
        (archive(a=member(header(), b"12345678and more")), "has shape"),
        (archive(a=member(header("__import__('os')"), b"12345678")), "not a whole .npz"),
        (archive(a=member("(" * 100)), "not a whole .npz"),
        (archive(declared=600 << 20, a=b"\0"), "its arrays take 629,145,600 bytes in a file of"),
        (b"\x93NUMPY\x01\x00", "a single array, no archive of named ones"),
    ],
    ids=["empty", "cut", "pickle", "huge", "negative", "short", "long", "code", "nested", "bomb", "single"],
)
def test_no_npz_is_one_line(tmp_path, content, message):
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        read_npz(tmp_path / "a.npz")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300
    with pytest.raises(MaskError, match="is not a mask file"):
        MaskSet.load(tmp_path / "a.npz")


def test_sound_arrays_come_back(tmp_path):
    arrays = {
        "a": np.arange(6).reshape(2, 3),
        "b": np.asfortranarray(np.eye(3)),
        "c": np.array(2.5),
        "d": np.zeros((0, 3)),
    }
    np.savez(tmp_path / "a.npz", **arrays)
    found = read_npz(tmp_path / "a.npz")
    assert all(
        np.array_equal(found[name], array) and found[name].dtype == array.dtype for name, array in arrays.items()
    )
    assert json.dumps(sorted(found)) == json.dumps(sorted(arrays))


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"plain_key": 1, "a key": [1.5, True, "x"]},
        'ä \x7f " \n\t\\',
        [],
        [{"a": {"*/kernel": 0.5}}],
        -3,
        1e-300,
        False,
    ],
)
def test_what_is_written_as_toml_is_read_as_the_same(value):
    assert tomllib.loads(f"{toml_key('a.b c')} = {toml_value(value)}") == {"a.b c": value}
