#include "framework/data/files/archive.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string ReadAll(MemberReader& in, size_t bytes) {
  std::string content, chunk(bytes, '\0');
  while (const size_t got = in.Read(chunk.data(), bytes)) content.append(chunk, 0, got);
  return content;
}

// The content is longer than several of libarchive's blocks.
std::string LongContent() {
  std::string content;
  for (int i = 0; content.size() < 400'000; ++i) content += std::to_string(i * 7919) + ",";
  return content;
}

TEST(Archive, ReadsEveryPackingInAnyChunks) {
  const TempFolder folder;
  const std::string content = LongContent();
  const std::vector<std::pair<std::string, std::string>> members = {
      {"set/readme", "hello"}, {"set/batch_1.bin", content}, {"set/batch_2.bin", "two"}};
  folder.Write("plain.bin", content);
  folder.WriteGzip("packed.bin.gz", content);
  for (const char* name : {"a.tar", "a.tar.gz", "a.tgz", "a.tar.xz"})
    folder.WriteTar(name, members);
  for (const size_t chunk : {size_t{999}, size_t{1} << 20}) {
    for (const char* name : {"plain.bin", "packed.bin.gz"}) {
      MemberReader in(folder / name);
      EXPECT_EQ(ReadAll(in, chunk), content) << name;
      EXPECT_EQ(in.position(), static_cast<int64_t>(content.size()));
    }
    for (const char* name : {"a.tar", "a.tar.gz", "a.tgz", "a.tar.xz"}) {
      MemberReader in(folder / name, "batch_1.bin");
      EXPECT_EQ(ReadAll(in, chunk), content) << name;
    }
  }
}

TEST(Archive, AFileThatIsNotThereIsReportedWithTheFolderThatItsPathBeginsIn) {
  const auto hint_of = [](const fs::path& path) {
    try {
      const MemberReader in(path);
    } catch (const DataError& error) {
      EXPECT_EQ(error.what(), "cannot open " + path.string() + ": No such file or directory");
      return error.hint();
    }
    return std::string("no error");
  };
  const TempFolder folder;  // a unique name
  EXPECT_EQ(hint_of(folder.path().filename()),
            "a relative path begins in the working directory, " + fs::current_path().string());
  EXPECT_EQ(hint_of(folder / "missing.idx"), "");
}

TEST(Archive, ListsMembers) {
  const TempFolder folder;
  folder.WriteTar("a.tar.xz", {{"set/one", "1"}, {"two", "22"}});
  EXPECT_THAT(ListMembers(folder / "a.tar.xz"), ElementsAre("set/one", "two"));
}

// Returns an entry of a tar archive: its header, then `content` in blocks.
std::string TarEntry(char type, const std::string& name, const std::string& content) {
  constexpr size_t kBlock = 512;
  std::string header(kBlock, '\0');
  const auto put = [&header](size_t at, const std::string& text) {
    header.replace(at, text.size(), text);
  };
  put(0, name);
  put(100, "0000644");
  put(124, fmt::format("{:011o}", content.size()));
  put(148, "        ");
  put(156, std::string(1, type));
  put(257, "ustar");
  put(263, "00");
  unsigned sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  put(148, fmt::format("{:06o}", sum) + '\0');
  std::string body = content;
  body.resize((content.size() + kBlock - 1) / kBlock * kBlock);
  return header + body;
}

// UTF-8 names are stored in pax records, and the test's locale does not have these letters.
// Folders are left out of the list.
TEST(Archive, NamesNeedNoLocale) {
  const TempFolder folder;
  folder.Write("a.tar", TarEntry('x', "p", "17 path=größe/\n") + TarEntry('5', "d/", "") +
                            TarEntry('x', "p", "24 path=größe/bä.txt\n") +
                            TarEntry('0', "f", "hi") + std::string(1024, '\0'));
  EXPECT_THAT(ListMembers(folder / "a.tar"), ElementsAre("größe/bä.txt"));
  MemberReader in(folder / "a.tar", "bä.txt");
  EXPECT_EQ(ReadAll(in, 10), "hi");
}

TEST(Archive, VisitsAllMembersInOnePass) {
  const TempFolder folder;
  folder.WriteTar("a.tar.gz", {{"set/one", "1"}, {"set/big", LongContent()}, {"two", "22"}});
  std::vector<std::string> seen;
  const auto visit = [&](const std::string& member, MemberReader& in) {
    if (member == "set/big") return;  // this member is not read
    const std::string content = ReadAll(in, 10);
    seen.push_back(in.name() + " = " + content + " at " + std::to_string(in.position()));
  };
  MemberReader::VisitAll(folder / "a.tar.gz", visit);
  const std::string path = (folder / "a.tar.gz").string();
  EXPECT_THAT(seen, ElementsAre(path + ":set/one = 1 at 1", path + ":two = 22 at 2"));
  folder.WriteTar("a.tar", {{"one", "1"}});
  for (const std::string name : {"a.tar", "a.tar.gz"}) {
    MemberReader::VisitAll(folder / name, [&](const std::string&, MemberReader& in) {
      EXPECT_EQ(in.compressed(), name != "a.tar");
    });
  }
}

TEST(Archive, NamesOfTarArchives) {
  for (const char* name : {"a.tar", "a.b.tar.gz", "a.tar.xz", "a.tgz", "a.txz"}) {
    EXPECT_TRUE(IsTarArchive(name)) << name;
  }
  for (const char* name : {"a.gz", "a.bin", "tar", "a.tar.gz.part"}) {
    EXPECT_FALSE(IsTarArchive(name)) << name;
  }
}

TEST(Archive, MissingMemberNamesThoseThereAre) {
  const TempFolder folder;
  folder.WriteTar("a.tar.gz", {{"set/one", "1"}, {"set/two", "22"}});
  EXPECT_THAT(
      MessageOf<DataError>([&] { MemberReader(folder / "a.tar.gz", "ne"); }),
      HasSubstr((folder / "a.tar.gz").string() + " has no member 'ne'; it has: set/one, set/two"));
}

TEST(Archive, MissingFile) {
  const TempFolder folder;
  EXPECT_THAT(MessageOf<DataError>([&] { MemberReader(folder / "none.gz"); }),
              HasSubstr("cannot open " + (folder / "none.gz").string() + ": No such file"));
  EXPECT_THAT(MessageOf<DataError>([&] { MemberReader{folder.path()}; }),
              HasSubstr("cannot open " + folder.path().string() + ": not a regular file"));
}

TEST(Archive, ReadExactlyNamesMemberAndPosition) {
  const TempFolder folder;
  folder.WriteTar("a.tar.gz", {{"set/one", "12345"}});
  MemberReader in(folder / "a.tar.gz", "one");
  char buffer[10];
  in.ReadExactly(buffer, 2, "the start");
  EXPECT_EQ(in.position(), 2);
  EXPECT_THAT(MessageOf<DataError>([&] { in.ReadExactly(buffer, 10, "record 0"); }),
              HasSubstr("a.tar.gz:one ends at byte 5, inside record 0 (bytes 2 to 12)"));
}

TEST(Archive, NotWhatTheNameSays) {
  const TempFolder folder;
  folder.Write("a.tar.xz", "this is no archive at all, only text that is long enough");
  EXPECT_THAT(
      MessageOf<DataError>([&] { MemberReader(folder / "a.tar.xz", "one"); }),
      HasSubstr("a.tar.xz is not an xz file: it does not begin with the bytes fd 37 7a 58"));
  folder.WriteGzip("b.tar.gz", "a gzip file, but of no tar archive " + std::string(1000, 'x'));
  EXPECT_THAT(MessageOf<DataError>([&] { MemberReader(folder / "b.tar.gz", "one"); }),
              HasSubstr("b.tar.gz: Unrecognized archive format"));
  folder.WriteTar("c.tar.xz", {{"one", LongContent()}});
  fs::resize_file(folder / "c.tar.xz", 600);
  EXPECT_THAT(MessageOf<DataError>([&] { MemberReader(folder / "c.tar.xz", "two"); }),
              HasSubstr("cannot open " + (folder / "c.tar.xz").string() + ": "));
}

TEST(Archive, DamagedContentNamesThePosition) {
  const TempFolder folder;
  const fs::path path = folder.WriteGzip("a.gz", LongContent());
  fs::resize_file(path, fs::file_size(path) - 1000);
  MemberReader in(path);
  EXPECT_THAT(MessageOf<DataError>([&] { ReadAll(in, 4096); }),
              AllOf(HasSubstr(path.string() + " is damaged after byte "),
                    HasSubstr("unexpected end of file"), HasSubstr("fetch the file again")));
}

// Reads all of a file, compressed or archived as it is, and returns the error.
std::string ErrorOf(const fs::path& path) {
  return WhatOf<DataError>([&] {
    if (!IsTarArchive(path)) {
      MemberReader in(path);
      ReadAll(in, 4096);
      return;
    }
    MemberReader::VisitAll(path, [](const std::string&, MemberReader& in) { ReadAll(in, 4096); });
  });
}

// A gzip file ends with a checksum of its content and the content's length, 4 bytes each.  The
// content can often be read without them, so both must be compared.
TEST(Archive, TheSumsAtTheEndOfAGzipFileAreCompared) {
  const TempFolder folder;
  folder.WriteGzip("a.gz", LongContent());
  folder.WriteTar("a.tar.gz", {{"one", LongContent()}});
  for (const std::string name : {"a.gz", "a.tar.gz"}) {
    const std::string whole = ReadFile(folder / name);
    const size_t size = whole.size();
    EXPECT_EQ(ErrorOf(folder / name), "no error");
    for (const size_t cut : {1u, 4u, 5u, 8u}) {
      folder.Write(name, whole.substr(0, size - cut));
      EXPECT_THAT(ErrorOf(folder / name), HasSubstr("unexpected end of file")) << cut;
    }
    for (const size_t flipped : {1u, 6u}) {
      std::string other = whole;
      other[size - flipped] ^= 1;
      folder.Write(name, other);
      EXPECT_THAT(ErrorOf(folder / name),
                  HasSubstr(flipped == 1 ? "incorrect length check" : "incorrect data check"));
    }
  }
}

}  // namespace
}  // namespace dtrain
