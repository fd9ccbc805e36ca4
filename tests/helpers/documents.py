"""Documents and pictures generated for tests, sound and hostile."""

import io
import struct
import zipfile
import zlib
from email.message import EmailMessage

import docx
import openpyxl
import pptx
from PIL import Image
from pptx.util import Inches


def pdf(text: str = "Hello from a PDF page") -> bytes:
    """Return a minimal PDF of one page."""
    stream = f"BT /F1 18 Tf 40 100 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 200] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, offsets = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(out)
    out += b"xref\n0 6\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return bytes(out + b"trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % table)


def word() -> bytes:
    """Return a DOCX with a heading, two paragraphs and a table."""
    document = docx.Document()
    document.add_heading("Minutes", level=1)
    document.add_paragraph("First paragraph.")
    document.add_paragraph("Größe und Maß.")
    table = document.add_table(rows=2, cols=2)
    for row, column, text in ((0, 0, "name"), (0, 1, "age"), (1, 0, "Ada"), (1, 1, "36")):
        table.cell(row, column).text = text
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def sheet(rows: int = 3) -> bytes:
    """Return an XLSX with two sheets."""
    book = openpyxl.Workbook()
    first = book.worksheets[0]
    first.title = "People"
    first.append(["name", "age"])
    for number in range(rows):
        first.append([f"person {number}", number])
    book.create_sheet("Empty")
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def slides() -> bytes:
    """Return a PPTX with two slides, a table and notes."""
    deck = pptx.Presentation()
    for title in ("Opening", "Closing"):
        slide = deck.slides.add_slide(deck.slide_layouts[5])
        slide.shapes.title.text = title
    table = slide.shapes.add_table(1, 2, Inches(1), Inches(2), Inches(4), Inches(1)).table
    table.cell(0, 0).text, table.cell(0, 1).text = "left", "right"
    slide.notes_slide.notes_text_frame.text = "Say thanks."
    out = io.BytesIO()
    deck.save(out)
    return out.getvalue()


def heavy_word(megabytes: int) -> bytes:
    """Return a small, sound DOCX whose text unpacks to so much, within what is allowed."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(word())) as light,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as heavy,
    ):
        for name in light.namelist():
            if name != "word/document.xml":
                heavy.writestr(name, light.read(name))
        with heavy.open("word/document.xml", "w", force_zip64=True) as part:
            for _ in range(megabytes):
                part.write(b" " * (1 << 20))
    return out.getvalue()


def zip_bomb() -> bytes:
    """Return a small DOCX that unpacks to half a gigabyte."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        with archive.open("word/document.xml", "w", force_zip64=True) as part:
            for _ in range(512):
                part.write(b" " * (1 << 20))
    return out.getvalue()


def picture(width: int, height: int, form: str = "PNG", orientation: int | None = None) -> bytes:
    """Return a picture whose left half is red and right half blue."""
    image = Image.new("RGB", (width, height), "red")
    image.paste((0, 0, 255), (width // 2, 0, width, height))
    out = io.BytesIO()
    if orientation is None:
        image.save(out, form)
    else:
        exif = Image.Exif()
        exif[0x0112] = orientation
        image.save(out, form, exif=exif)
    return out.getvalue()


def pixel_bomb(side: int = 60_000) -> bytes:
    """Return a small PNG that says it has billions of pixels."""
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 999)) + chunk(b"IEND", b"")
    )


def archive(members: dict[str, bytes]) -> bytes:
    """Return a ZIP archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in members.items():
            packed.writestr(name, data, zipfile.ZIP_STORED if name == "mimetype" else None)
    return out.getvalue()


def epub() -> bytes:
    """Return a book of two chapters whose order is not that of their names."""
    package = (
        '<package><metadata><dc:title>Moby-Dick</dc:title><dc:creator id="a">Herman Melville</dc:creator></metadata>'
        '<manifest><item id="one" href="b.xhtml"/><item id="two" href="a.xhtml"/></manifest>'
        '<spine><itemref idref="one"/><itemref idref="two"/></spine></package>'
    )
    return archive(
        {
            "mimetype": b"application/epub+zip",
            "META-INF/container.xml": b'<container><rootfile full-path="OPS/book.opf"/></container>',
            "OPS/book.opf": package.encode(),
            "OPS/a.xhtml": b"<html><body><p>The carpet-bag.</p></body></html>",
            "OPS/b.xhtml": b"<html><body><p>Call me Ishmael.</p></body></html>",
        }
    )


def message() -> bytes:
    """Return an e-mail with a text, the same as markup, and an attachment."""
    mail = EmailMessage()
    mail["From"], mail["To"] = "Ada <ada@example.org>", "Charles <charles@example.org>"
    mail["Subject"] = "Größe der Maschine"
    mail.set_content("The engine weaves patterns.\n")
    mail.add_alternative("<p>The engine <b>weaves</b></p>", subtype="html")
    mail.add_attachment(b"%PDF-1.4", maintype="application", subtype="pdf", filename="notes.pdf")
    return mail.as_bytes()


def photo() -> bytes:
    """Return a JPEG with what a camera writes into it."""
    exif = Image.Exif()
    exif[0x010F], exif[0x0110] = "Fujifilm", "X100V"
    exif.get_ifd(0x8769)[0x9003] = "2023:07:14 10:20:30"
    out = io.BytesIO()
    Image.new("RGB", (40, 30), "green").save(out, "JPEG", exif=exif)
    return out.getvalue()
