#include "framework/bench/network/link_shares.h"

#include <algorithm>
#include <cmath>

#include "framework/cluster/noise.h"
#include "framework/comm/backoff.h"
#include "framework/core/random.h"
#include "framework/core/statistics.h"
#include "framework/core/time.h"
#include "framework/device/buffer.h"

namespace dtrain {
namespace {

constexpr double kLeastTogether = 1.5;  // fewer overlap too little for an estimate
// Corrects a bias: messages of a small weight last longer and overlap more others, which evens the ratios out.
// Determined with the simulated network (tests/cli/link_shares_test.cc).
constexpr double kSelection = 1.18;

// Describes an interval in which the same messages are under way.
struct Interval {
  double seconds = 0;
  std::vector<size_t> messages;
};

double DeviationOfLogs(std::vector<double> values) {
  for (double& value : values) value = std::log(value);
  return MomentsOf(values).deviation;
}

std::vector<Interval> IntervalsOf(std::span<const Passage> passages) {
  std::vector<double> times;
  for (const Passage& passage : passages) times.insert(times.end(), {passage.begin, passage.end});
  std::sort(times.begin(), times.end());
  std::vector<Interval> intervals;
  for (size_t i = 0; i + 1 < times.size(); ++i) {
    Interval interval{times[i + 1] - times[i], {}};
    for (size_t m = 0; m < passages.size(); ++m) {
      if (passages[m].begin <= times[i] && passages[m].end >= times[i + 1]) {
        interval.messages.push_back(m);
      }
    }
    if (interval.seconds > 0 && !interval.messages.empty()) intervals.push_back(interval);
  }
  return intervals;
}

// Rank 0 keeps this record of one sender.
struct Sender {
  Buffer buffer;
  Request request;
  Nanos begin = 0;  // of the next message or the current one
  int left = 0;     // messages left to begin
};

class Incast {
 public:
  Incast(Transport& transport, int64_t bytes, int messages) : transport_(transport) {
    for (Rank peer = 1; peer < transport.size(); ++peer) {
      senders_.push_back({Buffer(static_cast<size_t>(bytes)), {}, 0, messages});
    }
  }

  std::vector<Passage> Run() {
    const size_t all = senders_.size() * static_cast<size_t>(senders_[0].left);
    begun_ = WallNow();
    for (Sender& sender : senders_) sender.begin = begun_;
    Backoff backoff;
    while (passages_.size() < all) {
      for (size_t i = 0; i < senders_.size(); ++i) Look(static_cast<Rank>(i + 1), senders_[i]);
      backoff.Pause();
    }
    return passages_;
  }

 private:
  void Look(Rank peer, Sender& sender) {
    if (sender.request.active()) {
      if (transport_.Test(sender.request)) End(peer, sender);
    } else if (sender.left > 0 && WallNow() >= sender.begin) {
      Begin(peer, sender);
    }
  }

  void Begin(Rank peer, Sender& sender) {
    sender.left -= 1;
    sender.request = transport_.Receive(
        peer, Tag::kBulk, {static_cast<std::byte*>(sender.buffer.data()), sender.buffer.bytes()});
    sender.begin = WallNow();
    Request go = transport_.Send(peer, Tag::kControl, std::as_bytes(std::span(&go_, 1)));
    while (!transport_.Test(go)) {
    }
  }

  // The next message begins after a random pause of at most this one's duration, so that messages overlap in all
  // combinations.
  void End(Rank peer, Sender& sender) {
    const Nanos now = WallNow();
    passages_.push_back({ToSeconds(sender.begin - begun_), ToSeconds(now - begun_)});
    const Random random(1, Purpose::kSelfTest, static_cast<uint64_t>(peer),
                        static_cast<uint64_t>(sender.left));
    sender.begin =
        now + static_cast<Nanos>(static_cast<double>(now - sender.begin) * random.Uniform(0));
  }

  Transport& transport_;
  std::vector<Sender> senders_;
  std::vector<Passage> passages_;
  Nanos begun_ = 0;
  const char go_ = 0;
};

void SendMessages(Transport& transport, int64_t bytes, int messages) {
  const Buffer buffer(static_cast<size_t>(bytes));
  char go = 0;
  Backoff backoff;
  const auto await = [&](Request request) {
    while (!transport.Test(request)) backoff.Pause();
  };
  for (int i = 0; i < messages; ++i) {
    await(transport.Receive(0, Tag::kControl, std::as_writable_bytes(std::span(&go, 1))));
    await(transport.Send(0, Tag::kBulk,
                         {static_cast<const std::byte*>(buffer.data()), buffer.bytes()}));
  }
}

}  // namespace

double ShareDeviationOf(std::span<const Passage> passages) {
  const std::vector<Interval> intervals = IntervalsOf(passages);
  double busy = 0;
  for (const Interval& interval : intervals) busy += interval.seconds;
  // The amount, in messages, that would have passed during each message at equal shares; the NIC passes one message in
  // `unit` seconds.
  const double unit = busy / static_cast<double>(passages.size());
  std::vector<double> evenly(passages.size());
  double together = 0;  // mean number of messages under way
  for (const Interval& interval : intervals) {
    const auto count = static_cast<double>(interval.messages.size());
    for (const size_t m : interval.messages) evenly[m] += interval.seconds / unit / count;
    together += count * interval.seconds / busy;
  }
  if (together < kLeastTogether) return 0;
  const double deviation = DeviationOfLogs(evenly) / std::sqrt(1 - 1 / together);
  return RelativeDeviationOf(kSelection * deviation);
}

std::vector<Passage> TimeIncast(Transport& transport, int64_t bytes, int messages) {
  if (transport.rank() == 0) return Incast(transport, bytes, messages).Run();
  SendMessages(transport, bytes, messages);
  return {};
}

}  // namespace dtrain
