// Writes ONNX files with the library of github.com/onnx/onnx: protocol buffers, which it checks.
//
// Without the library at build time (Debian: libonnx-dev, libprotobuf-dev) ONNX export is missing.
#pragma once

#include <string>

#include "framework/onnx/onnx_graph.h"

namespace dtrain {

// Return whether this program can write ONNX files, and `doctor`'s text: the library's version, or that it is missing.
bool HasOnnx();
std::string OnnxLibrary();

// Returns the bytes of a file with this graph.  The library checks it, and infers the shapes of all values from those
// of the inputs.  Throws UsageError if the program has no library or the graph exceeds the 2 GB of a protocol buffer.
std::string OnnxBytes(const OnnxGraph& graph);

}  // namespace dtrain
