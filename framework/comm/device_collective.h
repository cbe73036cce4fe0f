// Collectives whose vectors are in the memory of devices.  A run's key `collective` names one where its weights and
// gradients stay there, and a collective over host memory (collective.h) elsewhere: `ordered` is both.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/comm/collective.h"
#include "framework/core/error.h"
#include "framework/core/registry.h"
#include "framework/device/device.h"

namespace dtrain {

struct DeviceCollective {
  std::string help;
  // Returns why these ranks cannot use it; empty if they can.  All ranks call it, and get the same answer.
  std::string (*why_not)(Transport& transport, const Device& device) = nullptr;
  // Makes one that uses the queue of `device`, in the memory of which all vectors are.
  std::unique_ptr<Collective> (*make)(Transport& transport, const Device& device) = nullptr;
};

using DeviceCollectiveRegistry = Registry<DeviceCollective>;

// Returns the names of collectives, those over host memory and those over devices' memory.
std::vector<std::string> AllCollectiveNames();

// Returns the first reason that a rank has, on all ranks: `mine` is this rank's, or empty.
std::string FirstReason(Transport& transport, const std::string& mine);

// Runs `attempt` on this rank.  Returns why it failed on the first rank where it did, on all ranks; empty: on none.
template <class Attempt>
std::string TryOnAll(Transport& transport, const Attempt& attempt) {
  std::string mine;
  try {
    attempt();
  } catch (const Error& error) {
    mine = error.what();
    if (!error.hint().empty()) mine += " (" + error.hint() + ")";
  }
  return FirstReason(transport, mine);
}

}  // namespace dtrain

#define DTRAIN_DEVICE_COLLECTIVE(name, why_not, make, help_text) \
  [[maybe_unused]] static const bool make##_is_registered =      \
      ::dtrain::DeviceCollectiveRegistry::Add(name, {help_text, why_not, make})
