"""Holds the source tree to its own rules, and prints each violation as file:line: what is wrong.

    tidy.py ROOT

Checked are: who may include whom (the drawing in docs/ARCHITECTURE.md, here as a table), which libraries and system headers
a folder may use, that include paths start at the root, that a header opens with its doc comment and #pragma once, that a
.cpp includes its own header first, that every folder with tests is built, and that no file carries a word of the workshop.
Python 3's standard library only.
"""

import os
import re
import sys
from collections import namedtuple

# The drawing, from the bottom up: a folder may include itself and what stands in its set.
BELOW_STORAGE = {"base", "io", "record"}
BELOW_CLEANER = BELOW_STORAGE | {"storage"}
BELOW_METADATA = BELOW_CLEANER | {"cleaner", "retention", "protocol"}
BELOW_DAEMON = BELOW_METADATA | {"metadata", "coordinator"}
BELOW_CONFIG = BELOW_DAEMON | {"daemon"}
MAY_INCLUDE = {
    "base": set(),
    "io": {"base"},
    "record": {"base"},
    "protocol": {"base"},
    "storage": BELOW_STORAGE,
    "cleaner": BELOW_CLEANER,
    "retention": BELOW_CLEANER,
    "metadata": BELOW_METADATA,
    "coordinator": BELOW_METADATA | {"metadata"},
    "daemon": BELOW_DAEMON,
    "config": BELOW_CONFIG,
    "http": BELOW_CONFIG,
    "metrics": BELOW_CONFIG,
    "cmd": BELOW_CONFIG | {"config", "http", "metrics"},
}
# These stand beside the drawing and may include all of it, and each other.
BESIDE = {"bench", "fuzz", "tests"}

# <header> by its beginning: the folders that may use it.
LIBRARIES = {
    "boost/asio": {"daemon", "http", "cmd"},
    "boost/beast": {"http", "cmd"},
    "yaml-cpp/": {"config"},
    "prometheus/": {"metrics"},
    "spdlog/": {"base", "cmd"},
    "systemd/": {"cmd"},
    # Whoever needs a file asks io; metrics reads what /proc says of this process.
    "filesystem": {"io", "cmd"},
    "fstream": {"io", "cmd", "metrics"},
    "dirent.h": {"io", "metrics"},
}

# Written so that this file does not hold them itself.
FORBIDDEN = re.compile(r"/[w]ork/|/tmp/[b]\b|\b(?:TO[D]O|FIX[M]E|X[X]X)\b")

NOT_OURS = {".git", "build", "data", "__pycache__", ".cache", ".vscode", ".idea", "node_modules", "target"}
GENERATED = {"protocol"}  # some headers of these exist in the build directory only

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]*)"|<([^>]*)>)')

Violation = namedtuple("Violation", "path line what")


def folder_of(path):
    return path.split("/", 1)[0]


def includes_of(lines):
    """(line number, path, quoted?) of each #include."""
    for number, line in enumerate(lines, 1):
        found = INCLUDE.match(line)
        if found:
            yield number, found.group(1) if found.group(1) is not None else found.group(2), found.group(1) is not None


def check_include(path, number, include, quoted, files):
    folder = folder_of(path)
    if not quoted:
        for beginning, allowed in LIBRARIES.items():
            if include.startswith(beginning) and folder not in allowed | BESIDE:
                yield Violation(path, number, f"<{include}> is only for {', '.join(sorted(allowed))}")
        return
    target = folder_of(include)
    if "/" not in include or target not in MAY_INCLUDE.keys() | BESIDE:
        yield Violation(path, number, f'"{include}" does not start at the root of the project')
        return
    if include not in files and target not in GENERATED:
        yield Violation(path, number, f'"{include}" does not exist')
    if folder in MAY_INCLUDE and target != folder and target not in MAY_INCLUDE[folder]:
        yield Violation(path, number, f'{folder} must not include {target} ("{include}")')


def check_header(path, lines):
    if not lines or not lines[0].startswith("///"):
        yield Violation(path, 1, "a header opens with a doc comment: ///")
    code = [(n, line.strip()) for n, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith("//")]
    if not code or code[0][1] != "#pragma once":
        yield Violation(path, code[0][0] if code else 1, "#pragma once comes before everything else")


def check_own_header(path, lines, files):
    own = path[: -len(".cpp")] + ".h"
    if own not in files:
        return
    number, include, _ = next(includes_of(lines), (1, None, True))
    if include != own:
        yield Violation(path, number, f'"{own}" is included first')


def check_text(path, text, files):
    """All violations of one file; `files` are the paths of all."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        for found in FORBIDDEN.finditer(line):
            yield Violation(path, number, f"forbidden word: {found.group(0)}")
    if folder_of(path) not in MAY_INCLUDE.keys() | BESIDE or not path.endswith((".h", ".cpp")):
        return
    for number, include, quoted in includes_of(lines):
        yield from check_include(path, number, include, quoted, files)
    if path.endswith(".h"):
        yield from check_header(path, lines)
    else:
        yield from check_own_header(path, lines, files)


def check_tests_are_built(files):
    for path in sorted(files):
        if path.startswith("tests/") and path.endswith("_test.cpp"):
            build = path.rsplit("/", 1)[0] + "/CMakeLists.txt"
            if build not in files:
                yield Violation(path, 1, f"is never built: there is no {build}")


def files_below(root):
    for directory, names, files in os.walk(root):
        names[:] = [name for name in names if name not in NOT_OURS]
        for name in set(files) - NOT_OURS:   # .git is a file in a linked work tree
            yield os.path.relpath(os.path.join(directory, name), root).replace(os.sep, "/")


def check_tree(root):
    files = set(files_below(root))
    violations = list(check_tests_are_built(files))
    for path in sorted(files):
        with open(os.path.join(root, path), "rb") as file:
            content = file.read()
        if b"\0" in content:
            continue  # not a text
        violations += check_text(path, content.decode("utf-8", errors="replace"), files)
    return violations, files


def main():
    root = sys.argv[1]
    violations, files = check_tree(root)
    sources = [path for path in files if folder_of(path) in MAY_INCLUDE and path.endswith((".h", ".cpp"))]
    if not sources:
        sys.exit(f"{root} holds no source folder")
    for violation in violations:
        print(f"{violation.path}:{violation.line}: {violation.what}")
    print(f"{len(files)} files, {len(sources)} of them sources, {len(violations)} violations")
    sys.exit(1 if violations else 0)


if __name__ == "__main__":
    main()
