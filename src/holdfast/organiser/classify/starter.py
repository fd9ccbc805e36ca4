"""Pure: the starter list, categories for a person without folders, recognised by type, by name and by the words of a text.

A folder of the person that has the name of a starter category, and no files yet, uses its words as well.
"""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from holdfast.organiser.model import Category, Excerpt, ScannedFile

MIN_WORDS = 3
"""The number of different words of a category that a text must contain before they count."""

BY_NAME = 0.8
"""Confidence by a word of the file name that means one thing."""

_BY_AMBIGUOUS_NAME = 0.5
_BY_TYPE = 0.75
_MAX_BY_TEXT = 0.7
_WORD = re.compile(r"[^\W\d_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Starter:
    """One category of the list: its file types, the words of file names and of texts, and other names of the folder."""

    name: str
    suffixes: frozenset[str] = frozenset()
    name_words: frozenset[str] = frozenset()
    text_words: frozenset[str] = frozenset()
    other_names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class StarterMatch:
    """A starter category that fits a file: the confidence, and the rule in words that a person reads."""

    name: str
    confidence: float
    rule: str
    terms: tuple[str, ...] = ()


def _of(name: str, suffixes: str = "", names: str = "", texts: str = "", also: str = "") -> Starter:
    types = frozenset(f".{suffix}" for suffix in suffixes.split())
    return Starter(name, types, frozenset(names.split()), frozenset(texts.split()), frozenset(also.split()))


STARTERS = (
    _of(
        "Screenshots",
        names="screenshot screenshots screencapture bildschirmfoto schermafbeelding skärmavbild スクリーンショット 截图 屏幕截图",
    ),
    _of(
        "Invoices",
        names="invoice invoices inv rechnung rechnungen facture factura fattura faktura factuur bill billing 发票 請求書",
        texts="invoice billing subtotal vat due payable remittance terms amount bill iban rechnung rechnungsnummer mwst "
        "betrag facture montant tva factura importe iva fattura importo",
        also="bills bill invoice rechnungen factures facturas",
    ),
    _of(
        "Receipts",
        names="receipt receipts quittung kassenbon reçu recibo scontrino bon kvitto 领収書 收据",
        texts="receipt cash change cashier total tax qty item items subtotal thank card visa mastercard tel "
        "amount quittung bar ticket caisse recibo",
        also="receipt kassenbons quittungen",
    ),
    _of(
        "Bank",
        names="statement statements bank kontoauszug relevé extracto account transactions",
        texts="statement account balance opening closing deposit withdrawal transaction debit credit iban bank interest "
        "overdraft kontoauszug saldo relevé",
        also="banking statements finance finances",
    ),
    _of(
        "Taxes",
        names="tax taxes w2 1099 steuer steuererklärung steuerbescheid impôts impuestos payslip gehaltsabrechnung",
        texts="tax taxable return deduction withholding income refund filing wages irs finanzamt steuer impôt",
        also="tax steuer steuern",
    ),
    _of(
        "Contracts",
        names="contract contracts agreement nda lease vertrag mietvertrag contrat contrato contratto terms 合同 契約書",
        texts="agreement party parties hereby shall herein thereof witnesseth whereas term terminate termination obligations "
        "liability indemnify governing vertrag contrat contrato",
        also="contract agreements",
    ),
    _of(
        "Legal",
        names="license licence legal terms policy privacy court claim affidavit notice gdpr",
        texts="shall liability license licence copyright warranty warranties damages notice terms conditions party parties "
        "agreement pursuant permitted rights law court provided herein policy privacy",
        also="law licences licenses policies",
    ),
    _of(
        "Medical",
        names="medical health doctor prescription lab arzt befund rezept ordonnance vaccination insurance xray mri",
        texts="patient diagnosis medical history procedure symptoms treatment mg dose blood pain surgery clinic physician "
        "medication medications exam prescription hospital allergies anesthesia",
        also="health healthcare doctor gesundheit",
    ),
    _of(
        "Resumes",
        names="resume cv lebenslauf curriculum vitae application bewerbung coverletter",
        texts="resume skills experience education university employment curriculum vitae projects responsibilities bachelor "
        "degree certification references employer career objective",
        also="cv cvs résumé résumés applications jobs bewerbungen",
    ),
    _of(
        "Recipes",
        names="recipe recipes rezept rezepte recette receta ricetta レシピ 食谱",
        texts="recipe ingredients directions cup cups tablespoon tablespoons teaspoon tsp tbsp minutes oven bake cook butter "
        "salt sugar flour onion garlic pepper heat stir zutaten ofen beurre sucre",
        also="recipe cooking rezepte recettes food",
    ),
    _of(
        "Research",
        names="paper arxiv thesis dissertation preprint journal abstract doi proceedings",
        texts="abstract paper results method methods study algorithm model approach proposed analysis propose experiments "
        "data theory show present introduction references doi",
        also="papers paper science academic studies",
    ),
    _of(
        "News",
        names="news article newsletter press gazette daily",
        texts="said told reporters reported spokesman minister government monday tuesday wednesday thursday friday according "
        "police week news announced added",
        also="articles press newspaper newspapers",
    ),
    _of(
        "Speeches",
        names="speech address remarks keynote sermon toast",
        texts="fellow citizens america nation people congress president government united states freedom peace world applause "
        "honor tonight ladies gentlemen",
        also="speech addresses talks",
    ),
    _of(
        "Letters",
        names="letter brief lettre carta anschreiben mail email",
        texts="dear sincerely regards yours faithfully letter madam sir wishes geehrte grüßen cordialement estimado",
        also="letter correspondence mail briefe",
    ),
    _of(
        "Travel",
        names="boarding boardingpass itinerary flight hotel booking reservation ticket eticket visa reise passport trip",
        texts="flight departure arrival passenger boarding gate seat booking reservation hotel check-in itinerary airline "
        "terminal baggage flug abflug",
        also="trips trip holidays holiday vacation reisen",
    ),
    _of(
        "Manuals",
        names="manual handbook guide instructions datasheet handbuch anleitung bedienungsanleitung quickstart",
        texts="manual instructions warning caution install installation button press device battery safety troubleshooting",
        also="manual guides handbooks",
    ),
    _of(
        "Notes",
        names="note notes notizen todo minutes meeting journal diary memo protokoll ideas",
        texts="todo meeting agenda minutes attendees action ideas remember notes reminder",
        also="note notizen memos",
    ),
    _of("Books", "epub mobi azw3 fb2", "ebook book novel", "chapter isbn preface prologue publisher", "ebooks book library"),
    _of("Spreadsheets", "xlsx xls xlsm ods numbers csv tsv", also="tables excel"),
    _of("Slides", "pptx ppt odp key pps", "slides deck presentation keynote", also="presentations decks"),
    _of("Music", "mp3 flac m4a aac ogg opus wav wma aiff mid midi", also="audio songs musik"),
    _of("Video", "mp4 mkv mov avi webm wmv m4v mpg mpeg flv 3gp", also="videos movies films"),
    _of(
        "Photos",
        "jpg jpeg heic heif cr2 cr3 nef arw dng raf orf rw2",
        "img dsc dscn dscf pxl dji gopr photo foto wa",
        also="photo pictures fotos bilder images camera",
    ),
    _of("Images", "png gif webp bmp tif tiff svg ico avif", also="graphics pictures"),
    _of("Design", "psd ai xcf sketch fig indd afdesign blend stl obj fbx dwg dxf 3mf gcode", also="designs"),
    _of("Archives", "zip rar 7z tar gz tgz bz2 xz zst", also="archive compressed"),
    _of("Installers", "dmg pkg exe msi deb rpm appimage apk iso flatpak snap", "setup installer", also="software apps programs"),
    _of("Fonts", "ttf otf woff woff2", also="font"),
    _of(
        "Web Pages",
        "html htm xhtml mht mhtml url webloc webarchive",
        "bookmarks lesezeichen",
        also="websites bookmarks lesezeichen webpages",
    ),
    _of(
        "Code",
        "py js ts tsx jsx java c h cpp hpp cs go rs rb php swift kt scala sh bash ps1 sql lua r jl ipynb css scss vue patch diff",
        also="source scripts programming",
    ),
    _of("Data", "json jsonl xml yaml yml parquet sqlite db log", also="datasets logs"),
    _of("Torrents", "torrent", also="torrent"),
    _of("Calendar", "ics", also="calendars kalender"),
    _of("Address Book", "vcf", "contacts kontakte adressbuch", also="addresses adressbuch contacts kontakte"),
)  # fmt: skip
"""The most specific first: where two fit equally well, the earlier one wins."""

_STARTER_BY_NAME = {starter.name.casefold(): starter for starter in STARTERS}
_STARTER_BY_SUFFIX = {suffix: starter for starter in STARTERS for suffix in starter.suffixes}
_STARTERS_PER_WORD = Counter(word for starter in STARTERS for word in starter.name_words)
_WITHOUT_WORDS = frozenset(("Music", "Video", "Fonts", "Torrents", "Calendar", "Address Book"))
"""Categories of types whose files are no documents: a recording of a meeting is a video, whatever its name says."""

_AMBIGUOUS = frozenset(
    ("account", "address", "application", "bill", "book", "bon", "brief", "claim", "daily", "guide", "insurance", "lab",
     "mail", "notice", "paper", "policy", "press", "setup", "statement", "ticket", "toast", "trip", "wa")
)  # fmt: skip
"""Words of file names that often mean something else: a car insurance, the log of an application, a brief history, Bill."""


def starter_categories() -> list[Category]:
    """Return the list as categories; each folder has the name of its category."""
    return [Category(starter.name, starter.name) for starter in STARTERS]


@cache
def find_starter(folder_name: str) -> Starter | None:
    """Return the starter category that a folder name means, in the singular, the plural or by another common name."""
    name = folder_name.casefold().strip()
    for spelling in (name, f"{name}s", name.removesuffix("s"), name.removesuffix("es")):
        if spelling in _STARTER_BY_NAME:
            return _STARTER_BY_NAME[spelling]
    return next((starter for starter in STARTERS if name in starter.other_names), None)


def split_words(name: str) -> list[str]:
    """Return the words of a file name or folder name, in lower case."""
    return [word.casefold() for word in _WORD.findall(_CAMEL.sub(" ", name))]


def match_starters(file: ScannedFile, excerpt: Excerpt) -> list[StarterMatch]:
    """Return the starter categories that fit a file by its name, its words or its type, the best first."""
    best: dict[str, StarterMatch] = {}
    for match in (*_match_name(file), *_match_text(excerpt), *_match_type(file)):
        known = best.get(match.name)
        if known is None:
            best[match.name] = match
        else:
            both = 1 - (1 - known.confidence) * (1 - match.confidence)
            best[match.name] = StarterMatch(match.name, both, f"{known.rule}; {match.rule}", known.terms + match.terms)
    return sorted(best.values(), key=lambda match: -match.confidence)


def _match_name(file: ScannedFile) -> list[StarterMatch]:
    in_order = split_words(file.name.rpartition(".")[0] or file.name)
    words = {*in_order, *map("".join, pairwise(in_order))}
    by_type = _STARTER_BY_SUFFIX.get(file.suffix)
    is_document = by_type is None or by_type.name not in _WITHOUT_WORDS
    matches = []
    for starter in STARTERS:
        if starter.text_words and not is_document:
            continue
        if matched := words & starter.name_words:
            word = min(matched, key=lambda candidate: (_is_ambiguous(candidate), candidate))
            confidence = _BY_AMBIGUOUS_NAME if _is_ambiguous(word) else BY_NAME
            matches.append(StarterMatch(starter.name, confidence, f"its name says '{word}'", (word,)))
    return matches


def _is_ambiguous(word: str) -> bool:
    return word in _AMBIGUOUS or _STARTERS_PER_WORD[word] > 1


def _match_text(excerpt: Excerpt) -> list[StarterMatch]:
    words = {word.casefold() for word in _WORD.findall(excerpt.text)}
    matches = []
    for starter in STARTERS:
        matched = sorted(words & starter.text_words)
        if len(matched) >= MIN_WORDS:
            confidence = min(_MAX_BY_TEXT, len(matched) / (len(matched) + 6))
            first = tuple(matched[:5])
            matches.append(StarterMatch(starter.name, confidence, f"its text has {', '.join(first)}", first))
    return sorted(matches, key=lambda match: -match.confidence)[:3]


def _match_type(file: ScannedFile) -> list[StarterMatch]:
    starter = _STARTER_BY_SUFFIX.get(file.suffix)
    if starter is None:
        return []
    return [StarterMatch(starter.name, _BY_TYPE, f"{file.suffix} files are {starter.name}")]
