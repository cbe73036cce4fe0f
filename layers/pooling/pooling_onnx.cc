// Exports pooling as ONNX operators.  Windows of one size become MaxPool or AveragePool.  ONNX has no adaptive pooling,
// so adaptive windows of different sizes are sliced and reduced one by one, first along the rows, then along the
// columns: all rows of a window have the same number of pixels, so the mean of their means is the window's mean.
#include "framework/onnx/onnx_layer.h"
#include "layers/pooling/pooling.h"

namespace dtrain {
namespace {

void TranslateEqualWindows(OnnxLayer& to, const Pooling& layer) {
  const PoolingAxis &rows = layer.windows().rows, &columns = layer.windows().columns;
  std::vector<OnnxAttribute> attributes = {
      {"kernel_shape", std::vector<int64_t>{rows.kernel, columns.kernel}},
      {"strides", std::vector<int64_t>{rows.stride, columns.stride}},
      {"pads", std::vector<int64_t>{rows.pad, columns.pad, rows.pad, columns.pad}}};
  if (!layer.is_max()) attributes.push_back({"count_include_pad", int64_t{1}});
  to.Result(layer.is_max() ? "MaxPool" : "AveragePool", {to.input(0)}, std::move(attributes));
}

// Reduces one axis to one value per window; returns the results, one tensor per window.
std::vector<std::string> Windows(const OnnxLayer& to, const std::string& x, int64_t axis,
                                 const PoolingAxis& windows) {
  const bool is_max = to.As<Pooling>().is_max();
  const std::string axis_name = std::to_string(axis);
  std::vector<std::string> parts;
  for (int64_t w = 0; w < windows.windows; ++w) {
    const PoolingSpan span = windows.PixelsOf(w);
    const std::string begin =
        to.Constant("at_" + std::to_string(span.begin), std::vector<int64_t>{span.begin});
    const std::string end =
        to.Constant("at_" + std::to_string(span.end), std::vector<int64_t>{span.end});
    const std::string which = to.Constant("axis_" + axis_name, std::vector<int64_t>{axis});
    parts.push_back(to.Node(is_max ? "ReduceMax" : "ReduceMean",
                            {to.Node("Slice", {x, begin, end, which})},
                            {{"axes", std::vector<int64_t>{axis}}}));
  }
  return parts;
}

void TranslatePooling(OnnxLayer& to) {
  const auto& layer = to.As<Pooling>();
  const PoolingWindows& windows = layer.windows();
  if (!windows.rows.adaptive && !windows.columns.adaptive) return TranslateEqualWindows(to, layer);
  const std::string rows =
      to.Node("Concat", Windows(to, to.input(0), 2, windows.rows), {{"axis", int64_t{2}}});
  to.Result("Concat", Windows(to, rows, 3, windows.columns), {{"axis", int64_t{3}}});
}

DTRAIN_ONNX("pooling", TranslatePooling);

}  // namespace
}  // namespace dtrain
