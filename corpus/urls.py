"""Canonical URLs: one spelling per page, the identity that documents hang on.

Rules of the crawling notes, section 9, item 8: lower-case scheme and host,
IDNA, no default port, no fragment, dot segments resolved, upper-case percent
escapes, sorted query keys, tracking and session keys dropped, trailing slash
kept. ``w3lib`` (Scrapy's URL library) does the escaping and sorting.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urljoin, urlsplit, urlunsplit

from w3lib.url import canonicalize_url, safe_url_string

_DEFAULT_PORTS = {"http": 80, "https": 443}
_TRACKING = re.compile(
    r"""^(?:utm_.*|ga_.*|pk_.*|mtm_.*|piwik_.*|hsa_.*|_hs.*|mc_[ce]id|fb_.*|fbclid|gclid|gclsrc|dclid|wbraid|gbraid
    |msclkid|yclid|igshid|twclid|ttclid|li_fat_id|_openstat|_ga|_gl|vero_.*|oly_(?:anon|enc)_id|wickedid|spm|scm
    |bd_vid|qz_gdt|gdt_vid|share_(?:token|source|medium|from|id)|wxfrom|isappinstalled|ns_(?:campaign|source|mchannel)
    |cmpid|campaign_?id|trk(?:campaign)?|ref_src|ref_url
    |phpsessid|jsessionid|aspsessionid.*|asp\.net_sessionid|cfid|cftoken|sessionid|session_id)$""",
    re.IGNORECASE | re.VERBOSE,
)
_PATH_SESSION = re.compile(r";(?:jsessionid|phpsessid|sid)=[^/?#;]*", re.IGNORECASE)
_HOST_SKINS = ("www.", "m.", "wap.", "mobile.", "amp.")


def canonical_url(url: str, page_canonical: str | None = None) -> str:
    """The one spelling of ``url``; of ``page_canonical`` where that claim is acceptable.

    ``page_canonical`` is the page's rel=canonical (absolute or relative). It is a
    claim: accepted only for the same site (host without a leading ``www.``,
    ``m.`` …) and not when it sends an inner page to the site's front page.
    Whether the target's text agrees is for the caller to see. Idempotent.

    Raises ValueError for what is not an http(s) URL with a host.
    """
    own = _normalise(url)
    if not page_canonical or not page_canonical.strip():
        return own
    try:
        claimed = _normalise(urljoin(own, page_canonical.strip()))
    except ValueError:
        return own
    return claimed if _acceptable(own, claimed) else own


def same_site(one: str, other: str) -> bool:
    """Whether two URLs are of one site: equal hosts, ``www.``, ``m.`` and the like aside."""
    return _site(urlsplit(one)) == _site(urlsplit(other))


def _normalise(url: str) -> str:
    parts = urlsplit(safe_url_string(url.strip()))
    if parts.scheme.lower() not in _DEFAULT_PORTS or not parts.hostname:
        raise ValueError(f"not an http(s) URL: {url[:200]!r}")
    path = _PATH_SESSION.sub("", parts.path)
    query = "&".join(pair for pair in parts.query.split("&") if pair and not _is_tracking(pair))
    bare = urlunsplit((parts.scheme, _authority(parts), path, query, ""))
    return str(canonicalize_url(bare))


def _is_tracking(pair: str) -> bool:
    return _TRACKING.match(pair.split("=", 1)[0]) is not None


def _authority(parts: SplitResult) -> str:
    host = (parts.hostname or "").rstrip(".")
    if not host:
        raise ValueError("a URL without a host")
    if ":" in host:
        host = f"[{host}]"
    port = parts.port  # raises ValueError outside 0-65535
    return host if port in (None, _DEFAULT_PORTS[parts.scheme.lower()]) else f"{host}:{port}"


def _site(parts: SplitResult) -> tuple[str, int | None]:
    host = (parts.hostname or "").rstrip(".")
    for skin in _HOST_SKINS:
        if host.startswith(skin) and host.count(".") > 1:
            host = host.removeprefix(skin)
            break
    port = parts.port
    return host, None if port in (None, *_DEFAULT_PORTS.values()) else port


def _acceptable(own: str, claimed: str) -> bool:
    before, after = urlsplit(own), urlsplit(claimed)
    if _site(before) != _site(after):
        return False
    sends_inner_page_home = after.path in ("", "/") and not after.query and before.path not in ("", "/")
    return not sends_inner_page_home
