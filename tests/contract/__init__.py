"""Promises that every adapter of a port keeps: one suite, run on each."""
