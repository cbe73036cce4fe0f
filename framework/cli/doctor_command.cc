// `dtrain doctor`: what was built in, what this machine has, and what is known to go wrong here.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "framework/cli/command.h"
#include "framework/cli/doctor_report.h"
#include "framework/core/printable.h"
#include "framework/core/process.h"
#include "framework/core/text.h"

namespace dtrain {
namespace {

using Row = std::pair<std::string, std::string>;

std::string AmxText(const DoctorFacts& facts) {
  if (!facts.amx_reported) return "none";
  return facts.amx_described ? "yes" : "half hidden; guarded";
}

std::vector<Row> RowsOf(const DoctorFacts& facts) {
  std::vector<Row> rows = {{"dtrain", VersionAndRevision()}};
  rows.insert(rows.end(), facts.libraries.begin(), facts.libraries.end());
  const std::string mpi = facts.mpi_library + ", threads: " + facts.mpi_thread_level;
  const std::string limit = ", limited to " + HumanBytes(facts.memory_limit_bytes);
  rows.insert(
      rows.end(),
      {{"MPI", facts.mpi_library.empty() ? "does not start" : mpi},
       {"mpirun", facts.mpirun.empty() ? "none" : facts.mpirun},
       {"CPU", facts.cpu},
       {"instruction set", facts.isa + " (oneDNN: " + facts.onednn_isa + ")"},
       {"AMX", AmxText(facts)},
       {"bf16", facts.no_bf16.empty() ? "yes" : "no: " + facts.no_bf16},
       {"GPU", facts.gpu},
       {"cores", std::to_string(facts.cores)},
       {"memory", HumanBytes(facts.memory_bytes) + (facts.memory_limit_bytes > 0 ? limit : "")},
       {"shared memory", HumanBytes(facts.shared_memory_bytes)},
       {"huge pages", facts.huge_pages},
       {"host name", facts.host_name + (facts.host_resolves ? "" : ", without an address")}});
  return rows;
}

void PrintJson(const std::vector<Row>& rows, const std::vector<std::string>& advice) {
  nlohmann::ordered_json json;
  for (const auto& [name, value] : rows) json["facts"][name] = value;
  json["advice"] = advice;
  std::cout << JsonText(json, 2) << "\n";
}

void PrintText(const std::vector<Row>& rows, const std::vector<std::string>& advice) {
  for (const auto& [name, value] : rows) std::cout << fmt::format("{:17} {}\n", name, value);
  if (advice.empty()) std::cout << "\nnothing known to go wrong here\n";
  for (const std::string& line : advice) std::cout << "\nadvice: " << line << "\n";
}

int RunDoctor(const Invocation& invocation) {
  const DoctorFacts facts = GatherDoctorFacts();
  const auto print = invocation.json ? PrintJson : PrintText;
  print(RowsOf(facts), AdviceFor(facts));
  return 0;
}

}  // namespace

static void AddDoctorCommand(CLI::App& app, Invocation& invocation) {
  AddCommand(app, invocation, "doctor",
             "show what is built in and check this machine for known problems",
             [&invocation] { return RunDoctor(invocation); });
}

DTRAIN_COMMAND("doctor", 130, AddDoctorCommand);

}  // namespace dtrain
