// PeerCollective: the collective `ordered` for vectors in the memory of GPUs of one machine.  Each rank reads the memory of
// the others where it lies, so no byte of a vector passes through host memory.  Ranks may share a GPU, or have one each
// that reaches those of the others (peer access).
//
// It computes the same sum as `ordered` in host memory, ((g0 + g1) + g2) + ... in rank order for every element, to the bit.
// A vector has a block for each rank, its owner:
//
//   1. Each rank sends the others word that its vector is written, and where it lies (PeerMemory).
//   2. The owner of a block adds those of all ranks, in its own vector, and notifies the others.
//   3. Each rank copies the blocks of the others, and notifies them.  The sum is done when all ranks have copied.
//
// The kernels of 2 and 3 run in a queue of the collective's.  Nothing waits for them: Progress looks at their events, and
// a message of some 100 bytes goes to each other rank after each of these.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/comm/collective.h"
#include "framework/device/device.h"

namespace dtrain {

class PeerCollective : public Collective {
 public:
  // Uses the queue of `device`, which only the caller's thread uses.  The vectors are in memory that the device has
  // allocated.  It must stay allocated until all ranks rest.
  PeerCollective(Transport& transport, const Device& device);
  ~PeerCollective() override;

  std::string name() const override { return "ordered"; }
  int64_t Start(std::span<float> data) override;
  bool Progress() override;
  bool Done(int64_t ticket) const override;
  bool Idle() const override;
  void Rest() override;
  Traffic traffic() const override { return traffic_; }

 private:
  // A message says how far a rank is with a sum.
  struct Message {
    int64_t ticket = 0;
    enum Kind : int64_t { kWritten, kAdded, kCopied } kind = kWritten;
    int64_t elements = 0;
    PeerMemory memory;  // of kWritten
  };
  struct Outgoing {
    Message message;
    Request request;
  };
  // The state of a sum.  Messages may come before this rank has started it.
  struct Sum {
    std::span<float> data;
    std::vector<float*> memory;  // of each rank, once it is written; null before
    // kFinishing: all copies are submitted.  kCopied: they are done, and the other ranks know.
    enum class Stage {
      kNotStarted,
      kWaiting,
      kAdding,
      kCopying,
      kFinishing,
      kCopied
    } stage = Stage::kNotStarted;
    ReadyEvent event;             // of the sum, or of the last copy
    std::vector<Rank> to_copy;    // owners that have added, and whose blocks are not copied yet
    int written = 0, copies = 0;  // ranks; blocks for which a copy was submitted
    int ranks_done = 0;           // others that have copied all blocks
    int unsent = 0;               // messages
  };

  Range BlockOfRank(const Sum& sum, Rank rank) const;
  Sum& At(int64_t ticket);
  void Notify(int64_t ticket, Message::Kind kind, const PeerMemory& memory = {});
  bool Receive();
  void Take(Rank from, const Message& message);
  float* Map(const PeerMemory& memory);
  bool FinishSends();
  bool Advance(int64_t ticket, Sum& sum);
  bool IsDone(const Sum& sum) const;

  Transport& transport_;
  const Device device_;
  const int ranks_;
  std::deque<Sum> sums_;  // from first_ticket_ on
  int64_t first_ticket_ = 0, started_ = 0;
  std::list<Outgoing> outgoing_;
  // The memory of the others, by process and handle.
  std::map<std::pair<int64_t, std::array<std::byte, 64>>, std::shared_ptr<void>> mapped_;
  Traffic traffic_;
};

}  // namespace dtrain
