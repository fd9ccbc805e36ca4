"""The classifier that needs no key: rules first, then folder profiles, then a model for what is still uncertain.

Everything is learned anew in each run from the files at hand, in a fraction of a second; destinations come from the
taxonomy alone, so nothing that a file says can add one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.organiser.classify.name_and_type import NameAndTypeRules
from holdfast.organiser.classify.starter import known_as
from holdfast.organiser.classify.taxonomy import decider_key
from holdfast.organiser.model import KEEP, MIN_CHARS, Category, Evidence, Excerpt, ModelCall, ScannedFile, Verdict
from holdfast.organiser.ports import SentenceEmbedder
from holdfast.text.display import display_name

if TYPE_CHECKING:
    from holdfast.organiser.classify.evaluate import EvaluationReport

VERSION = "4"
STRETCH = 2_000
"""Files that are learned from and judged together; of more, each stretch is an even part."""

_SAME_TEXT = 0.99
_RULES_REACH = 0.9
_LEFT_OVER = 0.5
"""Below it, a file may go to a folder that has a name and no files yet: what has files comes first."""

_NOTHING = Verdict("", 0.0, True, "Nothing is known that it could be compared with.")


def _never() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Cascade:
    """A Classifier. Below `ask_below` a verdict goes to the sentence model, if there is one, within a budget of time.

    `static` are word vectors fast enough for every file; they join the words where they are installed.
    """

    sentences: SentenceEmbedder | None = None
    static: SentenceEmbedder | None = None
    ask_below: float = 0.8

    @property
    def sends_to(self) -> str:
        """Return nobody: all is judged on this machine."""
        return ""

    @property
    def decider(self) -> str:
        """Return what this classifier's verdicts are kept under, beside the names of the categories."""
        models = [one.model for one in (self.sentences, self.static) if one is not None]
        return "/".join((f"embedded-{VERSION}", *(models or ["words"]), f"{self.ask_below:g}"))

    def decide(
        self,
        files: Sequence[tuple[ScannedFile, Excerpt]],
        taxonomy: Sequence[Category],
        check: Callable[[], None] = _never,
        told: Callable[[ModelCall], None] | None = None,  # noqa: ARG002 - nobody else is asked
    ) -> list[Verdict]:
        """Return a verdict for each file, in the same order; the more come at once, the better each is judged."""
        key = decider_key(self.decider, taxonomy)
        if not taxonomy:
            return [Verdict(KEEP, 1.0, reasoning="There is no folder to go to.", decider=key) for _ in files]
        types, copies = NameAndTypeRules.learn(taxonomy), _texts(taxonomy)
        verdicts: list[Verdict | None] = [_copy(excerpt, copies) for _, excerpt in files]
        spoken = [at for at, (_, excerpt) in enumerate(files) if len(excerpt.text) >= MIN_CHARS]
        stretches = -(-len(spoken) // STRETCH)
        for first in range(stretches):
            stretch = spoken[first::stretches]
            texts = self._by_text([files[at] for at in stretch], taxonomy, check)
            for at, verdict in zip(stretch, texts, strict=True):
                verdicts[at] = verdicts[at] or _joined(verdict, types, *files[at])
        return [
            replace(verdict if verdict and verdict.category else _by_type(types, file, excerpt, taxonomy), decider=key)
            for verdict, (file, excerpt) in zip(verdicts, files, strict=True)
        ]

    def _by_text(
        self, files: Sequence[tuple[ScannedFile, Excerpt]], taxonomy: Sequence[Category], check: Callable[[], None]
    ) -> list[Verdict]:
        from holdfast.organiser.classify.balanced_training import learned_evenly
        from holdfast.organiser.classify.confidence_model import REVIEW_ONLY
        from holdfast.organiser.classify.embeddings import EmbeddingModels
        from holdfast.organiser.classify.near_duplicates import recognised
        from holdfast.organiser.classify.seeds import speaks_for
        from holdfast.organiser.classify.sentence_model import reconsidered
        from holdfast.organiser.classify.text_classifier import TextClassifier
        from holdfast.organiser.classify.tfidf import terms_of

        documents = []
        for file, excerpt in files:
            check()
            documents.append(terms_of(excerpt.text, file.name, excerpt.content_type))
        texts = [excerpt.text for _, excerpt in files]
        models = EmbeddingModels(self.sentences, self.static)
        verdicts = [_NOTHING] * len(files)
        if known := [category for category in taxonomy if _speaks(category)]:
            learned = learned_evenly(known, documents, texts, models, check)
            first = recognised(learned, learned.verdicts(), texts, check)
            verdicts = reconsidered(learned, first, texts, models, self.ask_below, check)
        left = [at for at, verdict in enumerate(verdicts) if verdict.confidence < _LEFT_OVER]
        if (named := [category for category in taxonomy if _is_named(category)]) and left:
            rest = TextClassifier.learn(
                named, [documents[at] for at in left], [texts[at] for at in left], models, check
            )
            by_name = {category.name: category for category in named}
            for at, verdict in zip(left, rest.verdicts(), strict=True):
                if not speaks_for(documents[at], by_name[verdict.category]):
                    verdict = replace(verdict, confidence=min(verdict.confidence, REVIEW_ONLY))  # noqa: PLW2901
                verdicts[at] = max(verdicts[at], verdict, key=lambda one: one.confidence)
        return verdicts


def rehearsal(taxonomy: Sequence[Category], gate: float, check: Callable[[], None] = _never) -> "EvaluationReport":
    """Return how well the files of folders would be filed if they were not there yet: each is judged without itself."""
    from holdfast.organiser.classify.confidence_model import ConfidenceModel
    from holdfast.organiser.classify.embeddings import EmbeddingModels
    from holdfast.organiser.classify.evaluate import report
    from holdfast.organiser.classify.text_classifier import TextClassifier

    names = [category.name for category in taxonomy]
    if not names:
        return report(names, [], ConfidenceModel(), gate)
    learned = TextClassifier.learn(taxonomy, [], [], EmbeddingModels(), check)
    return report(names, learned.trials, learned.judge, gate)


def _speaks(category: Category) -> bool:
    return any(len(example.text) >= MIN_CHARS for example in category.examples)


def _is_named(category: Category) -> bool:
    """Return whether a category has a name alone, and one that says something of texts."""
    known = known_as(category.name)
    return not category.examples and (known is None or bool(known.text_words))


def _texts(taxonomy: Sequence[Category]) -> dict[str, tuple[str, str]]:
    return {
        example.text: (category.name, example.name)
        for category in taxonomy
        for example in category.examples
        if len(example.text) >= MIN_CHARS
    }


def _copy(excerpt: Excerpt, copies: dict[str, tuple[str, str]]) -> Verdict | None:
    if (same := copies.get(excerpt.text)) is None:
        return None
    category, name = same
    rule = f"the same text as {display_name(name)}"
    return Verdict(
        category, _SAME_TEXT, reasoning=f"It has {rule}, in {category}.", evidence=Evidence((name,), (), rule)
    )


def _joined(verdict: Verdict, types: NameAndTypeRules, file: ScannedFile, excerpt: Excerpt) -> Verdict:
    """Return the verdict of the texts together with what the starter list says of a folder of that name."""
    suggested = types.starter_hit(file, excerpt) if verdict.confidence < _RULES_REACH else None
    if suggested is None:
        return verdict
    category, hit = suggested
    if category == verdict.category:
        evidence = replace(verdict.evidence, rule=hit.rule)
        return replace(verdict, confidence=max(verdict.confidence, _either(verdict, hit.confidence)), evidence=evidence)
    has_a_place = verdict.confidence >= _LEFT_OVER and types.knows(verdict.category)
    if has_a_place or verdict.confidence >= hit.confidence or types.knows(category):
        return verdict
    reasoning = f"{category}: {hit.rule}."
    return Verdict(category, hit.confidence, reasoning=reasoning, evidence=Evidence((), hit.terms, hit.rule))


def _either(verdict: Verdict, rule: float) -> float:
    return min(_RULES_REACH, 1 - (1 - verdict.confidence) * (1 - rule / 2))


def _by_type(types: NameAndTypeRules, file: ScannedFile, excerpt: Excerpt, taxonomy: Sequence[Category]) -> Verdict:
    found = types.verdict(file, excerpt)
    if found is not None:
        return found
    return Verdict(taxonomy[0].name, 0.0, True, "Neither its type nor its name says where it belongs.")
