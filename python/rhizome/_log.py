"""The default receiver of the engine's log: ``logging.getLogger("rhizome")``."""

from __future__ import annotations

from ._types import LogLine


def to_logging(line: LogLine) -> None:
    """Passes a line to the logging module. The record has the line as its attribute ``rhizome``."""
    import logging  # pylint: disable=import-outside-toplevel  # most programs never see a line

    shown = "".join(f" {key}={value!r}" for key, value in line.fields.items())
    logging.getLogger("rhizome").log(getattr(logging, line.level.upper()), "%s: %s%s", line.component, line.message,
                                     shown, extra={"rhizome": line})
