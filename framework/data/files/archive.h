// MemberReader reads the bytes of one file, be it plain, a .gz or .xz, or a member of a .tar.gz, .tar.xz or .tar
// archive (decided by the name's ending).  It streams: nothing is unpacked to disk and only one block is in memory.
//
// Every failure is a DataError that names the file (and member) and the position in the unpacked
// bytes; after a stop request, the next read throws StoppedError.  Not thread-safe; use one reader per thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

class MemberReader {
 public:
  // `member`: for tar archives, the member's path or the end of it after a '/'
  // ("data_batch_1.bin" finds "cifar-10-batches-bin/data_batch_1.bin"); empty otherwise.
  // Throws if the file cannot be opened, is not what its name says, or has no such member.
  explicit MemberReader(const std::filesystem::path& path, const std::string& member = "");
  // Calls `visit` for every regular member of a tar archive, in its order and in one pass: a reader for each would
  // unpack the archive from its start each time.  `visit` gets the member's path and its bytes, which it need not read.
  // The pass goes to the archive's end, where its checksums are.
  using Visitor = std::function<void(const std::string& member, MemberReader& in)>;
  static void VisitAll(const std::filesystem::path& path, const Visitor& visit);

  ~MemberReader();
  MemberReader(MemberReader&&) noexcept;

  // Reads up to `bytes`, fewer only at the end.
  size_t Read(void* to, size_t bytes);

  // Reads exactly `bytes`; throws if the content ends before.  `what` names the content in the message: "FILE ends at
  // byte 1000, inside WHAT (bytes 16 to 47040016)".
  void ReadExactly(void* to, size_t bytes, std::string_view what);

  int64_t position() const;         // unpacked bytes read so far
  const std::string& name() const;  // "path" or "path:member", for messages
  bool compressed() const;

 private:
  struct Impl;
  explicit MemberReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// True if the name is that of a tar archive, compressed or not.
bool IsTarArchive(const std::filesystem::path& path);

// Returns the paths of the regular files in a tar archive, in its order.
std::vector<std::string> ListMembers(const std::filesystem::path& path);

}  // namespace dtrain
