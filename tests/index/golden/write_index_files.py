#!/usr/bin/env python3
"""Writes golden section files of format 1 (order, partition, ids), from storage/FORMAT.md alone.

Usage: write_index_files.py FOLDER

Independent of the engine: nothing but the standard library. The graph has 7 vertices (two types), 3
edge types, weights, parallel edges, a self-loop and an isolated vertex, in 2 partitions; the file
written is that of partition 0. The two dictionaries of ids have vertices of their own.
"""

import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "testing"))
from golden import STORE_ID, crc32c, write_files  # noqa: E402

PARTITIONS = 2
VERTEX_TYPES = 2
EDGE_TYPES = 3

# Row -> vertex id, owner, vertex type. Rows ascend by (owner, type).
VERTEX_AT = [4, 1, 0, 6, 3, 2, 5]
OWNER_OF = [0, 0, 0, 0, 1, 1, 1]
TYPE_OF = [0, 0, 1, 1, 0, 1, 1]

# (source vertex, target vertex, edge type, weight), by partition.
EDGES = [
    [(4, 1, 2, 0.5), (4, 1, 0, 1.0), (4, 1, 0, -2.0), (1, 1, 1, 3.25), (0, 3, 0, 1.5), (3, 4, 1, 2.0)],
    [(3, 2, 0, 1.0), (2, 3, 2, 4.0), (3, 0, 0, 0.25)],
]

# External ids, by vertex id. The strings need offsets of two bytes and compare as unsigned bytes.
INTEGERS = [5, -1 << 63, 42, -1, (1 << 63) - 1, 0, 256]
STRINGS = ["b", "", "Z", "\u00fcber", "10", "9", "\U0001f333", "a" * 300, "a"]


def pad(data):
    return data + bytes(-len(data) % 64)


def section_file(file_kind, sections):
    """sections: (kind, element width, bytes), in file order."""
    out = struct.pack("<8sII16s32x", b"RZSECTIO", 1, file_kind, STORE_ID)
    table = b""
    for kind, width, data in sections:
        table += struct.pack("<IIQQQ", kind, width, len(out), len(data) // width, 0)
        out = pad(out + data)
    table_offset = len(out)
    out += table
    blocks = [out[i:i + 4096] for i in range(0, len(out), 4096)]
    crcs = struct.pack("<%dI" % len(blocks), *map(crc32c, blocks))
    footer = struct.pack("<QQQQIIIII", table_offset, len(out), len(out) + len(crcs) + 64,
                         len(blocks), len(sections), 4096, crc32c(crcs), 1, 0)
    footer += struct.pack("<I8s", crc32c(footer), b"RZSECEND")
    return out + crcs + footer


def column(kind, values, least=1):
    largest = max(values, default=0)
    width = next(w for w in (1, 2, 4, 8) if w >= least and largest < 1 << (8 * w))
    return kind, width, b"".join(v.to_bytes(width, "little") for v in values)


def order_file():
    rows = range(len(VERTEX_AT))
    row_of = [VERTEX_AT.index(v) for v in rows]
    segments, typed = [], [0] * VERTEX_TYPES
    for row in rows:
        if row == 0 or (OWNER_OF[row], TYPE_OF[row]) != (OWNER_OF[row - 1], TYPE_OF[row - 1]):
            segments.append(struct.pack("<QQHHI", row, typed[TYPE_OF[row]], OWNER_OF[row], TYPE_OF[row], 0))
        typed[TYPE_OF[row]] += 1
    header = struct.pack("<QQIIII", len(VERTEX_AT), len(segments), PARTITIONS, VERTEX_TYPES, 1, 0)
    return section_file(2, [(1, 1, header), column(2, row_of, 4), column(3, VERTEX_AT, 4),
                            (4, 1, b"".join(segments))])


def offsets(first_kind, numbers):
    """Ascending numbers in blocks of 64: the three sections of the narrowest steps that pay."""
    blocks = [numbers[i:i + 64] for i in range(0, len(numbers), 64)]
    full = 4 if numbers[-1] < 1 << 32 else 8

    def cost(width):
        wide = sum(block[-1] - block[0] >= 1 << (8 * width) for block in blocks)
        return len(numbers) * width + wide * 64 * full

    width = min((1, 2, 4, 8), key=cost)
    bases, steps, wide = [], [], []
    for block in blocks:
        if block[-1] - block[0] < 1 << (8 * width):
            bases.append(2 * block[0])
            steps += [number - block[0] for number in block]
        else:
            bases.append(2 * (len(wide) // 64) + 1)
            steps += [0] * len(block)
            wide += block + block[-1:] * (64 - len(block))
    return [column(first_kind, bases), column(first_kind + 1, steps), column(first_kind + 2, wide)]


def patched(first_kind, values):
    def cost(width):
        return len(values) * width + 8 * sum(value >= (1 << (8 * width)) - 1 for value in values)

    width = min((1, 2), key=cost)
    mark = (1 << (8 * width)) - 1
    places = [i for i, value in enumerate(values) if value >= mark]
    return [column(first_kind, [min(value, mark) for value in values], width),
            column(first_kind + 1, places), column(first_kind + 2, [values[i] for i in places])]


def elias_fano(numbers):
    if not numbers:
        return b""
    count, largest = len(numbers), numbers[-1]
    low_bits = max((largest // count).bit_length() - 1, 0)
    low = sum((number & ((1 << low_bits) - 1)) << (i * low_bits) for i, number in enumerate(numbers))
    places = [(number >> low_bits) + i for i, number in enumerate(numbers)]
    high = sum(1 << place for place in places)
    samples = struct.pack("<%dQ" % ((count - 1) // 256), *places[256::256])
    return (bytes([low_bits]) + samples + low.to_bytes((count * low_bits + 7) // 8, "little") +
            high.to_bytes(((largest >> low_bits) + count + 7) // 8, "little"))


class TypeLists:
    """The distinct (types, ends) of vertices, numbered by first use."""

    def __init__(self):
        self.lists = []

    def number_of(self, types):
        runs = [(t, i + 1) for i, t in enumerate(types) if i + 1 == len(types) or types[i + 1] != t]
        if runs not in self.lists:
            self.lists.append(runs)
        return self.lists.index(runs)

    def sections(self):
        ends = [0]
        for runs in self.lists:
            ends.append(ends[-1] + len(runs))
        return [column(22, ends), column(23, [t for runs in self.lists for t, _ in runs]),
                column(24, [end for runs in self.lists for _, end in runs])]


def side(first_kind, n, entries, type_lists, compressed):
    """entries: (vertex, type, neighbour, ...), sorted. Sections of one direction."""
    ends, numbers, lists = [0], [], []
    for vertex in range(n):
        mine = [e for e in entries if e[0] == vertex]
        ends.append(ends[-1] + len(mine))
        numbers.append(type_lists.number_of([e[1] for e in mine]))
        ranks = sorted({e[1] for e in mine})
        lists.append(elias_fano([ranks.index(e[1]) * n + e[2] for e in mine]))
    sections = offsets(first_kind, ends)
    if compressed:
        list_ends = [sum(map(len, lists[:i])) for i in range(n + 1)]
        sections += [(first_kind + 7, 1, b"".join(lists)), *offsets(first_kind + 4, list_ends)]
    else:
        neighbours = struct.pack("<%dI" % len(entries), *(e[2] for e in entries))
        sections.append((first_kind + 3, 4, neighbours))
    return sections + [column(first_kind + 8, numbers)]


def partition_file(partition, compressed=False, attributed=False):
    """attributed: the edges have attributes, which stand elsewhere, and no weights."""
    row_of = {v: row for row, v in enumerate(VERTEX_AT)}
    holders = {row: set() for row in row_of.values()}
    out_degree, in_degree = [0] * len(VERTEX_AT), [0] * len(VERTEX_AT)
    for p, edges in enumerate(EDGES):
        for src, dst, _, _ in edges:
            holders[row_of[src]].add(p)
            holders[row_of[dst]].add(p)
            out_degree[row_of[src]] += 1
            in_degree[row_of[dst]] += 1
    owned = [row for row in range(len(VERTEX_AT)) if OWNER_OF[row] == partition]
    mirrors = [row for row in sorted(holders) if partition in holders[row] and row not in owned]
    local = {row: i for i, row in enumerate(owned + mirrors)}
    n = len(local)

    out = sorted((local[row_of[s]], t, local[row_of[d]], w) for s, d, t, w in EDGES[partition])
    back = sorted((d, t, s, edge) for edge, (s, t, d, _) in enumerate(out))
    boundary = [row for row in owned if len(holders[row]) > 1]
    replicas = boundary + mirrors
    sets = b"".join(sum(1 << p for p in holders[row]).to_bytes((PARTITIONS + 7) // 8, "little")
                    for row in replicas)
    out_here, in_here = [0] * n, [0] * n
    for src, _, dst, _ in out:
        out_here[src] += 1
        in_here[dst] += 1
    words = [0] * ((len(owned) + 63) // 64)
    for row in boundary:
        words[local[row] // 64] |= 1 << (local[row] % 64)
    flags = 1 | 2 | 8 | (64 if attributed else 16) | (32 if compressed else 0)
    header = struct.pack("<6Q4I", len(VERTEX_AT), len(out), len(owned), len(mirrors), owned[0],
                         len(boundary), partition, PARTITIONS, EDGE_TYPES, flags)
    types = TypeLists()
    return section_file(1, [
        (1, 1, header),
        column(3, mirrors),
        *side(4, n, out, types, compressed),
        *side(13, n, back, types, compressed),
        column(25, [e[3] for e in back]),
        *types.sections(),
        *([] if attributed else [(26, 4, struct.pack("<%df" % len(out), *(e[3] for e in out)))]),
        (27, 8, struct.pack("<%dQ" % len(words), *words)),
        *patched(28, [out_degree[row] - out_here[local[row]] for row in replicas]),
        *patched(31, [in_degree[row] - in_here[local[row]] for row in replicas]),
        (34, 1, sets),
    ])


def sorted_side(ids):
    return column(5, sorted(range(len(ids)), key=ids.__getitem__))


def integers_file():
    header = struct.pack("<QII", len(INTEGERS), 2, 0)
    return section_file(3, [(1, 1, header),
                            (2, 8, struct.pack("<%dq" % len(INTEGERS), *INTEGERS)),
                            sorted_side(INTEGERS)])


def strings_file():
    ids = [text.encode() for text in STRINGS]
    offsets = [sum(map(len, ids[:i])) for i in range(len(ids) + 1)]
    header = struct.pack("<QII", len(ids), 3, 0)
    return section_file(3, [(1, 1, header), column(3, offsets), (4, 1, b"".join(ids)),
                            sorted_side(ids)])


def main():
    write_files(sys.argv[1], {
        "order.ord": order_file(),
        "part-0000.adj": partition_file(0),
        "part-0000-compressed.adj": partition_file(0, compressed=True),
        "part-0000-attributed.adj": partition_file(0, attributed=True),
        "ids-integers.dict": integers_file(),
        "ids-strings.dict": strings_file(),
    })


if __name__ == "__main__":
    main()
