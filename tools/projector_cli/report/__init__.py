"""The page for a browser: one file without scripts, to attach to a ticket.

collect   reads what the page shows, within its limits
markup    escapes everything that comes from the database
charts    the bars and timelines, as SVG
sections  the parts of the page, from top to bottom
page      puts them together, with style.css
"""
