// Reads run configs as `dtrain check` does, with a `--set` argument.  An accepted config is dumped
// and read again.
#include "framework/setup/run_config.h"

#include "framework/nn/graph.h"
#include "framework/setup/run_setup.h"
#include "tests/fuzz/fuzz_target.h"

namespace dtrain::fuzz {
namespace {

constexpr char kModel[] =
    "name: small\nsample: [1, 28, 28]\nlayers:\n"
    "  - {name: fc, type: inner_product, outputs: 10}\n"
    "  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}\n"
    "  - {name: accuracy, type: accuracy, input: [fc, label]}\n";

RunConfig Read(const std::string& text, const std::vector<std::string>& overrides) {
  config::Document document = config::Document::FromText(text, "runs/run.yaml", overrides);
  return ReadRunConfig(document, kModel);
}

// If the last line begins with "#set ", the rest of it is an argument of --set.
std::vector<std::string> OverridesIn(std::string_view input) {
  constexpr std::string_view kMark = "\n#set ";
  const size_t at = input.rfind(kMark);
  if (at == std::string_view::npos) return {};
  return {std::string(input.substr(at + kMark.size()))};
}

bool Config(std::string_view input) {
  return Accepts(ExitCode::kUsage, [&] {
    const RunConfig config = Read(std::string(input), OverridesIn(input));
    const RunConfig again = ReadAgain([&] { return Read(config.effective_yaml, {}); });
    Require(again.effective_yaml == config.effective_yaml, "another config was read again");
    Require(again.config_sha256 == config.config_sha256, "a config read again has another hash");
    ReadModel(config);
  });
}

DTRAIN_FUZZ_TARGET("run_config", Config);

}  // namespace
}  // namespace dtrain::fuzz
