// RankParts: what one rank of a run is made of, put together for an Exchange.
#pragma once

#include <memory>

#include "framework/comm/transport.h"
#include "framework/exchange/driver.h"
#include "framework/exchange/model_at_rest.h"
#include "framework/exchange/rest.h"
#include "framework/exchange/transport_mail.h"
#include "framework/strategies/strategy.h"

namespace dtrain {

struct RankSetup {
  const ArenaLayout* layout = nullptr;  // outlives the rank
  const Strategy* strategy = nullptr;
  ActorSetup actors;
  DriverOptions driver;
  RestRule rule;
  std::string collective;
  int64_t chunk_bytes = 0;
  bool record = false;
  bool timeline = false;
  std::span<const float> weights;  // of the whole model
  const std::map<std::string, std::vector<float>>* solver = nullptr;
};

struct RankParts {
  RankParts(const RankSetup& setup, Transport& transport);

  WallClock clock;
  BlobPools pools;
  EventLog log;
  std::unique_ptr<RankTimeline> timeline;  // null: not asked for
  std::unique_ptr<Collective> collective;
  std::unique_ptr<TransportMail> mail;
  std::unique_ptr<Driver> driver;
  std::unique_ptr<Rest> rest;
  std::unique_ptr<ModelAtRest> model;
};

}  // namespace dtrain
