"""Confined child processes that read files: document extraction, image scaling, jq queries."""
