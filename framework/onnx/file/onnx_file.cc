#include "framework/onnx/file/onnx_file.h"

#include "framework/core/error.h"

#ifdef DTRAIN_ONNX_VERSION

#include <fmt/format.h>
#include <onnx/checker.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include <stdexcept>

#include "framework/core/process.h"

namespace dtrain {
namespace {

constexpr int64_t kIrVersion = 8;  // version of the file's structure; matches kOnnxOpset
constexpr int64_t kMostBytes = int64_t{2} << 30;

// The file stores tensors in little-endian order, as x86 memory does.
template <class T>
void SetBytes(const std::vector<T>& values, onnx::TensorProto& to) {
  to.set_raw_data(values.data(), values.size() * sizeof(T));
}

void Write(const OnnxTensor& tensor, onnx::TensorProto& to) {
  to.set_name(tensor.name);
  for (const int64_t extent : tensor.shape) to.add_dims(extent);
  const bool floats = std::holds_alternative<std::vector<float>>(tensor.values);
  to.set_data_type(static_cast<int32_t>(floats ? kOnnxFloat : kOnnxInt64));
  std::visit([&](const auto& values) { SetBytes(values, to); }, tensor.values);
}

struct AttributeWriter {
  onnx::AttributeProto& to;

  void operator()(int64_t value) const {
    to.set_type(onnx::AttributeProto::INT);
    to.set_i(value);
  }
  void operator()(float value) const {
    to.set_type(onnx::AttributeProto::FLOAT);
    to.set_f(value);
  }
  void operator()(const std::string& value) const {
    to.set_type(onnx::AttributeProto::STRING);
    to.set_s(value);
  }
  void operator()(const std::vector<int64_t>& values) const {
    to.set_type(onnx::AttributeProto::INTS);
    for (const int64_t value : values) to.add_ints(value);
  }
};

void Write(const OnnxNode& node, onnx::NodeProto& to) {
  to.set_op_type(node.op);
  to.set_name(node.outputs.back());
  for (const std::string& input : node.inputs) to.add_input(input);
  for (const std::string& output : node.outputs) to.add_output(output);
  for (const OnnxAttribute& attribute : node.attributes) {
    onnx::AttributeProto& proto = *to.add_attribute();
    proto.set_name(attribute.name);
    std::visit(AttributeWriter{proto}, attribute.value);
  }
}

void Write(const OnnxValue& value, onnx::ValueInfoProto& to) {
  to.set_name(value.name);
  auto& tensor = *to.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(static_cast<int32_t>(value.integers ? kOnnxInt64 : kOnnxFloat));
  for (const OnnxDim& dim : value.shape) {
    auto& proto = *tensor.mutable_shape()->add_dim();
    if (const auto* const name = std::get_if<std::string>(&dim)) {
      proto.set_dim_param(*name);
    } else {
      proto.set_dim_value(std::get<int64_t>(dim));
    }
  }
}

onnx::ModelProto ToProto(const OnnxGraph& graph) {
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("dtrain");
  model.set_producer_version(SourceRevision());
  onnx::OperatorSetIdProto& operators = *model.add_opset_import();
  operators.set_domain("");
  operators.set_version(kOnnxOpset);
  for (const auto& [key, value] : graph.metadata) {
    onnx::StringStringEntryProto& entry = *model.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  onnx::GraphProto& to = *model.mutable_graph();
  to.set_name(graph.name);
  for (const OnnxValue& input : graph.inputs) Write(input, *to.add_input());
  for (const OnnxValue& output : graph.outputs) Write(output, *to.add_output());
  for (const OnnxNode& node : graph.nodes) Write(node, *to.add_node());
  for (const OnnxTensor& tensor : graph.tensors) Write(tensor, *to.add_initializer());
  return model;
}

void CheckSize(const OnnxGraph& graph) {
  int64_t bytes = 0;
  for (const OnnxTensor& tensor : graph.tensors) {
    std::visit([&](const auto& v) { bytes += static_cast<int64_t>(v.size() * sizeof(v[0])); },
               tensor.values);
  }
  if (bytes < kMostBytes - (kMostBytes >> 6)) return;  // the rest of the file is small
  throw UsageError(fmt::format("a model of {} MB does not fit into an ONNX file, which holds 2 GB",
                               bytes >> 20));
}

}  // namespace

bool HasOnnx() { return true; }
std::string OnnxLibrary() { return DTRAIN_ONNX_VERSION; }

std::string OnnxBytes(const OnnxGraph& graph) {
  CheckSize(graph);
  const onnx::ModelProto model = ToProto(graph);
  try {
    onnx::checker::check_model(model);
    onnx::ModelProto inferred = model;
    onnx::ShapeInferenceOptions options;
    options.check_type = true;
    options.error_mode = 1;
    onnx::shape_inference::InferShapes(inferred, onnx::OpSchemaRegistry::Instance(), options);
  } catch (const std::exception& error) {
    throw Error(ExitCode::kInternal,
                fmt::format("the ONNX graph '{}' is not right: {}", graph.name, error.what()));
  }
  return model.SerializeAsString();
}

}  // namespace dtrain

#else

namespace dtrain {

bool HasOnnx() { return false; }
std::string OnnxLibrary() { return "missing: no export to ONNX"; }

std::string OnnxBytes(const OnnxGraph&) {
  throw UsageError("this program was built without the ONNX library",
                   "install libonnx-dev and libprotobuf-dev, then configure and build again");
}

}  // namespace dtrain

#endif
