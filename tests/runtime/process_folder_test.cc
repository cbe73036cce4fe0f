#include "framework/launch/process_folder.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <optional>

#include "framework/core/process_identity.h"
#include "tests/checkpoint/checkpoint_sample.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

// Returns the identity of a process that has ended.
ProcessIdentity Dead() {
  ProcessIdentity dead = IdentityOfThisProcess().value();
  dead.pid = ::fork();
  if (dead.pid == 0) ::_exit(0);
  ::waitpid(static_cast<pid_t>(dead.pid), nullptr, 0);
  return dead;
}

class LeftFolders : public testing::Test {
 protected:
  // Leaves a folder as a killed process does; without a `marker` the folder has none.
  fs::path Leave(const std::string& name, const std::optional<std::string>& marker) const {
    const fs::path left = folder_ / name;
    fs::create_directories(left / "sub");
    Spit(left / "sub/file", "something");
    if (marker) Spit(left / kProcessMarker, *marker);
    ::chmod(left.c_str(), 0700);
    return left;
  }
  fs::path Leave(const std::string& name, const ProcessIdentity& process) const {
    return Leave(name, ToText(process));
  }
  bool Stays(const fs::path& left) const {
    RemoveLeftFolders(folder_);
    return fs::exists(left / "sub/file");
  }

  fs::path folder_ = FreshFolder();
};

TEST_F(LeftFolders, AProcessTakesItsOwnWithIt) {
  fs::path path;
  {
    const ProcessFolder own(folder_);
    path = own.path();
    EXPECT_TRUE(IsPrivateFolder(path));
    fs::create_directories(path / "a/b");
    Spit(path / "a/b/c", "something");
    RemoveLeftFolders(folder_);
    EXPECT_TRUE(fs::exists(path / "a/b/c")) << "its process lives";
  }
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(LeftFolders, OneOfAKilledProcessIsRemoved) {
  const ProcessIdentity dead = Dead();
  EXPECT_FALSE(Stays(Leave("dtrain-" + std::to_string(dead.pid) + "-aXb3cd", dead)));
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(LeftFolders, OneWhoseNumberAnotherProcessHasIsRemoved) {
  ProcessIdentity former = IdentityOfThisProcess().value();
  former.born -= 1;
  EXPECT_FALSE(Stays(Leave("dtrain-" + std::to_string(::getpid()) + "-aXb3cd", former)));
}

TEST_F(LeftFolders, TheUsersOwnStay) {
  const ProcessIdentity dead = Dead();
  const std::string number = std::to_string(dead.pid);
  EXPECT_TRUE(Stays(Leave("dtrain-2026-11-26", std::nullopt)));
  EXPECT_TRUE(Stays(Leave("dtrain-2026-11-26x", dead))) << "no name of mkdtemp's";
  EXPECT_TRUE(Stays(Leave("dtrain-" + number + "-aXb3cd", std::nullopt))) << "no marker";
  const fs::path open = Leave("dtrain-" + number + "-0penXX", dead);
  ::chmod(open.c_str(), 0755);
  EXPECT_TRUE(Stays(open)) << "mkdtemp makes none that others may read";
}

TEST_F(LeftFolders, OnesWhoseMarkerIsNotWholeStay) {
  const ProcessIdentity dead = Dead();
  const std::string marker = ToText(dead), name = "dtrain-" + std::to_string(dead.pid);
  EXPECT_TRUE(Stays(Leave(name + "-empty0", "")));
  EXPECT_TRUE(Stays(Leave(name + "-half00", marker.substr(0, marker.size() / 2))));
  const fs::path linked = Leave(name + "-linked", std::nullopt);
  Spit(folder_ / "marker", marker);
  fs::create_symlink(folder_ / "marker", linked / kProcessMarker);
  EXPECT_TRUE(Stays(linked));
}

TEST_F(LeftFolders, OnesOfOtherHostsBootsAndNamespacesStay) {
  for (const auto member :
       {&ProcessIdentity::host, &ProcessIdentity::boot, &ProcessIdentity::namespaces}) {
    ProcessIdentity other = Dead();
    other.*member += "0";
    EXPECT_TRUE(Stays(Leave("dtrain-" + std::to_string(other.pid) + "-aXb3cd", other)))
        << ToText(other);
  }
}

TEST_F(LeftFolders, LinksAreNotFollowed) {
  const ProcessIdentity dead = Dead();
  const std::string name = "dtrain-" + std::to_string(dead.pid);
  const fs::path mine = Leave("mine", dead);
  fs::create_directory_symlink(mine, folder_ / (name + "-linked"));
  EXPECT_TRUE(Stays(mine));
  const fs::path left = Leave(name + "-within", dead);
  fs::create_directory_symlink(mine, left / "link");
  EXPECT_FALSE(Stays(left));
  EXPECT_TRUE(fs::exists(mine / "sub/file"));
  EXPECT_FALSE(IsPrivateFolder(folder_ / (name + "-linked")));
}

// As in a container that shares the folder for temporary files.  A user who may not create a namespace relies on the
// marker of another namespace, as tested above.
void InAnotherPidNamespace(const std::function<void()>& action) {
  const pid_t outer = ::fork();
  if (outer == 0) {
    if (::unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) ::_exit(0);
    const pid_t inner = ::fork();
    if (inner == 0) {
      ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
      ::mount("proc", "/proc", "proc", 0, nullptr);
      action();
      ::_exit(0);
    }
    ::waitpid(inner, nullptr, 0);
    ::_exit(0);
  }
  ::waitpid(outer, nullptr, 0);
}

TEST_F(LeftFolders, AStartInAnotherContainerLeavesThoseOfLiveProcesses) {
  const ProcessFolder own(folder_);
  Spit(own.path() / "file", "something");
  InAnotherPidNamespace([this] { RemoveLeftFolders(folder_); });
  EXPECT_TRUE(fs::exists(own.path() / "file"));
}

}  // namespace
}  // namespace dtrain
