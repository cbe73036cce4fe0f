// Makes strategies and solvers from config sections, for tests.
#pragma once

#include <memory>
#include <string>

#include "framework/config/reader.h"
#include "framework/solver/solver.h"
#include "framework/strategies/strategy.h"

namespace dtrain {

// Example: "{name: ps_ssp, staleness: 2}".  Throws ConfigError as a run would.
inline std::unique_ptr<Strategy> MakeStrategy(const std::string& section) {
  config::Document document = config::Document::FromText("strategy: " + section, "run.yaml");
  config::Reader reader = document.root().Section("strategy");
  const std::string name = reader.String("name", "");
  std::unique_ptr<Strategy> strategy = StrategyRegistry::Get("strategy", name).make();
  strategy->Configure(reader);
  document.Finish();
  return strategy;
}

inline std::unique_ptr<Strategy> MakeStrategy(const std::string& name, const std::string& keys) {
  return MakeStrategy("{name: " + name + ", " + keys + "}");
}

// Example: "{name: topk, density: 0.25}"; "" for none.
inline CompressConfig MakeCompress(const std::string& section) {
  config::Document document =
      config::Document::FromText("compress: " + (section.empty() ? "none" : section), "run.yaml");
  CompressConfig compress = ReadCompressConfig(document.root().Section("compress"));
  document.Finish();
  return compress;
}

// Example: "{name: sgd, lr: 0.1}".
inline SolverConfig MakeSolver(const std::string& section) {
  config::Document document = config::Document::FromText("solver: " + section, "run.yaml");
  SolverConfig solver = ReadSolverConfig(document.root().Section("solver"));
  document.Finish();
  return solver;
}

}  // namespace dtrain
