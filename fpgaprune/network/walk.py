"""Applies to every call of a graph, in order, the rule of its exact class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fpgaprune.network.channels import Channels
from fpgaprune.network.graph import Call, calls_of, graph_of, nested_graph, producer
from fpgaprune.network.site import LayerRule, Site
from fpgaprune.network.trace import Count, Trace

if TYPE_CHECKING:
    import keras


def trace_channels(model: keras.Model, trace: Trace) -> list[Channels]:
    """Fill `trace`, and return the channels of the outputs of `model`.

    Raises:
        RemovalError: the model's graph cannot be read.
    """
    from fpgaprune.network.rules import rule_of

    return _Walk(trace, rule_of).run(model)


@dataclass
class _Walk:
    trace: Trace
    rule_of: Callable[[type], LayerRule | None]
    _nested: dict[int, list[Channels]] = field(default_factory=dict)

    def run(self, model: keras.Model) -> list[Channels]:
        graph = graph_of(model)
        inputs = []
        for tensor in graph.inputs:
            source = self.trace.opaque(tuple(tensor.shape[1:]))
            self.trace.hold(source.ids, "input", producer(tensor).name)
            inputs.append(source)
        outputs = self._calls(graph, inputs, "", "")
        for tensor, channels in zip(graph.outputs, outputs, strict=True):
            self.trace.hold(channels.ids, "output", producer(tensor).name)
        return outputs

    def _calls(self, graph: Any, inputs: list[Channels], key_prefix: str, path_prefix: str) -> list[Channels]:
        found = {id(tensor): channels for tensor, channels in zip(graph.inputs, inputs, strict=True)}
        for call in calls_of(graph, key_prefix, path_prefix):
            sources = [found[id(tensor)] for tensor in call.inputs]
            inner = nested_graph(call)
            results = self._apply(call, sources) if inner is None else self._nest(call, inner, sources)
            for tensor, channels in zip(call.outputs, results, strict=True):
                found[id(tensor)] = channels
            self.trace.writes[call.key] = np.concatenate([channels.ids.reshape(-1) for channels in results])
        return [found[id(tensor)] for tensor in graph.outputs]

    def _apply(self, call: Call, sources: list[Channels]) -> list[Channels]:
        site = Site(self.trace, call, sources)
        variables = getattr(call.operation, "variables", ())
        self.trace.members[call.path] = [self.trace.paths[id(v)] for v in variables if id(v) in self.trace.paths]
        for extra in sources[_read_first(call) :]:  # a mask or states, which no rule reads
            self.trace.hold(extra.ids, "unsupported", call.path)
        rule = None if call.kwargs.get("training") else self.rule_of(type(call.operation))
        results = rule.values(site) if rule else site.keep_all()
        return results if isinstance(results, list) else [results]

    def _nest(self, call: Call, graph: Any, sources: list[Channels]) -> list[Channels]:
        for channels in sources:
            self.trace.solid.append((channels.ids.reshape(-1), call.path))
        first = self._nested.setdefault(id(call.operation), sources)
        for before, now, tensor in zip(first, sources, graph.inputs, strict=True):
            if before.ids.shape == now.ids.shape:
                self.trace.slots.unite(before.ids, now.ids)
            elif before is not now:  # the inner layers cannot have two sizes
                self.trace.hold(before.ids, "shared", call.path)
                self.trace.hold(now.ids, "shared", call.path)
            shape = [now.shape[k] if k not in now.varying else Count(now.line(k).ids) for k in range(len(now.shape))]
            if len(now.varying) > 1:
                self.trace.hold(now.ids, "layout", call.path)
                shape = list(now.shape)
            path = f"{call.path}/{producer(tensor).name}"
            self.trace.configs.setdefault(path, {})["batch_shape"] = (tensor.shape[0], *shape)
        results = self._calls(graph, sources, f"{call.key}/", f"{call.path}/")
        for channels in results:
            self.trace.solid.append((channels.ids.reshape(-1), call.path))
        return results


def _read_first(call: Call) -> int:
    """Count the tensors of `call` in its first argument; all tensors if the operation is not a layer."""
    import keras

    if not isinstance(call.operation, keras.Layer):
        return len(call.inputs)
    arguments = [*call.args, *call.kwargs.values()]
    return sum(isinstance(leaf, keras.KerasTensor) for leaf in keras.tree.flatten(arguments[0])) if arguments else 0
