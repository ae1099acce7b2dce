"""The live screen.

sample   reads the database in a thread of its own, seldom enough to be no burden
screen   lays a sample out as lines of text, for any size of terminal
actions  what keys do to projections and runs
app      the terminal: keys, questions, drawing
"""
