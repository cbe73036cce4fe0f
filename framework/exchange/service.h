// Service: messages between the drivers of a run, which actors do not see.  They serve quiescence
// (quiescence.h), sums within a step (summed_messages.h) and stall reports (stall_watch.h).
//
//   service.On<control::Hold>([](const control::Hold&, Rank from) { ... });
//   service.Send(rank, control::Hold{});
//
// This file has all kinds of such messages.  Handlers are registered before the first message
// arrives; a message without a handler stops the program.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "framework/core/check.h"
#include "framework/core/time.h"
#include "framework/exchange/mailbox.h"

namespace dtrain {

// Lists the numbers of the kinds as they are sent.  The kinds of messages between actors are
// numbered separately.
enum ServiceKind : int {
  kStartedMessage = 101,
  kHoldMessage,
  kHeldMessage,
  kCountMessage,
  kCountedMessage,
  kAtBoundaryMessage,
  kAllQuiescentMessage,
  kProgressMessage,
  kGoneMessage,
  kAskMessage = 201,
  kAnswerMessage,
  kPartOfSumMessage,
  kSumOfAllMessage,
};

namespace control {

// --- quiescence.h describes when they are sent

// Holds the outcome of the worker's last step, if it was not reported to the leader yet; else
// zeros.
struct EndedStep {
  int64_t samples = 0;
  double loss_sum = 0;
  int64_t stop = 0, finite = 1;
  DTRAIN_FIELDS(samples, loss_sum, stop, finite)
};

struct Started {
  static constexpr int kKind = kStartedMessage;
  int64_t samples = 0;
  EndedStep before;
  DTRAIN_FIELDS(samples, before)
};

struct Hold {
  static constexpr int kKind = kHoldMessage;
  DTRAIN_FIELDS()
};

struct Held {
  static constexpr int kKind = kHeldMessage;
  EndedStep before;
  int64_t samples_applied = 0;  // of a synchronous run: by all workers
  DTRAIN_FIELDS(before, samples_applied)
};

struct Count {
  static constexpr int kKind = kCountMessage;
  int64_t round = 0;
  DTRAIN_FIELDS(round)
};

struct Counted {
  static constexpr int kKind = kCountedMessage;
  int64_t round = 0, sent = 0, received = 0, idle = 0, finite = 1;
  DTRAIN_FIELDS(round, sent, received, idle, finite)
};

struct AllQuiescent {
  static constexpr int kKind = kAllQuiescentMessage;
  int64_t samples_applied = 0, last = 0;
  DTRAIN_FIELDS(samples_applied, last)
};

struct AtBoundary {
  static constexpr int kKind = kAtBoundaryMessage;
  int64_t samples_applied = 0, stop = 0, finite = 1;
  DTRAIN_FIELDS(samples_applied, stop, finite)
};

struct ReportToRoot {
  static constexpr int kKind = kProgressMessage;
  int64_t samples_applied = 0, samples = 0;
  double loss_sum = 0;
  DTRAIN_FIELDS(samples_applied, samples, loss_sum)
};

// --- death of a worker's rank, in the simulator

// This is the rank's last message, sent to the leader of quiescence and to the actor of the
// worker's node.  The latter counts as a message between actors, since that actor may react to it.
struct Gone {
  static constexpr int kKind = kGoneMessage;
  int64_t worker = 0;
  DTRAIN_FIELDS(worker)
};

// --- stall_watch.h

// Asks a rank what its actors wait for.
struct Ask {
  static constexpr int kKind = kAskMessage;
  DTRAIN_FIELDS()
};

struct Answer {
  static constexpr int kKind = kAnswerMessage;
  int64_t computing = 0;   // 1 if the rank's worker is computing
  Nanos longest_step = 0;  // longest step of that worker so far
  std::string waits_for;
  DTRAIN_FIELDS(computing, longest_step, waits_for)
  friend bool operator==(const Answer&, const Answer&) = default;
};

// --- summed_messages.h

// Holds one worker's values, sent to worker 0, which sends SumOfAll to all workers.
struct PartOfSum {
  static constexpr int kKind = kPartOfSumMessage;
  std::vector<double> values;
  DTRAIN_FIELDS(values)
};

struct SumOfAll {
  static constexpr int kKind = kSumOfAllMessage;
  std::vector<double> values;
  DTRAIN_FIELDS(values)
};

}  // namespace control

class Service {
 public:
  explicit Service(Mailbox& mailbox) : mailbox_(mailbox) {}

  // Registers handler(const M&, Rank from), one for each kind.
  template <class M, class Handler>
  void On(Handler handler) {
    handlers_[M::kKind] = [handler = std::move(handler)](const Envelope& envelope) {
      handler(Unpack<M>(envelope.message), envelope.from_rank);
    };
  }

  template <class M>
  void Send(Rank to, const M& message) {
    mailbox_.SendUncounted(to, Envelope{.message = Pack(message)});
  }

  void Deliver(const Envelope& envelope) const {
    const auto handler = handlers_.find(envelope.message.kind);
    DT_CHECK(handler != handlers_.end())
        << "rank " << mailbox_.rank() << " got a message of kind " << envelope.message.kind
        << " from rank " << envelope.from_rank << ", which has no handler";
    handler->second(envelope);
  }

 private:
  Mailbox& mailbox_;
  std::map<int, std::function<void(const Envelope&)>> handlers_;
};

}  // namespace dtrain
