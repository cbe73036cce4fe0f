// ScheduledCollective: a collective that splits reductions into chunks and carries out a schedule
// for each, several at a time.
//
// Chunks begin in the order of Start on every rank and end in any order.  While one chunk is
// gathered the next is added, and a chunk's scratch memory stays in the core's cache.  The first
// chunk of a reduction begins when the reduction before is done on this rank or, with
// CollectiveOptions::overlap, as soon as a lane is free.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/comm/collective.h"
#include "framework/comm/collective_rules.h"
#include "framework/comm/schedule_run.h"
#include "framework/device/buffer.h"

namespace dtrain {

class ScheduledCollective : public Collective {
 public:
  ScheduledCollective(std::string name, const CollectiveRules& rules,
                      const CollectiveOptions& options, Transport& transport);
  ~ScheduledCollective() override;

  std::string name() const override { return name_; }
  int64_t Start(std::span<float> data) override { return StartSum(data, {}); }
  int64_t StartRounded(std::span<float> data, const Rounding& rounding) override {
    return StartSum(data, rounding);
  }
  bool Progress() override;
  bool Done(int64_t ticket) const override;
  bool Idle() const override;
  Traffic traffic() const override;

 private:
  struct Reduction {
    std::span<float> data;
    Rounding rounding;
    const CollectiveSchedule* schedule = nullptr;
    int chunks = 0;
    int chunks_begun = 0;
    int chunks_left = 0;
  };
  // Holds the state of a chunk being reduced.
  struct Lane {
    ScheduleRun run;
    Buffer scratch;
    int64_t ticket = -1;
  };

  int64_t StartSum(std::span<float> data, const Rounding& rounding);
  void ForgetFinished();
  bool BeginChunks();
  bool MayBegin(int64_t ticket) const;
  void BeginChunk(int64_t ticket);
  bool AdvanceLanes();
  Reduction& At(int64_t ticket) { return reductions_[ticket - first_ticket_]; }

  std::string name_;
  CollectiveRules rules_;
  CollectiveOptions options_;
  Transport* transport_;
  CollectiveSchedule schedule_;
  CollectiveSchedule small_schedule_;
  std::vector<Lane> lanes_;
  std::vector<int>
      free_;  // lanes; the one used last, whose scratch is still in cache, is at the end
  std::vector<int> busy_;              // lanes, oldest chunk first
  std::vector<Reduction> reductions_;  // from first_ticket_ on
  int64_t first_ticket_ = 0;
  int64_t begin_ticket_ = 0;  // the reduction whose chunks begin next
  int64_t sequence_ = 0;      // chunks begun so far
  int64_t bytes_inside_ = 0;
};

}  // namespace dtrain
