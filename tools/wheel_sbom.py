#!/usr/bin/env python3
"""Adds the licences of third-party software and an SBOM (CycloneDX) to a wheel.

usage: wheel_sbom.py UNPACKED BUILD     UNPACKED: the wheel after `auditwheel repair` and `wheel unpack`
                                        BUILD: the build folder of the wheel

The script contains no list of packages. It finds the package, of Debian or of this Python, of each library in the
wheel and of each header that ninja has recorded as compiled. A file without a package is an error. The licences of
each package are added to `*.dist-info/licenses`, its version to `*.dist-info/sboms/rhizome.cdx.json`.
"""

import collections
import hashlib
import importlib.metadata
import json
import pathlib
import re
import subprocess
import sys
import sysconfig
import urllib.parse

# The compiler, the C and C++ library, and Python's headers are the ground that the wheel stands on, no part of it.
GROUND = re.compile(r"gcc-\d+|glibc|linux|python3(\.\d+)?|libxcrypt")
COMMON_LICENSES = pathlib.Path("/usr/share/common-licenses")


class Component:
    """A source package: what of it is in the wheel, its licences as it names them, and their texts."""

    def __init__(self, name, version, purl, texts, names):
        self.name, self.version, self.purl, self.texts, self.names = name, version, purl, texts, names
        self.libraries = set()

    def as_json(self):
        return {
            "type": "library", "bom-ref": self.purl, "name": self.name, "version": self.version, "purl": self.purl,
            "licenses": [{"license": {"name": name}} for name in sorted(self.names)],
            "properties": [{"name": "rhizome:library", "value": library} for library in sorted(self.libraries)]
                          or [{"name": "rhizome:compiled-in", "value": "headers"}],
        }


def run(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def owners(patterns):
    """Returns the binary package of each path, as dpkg knows it."""
    found = {}
    out = subprocess.run(["dpkg", "-S", *patterns], check=False, text=True, capture_output=True).stdout
    for line in out.splitlines():
        packages, path = line.split(": ", 1)
        found[path] = packages.split(",")[0]
    return found


def copyright_of(package):
    return pathlib.Path("/usr/share/doc", package.split(":")[0], "copyright").read_text(encoding="utf-8")


def licenses_in(text):
    """Returns the short names in a copyright file of Debian's machine-readable kind; else where to read them."""
    names = set()
    for paragraph in re.split(r"\n\s*\n", text):
        files = re.search(r"^Files:\s*(\S+)", paragraph, re.M)
        name = re.search(r"^License:[ \t]*(\S.*)$", paragraph, re.M)
        if name and files and not files.group(1).startswith("debian/"):  # which holds Debian's own work
            names.add(name.group(1).strip())
    return names or {"as its copyright file says"}


class Inventory:
    def __init__(self):
        self.components = {}

    def debian(self, package):
        """Returns the component of a binary package, or None for one of the ground."""
        source, version, distribution = run(
            "dpkg-query", "-W", "-f", "${source:Package}\t${source:Version}\t${Architecture}", package).split("\t")
        if GROUND.fullmatch(source):
            return None
        if source not in self.components:
            text = copyright_of(package)
            texts = {f"{source}.txt": text}
            for name in re.findall(rf"{COMMON_LICENSES}/([\w.+-]*\w)", text):
                texts[f"common/{name}.txt"] = (COMMON_LICENSES / name).read_text(encoding="utf-8")
            vendor = re.search(r'^ID="?(\w+)', pathlib.Path("/etc/os-release").read_text(), re.M).group(1)
            purl = f"pkg:deb/{vendor}/{source}@{urllib.parse.quote(version, safe='')}?arch=source"
            self.components[source] = Component(source, version, purl, texts, licenses_in(text))
        return self.components[source]

    def python(self, folder):
        """Returns the component of a folder of this Python's packages."""
        names = importlib.metadata.packages_distributions()[folder]
        distribution = importlib.metadata.distribution(names[0])
        if names[0] not in self.components:
            texts = {f"{names[0]}.txt": file.read_text() for file in distribution.files
                     if re.search(r"dist-info/.*LICEN[CS]E", str(file))}
            if not texts:
                sys.exit(f"wheel_sbom.py: {names[0]} comes without a licence")
            classes = [text.rsplit(" :: ", 1)[1] for text in distribution.metadata.get_all("Classifier", [])
                       if text.startswith("License :: ")]
            expression = distribution.metadata.get("License-Expression")
            self.components[names[0]] = Component(
                names[0], distribution.version, f"pkg:pypi/{names[0]}@{distribution.version}", texts,
                {expression} if expression else set(classes) or {"as its licence file says"})
        return self.components[names[0]]

    def add_library(self, file):
        """Adds a library that auditwheel brought: `name-hash.so.1` is the file name.so.1 whose SHA-256 begins so."""
        name, digest, rest = re.fullmatch(r"(.+)-([0-9a-f]{8})(\..+)", file.name).groups()
        for path, package in owners([f"*/{name}{rest}"]).items():
            if hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest().startswith(digest):
                self.debian(package).libraries.add(file.name)
                return
        sys.exit(f"wheel_sbom.py: no package has the library {name}{rest} ({digest})")

    def add_headers(self, build):
        """Adds the packages of all headers that were compiled."""
        source = pathlib.Path(re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$",
                                        (build / "CMakeCache.txt").read_text(), re.M).group(1))
        seen = {(build / line.strip()).resolve() for line in run("ninja", "-C", str(build), "-t", "deps").splitlines()
                if line.startswith("    ")}
        ours = {source.resolve(), build.resolve(), pathlib.Path(sysconfig.get_path("include")).resolve()}
        theirs = [path for path in seen if not any(folder in path.parents for folder in ours if folder != source)
                  and not (source.resolve() in path.parents and "site-packages" not in path.parts)]
        system = [path for path in theirs if "site-packages" not in path.parts]
        for folder in {path.parts[path.parts.index("site-packages") + 1] for path in set(theirs) - set(system)}:
            self.python(folder)
        packages = owners([str(path) for path in system])
        for path in system:
            if str(path) not in packages:
                sys.exit(f"wheel_sbom.py: no package has the header {path}")
        for package in set(packages.values()):
            self.debian(package)


def add_licenses(info, components):
    """Writes the texts, and names them in METADATA (PEP 639)."""
    metadata = info / "METADATA"
    fields, _, body = metadata.read_text(encoding="utf-8").partition("\n\n")
    names = set()
    for component in components:
        for name, text in component.texts.items():
            path = info / "licenses" / "vendored" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            names.add(f"License-File: vendored/{name}")
    metadata.write_text("\n".join([fields, *sorted(names)]) + "\n\n" + body, encoding="utf-8")
    return len(names)


def add_sbom(info, components):
    """Writes the SBOM in the place of auditwheel's, which knows of the libraries alone."""
    name, version = info.name.removesuffix(".dist-info").split("-")
    wheel = f"pkg:pypi/{name.replace('_', '-')}@{version}"
    document = {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": {"component": {"type": "library", "bom-ref": wheel, "name": name, "version": version, "purl": wheel,
                                   "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": [component.as_json() for component in components],
        "dependencies": [{"ref": wheel, "dependsOn": [component.purl for component in components]}],
    }
    sboms = info / "sboms"
    sboms.mkdir(exist_ok=True)
    (sboms / "auditwheel.cdx.json").unlink(missing_ok=True)
    (sboms / "rhizome.cdx.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def main(unpacked, build):
    (info,) = unpacked.glob("*.dist-info")
    inventory = Inventory()
    for file in sorted(unpacked.glob("*.libs/*")):
        inventory.add_library(file)
    inventory.add_headers(build)
    components = [component for _, component in sorted(inventory.components.items())]
    files = add_licenses(info, components)
    add_sbom(info, components)
    kinds = collections.Counter(bool(component.libraries) for component in components)
    print(f"SBOM: {kinds[True]} packages whose libraries are in the wheel, {kinds[False]} of headers; "
          f"{files} files of licences")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*map(pathlib.Path, sys.argv[1:]))
