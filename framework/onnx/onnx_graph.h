// OnnxGraph: a graph of ONNX operators, in plain structs - what layers are translated into.  onnx_file.h writes it.
//
// Names are unique in a graph: of values (inputs, results of nodes) and tensors together.  Nodes stand in an order
// in which each reads only what is there.  Operators are those of kOnnxOpset, as
// github.com/onnx/onnx/blob/main/docs/Operators.md says.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace dtrain {

// What Debian 12's library knows, and every onnxruntime since 1.12 (2022).
inline constexpr int64_t kOnnxOpset = 17;

// Types, as the operator Cast names them.
inline constexpr int64_t kOnnxFloat = 1, kOnnxInt32 = 6, kOnnxInt64 = 7;

// A constant: weights, or what an operator wants as a tensor.
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
  std::vector<std::string> inputs;  // "": an optional one that is left out
  std::vector<std::string> outputs;
  std::vector<OnnxAttribute> attributes;
};

// An axis: its extent, or the name of one that is known with the data only.
using OnnxDim = std::variant<int64_t, std::string>;

// An input or output of the graph.
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
