"""Makes hls4ml projects; no other package imports hls4ml."""
