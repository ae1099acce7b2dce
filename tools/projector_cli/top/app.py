"""Owns the terminal: it reads keys, asks questions, and draws what screen lays out."""
import curses
import locale
import queue
import threading

from . import screen
from .actions import Actions
from .sample import Sampler

# Milliseconds that we wait for a key before we look for a new sample.
KEY_WAIT = 100


class View:
    """What is on the screen: the sample, the choice in the lists, a question or a message."""

    def __init__(self, place):
        self.place = place
        self.sample = None
        self.by_name = False
        self.focus = "projections"
        self.chosen = 0
        self.chosen_run = 0
        self.question = None
        self.message = None
        self._listed = (None, None, [])

    def listed(self):
        """The projections in the order they are shown, sorted once per sample."""
        if self._listed[:2] != (id(self.sample), self.by_name):
            self._listed = (id(self.sample), self.by_name, screen.ordered(self.sample.projections, self.by_name))
        return self._listed[2]

    def take(self, sample):
        """Show a new sample; the choice stays with its projection."""
        name = self.chosen_name() if self.sample is not None else None
        self.sample = sample
        names = [row["projection_name"] for row in self.listed()]
        if name in names and self.chosen > 0:
            self.chosen = names.index(name)
        self.chosen = max(0, min(self.chosen, len(names) - 1))
        self.chosen_run = max(0, min(self.chosen_run, len(sample.runs) - 1))
        if not sample.runs:
            self.focus = "projections"

    def chosen_name(self):
        listed = self.listed()
        return listed[self.chosen]["projection_name"] if listed else None

    def move(self, by):
        if self.focus == "runs":
            self.chosen_run = max(0, min(self.chosen_run + by, len(self.sample.runs) - 1))
        else:
            self.chosen = max(0, min(self.chosen + by, len(self.listed()) - 1))

    def run_to_cancel(self):
        """The chosen run, or the only one of the chosen projection; else a message."""
        runs = [row for row in self.sample.runs if row["run_id"] is not None]
        if self.focus == "runs" and self.sample.runs:
            return self.sample.runs[self.chosen_run]["run_id"], "this cannot be cancelled here"
        mine = [row["run_id"] for row in runs if row["projection_name"] == self.chosen_name()]
        if len(mine) == 1:
            return mine[0], None
        return None, "it has no active run" if not mine else "it has several runs: press Tab and choose one"


class App:
    def __init__(self, server, options):
        self.view = View(f"{server.database} at {server.connection.info.host or 'localhost'}")
        self.actions = Actions(options, server.password)
        self.sampler = Sampler(server)
        self.view.take(self.sampler.sample)
        self.pending = None             # what happens after "y"
        self.results = queue.Queue()    # messages of actions that have ended
        self.styles = {}
        self.encoding = "ascii"

    def run(self):
        locale.setlocale(locale.LC_ALL, "")
        self.encoding = locale.getpreferredencoding(False)
        self.sampler.start()
        try:
            curses.wrapper(self.loop)
        except KeyboardInterrupt:
            pass
        finally:
            self.sampler.stop()
            self.actions.close()
        return 0

    def prepare(self, window):
        curses.curs_set(0)
        window.timeout(KEY_WAIT)
        self.styles = {"plain": 0, "dim": curses.A_DIM, "title": curses.A_BOLD, "head": curses.A_REVERSE,
                       "chosen": curses.A_BOLD | curses.A_UNDERLINE, "ask": curses.A_REVERSE | curses.A_BOLD,
                       "good": 0, "warn": curses.A_BOLD, "bad": curses.A_BOLD}
        if curses.has_colors():
            curses.start_color()
            curses.use_default_colors()
            for number, (name, colour) in enumerate((("good", curses.COLOR_GREEN), ("warn", curses.COLOR_YELLOW),
                                                     ("bad", curses.COLOR_RED)), 1):
                curses.init_pair(number, colour, -1)
                self.styles[name] |= curses.color_pair(number)

    def loop(self, window):
        try:
            self.prepare(window)
        except curses.error:
            pass                        # a terminal without a cursor to hide, or without colours
        while True:
            self.draw(window)
            key = window.getch()
            if not self.results.empty():
                self.view.message = self.results.get()
                self.sampler.hurry()
            if self.sampler.sample is not self.view.sample:
                self.view.take(self.sampler.sample)
            if key == curses.KEY_RESIZE:
                window.clear()
            elif key != -1 and not self.press(key, window):
                return

    def draw(self, window):
        rows, columns = window.getmaxyx()
        window.erase()
        for y, line in enumerate(screen.layout(self.view, columns, rows)[:rows]):
            try:
                window.move(y, 0)
                for text, style in line:
                    window.addstr(self.writable(text), self.styles.get(style, 0))
            except curses.error:
                pass                    # the last cell of the screen, or a resize meanwhile
        window.refresh()

    def writable(self, text):
        """What the terminal has no character for becomes "?"."""
        return text.encode(self.encoding, "replace").decode(self.encoding)

    def press(self, key, window):
        """Act on a key.  Returns false to quit."""
        view = self.view
        if view.question is not None:
            self.answer(key)
            return True
        view.message = None
        page = max(1, window.getmaxyx()[0] - 8)
        moves = {curses.KEY_UP: -1, ord("k"): -1, curses.KEY_DOWN: 1, ord("j"): 1, curses.KEY_PPAGE: -page,
                 curses.KEY_NPAGE: page, curses.KEY_HOME: -10 ** 9, ord("g"): -10 ** 9, curses.KEY_END: 10 ** 9,
                 ord("G"): 10 ** 9}
        if key in moves:
            view.move(moves[key])
        elif key in (ord("q"), 27):
            return False
        elif key == ord("\t"):
            view.focus = "runs" if view.focus == "projections" and view.sample.runs else "projections"
        elif key == ord("o"):
            view.by_name = not view.by_name
        else:
            self.ask(chr(key) if 0 < key < 128 else "")
        return True

    def ask(self, key):
        """The question of an action, if the key has one."""
        view, actions = self.view, self.actions
        name = view.chosen_name()
        if key == "c":
            run, view.message = view.run_to_cancel()
            if run is not None:
                view.message = None
                view.question, self.pending = actions.cancel(run)
        elif name is not None and key in ("p", "r", "u"):
            make = {"p": actions.pause, "r": actions.resume, "u": actions.requeue}[key]
            view.question, self.pending = make(name)

    def answer(self, key):
        """Only "y" acts.  The action runs beside the screen, because it may wait for a lock."""
        self.view.question = None
        if key not in (ord("y"), ord("Y")):
            self.view.message = "nothing was done"
            return
        act = self.pending
        self.view.message = "..."
        threading.Thread(target=lambda: self.results.put(self.actions.do(act)), daemon=True).start()
