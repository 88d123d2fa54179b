"""`Identity`: what a bitstream says of itself when it is asked over the serial line."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

from fpgaprune.errors import BoardError, DesignError, TargetError
from fpgaprune.fabric.synthesis import read_sources
from fpgaprune.rtl import RtlPort, VerilogProject
from fpgaprune.values import OVERFLOW_MODES, ROUNDING_MODES, FixedType

# A sample that ends after this byte is a question (`hw/boards/uart_stream.v`).
QUESTION = b"?"
_MARK = b"fpq1"
# Beats of a sample, values of a beat, bits of a value, its integer bits, whether it is signed, how it rounds and
# overflows: the places of its modes in the lists of `fpgaprune.values.fixed`.
_PORT = struct.Struct("<IHBhBBB")
_HEAD = struct.Struct("<4s8s")
SIZE = _HEAD.size + 2 * _PORT.size


@dataclass(frozen=True, slots=True)
class Identity:
    """The design in a bitstream, and the samples that it takes.

    Attributes:
        digest: `digest_of_verilog`, 16 hex digits.
        source: the stream of samples; its shape is flat.
        sink: the stream of results; its shape is flat.
    """

    digest: str
    source: RtlPort
    sink: RtlPort

    def to_bytes(self) -> bytes:
        """Return the `SIZE` bytes that a board sends."""
        head = _HEAD.pack(_MARK, bytes.fromhex(self.digest))
        return head + _port_bytes(self.source) + _port_bytes(self.sink)

    @classmethod
    def from_bytes(cls, data: bytes) -> Identity | None:
        """Return the identity at the end of `data`; None if there is none.

        Raises:
            BoardError: there is one, but it is damaged.
        """
        data = data[-SIZE:]
        if not is_identity(data):
            return None
        try:
            source, sink = (
                _port(data[at : at + _PORT.size], prefix)
                for prefix, at in (("s_axis", _HEAD.size), ("m_axis", _HEAD.size + _PORT.size))
            )
        except (DesignError, IndexError, ValueError) as error:
            raise BoardError(f"the board's answer is damaged ({error}); see cable and baud rate") from None
        return cls(data[len(_MARK) : _HEAD.size].hex(), source, sink)


def is_identity(data: bytes) -> bool:
    """Return whether `data` looks like an identity: its mark, and as many bytes."""
    return len(data) == SIZE and data.startswith(_MARK)


def identity_of(project: VerilogProject) -> Identity:
    """Return what a bitstream of `project` says of itself.

    Raises:
        TargetError: the project has several inputs or outputs.
        RtlError: a file of the project is missing.
    """
    if len(project.inputs) != 1 or len(project.outputs) != 1:
        raise TargetError(
            f"{project.name} has {len(project.inputs)} inputs and {len(project.outputs)} outputs; "
            "a serial line carries one of each"
        )
    return Identity(digest_of_verilog(project), project.inputs[0], project.outputs[0])


def digest_of_verilog(project: VerilogProject) -> str:
    """Return sixteen hex digits over every file of the project, with their names.

    Raises:
        RtlError: a file is missing.
    """
    whole = hashlib.sha256()
    for name, content in read_sources(project, project.files).items():
        whole.update(f"{name}\n{len(content)}\n".encode() + content)
    return whole.hexdigest()[:16]


def _port_bytes(port: RtlPort) -> bytes:
    kind = port.type
    modes = ROUNDING_MODES.index(kind.rounding), OVERFLOW_MODES.index(kind.overflow)
    return _PORT.pack(port.beats, port.lanes, kind.width, kind.integer, kind.signed, *modes)


def _port(data: bytes, prefix: str) -> RtlPort:
    beats, lanes, width, integer, signed, rounding, overflow = _PORT.unpack(data)
    kind = FixedType(width, integer, bool(signed), ROUNDING_MODES[rounding], OVERFLOW_MODES[overflow])
    if not beats or not lanes:
        raise ValueError("a stream without values")
    return RtlPort("", prefix, (beats * lanes,), beats, lanes, kind)
