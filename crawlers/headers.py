"""Reading HTTP header values."""

from __future__ import annotations


def media_type(content_type: str) -> str:
    """The media type of a Content-Type header, lower case, without parameters."""
    return content_type.split(";", maxsplit=1)[0].strip().lower()


def charset_of(content_type: str) -> str:
    """The charset parameter of a Content-Type header, at most 32 characters, empty where there is none."""
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'").lower()[:32]
    return ""
