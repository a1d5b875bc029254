"""Made-up pages that are no documents, English and Chinese, in the kinds that a crawl brings home.

Each is written for these tests, says so in a comment, and carries what makes the kind hard: CAS
numbers on search results, safety words in terms of use, values in price lists. The hosts are
``.example``, the firms do not exist, and nothing here is safety information.
"""

from __future__ import annotations

from tests.corpus.junk.chinese import PAGES as CHINESE
from tests.corpus.junk.english import PAGES as ENGLISH

#: kind → page, by language.
JUNK: dict[str, dict[str, str]] = {"en": ENGLISH, "zh": CHINESE}

__all__ = ["JUNK"]
