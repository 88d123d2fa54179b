"""hls4ml projects: the only package that imports hls4ml."""
