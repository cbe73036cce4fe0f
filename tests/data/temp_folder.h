// A temporary folder for one test, removed at its end, and ways to fill it.
#pragma once

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/message_of.h"

namespace dtrain {

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "dtrain-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  std::filesystem::path Write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << content;
    std::filesystem::permissions(path_ / name, std::filesystem::perms{0644});  // ignores the umask
    return path_ / name;
  }

  // Writes `content` as a .gz file.
  std::filesystem::path WriteGzip(const std::string& name, const std::string& content) const {
    struct archive* a = archive_write_new();
    archive_write_set_format_raw(a);
    archive_write_add_filter_gzip(a);
    WriteMembers(a, name, {{"data", content}});
    return path_ / name;
  }

  // Writes a .tar.gz or .tar.xz file, chosen by `name`, of (path, content) members.
  std::filesystem::path WriteTar(
      const std::string& name,
      const std::vector<std::pair<std::string, std::string>>& members) const {
    struct archive* a = archive_write_new();
    archive_write_set_format_ustar(a);
    if (name.ends_with("gz")) archive_write_add_filter_gzip(a);
    if (name.ends_with("xz")) archive_write_add_filter_xz(a);
    WriteMembers(a, name, members);
    return path_ / name;
  }

 private:
  void WriteMembers(struct archive* a, const std::string& name,
                    const std::vector<std::pair<std::string, std::string>>& members) const {
    ASSERT_EQ(archive_write_open_filename(a, (path_ / name).c_str()), ARCHIVE_OK);
    for (const auto& [path, content] : members) {
      archive_entry* entry = archive_entry_new();
      archive_entry_set_pathname(entry, path.c_str());
      archive_entry_set_filetype(entry, AE_IFREG);
      archive_entry_set_perm(entry, 0644);
      archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
      ASSERT_EQ(archive_write_header(a, entry), ARCHIVE_OK);
      archive_write_data(a, content.data(), content.size());
      archive_entry_free(entry);
    }
    ASSERT_EQ(archive_write_free(a), ARCHIVE_OK);
  }

  std::filesystem::path path_;
};

// Sets an environment variable (null: unsets it) and restores it at the end.
class ScopedVariable {
 public:
  ScopedVariable(std::string name, const char* value) : name_(std::move(name)) {
    if (const char* old = std::getenv(name_.c_str())) {
      had_ = true;
      old_ = old;
    }
    Set(value);
  }
  ~ScopedVariable() { Set(had_ ? old_.c_str() : nullptr); }
  ScopedVariable(const ScopedVariable&) = delete;

 private:
  void Set(const char* value) {
    if (value == nullptr) {
      ::unsetenv(name_.c_str());
    } else {
      ::setenv(name_.c_str(), value, 1);
    }
  }
  std::string name_;
  bool had_ = false;
  std::string old_;
};

}  // namespace dtrain
