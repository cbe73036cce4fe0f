// The models of configs/models, with the parameter counts of the papers they come from.
#include <gtest/gtest.h>

#include <map>

#include "framework/runtime/locate_model.h"
#include "framework/runtime/run_setup.h"

namespace dtrain {
namespace {

Graph Load(const std::filesystem::path& model) {
  const auto digits = DatasetRegistry::Get("data set", "digits").make();
  return Graph::FromFile(model.string(), GraphInputsOf(digits->fields()));
}

TEST(ShippedModels, HaveTheirParameters) {
  const std::map<std::string, int64_t> parameters = {{"lenet5", 61706}, {"lenet5_caffe", 431080}};
  const auto models = NamedModels(DTRAIN_SOURCE_DIR "/configs/runs/any.yaml");
  EXPECT_EQ(models.size(), parameters.size());
  for (const auto& [name, count] : parameters) {
    const Graph graph = Load(models.at(name));
    EXPECT_EQ(graph.name(), name);
    EXPECT_EQ(graph.weights().size(), count) << name;
  }
}

}  // namespace
}  // namespace dtrain
