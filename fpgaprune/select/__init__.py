"""Which elements to lock: scores, granularity, and what a user names outright."""
