#!/usr/bin/env python3
"""Tests that tests/includes.py finds missing includes that unity builds hide."""
import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
import includes  # noqa: E402


class MissingIncludes(unittest.TestCase):
    tree = includes.Tree(ROOT)

    def expect(self, path, header, name):
        self.assertEqual(self.tree.missing(path), [])
        self.assertIn(name, self.tree.missing(path, without=header))

    def test_a_function(self):
        self.expect("tests/data/catalog_test.cc", "framework/core/file.h", "ReadFile")
        self.expect("framework/train/run_outputs.cc", "framework/setup/run_exchange.h", "PlacementOf")

    def test_a_class_a_constant_and_a_macro(self):
        self.expect("tests/cli/train_command_test.cc", "tests/data/temp_folder.h", "TempFolder")
        self.expect("framework/launch/supervisor.cc", "framework/launch/process_folder.h", "kSharedMemory")
        self.expect("framework/data/held_out.cc", "framework/core/check.h", "DT_CHECK")

    def test_the_own_header(self):
        self.expect("framework/core/file.cc", "framework/core/file.h", "framework/core/file.h")


if __name__ == "__main__":
    unittest.main()
