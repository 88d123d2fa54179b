"""Removes dead and unread channels from a Keras network, and shows that the smaller network computes the same.

`planning` makes the `plan` from what `network` finds; `rebuild` makes the small model; `proof` compares the two.
"""
