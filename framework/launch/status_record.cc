#include "framework/launch/status_record.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "framework/core/process.h"
#include "framework/core/text.h"
#include "framework/launch/process_folder.h"

namespace dtrain {
namespace fs = std::filesystem;

// Mapped is the file's content.  Single values are atomic and may change at any time; texts are written before the flag
// that publishes them.
struct StatusRecord::Mapped {
  std::atomic<int32_t> valid;  // kMagic once rank, pid and host are written
  int32_t rank;
  int32_t pid;
  std::atomic<int32_t> doing;
  std::atomic<int64_t> step;
  std::atomic<double> compute_seconds;
  std::atomic<int32_t> exit_code;  // kNone until the end; set last
  char host[64];
  char message[500];

  static constexpr int32_t kMagic = 0x64747231;
  static constexpr int32_t kNone = -1;

  static Mapped* Create(const fs::path& path);
  static std::optional<RankStatus> Read(const fs::path& path);
};

namespace {

template <size_t kSize>
void CopyText(std::string_view text, char (&out)[kSize]) {
  const size_t length = std::min(text.size(), kSize - 1);
  std::memcpy(out, text.data(), length);
  out[length] = '\0';
}

template <size_t kSize>
std::string TextOf(const char (&in)[kSize]) {
  return {in, strnlen(in, kSize)};
}

}  // namespace

StatusRecord::Mapped* StatusRecord::Mapped::Create(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return nullptr;
  void* memory = MAP_FAILED;
  // Allocates the blocks now, so that a full disk does not turn a later store into SIGBUS.
  if (::posix_fallocate(fd, 0, sizeof(Mapped)) == 0) {
    memory = ::mmap(nullptr, sizeof(Mapped), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  ::close(fd);
  return memory == MAP_FAILED ? nullptr : static_cast<Mapped*>(memory);
}

std::optional<RankStatus> StatusRecord::Mapped::Read(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  alignas(Mapped) char bytes[sizeof(Mapped)];
  const ssize_t count = ::pread(fd, bytes, sizeof(bytes), 0);
  ::close(fd);
  const auto* mapped = reinterpret_cast<const Mapped*>(bytes);
  if (count != sizeof(bytes) || mapped->valid != kMagic) return std::nullopt;
  RankStatus status;
  status.rank = mapped->rank;
  status.pid = mapped->pid;
  status.host = TextOf(mapped->host);
  status.doing = static_cast<Doing>(mapped->doing.load());
  status.step = mapped->step;
  status.compute_seconds = mapped->compute_seconds;
  if (const int32_t code = mapped->exit_code; code != kNone) {
    status.exit_code = code;
    status.message = TextOf(mapped->message);
  }
  return status;
}

std::string_view NameOf(Doing doing) {
  return NameIn({"starting", "loading data", "training", "evaluating", "writing a checkpoint",
                 "writing the results", "ended", "measuring the model"},
                doing);
}

StatusRecord::StatusRecord(const fs::path& folder, int rank) {
  if (folder.empty()) return;
  mapped_ = Mapped::Create(folder / ("rank-" + std::to_string(rank)));
  if (mapped_ == nullptr) return;
  mapped_->rank = rank;
  mapped_->pid = ::getpid();
  CopyText(HostName(), mapped_->host);
  mapped_->exit_code = Mapped::kNone;
  mapped_->valid.store(Mapped::kMagic, std::memory_order_release);
}

// On another machine the folder does not exist, or another user may have made one of that name.
StatusRecord StatusRecord::OfThisProcess(int rank) {
  const fs::path folder = StatusFolder();
  return StatusRecord(IsPrivateFolder(folder) ? folder : fs::path(), rank);
}

StatusRecord::~StatusRecord() {
  if (mapped_ != nullptr) ::munmap(mapped_, sizeof(Mapped));
}

StatusRecord::StatusRecord(StatusRecord&& other) noexcept
    : mapped_(std::exchange(other.mapped_, nullptr)) {}

void StatusRecord::Update(Doing doing, int64_t step, double compute_seconds) {
  if (mapped_ == nullptr) return;
  mapped_->doing.store(static_cast<int32_t>(doing), std::memory_order_relaxed);
  mapped_->step.store(step, std::memory_order_relaxed);
  mapped_->compute_seconds.store(compute_seconds, std::memory_order_relaxed);
}

void StatusRecord::End(int exit_code, std::string_view message) {
  if (mapped_ == nullptr) return;
  CopyText(message, mapped_->message);
  mapped_->doing.store(static_cast<int32_t>(Doing::kEnded), std::memory_order_relaxed);
  mapped_->exit_code.store(exit_code, std::memory_order_release);
}

fs::path StatusFolder() {
  const char* folder = std::getenv(kStatusFolderVariable);
  return folder == nullptr ? "" : folder;
}

std::vector<RankStatus> ReadStatusRecords(const fs::path& folder) {
  std::vector<RankStatus> records;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(folder, absent)) {
    if (auto record = StatusRecord::Mapped::Read(entry.path())) records.push_back(*record);
  }
  std::ranges::sort(records, {}, &RankStatus::rank);
  return records;
}

int SlowestRank(const std::vector<RankStatus>& records) {
  const auto slowest = std::ranges::max_element(records, {}, &RankStatus::compute_seconds);
  if (records.size() < 2 || slowest->compute_seconds <= 0) return -1;
  return slowest->rank;
}

}  // namespace dtrain
