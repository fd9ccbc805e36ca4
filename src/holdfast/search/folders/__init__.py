"""Search in the folders of this machine: one index for each allowed directory, kept fresh, every passage compared with its file."""
