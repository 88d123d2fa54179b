"""Selection decides which elements to lock: by score and granularity, or because a user names them."""
