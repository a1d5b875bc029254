"""Certificates: checked, but for the hosts that a source names as exceptions."""

from __future__ import annotations

from typing import Any

from scrapy.core.downloader import contextfactory

from crawlers.sources import Source


class ContextFactory(contextfactory._ScrapyClientContextFactory):
    """Scrapy's factory, which checks all certificates or none, decided host by host.

    Only crawls of sources with ``tls_exceptions`` use it: a host that is not named there is
    checked in them too, also where a named host redirects to it. Scrapy 2.19 has no other place
    to hook in; the setting that names the class is deprecated without a successor.
    """

    source: Source

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> ContextFactory:
        """Scrapy's way of building the factory."""
        factory: ContextFactory = super().from_crawler(crawler, *args, **kwargs)
        factory.source = crawler.spider.source
        return factory

    def creatorForNetloc(self, hostname: bytes, port: int) -> Any:
        """The connection's options: without checks only for a host that the source names."""
        self._verify_certificates = not self.source.tolerates(hostname.decode("ascii"), port)
        return super().creatorForNetloc(hostname, port)
