"""Copies of the state folder in one file: made while a server runs, verified, and put back as a whole or not at all."""
