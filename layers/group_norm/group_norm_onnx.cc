// Exports group normalisation as ONNX operators.  The groups become the channels of InstanceNormalization, since this
// opset version has no GroupNormalization.
#include "framework/onnx/onnx_layer.h"
#include "layers/group_norm/group_norm.h"

namespace dtrain {
namespace {

// Returns a parameter [C] as [C, 1, ...], which broadcasts with x [N, C, ...].
std::string OfChannels(const OnnxLayer& to, size_t place, const std::string& what) {
  std::vector<int64_t> extents(static_cast<size_t>(to.shape(0).rank() - 1), 1);
  extents[0] = to.shape(0)[1];
  const auto values = to.ParamValues(place);
  return to.Constant(what, extents, std::vector(values.begin(), values.end()));
}

void TranslateGroupNorm(OnnxLayer& to) {
  const auto& layer = to.As<GroupNorm>();
  const int64_t groups = layer.RowsOf(to.shape(0)).groups;
  const auto count = static_cast<size_t>(groups);
  const std::string rows = to.Node("Reshape", {to.input(0), to.Constant("rows", {0, groups, -1})});
  const std::string moved =
      to.Node("InstanceNormalization",
              {rows, to.Constant("ones", {groups}, std::vector<float>(count, 1)),
               to.Constant("zeros", {groups}, std::vector<float>(count, 0))},
              {{"epsilon", static_cast<float>(layer.eps())}});
  const std::vector<std::string> back = {moved, to.Node("Shape", {to.input(0)})};
  if (!layer.affine()) return to.Result("Reshape", back);
  const std::string scaled =
      to.Node("Mul", {to.Node("Reshape", back), OfChannels(to, 0, "weight")});
  to.Result("Add", {scaled, OfChannels(to, 1, "bias")});
}

DTRAIN_ONNX("group_norm", TranslateGroupNorm);

}  // namespace
}  // namespace dtrain
