// `dtrain list`: lists the things that a config can name, with their keys, ranges, defaults and help.
#include <CLI/CLI.hpp>

#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/cli/command.h"
#include "framework/comm/device_collective.h"
#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/core/text.h"
#include "framework/data/dataset.h"
#include "framework/nn/graph.h"
#include "framework/setup/run_setup.h"
#include "framework/solver/solver.h"
#include "framework/strategies/strategy.h"

namespace dtrain {
namespace {

constexpr char kSchedule[] = "schedule ";  // before the names of schedules, among the solvers

struct Listed {
  std::string name;
  std::string help;
  std::vector<config::KeyHelp> keys;
  // The other side of the table of strategies and compressors: "compressors" or "strategies", and the names that go
  // with this one.
  std::string goes_with = "";
  std::vector<std::string> others = {};
  std::vector<StrategyCounter> counters = {};  // of a strategy
};

// Returns the keys that `read` declares on an empty document.
template <class Read>
std::vector<config::KeyHelp> KeysOf(Read read) {
  config::Document document = config::Document::Empty();
  config::Reader root = document.root();
  read(root);
  return document.Keys();
}

// Lists a registry whose entries make objects with a Configure method.
template <class Registry>
std::vector<Listed> Configured() {
  std::vector<Listed> all;
  for (const auto& [name, entry] : Registry::All()) {
    all.push_back({name, entry.help,
                   KeysOf([&entry = entry](config::Reader& r) { entry.make()->Configure(r); })});
  }
  return all;
}

std::vector<Listed> Strategies() {
  std::vector<Listed> all;
  for (const auto& [name, entry] : StrategyRegistry::All()) {
    const auto strategy = entry.make();
    const auto read = [&](config::Reader& reader) {
      RunConfig run;
      ReadStrategyKeys(reader, *strategy, run);
    };
    all.push_back({name, entry.help, KeysOf(read), "compressors", CompressorsOf(*strategy),
                   strategy->counters()});
  }
  return all;
}

std::vector<Listed> Compressors() {
  std::vector<Listed> all;
  for (const auto& [name, entry] : CompressorRegistry::All()) {
    const auto compressor = entry.make();
    const auto read = [&](config::Reader& reader) {
      CompressConfig config;
      ReadCompressorKeys(reader, *compressor, config);
      // Compressors whose density the strategy chooses have no key `exchange`: their gradients are not summed over all
      // workers.
      if (compressor->sends_entries() && !compressor->density_by_strategy()) {
        ReadSelectionExchange(reader, config);
      }
    };
    all.push_back({name, entry.help, KeysOf(read), "strategies", StrategiesOf(name)});
  }
  return all;
}

std::vector<Listed> Solvers() {
  std::vector<Listed> all;
  for (const auto& [name, entry] : SolverRegistry::All()) {
    all.push_back(
        {name, entry.help, KeysOf([&entry = entry](config::Reader& r) { entry.read(r); })});
  }
  for (const auto& [name, entry] : ScheduleRegistry::All()) {
    all.push_back({kSchedule + name, entry.help,
                   KeysOf([&entry = entry](config::Reader& r) { entry.read(r); })});
  }
  return all;
}

std::vector<Listed> Collectives() {
  std::vector<Listed> all;
  for (const std::string& name : CollectiveNames()) {
    all.push_back({name, CollectiveRegistry::Get("collective", name).help, {}});
  }
  for (const auto& [name, entry] : DeviceCollectiveRegistry::All()) {
    if (CollectiveRegistry::Find(name) == nullptr) all.push_back({name, entry.help, {}});
  }
  return all;
}

std::vector<Listed> Models() {
  std::vector<Listed> all;
  for (const ModelListing& model : ListModels()) {
    all.push_back({model.name,
                   fmt::format("{} parameters, {:.2f} MFLOP a sample forward", model.parameters,
                               model.forward_flops * 1e-6),
                   {}});
  }
  return all;
}

void Print(const std::vector<Listed>& all, bool json) {
  if (json) {
    nlohmann::json list = nlohmann::json::array();
    for (const Listed& one : all) {
      nlohmann::json keys = nlohmann::json::array();
      for (const config::KeyHelp& key : one.keys) {
        keys.push_back({{"key", key.path},
                        {"type", key.type},
                        {"default", key.default_value},
                        {"range", key.range},
                        {"help", key.help}});
      }
      list.push_back({{"name", one.name}, {"help", one.help}, {"keys", keys}});
      if (!one.goes_with.empty()) list.back()[one.goes_with] = one.others;
      for (const StrategyCounter& counter : one.counters) {
        list.back()["counters"].push_back({{"name", counter.name}, {"help", counter.help}});
      }
    }
    std::cout << JsonText(list, 2) << '\n';
    return;
  }
  for (const Listed& one : all) {
    std::cout << fmt::format("{:<24} {}\n", one.name, one.help);
    if (!one.goes_with.empty()) {
      std::cout << fmt::format("  {:<22} {}\n", one.goes_with + ":",
                               one.others.empty() ? "none" : Join(one.others));
    }
    for (const config::KeyHelp& key : one.keys) {
      std::string info = key.type;
      if (!key.range.empty()) info += " " + key.range;
      if (!key.default_value.empty()) info += ", default " + key.default_value;
      std::cout << fmt::format("  {:<22} {} ({})\n", key.path, key.help, info);
    }
    for (const StrategyCounter& counter : one.counters) {
      const std::string key = fmt::format("protocol.{}", counter.name);
      std::cout << fmt::format("  {:<22} {} (counted in summary.json)\n", key, counter.help);
    }
  }
}

using Lister = std::vector<Listed> (*)();
const std::map<std::string, Lister>& Listers() {
  static const std::map<std::string, Lister> listers = {{"collectives", Collectives},
                                                        {"compressors", Compressors},
                                                        {"datasets", Configured<DatasetRegistry>},
                                                        {"layers", Configured<LayerRegistry>},
                                                        {"models", Models},
                                                        {"solvers", Solvers},
                                                        {"strategies", Strategies}};
  return listers;
}

bool IsNamed(const Listed& one, const std::string& name) {
  return one.name == name || one.name == kSchedule + name;
}

// Returns the entries of this name; all if it is "".  Throws UsageError if there is none.
std::vector<Listed> Chosen(const std::string& what, const std::string& name) {
  std::vector<Listed> all = Listers().at(what)();
  if (name.empty()) return all;
  std::vector<Listed> chosen;
  for (const Listed& one : all) {
    if (IsNamed(one, name)) chosen.push_back(one);
  }
  if (!chosen.empty()) return chosen;
  throw UsageError(fmt::format("dtrain list {} has no '{}'", what, name),
                   SuggestName(name, NamesListed(what)));
}

}  // namespace

std::vector<std::string> NamesListed(const std::string& what) {
  std::vector<std::string> names;
  const auto lister = Listers().find(what);
  if (lister == Listers().end()) return names;
  for (const Listed& one : lister->second()) {
    names.push_back(one.name.starts_with(kSchedule) ? one.name.substr(sizeof kSchedule - 1)
                                                    : one.name);
  }
  return names;
}

static void AddListCommand(CLI::App& app, Invocation& invocation) {
  auto what = std::make_shared<std::string>();
  auto name = std::make_shared<std::string>();
  CLI::App* command =
      AddCommand(app, invocation, "list", "list what a config can name, with all keys",
                 [what, name, &invocation] {
                   Print(Chosen(*what, *name), invocation.json);
                   return 0;
                 });
  std::vector<std::string> names;
  for (const auto& [name, lister] : Listers()) names.push_back(name);
  command->add_option("what", *what, Join(names, " | "))->required()->check(CLI::IsMember(names));
  command->add_option("name", *name, "show only this entry")->type_name("NAME");
}

DTRAIN_COMMAND("list", 120, AddListCommand);

}  // namespace dtrain
