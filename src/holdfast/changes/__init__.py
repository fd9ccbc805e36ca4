"""Every mutation of a local file: recorded, applied once, reversible."""
