"""Each rule of tidy.py, with a line that breaks it and one that does not."""

import os
import tempfile
import unittest

import tidy

DOC = "/// What it is.\n#pragma once\n"
FILES = {"base/a.h", "io/a.h", "storage/log.h", "storage/log.cpp", "cleaner/a.h", "metadata/a.h", "tests/support/a.h"}


def found(path, text):
    return [(v.line, v.what) for v in tidy.check_text(path, text, FILES)]


class Includes(unittest.TestCase):
    def allowed(self, path, include):
        return found(path, f"\n{include}\n") == []

    def test_the_drawing(self):
        self.assertTrue(self.allowed("io/b.cpp", '#include "base/a.h"'))
        self.assertTrue(self.allowed("storage/b.cpp", '#include "io/a.h"'))
        self.assertTrue(self.allowed("storage/b.cpp", '#include "storage/log.h"'))
        self.assertTrue(self.allowed("cmd/tidemarkd/main.cpp", '#include "metadata/a.h"'))
        self.assertTrue(self.allowed("tests/unit/storage/b.cpp", '#include "cleaner/a.h"'))
        self.assertEqual(found("storage/b.cpp", '\n#include "cleaner/a.h"\n'), [(2, 'storage must not include cleaner ("cleaner/a.h")')])
        self.assertFalse(self.allowed("base/b.cpp", '#include "io/a.h"'))
        self.assertFalse(self.allowed("protocol/b.cpp", '#include "storage/log.h"'))
        self.assertFalse(self.allowed("cleaner/b.cpp", '#include "protocol/a.h"'))
        self.assertFalse(self.allowed("retention/b.cpp", '# include "cleaner/a.h"'))
        self.assertFalse(self.allowed("storage/b.cpp", '#include "tests/support/a.h"'))

    def test_no_folder_includes_itself_through_others(self):
        for folder, below in tidy.MAY_INCLUDE.items():
            self.assertNotIn(folder, below)
            for lower in below:
                self.assertLessEqual(tidy.MAY_INCLUDE[lower], below, f"{folder} may include {lower}, so also what that includes")

    def test_paths_start_at_the_root(self):
        for include in ("log.h", "../storage/log.h", "src/storage/log.h", "./log.h"):
            self.assertIn((1, f'"{include}" does not start at the root of the project'), found("storage/b.cpp", f'#include "{include}"\n'))

    def test_included_files_exist(self):
        self.assertEqual(found("storage/b.cpp", '#include "storage/missing.h"\n'), [(1, '"storage/missing.h" does not exist')])
        self.assertTrue(self.allowed("daemon/b.cpp", '#include "protocol/generated.h"'))

    def test_libraries(self):
        self.assertTrue(self.allowed("daemon/b.cpp", "#include <boost/asio.hpp>"))
        self.assertTrue(self.allowed("storage/b.cpp", "#include <boost/system/result.hpp>"))
        self.assertTrue(self.allowed("tests/unit/storage/b.cpp", "#include <filesystem>"))
        self.assertEqual(found("storage/b.cpp", "#include <boost/asio/awaitable.hpp>\n"), [(1, "<boost/asio/awaitable.hpp> is only for cmd, daemon, http")])
        self.assertFalse(self.allowed("metadata/b.cpp", "#include <yaml-cpp/yaml.h>"))
        self.assertFalse(self.allowed("cleaner/b.cpp", "#include <prometheus/counter.h>"))
        self.assertFalse(self.allowed("storage/b.cpp", "#include <spdlog/spdlog.h>"))
        self.assertFalse(self.allowed("storage/b.cpp", "#include <fstream>"))

    def test_comments_and_other_files_are_no_includes(self):
        self.assertTrue(self.allowed("storage/b.cpp", '// #include "cleaner/a.h"'))
        self.assertTrue(self.allowed("docs/b.md", '#include "cleaner/a.h"'))


class Headers(unittest.TestCase):
    def test_open_with_doc_comment_and_pragma(self):
        self.assertEqual(found("storage/log.h", DOC), [])
        self.assertEqual(found("storage/log.h", "/// One.\n///\n/// Two.\n\n#pragma once\n\n#include <vector>\n"), [])
        self.assertEqual(found("storage/log.h", "#pragma once\n"), [(1, "a header opens with a doc comment: ///")])
        self.assertEqual(found("storage/log.h", "// What.\n#pragma once\n"), [(1, "a header opens with a doc comment: ///")])
        self.assertEqual(found("storage/log.h", "/// What.\n#include <vector>\n#pragma once\n"), [(2, "#pragma once comes before everything else")])
        self.assertEqual(found("storage/log.h", "/// What.\n"), [(1, "#pragma once comes before everything else")])
        self.assertEqual(len(found("storage/log.h", "")), 2)

    def test_own_header_comes_first(self):
        self.assertEqual(found("storage/log.cpp", '// Steps.\n\n#include "storage/log.h"\n\n#include <vector>\n'), [])
        self.assertEqual(found("storage/log.cpp", '#include <vector>\n#include "storage/log.h"\n'), [(1, '"storage/log.h" is included first')])
        self.assertEqual(found("storage/log.cpp", "int x;\n"), [(1, '"storage/log.h" is included first')])
        self.assertEqual(found("storage/without_header.cpp", "#include <vector>\n"), [])


class Words(unittest.TestCase):
    def test_are_found_in_every_file(self):
        for word in ("/wo" + "rk/main", "TO" + "DO: later", "FIX" + "ME", "XX" + "X", "/tmp/" + "b/x"):
            self.assertEqual([line for line, _ in found("docs/a.md", f"fine\nnot {word}\n")], [2], word)
        for fine in ("mkdtemp(tidemark-XX" + "XXXX)", "/tmp/other", "network/", "todo", "TO" + "DOS_FILE"):
            self.assertEqual(found("docs/a.md", fine + "\n"), [], fine)


class Trees(unittest.TestCase):
    def check(self, files):
        with tempfile.TemporaryDirectory() as root:
            for path, content in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "wb") as file:
                    file.write(content)
            violations, _ = tidy.check_tree(root)
            return [f"{v.path}:{v.line}" for v in violations]

    def test_are_walked_without_build_output_and_binaries(self):
        word = b"TO" + b"DO"
        self.assertEqual(self.check({"docs/a.md": b"x\n" + word, "build/dev/a.md": word, "fuzz/corpus/a": b"\0" + word}), ["docs/a.md:2"])

    def test_have_every_test_built(self):
        test = b"int x;\n"
        self.assertEqual(self.check({"tests/unit/io/a_test.cpp": test}), ["tests/unit/io/a_test.cpp:1"])
        self.assertEqual(self.check({"tests/unit/io/a_test.cpp": test, "tests/unit/io/CMakeLists.txt": b""}), [])


if __name__ == "__main__":
    unittest.main()
