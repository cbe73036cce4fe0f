#include "framework/comm/node_window.h"

#include <algorithm>
#include <atomic>
#include <new>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "framework/comm/gather.h"
#include "framework/core/bytes.h"
#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/core/log.h"

namespace dtrain {

// Head is the header in front of a Blob's elements in shared memory.
struct NodeWindow::Head {
  std::atomic<int32_t> borrowers;
  int64_t elements;
};

// Slot is a Blob of this rank's segment.
struct NodeWindow::Slot : BlobBody {
  int64_t place = 0;  // offset of the head in the segment
  Head* head = nullptr;
};

// Borrowed is a Blob of another rank's segment.
struct NodeWindow::Borrowed : BlobBody {
  Head* head = nullptr;
};

namespace {

// Several processes use the counter, at different addresses, so it must not need a lock.
static_assert(std::atomic<int32_t>::is_always_lock_free);

constexpr size_t kPage = 4096;
constexpr size_t kHeadBytes = 64;  // elements begin at a cache line

size_t SlotBytes(int64_t elements) {
  const size_t bytes = kHeadBytes + static_cast<size_t>(elements) * sizeof(float);
  return (bytes + kPage - 1) / kPage * kPage;
}

// Returns the ranks on this rank's node with which it shares memory, itself included, ascending.
std::vector<Rank> RanksInside(const Transport& transport, std::span<const int> nodes) {
  std::vector<Rank> inside;
  for (const Rank rank : transport.node_ranks()) {
    if (nodes[rank] == nodes[transport.rank()]) inside.push_back(rank);
  }
  return inside;
}

void LogTrouble(const std::vector<Rank>& inside, const std::string& trouble) {
  log::Warning(
      "ranks {} of one node cannot read each other's memory, and copy what they exchange: {}",
      fmt::join(inside, ", "), trouble);
}

std::vector<SegmentPlace> PlacesOfAll(Transport& transport, const SegmentPlace& mine) {
  std::vector<SegmentPlace> places;
  for (const std::string& bytes : AllGather(transport, ToBytes(mine))) {
    places.push_back(FromBytes<SegmentPlace>(bytes));
  }
  return places;
}

}  // namespace

NodeWindow::NodeWindow(SharedSegment segment, size_t reserved)
    : segment_(std::move(segment)), reserved_(reserved) {}

NodeWindow::~NodeWindow() {
  lent_.clear();
  size_t free = 0;
  for (const auto& [elements, slots] : free_) free += slots.size();
  DT_CHECK(free == slots_.size()) << slots_.size() - free << " Blobs outlive their window";
  DT_CHECK(spare_.size() == borrowed_.size())
      << borrowed_.size() - spare_.size() << " borrowed Blobs outlive the window";
}

// The ranks exchange messages twice: first the places of the segments, then whether each rank could
// open the others' segments.
std::unique_ptr<NodeWindow> NodeWindow::Make(Transport& transport, std::span<const int> nodes,
                                             const NodeWindowOptions& options) {
  DT_CHECK(static_cast<int>(nodes.size()) == transport.size()) << nodes.size() << " nodes";
  const std::vector<Rank> inside = RanksInside(transport, nodes);
  const bool alone = inside.size() == 1;
  std::unique_ptr<NodeWindow> window;
  std::string trouble;
  try {
    if (!alone) window = Create(options);
  } catch (const Error& error) {
    trouble = error.what();
  }
  const std::vector<SegmentPlace> places =
      PlacesOfAll(transport, window ? window->segment_.place() : SegmentPlace());
  try {
    if (window) window->Open(inside, transport.rank(), places);
  } catch (const Error& error) {
    trouble = error.what();
  }
  const std::vector<std::string> troubles = AllGather(transport, trouble);
  for (const Rank rank : inside) {
    if (troubles[rank].empty()) continue;
    if (transport.rank() == inside[0]) LogTrouble(inside, troubles[rank]);
    return nullptr;
  }
  return window;
}

std::unique_ptr<NodeWindow> NodeWindow::Create(const NodeWindowOptions& options) {
  const size_t blob = SlotBytes(options.elements);
  SharedSegment segment = SharedSegment::Create(static_cast<size_t>(options.blobs_max) * blob);
  const size_t first = static_cast<size_t>(options.blobs_first) * blob;
  const std::string trouble = segment.Reserve(0, first);
  if (!trouble.empty()) {
    const double megabytes = 1e-6 * static_cast<double>(first);
    throw Error(ExitCode::kInternal,
                fmt::format("no {:.1f} MB in /dev/shm for each: {} (more room: docker run "
                            "--shm-size=1g, or mount -o remount,size=1g /dev/shm)",
                            megabytes, trouble));
  }
  return std::unique_ptr<NodeWindow>(new NodeWindow(std::move(segment), first));
}

// A rank without a segment is skipped here; it reports its own error in Make.
void NodeWindow::Open(const std::vector<Rank>& inside, Rank self,
                      const std::vector<SegmentPlace>& places) {
  for (const Rank rank : inside) {
    if (rank != self && places[rank].pid != 0) others_[rank] = SharedSegment::Open(places[rank]);
  }
}

// ------------------------------------------------------------------ the owner's side

Blob NodeWindow::New(int64_t elements) {
  if (Blob blob = Free(elements)) return blob;
  TakeBack();
  if (Blob blob = Free(elements)) return blob;
  Slot* const slot = AddSlot(elements);
  return slot == nullptr ? Blob() : Blob::First(*slot);
}

Blob NodeWindow::Free(int64_t elements) {
  const std::lock_guard lock(mutex_);
  std::vector<Slot*>& free = free_[elements];
  if (free.empty()) return {};
  Slot* const slot = free.back();
  free.pop_back();
  return Blob::First(*slot);
}

NodeWindow::Slot* NodeWindow::AddSlot(int64_t elements) {
  const size_t end = used_ + SlotBytes(elements);
  if (full_ || end > segment_.bytes()) return nullptr;
  if (end > reserved_) {
    const std::string trouble = segment_.Reserve(reserved_, end);
    full_ = !trouble.empty();
    if (full_) {
      log::Warning("no more room in /dev/shm: {}; some vectors are copied between ranks", trouble);
      return nullptr;
    }
    reserved_ = end;
  }
  auto slot = std::make_unique<Slot>();
  slot->place = static_cast<int64_t>(used_);
  slot->head = new (segment_.data() + used_) Head{.borrowers = 0, .elements = elements};
  slot->owner = this;
  slot->data = reinterpret_cast<float*>(segment_.data() + used_ + kHeadBytes);
  slot->elements = elements;
  used_ = end;
  const std::lock_guard lock(mutex_);
  slots_.push_back(std::move(slot));
  return slots_.back().get();
}

std::optional<int64_t> NodeWindow::Lend(const Blob& blob, Rank to) {
  const BlobBody* const body = blob.body();
  if (body == nullptr || body->owner != this || body->foreign || !others_.contains(to)) {
    return std::nullopt;
  }
  const Slot& slot = static_cast<const Slot&>(*body);
  // Release: a borrower that reads the new count sees what this rank has written to the Blob.
  slot.head->borrowers.fetch_add(1, std::memory_order_release);
  lent_.push_back(blob);
  return slot.place;
}

void NodeWindow::TakeBack() {
  std::erase_if(lent_, [](const Blob& blob) {
    const Slot& slot = static_cast<const Slot&>(*blob.body());
    // Acquire: the reads of all borrowers happen before this rank writes to the Blob again.
    return slot.head->borrowers.load(std::memory_order_acquire) == 0;
  });
}

// ------------------------------------------------------------------ the borrower's side

Blob NodeWindow::Borrow(Rank from, int64_t place) {
  Head* const head = reinterpret_cast<Head*>(others_.at(from).data() + place);
  // Acquire: pairs with the release in Lend, even if other borrowers have changed the count since.
  DT_CHECK(head->borrowers.load(std::memory_order_acquire) > 0) << "rank " << from << ", " << place;
  const std::lock_guard lock(mutex_);
  if (spare_.empty()) {
    spare_.reserve(borrowed_.size() + 1);
    borrowed_.push_back(std::make_unique<Borrowed>());
    borrowed_.back()->owner = this;
    borrowed_.back()->foreign = true;
    spare_.push_back(borrowed_.back().get());
  }
  Borrowed* const body = spare_.back();
  spare_.pop_back();
  body->head = head;
  body->data = reinterpret_cast<float*>(reinterpret_cast<std::byte*>(head) + kHeadBytes);
  body->elements = head->elements;
  return Blob::First(*body);
}

void NodeWindow::Return(BlobBody* body) {
  if (body->foreign) {
    auto* const borrowed = static_cast<Borrowed*>(body);
    borrowed->head->borrowers.fetch_sub(1, std::memory_order_release);
    const std::lock_guard lock(mutex_);
    spare_.push_back(borrowed);
    return;
  }
  const std::lock_guard lock(mutex_);
  free_[body->elements].push_back(static_cast<Slot*>(body));
}

}  // namespace dtrain
