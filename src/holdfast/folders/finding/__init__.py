"""Finding files: walking, ignore rules, globs, name search, content search, listings and trees."""
