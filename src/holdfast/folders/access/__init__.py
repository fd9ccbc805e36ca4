"""Access to local folders: allowed roots, the jail that hands out descriptors, the system calls beneath it."""
