// RankTimeline: what one rank of a run did at what time, real or simulated, in three lanes.
//
//   compute    wait (for admission or weights), compute (forward and backward), exposed (the end of
//              the step waits for the exchange), evaluate, checkpoint
//   exchange   arithmetic (on vectors), select (a compressor selects or rounds entries), and
//              messages as they are sent and read
//   buckets    sum (the all-reduce of one bucket; it begins with the request, or when the
//              all-reduce before is complete)
//
// Times are those of the rank's Clock.  Each lane has one writer: the trainer's thread and the
// exchange thread.
#pragma once

#include <span>

#include "framework/comm/transport.h"
#include "framework/core/timeline.h"

namespace dtrain {

class RankTimeline {
 public:
  explicit RankTimeline(int64_t events_max = Timeline::kEventsMax)
      : compute_("compute", events_max),
        exchange_("exchange", events_max),
        buckets_("buckets", events_max) {}

  // --- the trainer's thread
  void Waited(Nanos begin, Nanos end) { Span(wait_, begin, end); }
  void Computed(Nanos begin, Nanos end, int64_t samples) {
    compute_.Span(computing_, begin, end, {samples_, samples});
  }
  void Exposed(Nanos begin, Nanos end) { Span(exposed_, begin, end); }
  void Evaluated(Nanos begin, Nanos end) { Span(evaluate_, begin, end); }
  void Checkpointed(Nanos begin, Nanos end) { Span(checkpoint_, begin, end); }

  // --- the exchange thread
  void Arithmetic(Nanos begin, Nanos end, int64_t bytes) {
    exchange_.Span(arithmetic_, begin, end, {exchange_bytes_, bytes});
  }
  void Selected(Nanos begin, Nanos end, int64_t bytes) {
    exchange_.Span(select_, begin, end, {exchange_bytes_, bytes});
  }
  void Sent(Nanos at, Rank to, int64_t bytes) {
    exchange_.Instant(send_, at, {peer_, to}, {exchange_bytes_, bytes});
  }
  void Read(Nanos at, Rank from, int64_t bytes) {
    exchange_.Instant(read_, at, {peer_, from}, {exchange_bytes_, bytes});
  }
  // `bucket` is the index of the bucket in the execution plan.
  void Summed(Nanos begin, Nanos end, int64_t bucket) {
    buckets_.Span(sum_, begin, end, {bucket_, bucket});
  }

  std::string Pack(const TimelineRank& rank) const {
    const Timeline* const lanes[] = {&compute_, &exchange_, &buckets_};
    // The lane of buckets is left out if it is empty.
    return PackTimelines(rank, std::span(lanes).first(buckets_.events().empty() ? 2 : 3));
  }

 private:
  void Span(int name, Nanos begin, Nanos end) {
    if (end > begin) compute_.Span(name, begin, end);
  }

  Timeline compute_, exchange_, buckets_;
  const int wait_ = compute_.Name("wait"), computing_ = compute_.Name("compute"),
            exposed_ = compute_.Name("exposed"), evaluate_ = compute_.Name("evaluate"),
            checkpoint_ = compute_.Name("checkpoint"), samples_ = compute_.Name("samples");
  const int arithmetic_ = exchange_.Name("arithmetic"), select_ = exchange_.Name("select"),
            send_ = exchange_.Name("send"), read_ = exchange_.Name("read"),
            peer_ = exchange_.Name("peer"), exchange_bytes_ = exchange_.Name("bytes");
  const int sum_ = buckets_.Name("sum"), bucket_ = buckets_.Name("bucket");
};

}  // namespace dtrain
