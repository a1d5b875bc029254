"""Made-up documents of every type that the crawler takes, and PDF files with faults."""

from __future__ import annotations

import io

from PIL import Image, ImageDraw

LINES = (
    "Safety data sheet: Acetone",
    "Acetone, CAS 67-64-1, UN 1090, is a highly flammable liquid and vapour (H225).",
    "It causes serious eye irritation (H319); rinse eyes with water for 15 minutes.",
    "Boiling point 56 C, flash point -18 C, density 0.79 g/cm3, limits 2.5 % to 13 %.",
    "Store below 30 C in a cool, well-ventilated place, away from oxidizing agents.",
    "Fight fires with alcohol-resistant foam, dry powder or carbon dioxide.",
)


def text_pdf(lines: tuple[str, ...] = LINES, *, encrypted: bool = False) -> bytes:
    """A one-page PDF with a line of text each.

    ``encrypted``: it claims a password that nobody has (the keys are noise).
    """
    shown = " ".join(
        f"({line.replace('(', chr(92) + '(').replace(')', chr(92) + ')')}) Tj T*" for line in lines
    )
    stream = f"BT /F1 10 Tf 14 TL 40 780 Td {shown} ET".encode("latin-1")
    noise = b"<" + b"5a" * 32 + b">"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Filter /Standard /V 1 /R 2 /O %s /U %s /P -4 >>" % (noise, noise),
    ]
    out = bytearray(b"%PDF-1.4\n")
    places = []
    for number, content in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    lock = b" /Encrypt 6 0 R /ID [<61> <61>]" if encrypted else b""
    out += b"trailer\n<< /Size %d /Root 1 0 R%s >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        lock,
        table,
    )
    return bytes(out)


def scanned_pdf() -> bytes:
    """A PDF that is a picture of a page."""
    picture = Image.new("L", (400, 560), 255)
    pen = ImageDraw.Draw(picture)
    for number, line in enumerate(LINES):
        pen.text((20, 20 + 30 * number), line, fill=0)
    out = io.BytesIO()
    picture.save(out, "PDF")
    return out.getvalue()
