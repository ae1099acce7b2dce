"""Owns the whole page: one file that loads nothing and runs nothing.

The Content-Security-Policy allows only the style sheet below, known by its hash.  So
even markup that escaped our escaping could neither run a script nor load a picture.
"""
import base64
import hashlib
import os

from . import sections
from .markup import escape


def style():
    with open(os.path.join(os.path.dirname(__file__), "style.css"), encoding="utf-8") as file:
        return "\n" + file.read()


def render(data):
    css = style()
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    body = "\n".join(part for part in (make(data) for make in sections.ALL) if part)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{escape(data["health"]["level"])}: projector, {escape(data["database"])}, {data["created_at"]:%Y-%m-%d %H:%M}</title>
<style>{css}</style>
</head>
<body>
{body}
</body>
</html>
"""
