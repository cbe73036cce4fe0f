// `dtrain doctor`: shows the libraries built in, the properties of this machine, and its known problems.
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

std::string AmxText(const DoctorInfo& info) {
  if (!info.amx_reported) return "none";
  return info.amx_described ? "yes" : "half hidden; guarded";
}

std::vector<Row> RowsOf(const DoctorInfo& info) {
  std::vector<Row> rows = {{"dtrain", VersionAndRevision()}};
  rows.insert(rows.end(), info.libraries.begin(), info.libraries.end());
  const std::string mpi = info.mpi_library + ", threads: " + info.mpi_thread_level;
  const std::string limit = ", limited to " + HumanBytes(info.memory_limit_bytes);
  rows.insert(
      rows.end(),
      {{"MPI", info.mpi_library.empty() ? "does not start" : mpi},
       {"mpirun", info.mpirun.empty() ? "none" : info.mpirun},
       {"CPU", info.cpu},
       {"instruction set", info.isa + " (oneDNN: " + info.onednn_isa + ")"},
       {"AMX", AmxText(info)},
       {"bf16", info.no_bf16.empty() ? "yes" : "no: " + info.no_bf16},
       {"GPU", info.gpu},
       {"cores", std::to_string(info.cores)},
       {"memory", HumanBytes(info.memory_bytes) + (info.memory_limit_bytes > 0 ? limit : "")},
       {"shared memory", HumanBytes(info.shared_memory_bytes)},
       {"huge pages", info.huge_pages},
       {"host name", info.host_name + (info.host_resolves ? "" : ", without an address")}});
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
  const DoctorInfo info = GatherDoctorInfo();
  const auto print = invocation.json ? PrintJson : PrintText;
  print(RowsOf(info), AdviceFor(info));
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
