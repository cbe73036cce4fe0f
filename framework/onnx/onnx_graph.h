// OnnxGraph is a graph of ONNX operators, in plain structs.  Layers are translated to it; onnx_file.h writes it.
//
// Names of values (inputs, results of nodes) and tensors are unique in a graph.  Nodes are in topological order.
// Operators are those of kOnnxOpset, defined in github.com/onnx/onnx/blob/main/docs/Operators.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace dtrain {

// The operator set; Debian 12's library supports it, and every onnxruntime since 1.12 (2022).
inline constexpr int64_t kOnnxOpset = 17;

// These type numbers are those of the operator Cast.
inline constexpr int64_t kOnnxFloat = 1, kOnnxInt32 = 6, kOnnxInt64 = 7;

// Holds a constant: weights, or an operator's input that must be a tensor.
struct OnnxTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::variant<std::vector<float>, std::vector<int64_t>> values;
};

struct OnnxAttribute {
  std::string name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>> value;
};

struct OnnxNode {
  std::string op;
  std::vector<std::string> inputs;  // "": an omitted optional input
  std::vector<std::string> outputs;
  std::vector<OnnxAttribute> attributes;
};

// Describes an axis: its extent, or the name of an extent that depends on the data.
using OnnxDim = std::variant<int64_t, std::string>;

// Describes an input or output of the graph.
struct OnnxValue {
  std::string name;
  bool integers = false;  // int64, else float
  std::vector<OnnxDim> shape;
};

struct OnnxGraph {
  std::string name;
  std::vector<OnnxValue> inputs, outputs;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> tensors;
  std::map<std::string, std::string> metadata;  // of the file
};

}  // namespace dtrain
