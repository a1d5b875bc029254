"""Made-up PDFs, written operator by operator: text placed by matrices and rise, in Latin and Chinese."""

from __future__ import annotations

_OBJECTS = (
    b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>",
    b"<< /Type /Font /Subtype /Type0 /BaseFont /Made /Encoding /UniGB-UTF16-H /DescendantFonts [5 0 R] >>",
    b"<< /Type /Font /Subtype /CIDFontType0 /BaseFont /Made /DW 1000 /FontDescriptor 6 0 R"
    b" /CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) /Supplement 4 >> >>",
    b"<< /Type /FontDescriptor /FontName /Made /Flags 4 /FontBBox [0 -120 1000 880] /Ascent 880 /Descent -120"
    b" /CapHeight 700 /ItalicAngle 0 /StemV 80 >>",
)


def at(x: float, y: float, text: str, size: float = 10, *, rise: float = 0) -> str:
    """Text at a place, by a text matrix; ``rise``: of the operator Ts. y counts from the foot of the page."""
    font, shown = ("F1", f"({text})") if text.isascii() else ("F2", f"<{text.encode('utf-16-be').hex()}>")
    if text.isascii():
        shown = "(" + text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)") + ")"
    return f"BT /{font} {size} Tf {rise} Ts 1 0 0 1 {x} {y} Tm {shown} Tj ET\n"


def pdf(*pages: str) -> bytes:
    """A PDF of pages 600 points wide and 800 high."""
    first = 3 + len(_OBJECTS)
    kids = " ".join(f"{first + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        *_OBJECTS,
    ]
    for n, page in enumerate(pages):
        content = page.encode("ascii")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {first + 2 * n + 1} 0 R"
            " /Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> >>".encode()
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
    data, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return data + (
        b"xref\n0 %d\n0000000000 65535 f \n%strailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
        % (size, table, size, len(data))
    )
