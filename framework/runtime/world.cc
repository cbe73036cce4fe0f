#include "framework/runtime/world.h"

#include <optional>

#include <fmt/format.h>

#include "framework/comm/gather.h"
#include "framework/comm/local/local_world.h"
#include "framework/core/check.h"
#include "framework/core/log.h"

namespace dtrain {
namespace {

// "code\nhint length\nhint" + what; "" for no error.
std::string Pack(const std::optional<Error>& error) {
  if (!error) return "";
  return fmt::format("{}\n{}\n{}{}", static_cast<int>(error->code()), error->hint().size(),
                     error->hint(), error->what());
}

SharedError Unpack(const std::string& packed, const std::string& prefix) {
  const size_t code_end = packed.find('\n');
  const size_t size_end = packed.find('\n', code_end + 1);
  const size_t hint_size = std::stoul(packed.substr(code_end + 1, size_end - code_end - 1));
  return SharedError(static_cast<ExitCode>(std::stoi(packed.substr(0, code_end))),
                     prefix + packed.substr(size_end + 1 + hint_size),
                     packed.substr(size_end + 1, hint_size));
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
  } catch (const std::bad_alloc&) {
    return world.Fail(Error(ExitCode::kInternal, "out of memory"));
  } catch (const std::exception& error) {
    return world.Fail(Error(ExitCode::kInternal, std::string("internal error: ") + error.what()));
  }
}

void TryTogether(Transport& transport, const std::function<void()>& work) {
  std::optional<Error> error;
  try {
    work();
  } catch (const Error& caught) {
    error = caught;
  }
  std::string first;
  int failed = 0;
  const std::vector<std::string> all = Gather(transport, Pack(error));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    if (first.empty()) first = fmt::format("{}\n", rank) + all[rank];
    ++failed;
  }
  // On all ranks the same thing went wrong, or on this one alone: say which when it matters.
  if (!first.empty()) first = fmt::format("{}\n", failed) + first;
  first = Broadcast(transport, first);
  if (first.empty()) return;
  const size_t count_end = first.find('\n');
  const size_t rank_end = first.find('\n', count_end + 1);
  const std::string rank = first.substr(count_end + 1, rank_end - count_end - 1);
  const bool everywhere = std::stoi(first.substr(0, count_end)) == transport.size();
  throw Unpack(first.substr(rank_end + 1), everywhere || rank == "0" ? "" : "rank " + rank + ": ");
}

void TellError(const Error& error) {
  log::Error("{}", error.what());
  if (!error.hint().empty()) log::Error("  {}", error.hint());
}

}  // namespace dtrain
