"""One module for each command or command group of `holdfast`."""
