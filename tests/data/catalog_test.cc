#include "framework/data/files/catalog.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/sha256.h"
#include "framework/core/text.h"
#include "tests/data/http_server.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The files that CatalogSet names; a.gz if the test sets none.
std::vector<RemoteFile> catalog_files;

class CatalogSet : public DatasetSource {
 public:
  std::vector<FieldSpec> fields() const override { return {{"data", DType::kF32, Shape{1}}}; }
  int64_t size(Split split) const override { return split == Split::kTrain ? 500 : 100; }
  int64_t classes() const override { return 3; }
  std::vector<RemoteFile> files() const override {
    if (!catalog_files.empty()) return catalog_files;
    return {{"a.gz", {"http://127.0.0.1:1/a"}, Sha256::Of("content a"), 9}};
  }
  std::unique_ptr<Dataset> Load(const std::filesystem::path&, uint64_t) const override {
    throw DataError("not loaded in this test");
  }
};
DTRAIN_DATASET("catalog_set", CatalogSet, "a set of the tests");

std::string TableOf(const std::string& root) { return DatasetTable(ListDatasets(root)); }

TEST(Catalog, TableSaysWhereOrHow) {
  const TempFolder root;
  EXPECT_THAT(
      TableOf(root.path().string()),
      AllOf(
          HasSubstr("name             classes     train     test  where\n"),
          HasSubstr("catalog_set            3       500      100  not here: dtrain data fetch "
                    "catalog_set\n"),
          HasSubstr("digits                10     12000     2000  made on the spot\n"),
          HasSubstr(
              "mnist                 10     60000    10000  not here: dtrain data fetch mnist\n")));
  for (const DatasetStatus& set : ListDatasets(root.path().string())) {
    EXPECT_EQ(set.files_here, 0) << set.name;
  }
  root.Write("catalog_set/x", "");
  EXPECT_THAT(TableOf(root.path().string()),
              HasSubstr((root / "catalog_set").string() + " (0 of 1 files as published)\n"));
  root.Write("catalog_set/a.gz", "content a");
  EXPECT_THAT(TableOf(root.path().string()), HasSubstr((root / "catalog_set").string() + "\n"));
}

TEST(Catalog, VerifyComparesSizeAndHash) {
  const TempFolder root;
  const std::string folder = (root / "catalog_set").string();
  const auto text = [&] { return VerifyText(VerifyDataset("catalog_set", root.path().string())); };
  root.Write("catalog_set/x", "");
  EXPECT_EQ(text(), "a.gz                            missing\ncatalog_set in " + folder +
                        ": NOT as published\n");
  root.Write("catalog_set/a.gz", "content");
  EXPECT_THAT(text(), HasSubstr("a.gz                            7 bytes, expected 9\n"));
  root.Write("catalog_set/a.gz", "content b");
  EXPECT_THAT(text(), HasSubstr("SHA-256 is " + Sha256::Of("content b") + ", expected " +
                                Sha256::Of("content a")));
  EXPECT_FALSE(VerifyDataset("catalog_set", root.path().string()).ok());
  root.Write("catalog_set/a.gz", "content a");
  EXPECT_EQ(text(), "a.gz                            ok\ncatalog_set in " + folder +
                        ": all as published\n");
  EXPECT_TRUE(VerifyDataset("catalog_set", root.path().string()).ok());
}

// For an unpacked file, or one compressed again, the hash of its content is compared.
TEST(Catalog, VerifyLooksIntoUnpackedAndRepackedFiles) {
  const TempFolder root;
  catalog_files = {{"a.gz", {"http://127.0.0.1:1/a"}, Sha256::Of("packed"), 6, Sha256::Of("text")}};
  const auto text = [&] { return VerifyText(VerifyDataset("catalog_set", root.path().string())); };
  root.Write("catalog_set/a", "text");
  EXPECT_THAT(text(), HasSubstr("a                               ok\n"));
  EXPECT_THAT(TableOf(root.path().string()), HasSubstr((root / "catalog_set").string() + "\n"));
  EXPECT_EQ(FetchDataset("catalog_set", root.path().string()), root / "catalog_set")
      << "there is nothing to fetch";
  root.Write("catalog_set/a", "texd");
  EXPECT_THAT(text(), AllOf(HasSubstr("SHA-256 of the content is " + Sha256::Of("texd") +
                                      ", expected " + Sha256::Of("text")),
                            HasSubstr("NOT as published")));
  root.WriteGzip("catalog_set/a.gz", "text");
  EXPECT_THAT(text(), HasSubstr("a.gz                            ok\n"));
  root.WriteGzip("catalog_set/a.gz", "other text");
  EXPECT_THAT(text(), HasSubstr("bytes, expected 6"));
  root.Write("catalog_set/a.gz", "broken");
  EXPECT_THAT(text(), HasSubstr("SHA-256 is "));
  // Without a content hash only the compressed file can be compared.
  catalog_files[0].content_sha256.clear();
  std::filesystem::remove(root / "catalog_set/a.gz");
  EXPECT_THAT(text(), AllOf(HasSubstr("a                               unpacked: only a.gz can be "
                                      "compared"),
                            HasSubstr("NOT as published")));
  catalog_files.clear();
}

// A file without URLs is verified if it exists, compressed or not.  It is not reported as missing.
TEST(Catalog, FilesThatAreNotFetchedAreVerifiedWhereTheyAre) {
  const TempFolder root;
  catalog_files = {{"tok/a.gz", {}, Sha256::Of("packed"), 6, Sha256::Of("text")}};
  const auto verify = [&] { return VerifyDataset("catalog_set", root.path().string()); };
  root.Write("catalog_set/x", "");
  EXPECT_TRUE(verify().files.empty());
  root.Write("catalog_set/tok/a", "texd");
  EXPECT_FALSE(verify().ok());
  root.Write("catalog_set/tok/a", "text");
  EXPECT_EQ(verify().files.at(0).name, "tok/a");
  EXPECT_TRUE(verify().ok());
  catalog_files.clear();
}

TEST(Catalog, FetchesFromAnotherServer) {
  HttpServer server;
  server.Serve("/data/catalog_set/a.gz", {"content a"});
  catalog_files = {{"a.gz", {"http://127.0.0.1:1/a"}, Sha256::Of("content a"), 9}};
  const FetchOptions options{
      .retry_seconds = 0, .from = server.Url("/data/"), .say = [](const std::string&) {}};
  const TempFolder root, wrong;
  EXPECT_EQ(FetchDataset("catalog_set", root.path().string(), options), root / "catalog_set");
  EXPECT_TRUE(VerifyDataset("catalog_set", root.path().string()).ok());
  // A file from another server is verified as well.
  catalog_files[0].sha256 = Sha256::Of("content b");
  EXPECT_THAT(
      MessageOf<DataError>([&] { FetchDataset("catalog_set", wrong.path().string(), options); }),
      AllOf(HasSubstr(server.Url("/data/catalog_set/a.gz")), HasSubstr("SHA-256 is ")));
  catalog_files.clear();
}

// Fetches the test set into a folder of its own.
class CatalogCopy : public testing::Test {
 protected:
  void SetUp() override {
    catalog_files = {{"a.gz", {"http://127.0.0.1:1/a"}, Sha256::Of("content a"), 9}};
  }
  void TearDown() override { catalog_files.clear(); }

  void FetchFrom(const std::string& from) {
    FetchDataset("catalog_set", root_.path().string(),
                 {.retry_seconds = 0, .from = from, .say = [](const std::string&) {}});
  }
  std::string RefusalOf(const std::string& from) {
    return MessageOf<DataError>([&] { FetchFrom(from); });
  }
  // Returns what of the set is in its folder after a fetch, with the number of all files there.
  std::string Fetched(const std::string& from) {
    std::filesystem::remove_all(root_ / "catalog_set");
    FetchFrom(from);
    EXPECT_TRUE(VerifyDataset("catalog_set", root_.path().string()).ok());
    return Files();
  }
  std::string Files() {
    std::vector<std::string> names;
    if (!std::filesystem::exists(root_ / "catalog_set")) return "";
    for (const auto& entry : std::filesystem::directory_iterator(root_ / "catalog_set")) {
      names.push_back(entry.path().filename().string());
    }
    return Join(names);
  }

  const TempFolder root_, source_;
};

TEST_F(CatalogCopy, TakesTheFilesFromALocalFolder) {
  source_.Write("my sets/catalog_set/a.gz", "content a");
  const std::string folder = (source_ / "my sets").string();
  EXPECT_EQ(Fetched(folder), "a.gz");
  EXPECT_EQ(Fetched(folder + "/catalog_set/"), "a.gz");
  EXPECT_EQ(Fetched(std::filesystem::relative(folder).string()), "a.gz");
  EXPECT_EQ(Fetched("file://" + source_.path().string() + "/my%20sets"), "a.gz");
  EXPECT_EQ(Fetched("file://localhost" + source_.path().string() + "/my%20sets/"), "a.gz");
}

TEST_F(CatalogCopy, TakesUnpackedFilesAndThoseThatNobodyPublishes) {
  catalog_files[0].content_sha256 = Sha256::Of("unpacked");
  source_.Write("a", "unpacked");
  EXPECT_EQ(Fetched(source_.path().string()), "a");
  catalog_files = {{"a.gz", {"http://127.0.0.1:1/a"}, Sha256::Of("content a"), 9},
                   {"b.gz", {}, Sha256::Of("content b"), 9}};
  source_.Write("a.gz", "content a");
  EXPECT_EQ(Fetched(source_.path().string()), "a.gz") << "b.gz is not there, and not needed";
  source_.Write("b.gz", "content b");
  std::filesystem::remove_all(root_ / "catalog_set");
  FetchFrom(source_.path().string());
  EXPECT_EQ(ReadFile(root_ / "catalog_set/b.gz"), "content b");
}

TEST_F(CatalogCopy, SaysWhatAFolderLacksBeforeItCopies) {
  catalog_files.push_back({"b.gz", {"http://127.0.0.1:1/b"}, Sha256::Of("content b"), 9});
  catalog_files.push_back({"c.gz", {"http://127.0.0.1:1/c"}, Sha256::Of("content c"), 9});
  source_.Write("a.gz", "content a");
  const std::string folder = source_.path().string();
  EXPECT_THAT(RefusalOf(folder),
              AllOf(HasSubstr(folder + " lacks b.gz, c.gz of data set 'catalog_set'"),
                    HasSubstr(folder + "/catalog_set")));
  EXPECT_EQ(Files(), "");
  // Files that are here already are not missing.
  root_.Write("catalog_set/b.gz", "content b");
  EXPECT_THAT(RefusalOf(folder), HasSubstr(folder + " lacks c.gz of"));
}

TEST_F(CatalogCopy, AWrongFileLeavesNothingBehind) {
  const std::string path = source_.Write("a.gz", "content").string();
  EXPECT_THAT(RefusalOf(source_.path().string()), HasSubstr(path + ": 7 bytes, expected 9"));
  EXPECT_EQ(Files(), "");
  source_.Write("a.gz", "content b");
  EXPECT_THAT(RefusalOf("file://" + source_.path().string()),
              HasSubstr(path + ": SHA-256 is " + Sha256::Of("content b")));
  EXPECT_EQ(Files(), "");
  root_.Write("catalog_set/a.gz.part", "con");  // of a download that broke off
  EXPECT_THAT(RefusalOf(source_.path().string()), HasSubstr("SHA-256 is "));
  EXPECT_EQ(Files(), "");
}

TEST_F(CatalogCopy, ARightFileComesBeforeAWrongOne) {
  source_.Write("catalog_set/a.gz", "content b");
  source_.Write("a.gz", "content a");
  EXPECT_EQ(Fetched(source_.path().string()), "a.gz");
}

TEST_F(CatalogCopy, AWrongPackedFileBesideTheUnpackedOneIsRefused) {
  catalog_files[0].content_sha256 = Sha256::Of("unpacked");
  source_.Write("a", "unpacked");
  root_.Write("catalog_set/a.gz", "wrong");
  EXPECT_THAT(RefusalOf(source_.path().string()),
              AllOf(HasSubstr("catalog_set/a.gz: 5 bytes, expected 9"), HasSubstr("remove it")));
}

TEST_F(CatalogCopy, AFileThatWasPackedAgainIsTakenByItsContent) {
  catalog_files[0].content_sha256 = Sha256::Of("unpacked");
  source_.WriteGzip("a.gz", "unpacked");
  EXPECT_EQ(Fetched(source_.path().string()), "a.gz");
}

TEST_F(CatalogCopy, WhatIsNoFolderIsNamed) {
  EXPECT_THAT(
      RefusalOf("no/such"),
      AllOf(HasSubstr("there is no folder no/such"),
            HasSubstr("a relative path begins in the working directory"), HasSubstr("http://")));
  EXPECT_THAT(RefusalOf("file:///no/such"), HasSubstr("there is no folder /no/such"));
  EXPECT_THAT(RefusalOf("file://host/data"),
              HasSubstr("'file://host/data' names no folder of this machine"));
  const std::string file = source_.Write("a.gz", "content a").string();
  EXPECT_THAT(RefusalOf(file), HasSubstr("there is no folder " + file));
}

TEST(Catalog, VerifyOfASetThatIsNotHere) {
  const TempFolder root;
  EXPECT_THAT(
      MessageOf<DataError>([&] { VerifyDataset("mnist", root.path().string()); }),
      AllOf(HasSubstr("data set 'mnist' is not here"), HasSubstr("dtrain data fetch mnist")));
}

TEST(Catalog, UnknownSet) {
  EXPECT_THAT(MessageOf<UsageError>([] { VerifyDataset("mnits", ""); }),
              AllOf(HasSubstr("unknown data set 'mnits'"), HasSubstr("did you mean 'mnist'?")));
  EXPECT_THROW(FetchDataset("mnits", ""), UsageError);
}

TEST(Catalog, SetsMadeOnTheSpotHaveNothingToFetchOrVerify) {
  EXPECT_TRUE(FetchDataset("digits", "").empty());
  EXPECT_EQ(VerifyText(VerifyDataset("digits", "")),
            "digits is made on the spot: there are no files to verify\n");
}

TEST(Catalog, FetchesIntoTheCacheOnce) {
  HttpServer server;
  server.Serve("/a", {"content a"});
  catalog_files = {{"a.gz", {server.Url("/a")}, Sha256::Of("content a"), 9}};
  const TempFolder cache, data;
  const ScopedVariable a("XDG_CACHE_HOME", cache.path().c_str());
  const ScopedVariable b("DTRAIN_DATA", data.path().c_str());
  const FetchOptions quiet{.say = [](const std::string&) {}};
  EXPECT_EQ(FetchDataset("catalog_set", "", quiet), cache / "dtrain/catalog_set");
  EXPECT_EQ(FetchDataset("catalog_set", "", quiet), cache / "dtrain/catalog_set");
  EXPECT_EQ(server.requests().size(), 1u);
  EXPECT_TRUE(VerifyDataset("catalog_set", "").ok());
  // A set that is complete in another folder is not fetched.
  data.Write("catalog_set/a.gz", "content a");
  EXPECT_EQ(FetchDataset("catalog_set", "", quiet), data / "catalog_set");
  EXPECT_EQ(server.requests().size(), 1u);
  catalog_files.clear();
}

// A remembered result belongs to one path, size and modification time.
TEST(Catalog, AFileThatDiffersIsHashedOnce) {
  const TempFolder root;
  catalog_files = {{"a.gz", {"http://127.0.0.1:1/a"}, Sha256::Of("content a"), 9}};
  const auto memory = root / "cache/verified.json";
  const auto different = [&] {
    return DifferentFiles("catalog_set", root / "catalog_set", memory);
  };
  EXPECT_TRUE(different().empty()) << "another test covers missing files";
  const auto path = root.Write("catalog_set/a.gz", "content a");
  EXPECT_TRUE(different().empty());
  EXPECT_TRUE(std::filesystem::exists(memory));
  const auto time = std::filesystem::last_write_time(path);
  root.Write("catalog_set/a.gz", "content b");
  std::filesystem::last_write_time(path, time);
  EXPECT_TRUE(different().empty()) << "not hashed again";
  std::filesystem::last_write_time(path, time + std::chrono::seconds(1));
  ASSERT_EQ(different().size(), 1u);
  EXPECT_EQ(different()[0].name, path.string());
  EXPECT_THAT(different()[0].problem, HasSubstr("SHA-256 is " + Sha256::Of("content b")));
  for (const std::string broken : {"", "[]", "{\"", "3"}) {
    root.Write("cache/verified.json", broken);
    EXPECT_EQ(different().size(), 1u) << broken;
  }
  // A damaged entry does not hide the difference.
  std::string known = ReadFile(memory);
  const size_t value = known.find("SHA-256 is");
  known.replace(value - 1, known.find('"', value) - value + 2, "7");
  root.Write("cache/verified.json", known);
  EXPECT_EQ(different().size(), 1u) << known;
  EXPECT_EQ(DifferentFiles("catalog_set", root / "catalog_set", "").size(), 1u);
  catalog_files.clear();
}

// Otherwise any user with write permission could mark a file as verified.
TEST(Catalog, AMemoryThatOthersMayWriteIsNotBelieved) {
  const TempFolder root;
  catalog_files = {{"a.gz", {"http://127.0.0.1:1/a"}, Sha256::Of("content a"), 9}};
  const auto memory = root / "cache/verified.json";
  const auto different = [&] {
    return DifferentFiles("catalog_set", root / "catalog_set", memory).size();
  };
  const auto path = root.Write("catalog_set/a.gz", "content a");
  EXPECT_EQ(different(), 0u);
  const auto time = std::filesystem::last_write_time(path);
  root.Write("catalog_set/a.gz", "content b");
  std::filesystem::last_write_time(path, time);
  ASSERT_EQ(different(), 0u) << "what is remembered is wrong";
  const std::string known = ReadFile(memory);
  std::filesystem::permissions(root / "cache", std::filesystem::perms{0777});
  testing::internal::CaptureStderr();
  EXPECT_EQ(different(), 1u);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("verified.json is not used"),
                    HasSubstr("chmod go-w " + (root / "cache").string())));
  EXPECT_EQ(ReadFile(memory), known) << "nor is it written";
  std::filesystem::permissions(root / "cache", std::filesystem::perms{0755});
  std::filesystem::permissions(memory, std::filesystem::perms{0666});
  EXPECT_EQ(different(), 1u);
  EXPECT_EQ(WhyNotTrusted(memory), "") << "it was written anew";
  EXPECT_NE(ReadFile(memory), known);
  catalog_files.clear();
}

TEST(Catalog, TheCacheIsNobodyElsesToWriteInto) {
  HttpServer server;
  server.Serve("/a", {"content a"});
  catalog_files = {{"a.gz", {server.Url("/a")}, Sha256::Of("content a"), 9}};
  const TempFolder cache;
  const ScopedVariable a("XDG_CACHE_HOME", (cache / "new").c_str());
  const ScopedVariable b("DTRAIN_DATA", nullptr);
  const mode_t before = ::umask(0);
  FetchDataset("catalog_set", "", {.say = [](const std::string&) {}});
  ::umask(before);
  EXPECT_EQ(WhyNotTrusted(cache / "new/dtrain"), "");
  catalog_files.clear();
}

}  // namespace
}  // namespace dtrain
