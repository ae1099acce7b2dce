"""The command-line tool of projector.

main        reads the command line, runs a command, and turns errors into one line
server      the connection and what the database has of projector
text        names and figures in a terminal
output      tables and JSON
limit       the option --limit
commands    the short commands, one file per topic
doctor      checks of an installation
top         the live screen
report      the page for a browser

The code is installed as PREFIX/share/projector-tools/projector_cli.
"""
