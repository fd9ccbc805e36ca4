"""What the benchmarks share: a client, servers to compare, trees of files, readings of processes, tables."""
