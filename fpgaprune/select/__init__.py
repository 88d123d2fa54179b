"""Decides which elements are locked: by score and granularity, or because a user names them."""
