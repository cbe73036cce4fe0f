// Service: what the drivers of a run tell each other, by letters that no actor sees: when there is
// rest (rest.h), sums within a step (sum_letters.h), and what a rank waits for (stall_watch.h).
//
//   service.On<letter::Withhold>([](const letter::Withhold&, Rank from) { ... });
//   service.Send(rank, letter::Withhold{});
//
// All kinds of such letters stand in this file.  Whoever handles one says so before letters come; a
// letter that nobody handles stops the program.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "framework/core/check.h"
#include "framework/core/time.h"
#include "framework/exchange/post.h"

namespace dtrain {

// Numbers are those of the wire; kinds of actors' messages are their own.
enum ServiceKind : int {
  kStartedLetter = 101,
  kWithholdLetter,
  kWithheldLetter,
  kCountLetter,
  kCountedLetter,
  kAtRestLetter,
  kAllQuietLetter,
  kToldLetter,
  kGoneLetter,
  kAskLetter = 201,
  kAnswerLetter,
  kPartOfSumLetter,
  kSumOfAllLetter,
};

namespace letter {

// --- rest.h says who sends them when

// How the worker's last step has ended, when the keeper has not been told yet.
struct EndedStep {
  int64_t samples = 0;
  double loss_sum = 0;
  int64_t stop = 0, finite = 1;
  DTRAIN_FIELDS(samples, loss_sum, stop, finite)
};

struct Started {
  static constexpr int kKind = kStartedLetter;
  int64_t samples = 0;
  EndedStep before;
  DTRAIN_FIELDS(samples, before)
};

struct Withhold {
  static constexpr int kKind = kWithholdLetter;
  DTRAIN_FIELDS()
};

struct Withheld {
  static constexpr int kKind = kWithheldLetter;
  EndedStep before;
  int64_t samples_applied = 0;  // synchronous: by all
  DTRAIN_FIELDS(before, samples_applied)
};

struct Count {
  static constexpr int kKind = kCountLetter;
  int64_t round = 0;
  DTRAIN_FIELDS(round)
};

struct Counted {
  static constexpr int kKind = kCountedLetter;
  int64_t round = 0, sent = 0, received = 0, idle = 0, finite = 1;
  DTRAIN_FIELDS(round, sent, received, idle, finite)
};

struct AllQuiet {
  static constexpr int kKind = kAllQuietLetter;
  int64_t samples_applied = 0, last = 0;
  DTRAIN_FIELDS(samples_applied, last)
};

struct AtRest {
  static constexpr int kKind = kAtRestLetter;
  int64_t samples_applied = 0, stop = 0, finite = 1;
  DTRAIN_FIELDS(samples_applied, stop, finite)
};

struct TellRoot {
  static constexpr int kKind = kToldLetter;
  int64_t samples_applied = 0, samples = 0;
  double loss_sum = 0;
  DTRAIN_FIELDS(samples_applied, samples, loss_sum)
};

// --- death of a worker's rank, in the simulator: the last that is heard of it, behind all else

// To the keeper of rest, and to the actor of the worker's node: that one counts as an actor's letter,
// since the actor may answer to it.
struct Gone {
  static constexpr int kKind = kGoneLetter;
  int64_t worker = 0;
  DTRAIN_FIELDS(worker)
};

// --- stall_watch.h

// "What do your actors wait for?"
struct Ask {
  static constexpr int kKind = kAskLetter;
  DTRAIN_FIELDS()
};

struct Answer {
  static constexpr int kKind = kAnswerLetter;
  int64_t computing = 0;   // the rank's worker is
  Nanos longest_step = 0;  // of its steps so far
  std::string waits_for;
  DTRAIN_FIELDS(computing, longest_step, waits_for)
  friend bool operator==(const Answer&, const Answer&) = default;
};

// --- sum_letters.h

// One worker's values, to worker 0; and the sum, back.
struct PartOfSum {
  static constexpr int kKind = kPartOfSumLetter;
  std::vector<double> values;
  DTRAIN_FIELDS(values)
};

struct SumOfAll {
  static constexpr int kKind = kSumOfAllLetter;
  std::vector<double> values;
  DTRAIN_FIELDS(values)
};

}  // namespace letter

class Service {
 public:
  explicit Service(Post& post) : post_(post) {}

  // handler(const M&, Rank from).  One for each kind.
  template <class M, class Handler>
  void On(Handler handler) {
    handlers_[M::kKind] = [handler = std::move(handler)](const Letter& letter) {
      handler(Unpack<M>(letter.message), letter.from_rank);
    };
  }

  template <class M>
  void Send(Rank to, const M& letter) {
    post_.SendUncounted(to, Letter{.message = Pack(letter)});
  }

  void Deliver(const Letter& letter) const {
    const auto handler = handlers_.find(letter.message.kind);
    DT_CHECK(handler != handlers_.end())
        << "rank " << post_.rank() << " got a letter of kind " << letter.message.kind
        << " from rank " << letter.from_rank << ", which nobody handles";
    handler->second(letter);
  }

 private:
  Post& post_;
  std::map<int, std::function<void(const Letter&)>> handlers_;
};

}  // namespace dtrain
