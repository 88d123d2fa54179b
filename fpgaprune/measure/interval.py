"""The interval between two samples, in words."""


def interval_words(cycles: int) -> str:
    """How often a sample comes: `every cycle`, `every 1,024 cycles`."""
    return "every cycle" if cycles == 1 else f"every {cycles:,} cycles"
