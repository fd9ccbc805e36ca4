"""How each tool that takes a local path is called with one, for those who try them all."""

from collections.abc import Callable
from typing import Any

Arguments = Callable[[str], dict[str, Any]]
EDIT = [{"old_string": "plain", "new_string": "changed"}]

READING: dict[str, Arguments] = {
    "read_text_file": lambda path: {"path": path},
    "read_files": lambda path: {"files": [{"path": path}]},
    "read_multiple_files": lambda path: {"paths": [path]},
    "read_media_file": lambda path: {"path": path},
    "get_file_info": lambda path: {"path": path},
    "query_json": lambda path: {"file_path": path, "expression": "."},
    "query_yaml": lambda path: {"file_path": path, "expression": "."},
    "list_directory": lambda path: {"path": path},
    "list_directory_with_sizes": lambda path: {"path": path},
    "directory_tree": lambda path: {"path": path},
    "search_files": lambda path: {"path": path, "pattern": "**"},
    "grep_content": lambda path: {"search_path": path, "pattern": "."},
    "search_folders": lambda path: {"query": "token", "path": path},
    "explain_file": lambda path: {"path": path},
    "create_organization_plan": lambda path: {"folder_path": path},
}
"""Tools that take a path and change nothing in the tree."""

CHANGING: dict[str, Arguments] = {
    "write_file": lambda path: {"path": path, "content": "new"},
    "edit_file": lambda path: {"path": path, "edits": [{"oldText": "plain", "newText": "changed"}]},
    "edit_files": lambda path: {"files": [{"path": path, "edits": EDIT}]},
    "append_text": lambda path: {"path": path, "content": "more"},
    "create_directory": lambda path: {"path": path},
    "delete_file": lambda path: {"path": path},
    "move_file": lambda path: {"source": path, "destination": "free/moved"},
    "propose_and_review": lambda path: {"path": path, "edits": EDIT},
}
"""Tools that change the path that they are given."""
