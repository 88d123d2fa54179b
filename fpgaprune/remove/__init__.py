"""Dead and unread channels leave a Keras network, and the smaller network is proven equal.

`walk` goes through the graph with one rule per layer class (`rules/`) and fills a `trace`; `liveness` finds what
is needed; `planning` writes the `plan`; `rebuild` makes the small model; `proof` compares the two.
"""
