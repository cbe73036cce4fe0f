#include "framework/config/other_tools.h"

#include <algorithm>
#include <utility>

namespace dtrain::config {
namespace {

// Theirs, and ours.  Where a word means two things here, the first that the section has counts.
constexpr std::pair<const char*, const char*> kNames[] = {
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

}  // namespace

std::string KeyOfOtherTools(const std::string& key, const std::vector<std::string>& allowed) {
  for (const auto& [theirs, ours] : kNames) {
    if (key == theirs && std::ranges::find(allowed, ours) != allowed.end()) return ours;
  }
  return "";
}

}  // namespace dtrain::config
