"""Owns HTML: everything that comes from the database is escaped here.

Names and errors may hold markup, quotes and marks that change the direction of
writing.  say() escapes the first, shows the last as U+202E, and isolates the text in
<bdi>, so that it cannot reorder what stands beside it.
"""
import html
import unicodedata
from datetime import timezone

from ..text import HIDDEN

UTC = timezone.utc


def escape(value):
    """Text for the inside of an element or an attribute in quotes, without tags."""
    return html.escape("".join(f"[U+{ord(c):04X}]" if unicodedata.category(c) in HIDDEN else c
                               for c in str(value)), quote=True)


def say(value):
    """Text of a user as an element of its own."""
    parts, plain = [], []
    for char in str(value):
        if char == "\n":
            plain.append(" ")
        elif unicodedata.category(char) in HIDDEN:
            parts.append(html.escape("".join(plain)))
            parts.append(f'<span class="mark">U+{ord(char):04X}</span>')
            plain = []
        else:
            plain.append(char)
    parts.append(html.escape("".join(plain)))
    return f"<bdi>{''.join(parts)}</bdi>"


def code(value):
    return f"<code>{say(value)}</code>"


def tag(name, content, css=None):
    return f'<{name} class="{css}">{content}</{name}>' if css else f"<{name}>{content}</{name}>"


def when(value):
    """A time, in UTC, because a ticket is read in several places."""
    if value is None:
        return ""
    utc = value.astimezone(UTC)
    return f'<time datetime="{utc.isoformat(timespec="seconds")}">{utc:%Y-%m-%d %H:%M:%S}</time>'


def more(number, one, many=None):
    """The line that counts what is left out."""
    if not number:
        return ""
    return tag("p", f"and {number:,} more {one if number == 1 else many or one + 's'}", "more")
