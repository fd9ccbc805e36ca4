"""The commands of `holdfast organise`."""
