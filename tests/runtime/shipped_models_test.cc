// Tests the models of configs/models against the parameter counts of their papers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "framework/nn/graph.h"
#include "framework/setup/locate_model.h"
#include "framework/setup/run_setup.h"

namespace dtrain {
namespace {

std::map<std::string, std::filesystem::path> Models() {
  return NamedModels(DTRAIN_SOURCE_DIR "/configs/runs/any.yaml");
}

TEST(ShippedModels, HaveTheirParameters) {
  const std::map<std::string, int64_t> parameters = {
      {"lenet5", 61'706},       {"lenet5_caffe", 431'080}, {"resnet18", 11'173'962},
      {"resnet20", 272'474},    {"resnet50", 25'557'032},  {"seq2seq_attention", 20'518'405},
      {"vgg19_bn", 20'040'522}, {"vgg19_gssp", 38'958'922}};
  const auto models = Models();
  EXPECT_EQ(models.size(), parameters.size());
  for (const auto& [name, count] : parameters) {
    const Graph graph = Graph::FromFile(models.at(name).string(), {});
    EXPECT_EQ(graph.name(), name);
    EXPECT_EQ(graph.weights().size(), count) << name;
  }
}

TEST(ShippedModels, AreListedWithTheirCosts) {
  const auto models = Models();
  const std::vector<ModelListing> listings = ListModels();
  EXPECT_EQ(listings.size(), models.size());
  for (const ModelListing& listing : listings) {
    const Graph graph = Graph::FromFile(models.at(listing.name).string(), {});
    EXPECT_EQ(listing.parameters, graph.weights().size()) << listing.name;
    double flops = 0;
    for (const GraphLayer& layer : graph.layers()) flops += layer.cost.forward_flops;
    EXPECT_GT(flops, 0) << listing.name;
    EXPECT_EQ(listing.forward_flops, flops) << listing.name;
  }
}

// The names of PyTorch's state_dict, read from the end, since arenas have layers in backward order.
TEST(ShippedModels, ResNetHasPyTorchsNames) {
  const Graph graph = Graph::FromFile(Models().at("resnet18").string(), {});
  std::vector<std::string> names;
  for (const GraphLayer& layer : graph.layers()) {
    for (const ParamSpec& spec : layer.params) names.push_back(layer.name + "." + spec.name);
    for (const StateSpec& spec : layer.states) names.push_back(layer.name + "." + spec.name);
  }
  ASSERT_EQ(names.size(), 20 * 5 + 2);
  names.erase(names.begin() + 25, names.end() - 17);
  EXPECT_THAT(
      names,
      testing::ElementsAre(
          "conv1.weight", "bn1.weight", "bn1.bias", "bn1.running_mean", "bn1.running_var",
          "layer1.0.conv1.weight", "layer1.0.bn1.weight", "layer1.0.bn1.bias",
          "layer1.0.bn1.running_mean", "layer1.0.bn1.running_var", "layer1.0.conv2.weight",
          "layer1.0.bn2.weight", "layer1.0.bn2.bias", "layer1.0.bn2.running_mean",
          "layer1.0.bn2.running_var", "layer1.1.conv1.weight", "layer1.1.bn1.weight",
          "layer1.1.bn1.bias", "layer1.1.bn1.running_mean", "layer1.1.bn1.running_var",
          "layer1.1.conv2.weight", "layer1.1.bn2.weight", "layer1.1.bn2.bias",
          "layer1.1.bn2.running_mean", "layer1.1.bn2.running_var", "layer4.0.shortcut.0.weight",
          "layer4.0.shortcut.1.weight", "layer4.0.shortcut.1.bias",
          "layer4.0.shortcut.1.running_mean", "layer4.0.shortcut.1.running_var",
          "layer4.1.conv1.weight", "layer4.1.bn1.weight", "layer4.1.bn1.bias",
          "layer4.1.bn1.running_mean", "layer4.1.bn1.running_var", "layer4.1.conv2.weight",
          "layer4.1.bn2.weight", "layer4.1.bn2.bias", "layer4.1.bn2.running_mean",
          "layer4.1.bn2.running_var", "linear.weight", "linear.bias"));
}

// The names of the state_dict of the third tutorial model of bentrevett/pytorch-seq2seq.
TEST(ShippedModels, Seq2SeqHasPyTorchsNames) {
  const Graph graph = Graph::FromFile(Models().at("seq2seq_attention").string(), {});
  std::vector<std::string> names;
  for (const GraphLayer& layer : graph.layers()) {
    for (const ParamSpec& spec : layer.params) names.push_back(layer.name + "." + spec.name);
  }
  EXPECT_THAT(
      names,
      testing::ElementsAre(
          "encoder.embedding.weight", "encoder.rnn.weight_ih_l0", "encoder.rnn.weight_hh_l0",
          "encoder.rnn.bias_ih_l0", "encoder.rnn.bias_hh_l0", "encoder.rnn.weight_ih_l0_reverse",
          "encoder.rnn.weight_hh_l0_reverse", "encoder.rnn.bias_ih_l0_reverse",
          "encoder.rnn.bias_hh_l0_reverse", "encoder.fc.weight", "encoder.fc.bias",
          "decoder.attention.attn.weight", "decoder.attention.attn.bias",
          "decoder.attention.v.weight", "decoder.embedding.weight", "decoder.rnn.weight_ih_l0",
          "decoder.rnn.weight_hh_l0", "decoder.rnn.bias_ih_l0", "decoder.rnn.bias_hh_l0",
          "decoder.fc_out.weight", "decoder.fc_out.bias"));
}

}  // namespace
}  // namespace dtrain
