"""Public sets of queries with judged answers, and how well a ranking does on them."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

Ranking = Callable[[str], Sequence[str]]


@dataclass(frozen=True)
class JudgedSet:
    """A set: texts by id, queries by id, and for each query the ids that answer it."""

    name: str
    texts: dict[str, str]
    queries: dict[str, str]
    answers: dict[str, set[str]]


def judged_set(folder: Path) -> JudgedSet:
    """Read a set in the layout of BEIR: corpus.jsonl, queries.jsonl and qrels.tsv."""
    texts = {row["_id"]: f"{row['title']}\n\n{row['text']}".strip() for row in _rows(folder / "corpus.jsonl")}
    queries = {row["_id"]: row["text"] for row in _rows(folder / "queries.jsonl")}
    answers: dict[str, set[str]] = {}
    for line in (folder / "qrels.tsv").read_text().splitlines()[1:]:
        query, document, grade = line.split("\t")
        if int(grade) > 0:
            answers.setdefault(query, set()).add(document)
    return JudgedSet(folder.name, texts, {key: queries[key] for key in answers}, answers)


def ndcg(ranked: Sequence[str], answers: set[str], depth: int = 10) -> float:
    """Return the gain of the first places, discounted by place, as a share of the best possible."""
    gain = sum(1 / math.log2(place + 2) for place, name in enumerate(ranked[:depth]) if name in answers)
    best = sum(1 / math.log2(place + 2) for place in range(min(depth, len(answers))))
    return gain / best if best else 0.0


def recall(ranked: Sequence[str], answers: set[str], depth: int = 20) -> float:
    """Return the share of the answers among the first places."""
    return len(answers & set(ranked[:depth])) / len(answers)


def judge(test_set: JudgedSet, ranking: Ranking) -> tuple[float, float]:
    """Return mean nDCG@10 and mean Recall@20 of a ranking."""
    ranked = {key: ranking(text) for key, text in test_set.queries.items()}
    count = len(test_set.answers)
    return (
        sum(ndcg(ranked[key], answers) for key, answers in test_set.answers.items()) / count,
        sum(recall(ranked[key], answers) for key, answers in test_set.answers.items()) / count,
    )


def _rows(file: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in file.read_text().splitlines() if line]
