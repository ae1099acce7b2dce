"""Owns the drawings: SVG without text, which stretches to the width it is given.

Labels are HTML beside the drawings, so that they keep their size on a phone.  Colours
come from the classes in style.css.
"""
from .markup import UTC, escape

WIDTH = 1000


def svg(content, height, css, label):
    return (f'<svg class="{css}" viewBox="0 0 {WIDTH} {height}" preserveAspectRatio="none" role="img" '
            f'aria-label="{escape(label)}">{content}</svg>')


def rect(x, width, y, height, css, title=None):
    inner = f"<title>{escape(title)}</title>" if title else ""
    return f'<rect class="{css}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}">{inner}</rect>'


def share_bar(parts, whole, label):
    """A horizontal bar of several parts: (value, class, name)."""
    drawn, x = [rect(0, WIDTH, 0, 10, "track")], 0.0
    for value, css, name in parts:
        if value:
            width = max(6.0, WIDTH * value / whole) if whole else 0.0
            width = min(width, WIDTH - x)
            drawn.append(rect(x, width, 0, 10, css, f"{value:,} {name}"))
            x += width
    return svg("".join(drawn), 10, "bar", label)


def columns(bars, label):
    """Failures over time: one column per interval, as high as its share of the most."""
    most = max((bar["failures"] for bar in bars), default=0)
    step = WIDTH / max(1, len(bars))
    drawn = []
    for i, bar in enumerate(bars):
        if bar["failures"]:
            height = max(3.0, 96.0 * bar["failures"] / most)
            drawn.append(rect(i * step + step * 0.12, step * 0.76, 100 - height, height, "crit",
                              f"{bar['at'].astimezone(UTC):%Y-%m-%d %H:%M} UTC: {bar['failures']:,}"))
        else:
            drawn.append(rect(i * step + step * 0.12, step * 0.76, 98.5, 1.5, "track"))
    return svg("".join(drawn), 100, "columns", label)


def span(begin, end, first, last, css, title):
    """When something ran, within the time that is shown."""
    length = max(1.0, (end - begin).total_seconds())
    x = max(0.0, WIDTH * (first - begin).total_seconds() / length)
    to = min(float(WIDTH), WIDTH * (last - begin).total_seconds() / length)
    x = min(x, WIDTH - 8.0)
    return svg(rect(0, WIDTH, 0, 10, "track") + rect(x, max(8.0, to - x), 0, 10, css, title), 10, "bar", title)
