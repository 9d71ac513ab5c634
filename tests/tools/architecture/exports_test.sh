#!/usr/bin/env bash
# The libraries export the declarations of the public headers and of the list tools_only. librhizome also exports the
# engine's functions that librhizome_gnn, librhizome_mpi and the command line use; their headers mark them.
set -euo pipefail
exec python3 - "$RHIZOME_SOURCE" "$RHIZOME_BUILD" <<'PY'
import pathlib, re, subprocess, sys

source, build = map(pathlib.Path, sys.argv[1:])
PUBLIC, SHARED = "namespace RHIZOME_API rhizome {", "inline namespace RHIZOME_API internal {"

def headers(layers):
    for layer in layers:
        yield from (source / layer).rglob("*.h")

def words(paths):
    found = set()
    for path in paths:
        found |= set(re.findall(r"\w+", re.sub(r"//.*", "", path.read_text())))
    return found

def public_list():
    yield from source.glob("*/api/rhizome/*.h")
    cmake = (source / "cmake/libraries.cmake").read_text()
    for name in re.search(r"set\(tools_only ([^()]*)\)", cmake)[1].split():
        if PUBLIC in (source / name).read_text():
            yield source / name

def symbols_of(library, which):
    out = subprocess.run(["nm", "-D", which, library], capture_output=True, text=True, check=True)
    return [line.split()[-1] for line in out.stdout.splitlines()]

def name_of(symbol):
    """(is internal, first name) of a mangled name in namespace rhizome; None for any other."""
    match = re.match(r"_Z(?:T[VISTch]|Th[n\d]+_|Tv[n\d_]+|GVZ?|Z)*N[KVrRO]*7rhizome(8internal)?(?:L)?(\d+|[a-z]{2})(.*)", symbol)
    if match is None:
        return None
    internal, length, rest = match.groups()
    if length.isdigit():
        return bool(internal), rest[:int(length)]
    operand = re.search(r"N(?:S_|7rhizome)(8internal|9internal)?(\d+)(\w+)", rest)  # an operator: of what?
    return bool(internal), operand.group(3)[:int(operand.group(2))] if operand else None

public = [path for path in public_list() if re.search("^namespace", path.read_text(), re.M)]
wrong = [f"{path}: is public, but does not export what it declares" for path in public
         if PUBLIC not in path.read_text()]
wrong += [f"{path}: exports what it declares, but is not public" for path in headers(["storage", "index", "cache", "gnn", "cuda"])
          if PUBLIC in path.read_text() and path not in public]
shared = [path for path in headers(["storage", "index", "cache", "gnn"]) if SHARED in path.read_text()]
shared_names, public_names = words(shared), words(public)

libraries = {build / "lib/librhizome.so": public_names, build / "lib/librhizome_gnn.so": public_names}
counts = []
for library, names in libraries.items():
    if not library.exists():
        print(f"skipped: {library.name}, this build has none")
        continue
    symbols = symbols_of(library, "--defined-only")
    if len(symbols) < 2:
        wrong.append(f"{library}: exports nothing")
    private = 0
    for symbol in symbols:
        if re.fullmatch(r"rhizome_\w+", symbol) and symbol in names:
            continue
        named = name_of(symbol)
        if named is None:
            wrong.append(f"{library.name} exports {symbol}, which is not of this project")
        elif named[0]:
            private += 1
            if "gnn" in library.name:
                wrong.append(f"{library.name} exports {symbol}, which is internal")
            elif named[1] not in shared_names:
                wrong.append(f"{library.name} exports {symbol}, which no header shares with librhizome_gnn")
        elif named[1] not in names:
            wrong.append(f"{library.name} exports {symbol}, which no public header declares")
    counts.append(f"{library.name}: {len(symbols)} symbols, {private} of them for librhizome_gnn")
gnn, mpi, program = build / "lib/librhizome_gnn.so", build / "lib/librhizome_mpi.so", build / "bin/rhizome"
if gnn.exists():
    imported = {name_of(symbol) for user in (gnn, mpi, program) if user.exists() for symbol in symbols_of(user, "--undefined-only")}
    needed = {name[1] for name in imported if name and name[0]}
    included = {name for path in [*shared, *(source / "tools/mpi").iterdir()]
                for name in re.findall(r'#include "[\w/]+/(\w+\.h)"', path.read_text())}
    # A header of types alone has no symbols: it is there for others that include it.
    unused = [path for path in shared if not words([path]) & needed
              and not (path.name in included and not path.with_suffix(".cc").exists())]
    if not mpi.exists():
        unused = [path for path in unused if path.name not in included]
    wrong += [f"{path}: exports what librhizome_gnn, librhizome_mpi and the command line do not use" for path in unused]
print("\n".join(counts + wrong))
sys.exit(bool(wrong))
PY
