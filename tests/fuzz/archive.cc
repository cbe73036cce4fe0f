// Reads compressed files and archives in the formats of the data sets' files: .gz, .xz, .tar,
// .tar.gz, .tar.xz.
#include "framework/data/files/archive.h"

#include <vector>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/gzip.h"

namespace dtrain::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlock = 4096;
constexpr int64_t kMostBytes = 1 << 20;  // limit on what is read of a file that unpacks to much

struct Member {
  std::string name, content;
  friend bool operator==(const Member&, const Member&) = default;
};

std::string ContentOf(MemberReader& in) {
  std::string content, block(kBlock, '\0');
  while (in.position() < kMostBytes) {
    const int64_t before = in.position();
    const size_t got = in.Read(block.data(), block.size());
    Require(in.position() == before + static_cast<int64_t>(got), "the position is wrong");
    if (got == 0) break;
    content.append(block, 0, got);
  }
  return content;
}

std::vector<Member> MembersOf(const fs::path& path) {
  std::vector<Member> members;
  MemberReader::VisitAll(path, [&](const std::string& name, MemberReader& in) {
    members.push_back({name, ContentOf(in)});
  });
  return members;
}

// The list of names must agree with a pass that reads all members, and a member must be found by
// its name.
void ReadArchive(const fs::path& path) {
  const std::vector<Member> members = MembersOf(path);
  const std::vector<std::string> names = ListMembers(path);
  Require(names.size() == members.size(), "the list has other members");
  for (size_t i = 0; i < names.size(); ++i) {
    Require(names[i] == members[i].name, "the list has another name");
  }
  if (members.empty()) return;
  MemberReader in(path, names.front());
  Require(ContentOf(in) == members.front().content, "a member has another content");
}

void ParseFile(const fs::path& path) {
  MemberReader in(path);
  ContentOf(in);
}

// The first byte chooses the file's name, and whether the target compresses the rest.
bool Archive(std::string_view input) {
  static constexpr const char* kNames[] = {"a",     "a.gz",     "a.xz",  "a.tar",
                                           "a.tgz", "a.tar.xz", "a.txz", "a.tar.gz"};
  InputReader in(input);
  const uint8_t choice = in.Byte();
  const std::string name = kNames[choice % std::size(kNames)];
  const bool pack = (choice & 8) != 0 && (name.ends_with("gz"));
  const std::string_view rest = in.Rest();
  const fs::path path = WriteScratch(name, pack ? Gzipped(rest) : rest);
  const bool tar = IsTarArchive(path);
  return Accepts(ExitCode::kData, [&] { tar ? ReadArchive(path) : ParseFile(path); });
}

DTRAIN_FUZZ_TARGET("archive", Archive);

}  // namespace
}  // namespace dtrain::fuzz
