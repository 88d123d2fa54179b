"""Parts of a netlist are played cycle by cycle, for models to be compared with."""

from fpgaprune.readback import Lut


class Ports:
    """Nets of a cell's ports, made where they are asked for; what `fixed` names is a constant."""

    def __init__(self, cells, **fixed):
        self.cells, self.fixed, self.nets = cells, fixed, {}

    def __call__(self, port, at):
        if port in self.fixed:
            return self.fixed[port]
        if (port, at) not in self.nets:
            self.nets[port, at] = self.cells.net()
        return self.nets[port, at]


class Player:
    """A netlist, cycle by cycle."""

    def __init__(self, netlist):
        self.netlist, self.order = netlist, netlist.ordered()
        self.values = {0: 0, 1: 1, 2: 0, **{one.output: one.start for one in netlist.registers}}
        self.values |= {net: 0 for block in netlist.blocks for port in block.ports for net in port.outputs}
        self.contents = [bytearray(block.content) for block in netlist.blocks]

    def number(self, nets):
        return sum(self.values[net] << at for at, net in enumerate(nets))

    def compute(self, **ports):
        """Set ports to numbers: `{name: (nets, number)}`."""
        for nets, number in ports.values():
            self.values |= {net: number >> at & 1 for at, net in enumerate(nets)}
        for cell in self.order:
            if isinstance(cell, Lut):
                self.values[cell.output] = cell.table >> self.number(cell.inputs) & 1
            else:
                a, b = (
                    signed(self.number(nets), len(nets)) if self.values[is_signed] else self.number(nets)
                    for nets, is_signed in ((cell.a, cell.a_signed), (cell.b, cell.b_signed))
                )
                self.values |= {net: a * b >> at & 1 for at, net in enumerate(cell.outputs)}

    def tick(self):
        new = {}
        for one in self.netlist.registers:
            enable, reset, data = (self.values[net] for net in (one.enable, one.reset, one.data))
            new[one.output] = one.start if reset else data if enable else self.values[one.output]
        for block, content in zip(self.netlist.blocks, self.contents, strict=True):
            before = bytes(content)
            for port in block.ports:
                at, enabled = block.word * self.number(port.address), self.values[port.enable]
                writes = enabled and self.values[port.write]
                if enabled and (port.mode >= 2 or not writes):
                    new |= {net: before[at + bit] for bit, net in enumerate(port.outputs)}
                for bit, (net, mask) in enumerate(zip(port.data, port.masks, strict=True)):
                    if writes and not self.values[mask]:
                        content[at + bit] = self.values[net]
                        if port.mode == 3 and port.outputs:
                            new[port.outputs[bit]] = self.values[net]
        self.values |= new


def signed(number, bits):
    return number - (1 << bits) if number >> (bits - 1) & 1 else number
