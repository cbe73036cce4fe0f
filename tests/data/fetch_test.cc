#include "framework/data/files/fetch.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/process.h"
#include "framework/core/sha256.h"
#include "framework/core/stop_request.h"
#include "framework/data/files/file_lock.h"
#include "tests/data/http_server.h"
#include "tests/data/temp_folder.h"
#include "tests/support/as_nobody.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// The content is longer than a socket buffer.
const std::string& Content() {
  static const std::string content = [] {
    std::string text;
    for (int64_t i = 0; text.size() < 3'000'000; ++i) text += std::to_string(i * 7919) + "\n";
    return text;
  }();
  return content;
}

class FetchTest : public testing::Test {
 protected:
  RemoteFile File(const std::vector<std::string>& paths, const std::string& content = Content()) {
    RemoteFile file{"f.gz", {}, Sha256::Of(content), static_cast<int64_t>(content.size())};
    for (const std::string& path : paths) file.urls.push_back(server_.Url(path));
    return file;
  }

  void Fetch(const RemoteFile& file) {
    FetchOptions options;
    options.stall_seconds = 1;
    options.retry_seconds = 0;
    options.say = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      said_ += line + "\n";
    };
    FetchFiles({file}, folder_.path(), options);
  }

  std::string Fail(const RemoteFile& file) {
    return MessageOf<DataError>([&] { Fetch(file); });
  }

  bool Has(const std::string& name) { return fs::exists(folder_ / name); }

  HttpServer server_;
  TempFolder folder_;
  std::mutex mutex_;
  std::string said_;  // guarded by mutex_ in tests with several fetching threads
};

TEST_F(FetchTest, DownloadsAndLeavesNoPart) {
  server_.Serve("/f", {Content()});
  Fetch(File({"/f"}));
  EXPECT_EQ(ReadFile(folder_ / "f.gz"), Content());
  EXPECT_FALSE(Has("f.gz.part"));
  EXPECT_THAT(server_.requests(), ElementsAre("GET /f"));
}

// Fetched files have the usual permissions, so that all users of a shared folder can read them.
TEST_F(FetchTest, OthersMayReadWhatIsFetched) {
  server_.Serve("/f", {Content()});
  const mode_t before = ::umask(022);
  Fetch(File({"/f"}));
  ::umask(before);
  EXPECT_EQ(fs::status(folder_ / "f.gz").permissions(), fs::perms{0644});
}

// The user who fetched first leaves no file behind that only this user can open.
TEST_F(FetchTest, AnotherUserMayFetchIntoTheSameFolder) {
  server_.Serve("/f", {Content()});
  server_.Serve("/g", {Content()});
  fs::permissions(folder_.path(), fs::perms{0777});
  Fetch(File({"/f"}));
  EXPECT_FALSE(Has(".lock"));
  RemoteFile second = File({"/g"});
  second.name = "g.gz";
  {
    const AsNobody nobody;
    if (!nobody.done()) GTEST_SKIP() << "root here cannot be somebody else";
    Fetch(second);
  }
  EXPECT_EQ(ReadFile(folder_ / "g.gz"), Content());
  EXPECT_FALSE(Has(".lock"));
}

TEST_F(FetchTest, WhereAllIsHereNothingIsWritten) {
  folder_.Write("f.gz", Content());
  fs::permissions(folder_.path(), fs::perms{0555});
  {
    const AsNobody nobody;
    if (!nobody.done()) GTEST_SKIP() << "root here cannot be somebody else";
    Fetch(File({"/f"}));
  }
  fs::permissions(folder_.path(), fs::perms{0755});
  EXPECT_EQ(said_, "f.gz: already here\n");
  EXPECT_FALSE(Has(".lock"));
}

// The owner of a partial file could change it after it was verified.
TEST_F(FetchTest, APartThatOthersMayWriteToIsNotTakenUp) {
  server_.Serve("/f", {Content()});
  folder_.Write("f.gz.part", Content().substr(0, 1000));
  fs::permissions(folder_ / "f.gz.part", fs::perms{0666});
  Fetch(File({"/f"}));
  EXPECT_EQ(ReadFile(folder_ / "f.gz"), Content());
  EXPECT_THAT(server_.requests(), ElementsAre("GET /f"));
  EXPECT_EQ(WhyNotTrusted(folder_ / "f.gz"), "");
}

// A run verifies its data set before it starts.
TEST_F(FetchTest, AStopEndsAVerification) {
  folder_.Write("f.gz", Content());
  RequestStop(SIGTERM);
  EXPECT_EQ(WhatOf<StoppedError>([&] { CheckFile(File({}), folder_ / "f.gz"); }),
            "stopped by SIGTERM while verifying " + (folder_ / "f.gz").string());
  ForgetStopRequest();
}

TEST_F(FetchTest, MakesTheFolder) {
  server_.Serve("/f", {Content()});
  FetchFiles({File({"/f"})}, folder_ / "a/b", {.say = [](const std::string&) {}});
  EXPECT_TRUE(Has("a/b/f.gz"));
}

TEST_F(FetchTest, WhatIsHereIsNotFetchedAgain) {
  folder_.Write("f.gz", Content());
  Fetch(File({"/f"}));
  EXPECT_TRUE(server_.requests().empty());
  EXPECT_THAT(said_, HasSubstr("f.gz: already here"));
}

TEST_F(FetchTest, WhatIsWrongIsFetchedAgain) {
  server_.Serve("/f", {Content()});
  folder_.Write("f.gz", "wrong");
  Fetch(File({"/f"}));
  EXPECT_EQ(ReadFile(folder_ / "f.gz"), Content());
  EXPECT_THAT(said_, HasSubstr("f.gz: 5 bytes, expected " + std::to_string(Content().size()) +
                               "; fetching it again"));
}

TEST_F(FetchTest, GoesOnWhereADyingServerEnded) {
  server_.Serve("/f", {.content = Content(), .dies_after = 1'000'000, .faults = 2});
  Fetch(File({"/f"}));
  EXPECT_EQ(ReadFile(folder_ / "f.gz"), Content());
  EXPECT_THAT(server_.requests(),
              ElementsAre("GET /f", "GET /f bytes=1000000-", "GET /f bytes=2000000-"));
  EXPECT_THAT(said_, HasSubstr("going on from there"));
}

TEST_F(FetchTest, AnAddressIsTriedTwentyTimes) {
  const std::string content = "twenty bytes and more";  // each try fetches one byte
  server_.Serve("/f", {.content = content, .dies_after = 1, .faults = 100});
  EXPECT_THAT(Fail(File({"/f"}, content)),
              AllOf(HasSubstr("(20 of 21 bytes here)"), HasSubstr("what came so far is kept"),
                    Not(HasSubstr("stalled"))));
  EXPECT_EQ(server_.requests().size(), 20U);
  EXPECT_EQ(ReadFile(folder_ / "f.gz.part"), content.substr(0, 20));
}

TEST_F(FetchTest, ATryThatBringsNothingIsTheLast) {
  server_.Serve("/f", {.content = Content(), .dies_after = 0, .faults = 100});
  EXPECT_THAT(Fail(File({"/f"})), AllOf(HasSubstr("(0 of "), Not(HasSubstr("is kept"))));
  EXPECT_EQ(server_.requests().size(), 1U);
}

// A file without published size and hash is always accepted.
TEST_F(FetchTest, AFileOfWhichNothingIsKnown) {
  const RemoteFile file{"f.gz", {server_.Url("/f")}, "", 0};
  EXPECT_EQ(CheckFile(file, folder_ / "f.gz"), "missing");
  server_.Serve("/f", {.content = Content(), .dies_after = 1'000'000});
  Fetch(file);
  EXPECT_EQ(ReadFile(folder_ / "f.gz"), Content());
  EXPECT_THAT(server_.requests(), ElementsAre("GET /f", "GET /f bytes=1000000-"));
  EXPECT_THAT(said_, HasSubstr("(1000000 bytes here)"));
  folder_.Write("f.gz", "other");
  EXPECT_EQ(CheckFile(file, folder_ / "f.gz"), "");
  Fetch(file);
  EXPECT_THAT(said_, HasSubstr("f.gz: already here"));
}

TEST_F(FetchTest, GoesOnAfterAnInterruptedFetch) {
  server_.Serve("/f", {Content()});
  folder_.Write("f.gz.part", Content().substr(0, 1234));
  Fetch(File({"/f"}));
  EXPECT_EQ(ReadFile(folder_ / "f.gz"), Content());
  EXPECT_THAT(server_.requests(), ElementsAre("GET /f bytes=1234-"));
}

TEST_F(FetchTest, AWholePartOnlyNeedsItsName) {
  folder_.Write("f.gz.part", Content());
  Fetch(File({"/f"}));
  EXPECT_EQ(ReadFile(folder_ / "f.gz"), Content());
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(FetchTest, StartsAnewWhenTheServerIgnoresRange) {
  server_.Serve("/f", {.content = Content(), .ignores_range = true});
  for (const size_t here : {1, 1234}) {
    folder_.Write("f.gz.part", Content().substr(0, here));
    Fetch(File({"/f"}));
    EXPECT_EQ(ReadFile(folder_ / "f.gz"), Content()) << here;
    fs::remove(folder_ / "f.gz");
  }
}

TEST_F(FetchTest, AFileThatEndsBeforeThePartIsLoadedAnew) {
  server_.Serve("/f", {Content().substr(0, 500)});
  folder_.Write("f.gz.part", Content().substr(0, 1234));
  EXPECT_THAT(Fail(File({"/f"})), HasSubstr("500 bytes, expected "));
  EXPECT_THAT(server_.requests(), ElementsAre("GET /f bytes=1234-", "GET /f"));
  server_.Serve("/empty", {""});
  folder_.Write("f.gz.part", "x");
  EXPECT_THAT(Fail(File({"/empty"})), HasSubstr("0 bytes, expected "));
}

TEST_F(FetchTest, WrongContentIsRemoved) {
  std::string other = Content();
  other[100] ^= 1;
  server_.Serve("/f", {other});
  EXPECT_THAT(Fail(File({"/f"})),
              AllOf(HasSubstr("cannot fetch f.gz:"), HasSubstr(server_.Url("/f") + ": SHA-256 is "),
                    HasSubstr(", expected " + Sha256::Of(Content()) + "; removed")));
  EXPECT_FALSE(Has("f.gz"));
  EXPECT_FALSE(Has("f.gz.part"));
}

TEST_F(FetchTest, AWrongPartIsReplacedFromTheNextAddress) {
  std::string other = Content();
  other[100] ^= 1;
  server_.Serve("/bad", {other});
  server_.Serve("/good", {Content()});
  Fetch(File({"/bad", "/good"}));
  EXPECT_EQ(ReadFile(folder_ / "f.gz"), Content());
  EXPECT_THAT(server_.requests(), ElementsAre("GET /bad", "GET /good"));
}

TEST_F(FetchTest, AStallingServerEndsWithAMessage) {
  server_.Serve("/f", {.content = Content(), .stalls_after = 0});
  EXPECT_THAT(Fail(File({"/f"})),
              HasSubstr(server_.Url("/f") + ": the server stalled: nothing came for 1 s (0 of "));
}

TEST_F(FetchTest, WhatAStallingServerSentIsKept) {
  server_.Serve("/f", {.content = Content(), .stalls_after = 1});
  Fetch(File({"/f"}));
  EXPECT_EQ(ReadFile(folder_ / "f.gz"), Content());
  EXPECT_THAT(server_.requests(), ElementsAre("GET /f", "GET /f bytes=1-"));
  EXPECT_THAT(said_, HasSubstr("the server stalled: nothing came for 1 s (1 of "));
}

TEST_F(FetchTest, NotFoundFallsToTheNextAddress) {
  server_.Serve("/there", {Content()});
  Fetch(File({"/gone", "/there"}));
  EXPECT_TRUE(Has("f.gz"));
  EXPECT_THAT(said_, HasSubstr(server_.Url("/gone") + ": HTTP 404"));
}

TEST_F(FetchTest, EveryAddressIsNamedInTheError) {
  server_.Serve("/broken", {.status = 503});
  EXPECT_THAT(Fail(File({"/gone", "/broken"})),
              AllOf(HasSubstr("cannot fetch f.gz:\n  " + server_.Url("/gone") + ": HTTP 404\n  " +
                              server_.Url("/broken") + ": HTTP 503"),
                    HasSubstr("put f.gz into " + folder_.path().string())));
}

TEST_F(FetchTest, NobodyListening) {
  RemoteFile file = File({});
  file.urls = {"http://127.0.0.1:1/f"};
  EXPECT_THAT(Fail(file), HasSubstr("http://127.0.0.1:1/f: Failed to connect"));
}

TEST_F(FetchTest, NoAddress) {
  EXPECT_THAT(Fail(File({})), HasSubstr("cannot fetch f.gz: no address is known for it"));
}

TEST_F(FetchTest, OnlyHttp) {
  const fs::path secret = folder_.Write("secret", Content());
  RemoteFile file = File({});
  file.urls = {"file://" + secret.string()};
  EXPECT_THAT(Fail(file), HasSubstr("not supported"));
}

TEST_F(FetchTest, ContentLengthThatPromisesTooMuch) {
  server_.Serve("/f", {.content = Content(),
                       .claimed_length = static_cast<int64_t>(Content().size()) + 1000});
  Fetch(File({"/f"}));
  EXPECT_EQ(ReadFile(folder_ / "f.gz"), Content());
}

TEST_F(FetchTest, ContentLengthThatPromisesTooLittle) {
  server_.Serve("/f", {.content = Content(), .claimed_length = 1000});
  EXPECT_THAT(Fail(File({"/f"})),
              HasSubstr("1000 bytes, expected " + std::to_string(Content().size()) + "; removed"));
  EXPECT_FALSE(Has("f.gz.part"));
}

TEST_F(FetchTest, AFileThatIsTooLongIsNotLoadedToItsEnd) {
  server_.Serve("/f", {Content() + Content()});
  EXPECT_THAT(Fail(File({"/f"})), HasSubstr("the file there is longer than the " +
                                            std::to_string(Content().size()) + " bytes expected"));
  EXPECT_EQ(fs::file_size(folder_ / "f.gz.part"), 0u);
  EXPECT_EQ(server_.requests().size(), 1U) << "it would be no shorter the second time";
}

TEST_F(FetchTest, AFileOfOneByteHasABoundToo) {
  server_.Serve("/f", {"xy"});
  EXPECT_THAT(Fail(File({"/f"}, "x")), HasSubstr("longer than the 1 bytes expected"));
  server_.Serve("/f", {"x"});
  Fetch(File({"/f"}, "x"));
  EXPECT_EQ(ReadFile(folder_ / "f.gz"), "x");
  EXPECT_EQ(CheckFile(File({}, "x"), folder_.Write("f.gz", "xyz")), "3 bytes, expected 1");
}

TEST_F(FetchTest, TwoAtOnceDownloadOnce) {
  server_.Serve("/f", {Content()});
  const RemoteFile file = File({"/f"});
  std::thread other([&] { Fetch(file); });
  Fetch(file);
  other.join();
  EXPECT_THAT(server_.requests(), ElementsAre("GET /f"));
  EXPECT_EQ(ReadFile(folder_ / "f.gz"), Content());
}

TEST_F(FetchTest, WhoWaitsSaysSo) {
  server_.Serve("/f", {Content()});
  std::thread other;
  {
    const FileLock lock(folder_ / ".lock", [](const std::string&) {}, {});
    other = std::thread([&] { Fetch(File({"/f"})); });
    for (bool waiting = false; !waiting;) {
      std::this_thread::yield();
      const std::lock_guard guard(mutex_);
      waiting = said_.find(fmt::format("process {} on {} is fetching into", ::getpid(),
                                       HostName())) != std::string::npos;
    }
    EXPECT_TRUE(server_.requests().empty());
  }
  other.join();
  EXPECT_TRUE(Has("f.gz"));
}

TEST_F(FetchTest, FolderThatCannotBeMade) {
  folder_.Write("file", "");
  EXPECT_THAT(MessageOf<DataError>([&] { FetchFiles({}, folder_ / "file/sub"); }),
              AllOf(HasSubstr("cannot create folder " + (folder_ / "file/sub").string()),
                    HasSubstr("--root or XDG_CACHE_HOME")));
}

TEST_F(FetchTest, LockThatCannotBeMade) {
  fs::create_directories(folder_ / ".lock");
  EXPECT_THAT(Fail(File({"/f"})),
              HasSubstr("cannot open " + (folder_ / ".lock").string() + ": Is a directory"));
}

// A file size limit acts as a full disk.
TEST_F(FetchTest, AFileThatCannotGrowIsNamed) {
  server_.Serve("/f", {Content()});
  const auto previous_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit previous;
  getrlimit(RLIMIT_FSIZE, &previous);
  const rlimit small{1000, previous.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string error = Fail(File({"/f"}));
  setrlimit(RLIMIT_FSIZE, &previous);
  std::signal(SIGXFSZ, previous_handler);
  EXPECT_THAT(error,
              HasSubstr("cannot write " + (folder_ / "f.gz.part").string() + ": File too large"));
}

TEST_F(FetchTest, ALinkOrAPipeInThePlaceOfThePartIsRefused) {
  server_.Serve("/f", {Content()});
  const fs::path part = folder_ / "f.gz.part";
  fs::create_symlink("/dev/null", part);
  EXPECT_THAT(Fail(File({"/f"})), HasSubstr("cannot write " + part.string() + ": Too many levels"));
  fs::remove(part);
  ASSERT_EQ(::mkfifo(part.c_str(), 0600), 0);
  const int reader = ::open(part.c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_THAT(Fail(File({"/f"})), HasSubstr("f.gz.part is not a regular file"));
  ::close(reader);
  EXPECT_THAT(Fail(File({"/f"})), HasSubstr("cannot write " + part.string() + ": No such device"));
}

TEST_F(FetchTest, PartThatCannotBeWritten) {
  fs::create_directories(folder_ / "f.gz.part/x");
  EXPECT_THAT(Fail(File({"/f"})),
              HasSubstr("cannot write " + (folder_ / "f.gz.part").string() + ": Is a directory"));
}

TEST_F(FetchTest, APasswordIsNotShown) {
  const std::string error = MessageOf<DataError>([&] {
    FetchOptions options;
    options.say = [this](const std::string& line) { said_ += line + "\n"; };
    options.retry_seconds = 0;
    FetchFiles({{"a",
                 {"http://me:s3cret@127.0.0.1:1/a", "http://me@127.0.0.1:1/b@c:d",
                  "me:s3cret@127.0.0.1:1/e", "http://me:s3cr/s3cret@127.0.0.1:1/f",
                  "http://127.0.0.1:1/g:h@i"},
                 "",
                 9}},
               folder_.path(), options);
  });
  for (const std::string& text : {error, said_}) {
    EXPECT_THAT(
        text,
        AllOf(Not(HasSubstr("s3cret")), HasSubstr("http://me:***@127.0.0.1:1/a"),
              HasSubstr("http://me@127.0.0.1:1/b@c:d"), HasSubstr(" me:***@127.0.0.1:1/e"),
              HasSubstr("http://me:***@127.0.0.1:1/f"), HasSubstr("http://127.0.0.1:1/g:h@i")));
  }
}

}  // namespace
}  // namespace dtrain
