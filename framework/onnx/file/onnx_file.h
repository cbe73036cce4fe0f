// ONNX files, by the library of github.com/onnx/onnx: protocol buffers, checked before they are written.
//
// Without the library at build time (Debian: libonnx-dev, libprotobuf-dev) there are none.
#pragma once

#include <string>

#include "framework/onnx/onnx_graph.h"

namespace dtrain {

// Whether this program can write them, and what stands in `doctor`: the library's version, or that it is missing.
bool HasOnnx();
std::string OnnxLibrary();

// The bytes of a file with this graph.  The library has checked them, and derived the shapes of all values from
// those of the inputs.  Throws UsageError where the program has no library or the graph is more than the 2 GB that a
// protocol buffer holds.
std::string OnnxBytes(const OnnxGraph& graph);

}  // namespace dtrain
