"""Messages of the engine name options by its fields, in backticks; here they become keywords of the package."""

from __future__ import annotations

import re
from collections.abc import Callable

from . import _core

# Fields whose keyword has another name.
_KEYWORDS = {"memory_bytes": "memory", "wait_seconds": "wait"}

# The same for the functions that run the command line, whose keywords are its flags.
_KEYWORDS_OF_COMMANDS = _KEYWORDS | {
    "device_memory_bytes": "device_memory", "eval_fanouts": "eval_fanout", "fanouts": "fanout", "learning_rate": "lr",
    "neighbor_cache_bytes": "neighbor_cache", "remote_bytes": "remote_memory", "test_edges": "test", "typed_fanouts": "typed_fanout",
}

# Keywords of a command for a value of a field.
_VALUES_OF_COMMANDS = {
    ("edge_weights", "false"): "edge_weights='ignore'", ("edge_weights", "true"): "edge_weights='use'",
    ("test", "false"): "no_test=True",
}

# Fields that no function has as a keyword.
_WITHOUT_KEYWORD = frozenset({"dtype", "id_type", "triplets"})

# Keywords of the functions that run in this process, as far as fields have them.
_IN_PROCESS = frozenset({
    "batch_size", "columns", "create_types", "delimiter", "direction", "directions", "disjoint", "dry_run", "edges", "end_types", "epochs", "fanouts", "feature_columns", "features",
    "fill_holes", "header", "hold_out", "hold_out_by", "hold_out_relations", "homes", "inverse", "keep", "labels", "layout", "live", "memory", "meta_path", "new_version",
    "negative_sources", "negatives", "node_columns", "nodes", "pairs", "partitions", "random_split", "replace", "scratch", "seed", "seed_times", "seeds", "split", "superbatch",
    "threads", "topology", "types", "undirected", "vertices", "wait", "weighted",
})

# Commands that a message quotes, which are for a shell; the option that passes keywords; flags.
_FLAG = re.compile(r"""'rhizome [^']*'|`rhizome [^`]*`|--set: |(?<![\w'"/.-])--([a-z][a-z0-9-]*)""")
_INTEGER = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"-?[0-9.]+(e[+-]?[0-9]+)?")


def in_process(message: str) -> str:
    """A message of the engine in this process, with fields as keywords: ``directions='both'``.

    A field that no function has as a keyword keeps its name.
    """
    def spell(field: str, value: str | None, is_boolean: bool) -> str | None:
        keyword = _KEYWORDS.get(field, field)
        return _keyword(keyword, value, is_boolean) if keyword in _IN_PROCESS else None

    return _spelled(message, spell)


def of_command(message: str) -> str:
    """A message of the command line that kept its fields (--keep-fields), with fields and flags as keywords."""
    def spell(field: str, value: str | None, is_boolean: bool) -> str | None:
        if field in _WITHOUT_KEYWORD or "." in field:
            return None
        keyword = _KEYWORDS_OF_COMMANDS.get(field, field).replace("-", "_")
        return _VALUES_OF_COMMANDS.get((field, value or "")) or _keyword(keyword, value, is_boolean)

    return _spelled(_FLAG.sub(_without_dashes, message), spell)


def _without_dashes(found: re.Match[str]) -> str:
    if found[0] == "--set: ":
        return ""
    return found[1].replace("-", "_") if found[1] else found[0]


def _spelled(message: str, spell: Callable[[str, str | None, bool], str | None]) -> str:
    # Most messages have no backtick.
    return _core.spell_fields(message, spell) if "`" in message else message


def _keyword(keyword: str, value: str | None, is_boolean: bool) -> str:
    if value is None:
        return f"{keyword}=True" if is_boolean else f"{keyword}="
    return f"{keyword}={_literal(value)}"


def _literal(value: str) -> str:
    """A value of a message as a literal of Python."""
    if value in ("true", "false"):
        return value.capitalize()
    if "," in value:
        return "[" + ", ".join(map(_literal, value.split(","))) + "]"
    return value if _INTEGER.fullmatch(value) or _NUMBER.fullmatch(value) else repr(value)
