"""The built-in classifier, which needs no key and no network: a cascade of rules, the surest first.

For each file, in this order:

1. The same text as a known file: the category of that file (confidence 0.99).
2. Text, where the file has some (`MIN_CHARS`). Each step changes a verdict only where it is still uncertain:
   a. text_classifier: similarity to the known files of each category; trained by train_balanced;
   b. near_duplicates: almost the same words as a known file (below 0.85);
   c. sentence_model: a second opinion of the sentence model, if there is one (below `ask_below`);
   d. text_classifier again, for categories that have a name and no files yet, seeded by seeds (below 0.5);
   e. starter: a category of the starter list that fits the file's name, words or type (below 0.9).
3. No text, or no category that a text can be compared with: name_and_type, from the names and types of known files and
   from the starter list.

Every verdict then passes `final_confidence` (confidence.py), and planning/confidence_gate.py decides whether the file
moves. Everything is learned in each run from the files at hand, in a fraction of a second. Categories come from the
taxonomy alone, so nothing in a file can add one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.organiser.classify.name_and_type import NameAndTypeRules
from holdfast.organiser.classify.starter import find_starter
from holdfast.organiser.classify.taxonomy import decider_key
from holdfast.organiser.model import KEEP, MIN_CHARS, Category, Evidence, Excerpt, ModelCall, ScannedFile, Verdict
from holdfast.organiser.ports import SentenceEmbedder
from holdfast.text.display import display_name

if TYPE_CHECKING:
    from holdfast.organiser.classify.evaluate import EvaluationReport

VERSION = "5"
MAX_TOGETHER = 2_000
"""Files that are learned from and classified together; more are split into parts, each an even sample."""

_SAME_TEXT = 0.99
_STARTER_BELOW = 0.9
"""The starter list joins below this confidence, and cannot raise a verdict above it."""

_BY_NAME_BELOW = 0.5
"""Below it, a file may go to a folder that has a name and no files yet: folders with files come first."""

_NO_CATEGORY = Verdict("", 0.0, True, "There is nothing to compare it with.")


def _never_stop() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Cascade:
    """A Classifier. Verdicts below `ask_below` go to the sentence model, if there is one, within a budget of time.

    `static` are word vectors that are fast enough for every file; they are optional.
    """

    sentences: SentenceEmbedder | None = None
    static: SentenceEmbedder | None = None
    ask_below: float = 0.8

    @property
    def sends_to(self) -> str:
        """Return the empty text: everything is classified on this machine."""
        return ""

    @property
    def decider(self) -> str:
        """Return the key that verdicts are cached under, without the names of the categories."""
        models = [embedder.model for embedder in (self.sentences, self.static) if embedder is not None]
        return "/".join((f"embedded-{VERSION}", *(models or ["words"]), f"{self.ask_below:g}"))

    def classify(
        self,
        files: Sequence[tuple[ScannedFile, Excerpt]],
        taxonomy: Sequence[Category],
        check: Callable[[], None] = _never_stop,
        on_model_call: Callable[[ModelCall], None] | None = None,  # noqa: ARG002 - there are no remote requests
    ) -> list[Verdict]:
        """Return a verdict for each file, in the same order; more files at once make each verdict better."""
        key = decider_key(self.decider, taxonomy)
        if not taxonomy:
            return [Verdict(KEEP, 1.0, reasoning="There is no folder to go to.", decider=key) for _ in files]
        rules = NameAndTypeRules.learn(taxonomy)
        known_texts = _known_texts(taxonomy)
        verdicts = [_verdict_of_same_text(excerpt, known_texts) for _, excerpt in files]
        with_text = [at for at, (_, excerpt) in enumerate(files) if len(excerpt.text) >= MIN_CHARS]
        parts = -(-len(with_text) // MAX_TOGETHER)
        for first in range(parts):
            part = with_text[first::parts]
            by_text = self._classify_texts([files[at] for at in part], taxonomy, check)
            for at, verdict in zip(part, by_text, strict=True):
                verdicts[at] = verdicts[at] or _join_starter(verdict, rules, *files[at])
        for at, (file, excerpt) in enumerate(files):
            known = verdicts[at]
            if known is None or not known.category:
                verdicts[at] = rules.verdict(file, excerpt)
        unknown = Verdict(taxonomy[0].name, 0.0, True, "Neither its type nor its name says where it belongs.")
        return [replace(verdict or unknown, decider=key) for verdict in verdicts]

    def _classify_texts(
        self, files: Sequence[tuple[ScannedFile, Excerpt]], taxonomy: Sequence[Category], check: Callable[[], None]
    ) -> list[Verdict]:
        """Apply steps 2a to 2d to files with text. numpy is imported here: a server without plans does not need it."""
        from holdfast.organiser.classify.confidence_model import REVIEW_ONLY
        from holdfast.organiser.classify.embeddings import EmbeddingModels
        from holdfast.organiser.classify.near_duplicates import apply_near_duplicates
        from holdfast.organiser.classify.seeds import has_enough_words
        from holdfast.organiser.classify.sentence_model import apply_sentence_model
        from holdfast.organiser.classify.text_classifier import TextClassifier, train_balanced
        from holdfast.organiser.classify.word_space import count_terms

        documents = []
        for file, excerpt in files:
            check()
            documents.append(count_terms(excerpt.text, file.name, excerpt.content_type))
        texts = [excerpt.text for _, excerpt in files]
        models = EmbeddingModels(self.sentences, self.static)
        verdicts = [_NO_CATEGORY] * len(files)

        if with_examples := [category for category in taxonomy if _has_example_text(category)]:
            classifier = train_balanced(with_examples, documents, texts, models, check)
            verdicts = apply_near_duplicates(classifier, classifier.verdicts(), texts, check)
            verdicts = apply_sentence_model(classifier, verdicts, texts, models, self.ask_below, check)

        uncertain = [at for at, verdict in enumerate(verdicts) if verdict.confidence < _BY_NAME_BELOW]
        known_categories = [category for category in taxonomy if _is_known_by_name(category)]
        if known_categories and uncertain:
            classifier = TextClassifier.train(
                known_categories, [documents[at] for at in uncertain], [texts[at] for at in uncertain], models, check
            )
            by_name = {category.name: category for category in known_categories}
            for at, verdict in zip(uncertain, classifier.verdicts(), strict=True):
                if not has_enough_words(documents[at], by_name[verdict.category]):
                    verdict = replace(verdict, confidence=min(verdict.confidence, REVIEW_ONLY))  # noqa: PLW2901
                verdicts[at] = max(verdicts[at], verdict, key=lambda candidate: candidate.confidence)
        return verdicts


def evaluate_folders(
    taxonomy: Sequence[Category], gate: float, check: Callable[[], None] = _never_stop
) -> "EvaluationReport":
    """Return how well the example files would be filed if they were new: each is classified without itself."""
    from holdfast.organiser.classify.confidence_model import ConfidenceModel
    from holdfast.organiser.classify.embeddings import EmbeddingModels
    from holdfast.organiser.classify.evaluate import build_report
    from holdfast.organiser.classify.text_classifier import TextClassifier

    names = [category.name for category in taxonomy]
    if not names:
        return build_report(names, [], ConfidenceModel(), gate)
    classifier = TextClassifier.train(taxonomy, [], [], EmbeddingModels(), check)
    return build_report(names, classifier.trials, classifier.confidence_model, gate)


def _has_example_text(category: Category) -> bool:
    return any(len(example.text) >= MIN_CHARS for example in category.examples)


def _is_known_by_name(category: Category) -> bool:
    """Return whether a category has no examples, and a name that says something about texts."""
    starter = find_starter(category.name)
    return not category.examples and (starter is None or bool(starter.text_words))


def _known_texts(taxonomy: Sequence[Category]) -> dict[str, tuple[str, str]]:
    """Return the category and the file name of each example, by its text."""
    return {
        example.text: (category.name, example.name)
        for category in taxonomy
        for example in category.examples
        if len(example.text) >= MIN_CHARS
    }


def _verdict_of_same_text(excerpt: Excerpt, known_texts: dict[str, tuple[str, str]]) -> Verdict | None:
    if excerpt.text not in known_texts:
        return None
    category, name = known_texts[excerpt.text]
    rule = f"the same text as {display_name(name)}"
    return Verdict(
        category, _SAME_TEXT, reasoning=f"It has {rule}, in {category}.", evidence=Evidence((name,), (), rule)
    )


def _join_starter(verdict: Verdict, rules: NameAndTypeRules, file: ScannedFile, excerpt: Excerpt) -> Verdict:
    """Return the verdict on a text, joined with the starter category that fits the file.

    The same category raises the confidence. Another one replaces the verdict only if that is not for a folder with files,
    and the other folder has no files yet or fits the name or the type of the file clearly.
    """
    suggestion = rules.match_starter(file, excerpt) if verdict.confidence < _STARTER_BELOW else None
    if suggestion is None:
        return verdict
    category, match = suggestion
    if category == verdict.category:
        weight = match.confidence if rules.is_telling(file, match) else match.confidence / 2
        joined = min(_STARTER_BELOW, 1 - (1 - verdict.confidence) * (1 - weight))
        evidence = replace(verdict.evidence, rule=match.rule)
        return replace(verdict, confidence=max(verdict.confidence, joined), evidence=evidence)
    is_for_known_folder = verdict.confidence >= _BY_NAME_BELOW and rules.has_files(verdict.category)
    says_too_little = rules.has_files(category) and not rules.is_telling(file, match)
    if is_for_known_folder or verdict.confidence >= match.confidence or says_too_little:
        return verdict
    evidence = Evidence((), match.terms, match.rule)
    return Verdict(category, match.confidence, reasoning=f"{category}: {match.rule}.", evidence=evidence)
