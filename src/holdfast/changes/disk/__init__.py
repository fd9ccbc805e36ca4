"""What changes do to the disk by descriptor: files, trees, moves across devices, quarantine, before-images, locks."""
