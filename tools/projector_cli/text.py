"""Owns names and figures as a terminal shows them.

Users choose the names of projections and tenants, and events decide what errors say.
So text from the database can hold escape sequences, line breaks and marks that change
the direction of writing.  visible() shows these as \\x1b or \\u202e; nothing is
printed without it.
"""
import unicodedata

# Control characters, marks of direction, invisible characters, line separators,
# private use, surrogates and code points without a character.
HIDDEN = {"Cc", "Cf", "Zl", "Zp", "Co", "Cs", "Cn"}


def escape(char):
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible(value):
    """The text with everything that is not seen, or that moves the cursor, as an escape."""
    text = str(value)
    if text.isascii() and text.isprintable():
        return text
    return "".join(escape(c) if unicodedata.category(c) in HIDDEN else c for c in text)


def char_width(char):
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def width(text):
    """The columns it takes in a terminal."""
    return len(text) if text.isascii() else sum(char_width(c) for c in text)


def fit(text, columns, right=False):
    """Exactly that many columns: cut with an ellipsis, or filled with blanks."""
    if columns <= 0:
        return ""
    if width(text) > columns:
        kept, used = [], 0
        for char in text:
            if used + char_width(char) > columns - 1:
                break
            kept.append(char)
            used += char_width(char)
        text = "".join(kept) + "…"
    blanks = " " * (columns - width(text))
    return blanks + text if right else text + blanks


def duration(seconds):
    """250 ms, 4.2 s, 3 min 5 s, 25 min, 2 h 10 min, 3 d 4 h."""
    if seconds is None:
        return ""
    if hasattr(seconds, "total_seconds"):
        seconds = seconds.total_seconds()
    seconds = max(0.0, float(seconds))
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    seconds = int(seconds)
    for size, unit, smaller, small in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size:
            rest = seconds % size // smaller if unit != "min" or seconds < 600 else 0
            return f"{seconds // size} {unit}" + (f" {rest} {small}" if rest else "")
    return f"{seconds} s"


def number(value):
    return "" if value is None else f"{value:,}"


def count(value, one, many=None):
    """1 event, 2 events."""
    return f"{value:,} {one if value == 1 else many or one + 's'}"


def capped(value, most=10000):
    """Counts of the views stop at 10,000."""
    if value is None:
        return ""
    return f"{value:,}" + ("+" if value >= most else "")


def bar(share, columns):
    """A progress bar: [#####.....]"""
    inner = max(1, columns - 2)
    done = int(inner * min(1.0, max(0.0, share or 0.0)))
    return "[" + "#" * done + "." * (inner - done) + "]"
