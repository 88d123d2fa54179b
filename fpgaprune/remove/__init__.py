"""Dead and unread channels leave a Keras network, and the smaller network is proven equal.

`trace` walks the graph with one rule per layer (`rules/`), `liveness` finds what is needed, `planning` writes
the `plan`, `rebuild` makes the small model, `proof` compares the two.
"""
