"""Reading files: text by lines, documents as text, descriptions of a file."""
