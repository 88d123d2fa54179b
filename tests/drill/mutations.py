"""Damage of every sort that a file may take: to its bytes, to the members of a zip, to tokens of JSON and TOML."""

from __future__ import annotations

import io
import re
import zipfile
from random import Random

# What a careless tool, a bad disk or somebody with intentions may write in the place of a value.
TOKENS = (
    *("null", "true", "-1", "0", "1", "1e999", "NaN", "-Infinity", "9" * 5000, "4" * 30, "1e308", "0.5", "[]", "{}"),
    *('""', '"x"', '"' + "a" * 5000 + '"', '"\\ud800"', '"\\u0000"', '"../../../etc/passwd"', "[" * 3000, "[[1], 2]"),
    *('"fixed<16,2000>"', '"fixed<64,-400>"', '"ufixed<1,1>"', '"canary.py:run"', '"canary:run"', '"Lambda"'),
    *('"\\u004cambda"', '"__lambda__"', '"TFOpLambda"', '"os"', '"eval"', '{"class_name": "Lambda", "config": {}}'),
    *('"Conv2D"', '"Merge"', '"Reshape"', "2147483648", "4294967296", "-9223372036854775808", "[1, 1, 1]", "[0]"),
)
_VALUE = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null')
_HEADER = re.compile(rb"\{'descr'[^}]*\}")
_HEADERS = (
    b"{'descr': '|O', 'fortran_order': False, 'shape': (3,), }",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000), }",
    b"{'descr': '<f4', 'fortran_order': True, 'shape': (-3, -2), }",
    b"{'descr': '<i8', 'fortran_order': False, 'shape': (), }",
    b"{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (2,), }",
    b"{'descr': __import__('os').system('touch canary'), 'fortran_order': False, 'shape': (2,), }",
)


def damage(data: bytes, random: Random) -> bytes:
    """`data` with one fault, or a few, of a kind that fits what it is."""
    ways = [_bytes]
    if data[:2] == b"PK":
        ways += [_members, _members]
    elif data[:1] in (b"{", b"[") or b" = " in data[:400]:
        ways += [_values, _values]
    return random.choice(ways)(data, random)


def _bytes(data: bytes, random: Random) -> bytes:
    found = bytearray(data)
    at, length = random.randrange(len(data) or 1), random.choice((1, 1, 2, 4, 8, 64, 700))
    way = random.randrange(6)
    if way == 0:
        return bytes(found[:at])
    if way == 1:
        for _ in range(random.choice((1, 1, 3, 20))):
            found[random.randrange(len(found))] ^= 1 << random.randrange(8)
    elif way == 2:
        del found[at : at + length]
    elif way == 3:
        found[at:at] = found[at : at + length]
    elif way == 4:
        found[at:at] = random.randbytes(length)
    else:
        found[at : at + length] = random.choice((b"\xff", b"\0", b"\x7f", b"[", b'"')) * length
    return bytes(found)


def _values(data: bytes, random: Random) -> bytes:
    text = data.decode()
    places = list(_VALUE.finditer(text))
    if not places:
        return _bytes(data, random)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        place = random.choice(places)
        new = random.choice((random.choice(TOKENS), random.choice(places)[0], place[0][:-2], ""))
        text = text[: place.start()] + new + text[place.end() :]
        places = list(_VALUE.finditer(text)) or places
        places = [place for place in places if place.end() <= len(text)] or [place]
    return text.encode(errors="surrogatepass")


def _members(data: bytes, random: Random) -> bytes:
    """A sound zip whose members are not."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = random.choice(list(members))
    way = random.randrange(7)
    if way == 0:
        del members[name]
    elif way == 1:
        other = random.choice(list(members))
        members[name], members[other] = members[other], members[name]
    elif way == 2:
        members[random.choice(("../../canary", "/canary", "assets/x", "a" * 5000, "", "x\n\x1b[31m"))] = b"x"
    elif way == 3:
        members[name] = _HEADER.sub(lambda _: random.choice(_HEADERS), members[name])
    elif way == 4:
        members[name] = b"\0" * random.choice((0, 10, 100_000_000)) if random.random() < 0.1 else b""
    else:
        members[name] = damage(members[name], random) if members[name] else b"x"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for key, value in members.items():
            archive.writestr(zipfile.ZipInfo(key), value)
    return buffer.getvalue()
