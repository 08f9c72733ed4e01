"""The machine that mtpp itself runs on: clocks, memory, child processes, progress."""
