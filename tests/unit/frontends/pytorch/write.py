"""Writes the ONNX files beside it: `python write.py`, with torch, onnx and onnxscript, which fpgaprune does not need.

Each network by both exporters of PyTorch: NAME_script.onnx by the one that traces (opset 11), NAME_dynamo.onnx by
`dynamo=True` (opset 18). Written with torch 2.14.1, onnx 1.23.2 and onnxscript 0.7.2. The networks are of this file
alone, with random weights. Where a node came from in the source, which the second exporter notes, is left out.
"""

import warnings
from pathlib import Path

import onnx
import torch
from torch import nn

HERE = Path(__file__).parent


class Small(nn.Module):
    """Convolutions, BatchNorm, a view and Dense layers."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            *(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(8, 16, 3), nn.ReLU()),
        )
        self.fc1, self.drop, self.fc2 = nn.Linear(16 * 2 * 2, 32), nn.Dropout(0.3), nn.Linear(32, 10)

    def forward(self, x):
        x = self.features(x)
        x = x.view(x.size(0), -1)
        return self.fc2(self.drop(torch.relu(self.fc1(x))))


class Residual(nn.Module):
    """A padded max pooling, sums, a strided branch, and the mean over all pixels."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 5, 2, 2, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        self.c1, self.b1 = nn.Conv2d(8, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8)
        self.c2, self.b2 = nn.Conv2d(8, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8)
        self.c3, self.down = nn.Conv2d(8, 16, 3, 2, 1), nn.Conv2d(8, 16, 1, 2)
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(16, 5)

    def forward(self, x):
        x = self.stem(x)
        y = torch.relu(self.b2(self.c2(torch.relu(self.b1(self.c1(x))))) + x)
        y = torch.relu(self.c3(y) + self.down(y))
        return torch.softmax(self.fc(torch.flatten(self.pool(y), 1)), 1)


class Mobile(nn.Module):
    """Depthwise and grouped convolutions, squeeze and excite, and the newer activation functions."""

    def __init__(self):
        super().__init__()
        self.a, self.dw, self.pw = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 1, 1, groups=8), nn.Conv2d(8, 16, 1)
        self.se1, self.se2, self.g = nn.Conv2d(16, 4, 1), nn.Conv2d(4, 16, 1), nn.Conv2d(16, 16, 3, 1, 1, groups=4)
        self.r6, self.act, self.p, self.gelu = nn.ReLU6(), nn.Hardswish(), nn.PReLU(16), nn.GELU()
        self.fc = nn.Linear(16, 4)

    def forward(self, x):
        x = self.act(self.pw(self.dw(self.r6(self.a(x)))))
        x = x * nn.functional.hardsigmoid(self.se2(torch.relu(self.se1(x.mean((2, 3), keepdim=True)))))
        return torch.sigmoid(self.fc(self.gelu(self.p(self.g(x))).mean([2, 3])))


class Audio(nn.Module):
    """Convolutions over time."""

    def __init__(self):
        super().__init__()
        self.c, self.bn, self.lr = nn.Conv1d(4, 8, 5, stride=2, padding=2), nn.BatchNorm1d(8), nn.LeakyReLU(0.2)
        self.d, self.pool, self.fc = nn.Conv1d(8, 8, 3, dilation=2), nn.AvgPool1d(2), nn.Linear(8 * 10, 3)

    def forward(self, x):
        x = self.pool(torch.tanh(self.d(self.lr(self.bn(self.c(x))))))
        return self.fc(x.flatten(1))


class UNet(nn.Module):
    """Two resolutions that meet, padding and slices; its output is an image."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (
            nn.Conv2d(1, 8, 3, padding=1),
            nn.Conv2d(8, 8, 3, padding=1),
            nn.Conv2d(16, 8, 3, padding=1),
        )
        self.up, self.o, self.linear = nn.Upsample(scale_factor=2), nn.Conv2d(8, 2, 1), nn.Upsample(None, 2, "bilinear")

    def forward(self, x):
        a = torch.relu(self.a(x))
        b = torch.relu(self.b(nn.functional.max_pool2d(a, 2)))
        c = nn.functional.elu(self.c(torch.cat([self.up(b), a], 1)))
        c = nn.functional.pad(c, (1, 2, 0, 1))[:, :, 1:, :-1]
        return self.o(self.linear(c))


class Perceptron(nn.Module):
    """Dense layers behind a normalisation of the pixels."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            *(nn.Flatten(), nn.Linear(14 * 14, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 10))
        )

    def forward(self, x):
        return self.net((x - 0.1307) / 0.3081)


class Autoencoder(nn.Module):
    """An image that goes through a vector and comes back."""

    def __init__(self):
        super().__init__()
        self.e, self.f, self.g = nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.ReLU()), nn.Linear(64, 8), nn.Linear(8, 64)
        self.u, self.d = nn.Upsample(scale_factor=2), nn.Conv2d(4, 1, 3, padding=1)

    def forward(self, x):
        z = torch.relu(self.g(self.f(self.e(x).flatten(1))))
        return torch.sigmoid(self.d(self.u(z.view(-1, 4, 4, 4))))


class Set(nn.Module):
    """The same Dense layers for each of eight particles, and their mean."""

    def __init__(self):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU())
        self.rho = nn.Linear(16, 5)

    def forward(self, x):
        return torch.softmax(self.rho(self.phi(x).mean(1)), -1)


class Recurrent(nn.Module):
    """Two layers of GRU, then an LSTM of which the last step is read."""

    def __init__(self):
        super().__init__()
        self.gru, self.lstm = nn.GRU(4, 6, num_layers=2, batch_first=True), nn.LSTM(6, 5, batch_first=True)
        self.fc = nn.Linear(5, 3)

    def forward(self, x):
        return self.fc(self.lstm(self.gru(x)[0])[0][:, -1])


class BothWays(nn.Module):
    """A GRU in both directions, then two layers of an LSTM in both, of which the last states are read."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 3, batch_first=True, bidirectional=True)
        self.lstm = nn.LSTM(6, 5, num_layers=2, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(10, 3)

    def forward(self, x):
        last = self.lstm(self.gru(x)[0])[1][0]
        return self.fc(torch.cat([last[-2], last[-1]], 1))


NETWORKS = {
    "small": (Small, (1, 8, 8)),
    "residual": (Residual, (3, 24, 24)),
    "mobile": (Mobile, (3, 16, 16)),
    "audio": (Audio, (4, 48)),
    "unet": (UNet, (1, 8, 8)),
    "perceptron": (Perceptron, (1, 14, 14)),
    "autoencoder": (Autoencoder, (1, 8, 8)),
    "set": (Set, (8, 3)),
    "recurrent": (Recurrent, (7, 4)),
    "both_ways": (BothWays, (7, 4)),
}


def main():
    warnings.simplefilter("ignore")
    for name, (kind, shape) in NETWORKS.items():
        torch.manual_seed(0)
        module = kind().eval()
        for part in module.modules():
            if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
                part.running_mean.normal_()
                part.running_var.uniform_(0.5, 2)
                part.weight.data.uniform_(0.5, 2)
                part.bias.data.normal_()
        x = torch.randn(2, *shape)
        torch.onnx.export(
            module,
            (x,),
            HERE / f"{name}_script.onnx",
            dynamo=False,
            opset_version=11,
            input_names=["x"],
            output_names=["y"],
            dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}},
        )
        second = HERE / f"{name}_dynamo.onnx"
        batch = ({0: torch.export.Dim("batch")},)
        torch.onnx.export(module, (x,), second, dynamo=True, dynamic_shapes=batch, external_data=False, verbose=False)
        model = onnx.load(second)
        for node in model.graph.node:
            kept = [entry for entry in node.metadata_props if entry.key == "pkg.torch.onnx.name_scopes"]
            del node.metadata_props[:]
            node.metadata_props.extend(kept)
            node.doc_string = ""
        del model.metadata_props[:]
        onnx.save(model, second)


if __name__ == "__main__":
    main()
