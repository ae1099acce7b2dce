"""Owns what a check says."""

LEVELS = ("ok", "info", "warn", "fail")


class Finding:
    """One line: level, which check, what it found, and what to do about it."""

    def __init__(self, level, check, text, remedy=None):
        assert level in LEVELS
        self.level, self.check, self.text, self.remedy = level, check, text, remedy

    def as_row(self):
        return {"level": self.level, "check": self.check, "text": self.text, "remedy": self.remedy}


def ok(check, text):
    return [Finding("ok", check, text)]


def worst(findings):
    return max((LEVELS.index(finding.level) for finding in findings), default=0)


class Context:
    """What checks use: the connection, and how long a transaction may be open."""

    def __init__(self, server, old):
        self.server = server
        self.old = old                  # a timedelta
        self._settings = None

    def setting(self, name):
        """The value in the unit of pg_settings; None if this role may not see it."""
        if self._settings is None:
            self.server.value("SELECT projector.worker_waits_since()")  # loads the library, and so our settings
            self._settings = {row["name"]: row["setting"] for row in
                              self.server.rows("SELECT name, setting FROM pg_catalog.pg_settings")}
        return self._settings.get(name)

    def quote(self, name):
        return self.server.value("SELECT pg_catalog.quote_ident(%s)", name)
