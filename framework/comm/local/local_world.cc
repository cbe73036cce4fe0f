#include "framework/comm/local/local_world.h"

#include <exception>
#include <thread>

#include "framework/comm/local/local_state.h"
#include "framework/comm/local/local_transport.h"
#include "framework/core/check.h"
#include "framework/core/error.h"

namespace dtrain {

void LocalWorld::State::Leave(Rank rank, bool failed, const std::string& why) {
  const std::lock_guard lock(mutex);
  if (left_rank < 0 || (failed && failed_rank.load() < 0)) {
    left_rank = rank;
    reason = why;
  }
  if (failed && failed_rank.load() < 0) failed_rank = rank;
  gone[rank] = true;
  barrier_changed.notify_all();
}

void LocalWorld::State::ThrowLost(Rank rank) {
  const std::lock_guard lock(mutex);
  const std::string why = rank == left_rank ? ": " + reason : "";
  throw PeerLostError("rank " + std::to_string(rank) + " is gone" + why,
                      "look for the first error of that rank");
}

LocalWorld::LocalWorld(int ranks) : state_(std::make_shared<State>(ranks)) {
  DT_CHECK(ranks >= 1) << ranks << " ranks";
}

LocalWorld::~LocalWorld() = default;

int LocalWorld::size() const { return state_->size(); }

std::unique_ptr<Transport> LocalWorld::Connect(Rank rank) {
  {
    const std::lock_guard lock(state_->mutex);
    DT_CHECK(!state_->connected[rank]) << "rank " << rank << " is connected already";
    state_->connected[rank] = true;
  }
  return std::make_unique<LocalTransport>(state_, rank);
}

void LocalWorld::Fail(Rank rank, const std::string& reason) { state_->Leave(rank, true, reason); }

namespace {

bool IsPeerLost(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const PeerLostError&) {
    return true;
  } catch (...) {
    return false;
  }
}

void ThrowFirstCause(const std::vector<std::exception_ptr>& errors) {
  for (const auto& error : errors) {
    if (error && !IsPeerLost(error)) std::rethrow_exception(error);
  }
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace

void LocalWorld::Run(int ranks, const std::function<void(Transport&)>& body) {
  LocalWorld world(ranks);
  std::vector<std::exception_ptr> errors(ranks);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&world, &body, &errors, rank] {
      try {
        const auto transport = world.Connect(rank);
        body(*transport);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ThrowFirstCause(errors);
}

}  // namespace dtrain
