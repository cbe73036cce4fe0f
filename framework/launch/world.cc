#include "framework/launch/world.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <sstream>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/comm/gather.h"
#include "framework/comm/local/local_world.h"
#include "framework/core/bytes.h"
#include "framework/core/check.h"
#include "framework/core/log.h"
#include "framework/core/memory.h"
#include "framework/core/printable.h"
#include "framework/core/status_line.h"

namespace dtrain {
namespace {

// Describes the rank that failed, and its error.
struct Failure {
  int rank = 0;
  ExitCode code = ExitCode::kInternal;
  std::string what;
  std::string hint;
  DTRAIN_FIELDS(rank, code, what, hint)
};

// Returns the failure of the lowest rank that failed; "" for none.
std::string FirstOf(const std::vector<std::string>& all) {
  const auto first =
      std::find_if(all.begin(), all.end(), [](const std::string& bytes) { return !bytes.empty(); });
  return first == all.end() ? "" : *first;
}

bool errors_as_json = false;
std::optional<Rank> rank_of_several;

// Prints {"error": {"message", "hint", "exit_code"}}, with "rank" if there are several, on a line of its own.
void PrintJson(const Error& error) {
  nlohmann::ordered_json json = {{"error",
                                  {{"message", error.what()},
                                   {"hint", error.hint()},
                                   {"exit_code", static_cast<int>(error.code())}}}};
  if (rank_of_several) json["error"]["rank"] = *rank_of_several;
  const std::string line = PrintableText(JsonText(json)) + "\n";
  const status_line::Aside aside;
  std::fwrite(line.data(), 1, line.size(), stderr);  // one write: ranks share the stream
  std::fflush(stderr);
}

}  // namespace

World::World(int& argc, char**& argv) {
  if (InsideMpiLaunch()) {
    mpi_ = std::make_unique<MpiRuntime>(argc, argv);
    transport_ = mpi_->MakeTransport();
  } else {
    transport_ = LocalWorld(1).Connect(0);
  }
  SetCheckRank(transport_->rank());
  log::SetRank(transport_->rank(), transport_->size());
  if (transport_->size() > 1) rank_of_several = transport_->rank();
}

World::~World() = default;

int World::Fail(const Error& error) {
  const bool shared = dynamic_cast<const SharedError*>(&error) != nullptr;
  if (!shared || transport_->rank() == 0) TellError(error);
  if (launched() && !shared) MpiRuntime::Abort(error.code());
  return static_cast<int>(error.code());
}

int RunOnRanks(int argc, char** argv, const std::function<int(World&)>& body) {
  World world(argc, argv);
  try {
    return body(world);
  } catch (const Error& error) {
    return world.Fail(error);
  } catch (const std::exception& error) {
    return world.Fail(AsError(error));
  }
}

void TryTogether(Transport& transport, const std::function<void()>& work) {
  std::string mine;
  try {
    work();
  } catch (const Error& error) {
    mine = ToBytes(Failure{transport.rank(), error.code(), error.what(), error.hint()});
  }
  const std::string first = Broadcast(transport, FirstOf(Gather(transport, mine)));
  if (first.empty()) return;
  const auto failure = FromBytes<Failure>(first);
  // The message names the rank unless it is rank 0, which prints the message.
  const std::string who = failure.rank == 0 ? "" : fmt::format("rank {}: ", failure.rank);
  throw SharedError(failure.code, who + failure.what, failure.hint);
}

Error AsError(const std::exception& exception) {
  if (const auto* error = dynamic_cast<const Error*>(&exception)) return *error;
  if (const auto* error = dynamic_cast<const std::bad_alloc*>(&exception)) return ToError(*error);
  if (const auto* error = dynamic_cast<const std::filesystem::filesystem_error*>(&exception)) {
    return RunFileError(error->what());
  }
  const auto* const error = dynamic_cast<const std::system_error*>(&exception);
  if (error != nullptr && error->code() == std::errc::resource_unavailable_try_again) {
    return UsageError("the system refuses one more thread",
                      "`ulimit -u` and `ulimit -v` may be limits; threads: 1 needs fewer");
  }
  return {ExitCode::kInternal, std::string("internal error: ") + exception.what()};
}

void TellErrorsAsJson(bool as_json) { errors_as_json = as_json; }

void TellError(const Error& error) {
  if (errors_as_json) return PrintJson(error);
  std::istringstream lines(error.what());
  for (std::string line; std::getline(lines, line);) log::Error("{}", line);
  if (!error.hint().empty()) log::Error("  {}", error.hint());
}

}  // namespace dtrain
