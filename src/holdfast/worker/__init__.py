"""Behind the calls: the lanes that bring the index up to date with the files, and what goes when its time is over."""
