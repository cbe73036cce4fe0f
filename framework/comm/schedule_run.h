// ScheduleRun: carries out one schedule over one chunk of a vector.
//
// It is a state machine that the owner polls.  Several may run at the same time, each in its own
// stream of messages.  It has no memory except its lists of requests, which keep their capacity, so
// a run that is begun again allocates nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/comm/collective.h"
#include "framework/comm/collective_schedule.h"
#include "framework/comm/transport.h"
#include "framework/core/layout.h"

namespace dtrain {

class ScheduleRun {
 public:
  explicit ScheduleRun(Transport& transport) : transport_(&transport) {}

  // `scratch` has room for schedule.fetches_max() blocks.  Data and scratch belong to the run until
  // finished().  With `rounding` all values are sent in 16 bits (Collective::StartRounded).
  void Begin(const CollectiveSchedule& schedule, Tag tag, std::span<float> data, float* scratch,
             const Rounding& rounding = {});

  // Advances as far as possible without waiting.  Returns true if anything moved.
  bool Advance();
  bool finished() const;

  // These are totals over the life of this object.
  int64_t bytes_sent() const { return bytes_sent_; }
  int64_t bytes_received() const { return bytes_received_; }
  int64_t messages() const { return messages_; }
  int64_t bytes_added() const { return bytes_added_; }

 private:
  struct Sending {
    Request request;
    Range blocks;
  };
  struct Fetched {
    Rank from;
    const float* values;
  };

  bool TryMove(const Move& move);
  void Fetch(const Move& move, std::span<float> block);
  void Send(const Move& move, std::span<float> block);
  void Receive(const Move& move, std::span<float> block);
  void Sum(std::span<float> block);
  void Await(Rank from, std::span<float> memory);
  void Arrived(std::span<float> memory);
  bool Staged(Range range) const { return staged_ == range; }
  void Stage(Range range);
  bool TestArrivals();
  bool TestSends(Range blocks);

  Transport* transport_;
  const CollectiveSchedule* schedule_ = nullptr;
  Tag tag_ = Tag::kCollectiveStream;
  std::span<float> data_;
  float* scratch_ = nullptr;  // destination of the next fetch
  float* scratch_begin_ = nullptr;
  size_t next_ = 0;  // index of the next move
  int round_ = 0;
  struct Arrival {
    Request request;
    std::span<float> memory;
  };
  std::vector<Arrival> arrivals_;  // awaited in this round
  size_t arrived_ = 0;
  std::vector<Fetched> fetched_;  // in this round
  std::vector<Sending> sends_;    // in flight, of all rounds so far
  std::vector<const float*> sources_;
  Rounding rounding_;
  std::vector<uint16_t> staging_;  // the vector in 16 bits, as it is sent
  Range staged_;                   // the range converted last, if the vector did not change since
  int64_t events_ = 0;
  int64_t bytes_sent_ = 0;
  int64_t bytes_received_ = 0;
  int64_t bytes_added_ = 0;
  int64_t messages_ = 0;
};

}  // namespace dtrain
