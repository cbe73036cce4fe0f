#include "framework/config/other_tools.h"

#include <algorithm>
#include <cctype>
#include <span>
#include <string_view>
#include <utility>

#include "framework/core/text.h"

namespace dtrain::config {
namespace {

using Synonym = std::pair<const char*, const char*>;  // {other tool's name, our name}

// If a word has several translations, the first that the section allows is taken.
constexpr Synonym kKeys[] = {
    {"learning_rate", "lr"},
    {"base_lr", "lr"},
    {"eta", "lr"},
    {"lr_rate", "lr"},
    {"num_epochs", "epochs"},
    {"max_epochs", "epochs"},
    {"n_epochs", "epochs"},
    {"epoch", "epochs"},
    {"batch_size", "batch"},
    {"train_batch_size", "batch"},
    {"global_batch_size", "batch"},
    {"bs", "batch"},
    {"max_iter", "max_steps"},
    {"iterations", "max_steps"},
    {"num_steps", "max_steps"},
    {"steps", "max_steps"},
    {"accumulate_grad_batches", "accumulate"},
    {"gradient_accumulation_steps", "accumulate"},
    {"iter_size", "accumulate"},
    {"optimizer", "solver"},
    {"optim", "solver"},
    {"dataset", "data"},
    {"net", "model"},
    {"network", "model"},
    {"arch", "model"},
    {"random_seed", "seed"},
    {"manual_seed", "seed"},
    {"num_workers", "workers"},
    {"world_size", "workers"},
    {"nproc", "workers"},
    {"weight_decay_rate", "weight_decay"},
    {"wd", "weight_decay"},
    {"l2", "weight_decay"},
    {"grad_clip", "clip_norm"},
    {"clip_grad_norm", "clip_norm"},
    {"max_grad_norm", "clip_norm"},
    {"clip_gradients", "clip_norm"},
    {"lr_scheduler", "schedule"},
    {"scheduler", "schedule"},
    {"lr_policy", "schedule"},
    {"data_dir", "root"},
    {"data_path", "root"},
    {"sep", "separator"},
    {"delimiter", "separator"},
    {"target", "label"},
    {"labels", "label"},
    {"target", "train_labels"},
    {"targets", "train_labels"},
    {"labels", "train_labels"},
    {"path", "train"},
    {"file", "train"},
    {"files", "train"},
    {"images", "train"},
    {"early_stopping", "stop"},
    {"output_dir", "output"},
    {"save_dir", "output"},
    {"kernel_size", "kernel"},
    {"filter_size", "kernel"},
    {"padding", "pad"},
    {"strides", "stride"},
    {"num_output", "outputs"},
    {"out_channels", "outputs"},
    {"out_features", "outputs"},
    {"filters", "outputs"},
    {"units", "outputs"},
    {"bottom", "input"},
    {"inputs", "input"},
    {"input_shape", "sample"},
    {"group", "groups"},
    {"p", "rate"},
    {"dropout_ratio", "rate"},
};

// Translations of values, in PlainName's spelling.  A name that equals one of ours in this spelling needs no entry.
constexpr Synonym kChoices[] = {
    {"conv", "convolution"},
    {"linear", "inner_product"},
    {"dense", "inner_product"},
    {"fc", "inner_product"},
    {"fullyconnected", "inner_product"},
    {"affine", "inner_product"},
    {"gemm", "inner_product"},
    {"bn", "batch_norm"},
    {"batchnormalization", "batch_norm"},
    {"ln", "layer_norm"},
    {"layernormalization", "layer_norm"},
    {"localresponsenorm", "lrn"},
    {"maxpool", "pooling"},
    {"maxpooling", "pooling"},
    {"avgpool", "pooling"},
    {"averagepool", "pooling"},
    {"averagepooling", "pooling"},
    {"adaptiveavgpool", "pooling"},
    {"globalaveragepool", "pooling"},
    {"globalaveragepooling", "pooling"},
    {"swish", "silu"},
    {"add", "eltwise"},
    {"sum", "eltwise"},
    {"cat", "concat"},
    {"concatenate", "concat"},
    {"crossentropy", "softmax_cross_entropy"},
    {"crossentropyloss", "softmax_cross_entropy"},
    {"categoricalcrossentropy", "softmax_cross_entropy"},
    {"softmaxwithloss", "softmax_cross_entropy"},
    {"softmax", "softmax_cross_entropy"},
    {"logsoftmax", "softmax_cross_entropy"},
    {"nllloss", "softmax_cross_entropy"},
    {"bce", "binary_cross_entropy"},
    {"bceloss", "binary_cross_entropy"},
    {"bcewithlogitsloss", "binary_cross_entropy"},
    {"sigmoidcrossentropyloss", "binary_cross_entropy"},
    {"mse", "mean_squared_error"},
    {"mseloss", "mean_squared_error"},
    {"euclideanloss", "mean_squared_error"},
    {"momentum", "sgd"},
    {"nesterov", "sgd"},
    {"steplr", "step"},
    {"multisteplr", "multistep"},
    {"cosineannealing", "cosine"},
    {"cosineannealinglr", "cosine"},
    {"onecyclelr", "one_cycle"},
    {"poly", "polynomial"},
    {"polynomiallr", "polynomial"},
    {"linear", "polynomial"},
    {"linearlr", "polynomial"},
    {"ddp", "allreduce"},
    {"distributeddataparallel", "allreduce"},
    {"dataparallel", "allreduce"},
    {"horovod", "allreduce"},
    {"ringallreduce", "allreduce"},
    {"sync", "allreduce"},
    {"synchronous", "allreduce"},
    {"ps", "ps_bsp"},
    {"parameterserver", "ps_bsp"},
    {"bsp", "ps_bsp"},
    {"asp", "ps_asp"},
    {"async", "ps_asp"},
    {"asynchronous", "ps_asp"},
    {"asgd", "ps_asp"},
    {"downpour", "ps_asp"},
    {"hogwild", "ps_asp"},
    {"ssp", "ps_ssp"},
    {"stalesynchronous", "ps_ssp"},
    {"dssp", "ps_dssp"},
    {"localsgd", "local_sgd"},
    {"elasticaveraging", "easgd"},
    {"float32", "fp32"},
    {"float", "fp32"},
    {"float16", "fp16"},
    {"half", "fp16"},
    {"bfloat16", "bf16"},
    {"gpu", "cuda"},
};

// Returns the translation that is allowed; "" if there is none.
std::string OursOf(std::string_view name, std::span<const Synonym> synonyms,
                   const std::vector<std::string>& allowed) {
  for (const auto& [theirs, ours] : synonyms) {
    if (name == theirs && std::ranges::find(allowed, ours) != allowed.end()) return ours;
  }
  return "";
}

// Reduces a name for comparison: "torch.nn.BatchNorm2d" and "batch_norm" -> "batchnorm".
std::string PlainName(std::string_view name) {
  for (const std::string_view module : {"torch.", "tf.", "keras.", "nn.", "optim.", "layers."}) {
    if (name.starts_with(module)) name.remove_prefix(module.size());
  }
  std::string plain;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) continue;
    plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  for (const std::string_view axes : {"1d", "2d", "3d"}) {
    if (plain.size() > axes.size() && plain.ends_with(axes)) plain.resize(plain.size() - 2);
  }
  return plain;
}

}  // namespace

std::string KeyOfOtherTools(const std::string& key, const std::vector<std::string>& allowed) {
  return OursOf(key, kKeys, allowed);
}

std::string SuggestChoice(const std::string& value, const std::vector<std::string>& allowed) {
  const std::string plain = PlainName(value);
  const auto same = std::ranges::find(allowed, plain, PlainName);
  const std::string ours = same != allowed.end() ? *same : OursOf(plain, kChoices, allowed);
  if (ours.empty()) return SuggestName(value, allowed);
  return DidYouMean(ours) + "allowed: " + Join(allowed);
}

}  // namespace dtrain::config
