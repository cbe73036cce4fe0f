#include "framework/data/files/catalog.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/log.h"
#include "framework/core/printable.h"
#include "framework/core/sha256.h"
#include "framework/core/stop_request.h"
#include "framework/core/text.h"
#include "framework/data/files/archive.h"
#include "framework/data/files/download.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

std::unique_ptr<DatasetSource> Make(const std::string& name) {
  return DatasetRegistry::Get("data set", name).make();
}

// Returns the files that a set must download.
std::vector<RemoteFile> FetchedFiles(const DatasetSource& source) {
  std::vector<RemoteFile> files = source.files();
  std::erase_if(files, [](const RemoteFile& file) { return file.urls.empty(); });
  return files;
}

std::string WithoutGz(const std::string& name) {
  return name.ends_with(".gz") ? name.substr(0, name.size() - 3) : name;
}

// Returns the name of a file in the folder, compressed or not; "" if it is absent.
std::string NameIn(const fs::path& folder, const RemoteFile& file) {
  std::error_code ignored;
  for (const std::string& name : {file.name, WithoutGz(file.name)}) {
    if (fs::is_regular_file(folder / name, ignored)) return name;
  }
  return "";
}

// Returns the problem with the unpacked content of a file; "" if there is none.
std::string CheckContent(const RemoteFile& file, const fs::path& path) {
  if (file.content_sha256.empty()) {
    return fmt::format("unpacked: only {} can be compared", file.name);
  }
  Sha256 hash;
  try {
    MemberReader in(path);
    std::vector<char> block(size_t{1} << 20);
    while (const size_t got = in.Read(block.data(), block.size())) hash.Update(block.data(), got);
  } catch (const DataError& error) {
    return error.what();
  }
  const std::string found = hash.HexDigest();
  if (found == file.content_sha256) return "";
  return fmt::format("SHA-256 of the content is {}, expected {}", found, file.content_sha256);
}

FileStatus StatusOf(const RemoteFile& file, const fs::path& folder) {
  const std::string name = NameIn(folder, file);
  if (name.empty()) return {file.name, "missing"};
  const bool packed = name == file.name;
  const std::string problem = packed ? CheckFile(file, folder / name) : "unpacked";
  if (problem.empty()) return {name, ""};
  const std::string content = CheckContent(file, folder / name);
  return {name, packed && !content.empty() ? problem : content};
}

VerifyReport Verify(const std::string& name, const fs::path& folder) {
  VerifyReport report{name, folder, {}};
  for (const RemoteFile& file : Make(name)->files()) {
    if (file.urls.empty() && NameIn(folder, file).empty()) continue;
    report.files.push_back(StatusOf(file, folder));
  }
  return report;
}

using nlohmann::json;

json Remembered(const fs::path& memory) {
  std::error_code error;
  if (memory.empty() || !fs::exists(memory, error)) return json::object();
  if (const std::string why = WhyNotTrusted(memory); !why.empty()) {
    log::Warning("{} {}; it is made again", memory.string(), why);
    return json::object();
  }
  try {
    json known = json::parse(ReadFile(memory));
    if (known.is_object()) return known;
  } catch (const std::exception&) {  // it is written again
  }
  return json::object();
}

// Returns the file, or "" if others could replace it.
fs::path TrustedMemory(const fs::path& memory) {
  const fs::path folder = memory.parent_path();
  const std::string why = WhyNotTrusted(folder);
  if (why.empty()) return memory;
  log::Warning(
      "{0} {1}, so {2} is not used and the data are verified at every start: `chmod go-w {3}` "
      "where it is yours, else name a folder of your own by XDG_CACHE_HOME",
      folder.string(), why, memory.filename().string(), ShellWord(folder.string()));
  return {};
}

// Returns a text that distinguishes the file from another of the same name.
std::string StampOf(const fs::path& path) {
  return fmt::format("{} bytes, changed {}", fs::file_size(path),
                     fs::last_write_time(path).time_since_epoch().count());
}

// Returns the problem with the file, computed only once.
std::string ProblemOf(const RemoteFile& file, const fs::path& folder, const fs::path& path,
                      json& known) {
  const json seen = {StampOf(path), file.sha256, file.content_sha256};
  const std::string key = fs::canonical(path).string();
  const json& before = known[key];
  if (before.is_object() && before.value("seen", json()) == seen) {
    const json reported = before.value("problem", json());
    if (reported.is_string()) return reported;
  }
  const std::string problem = StatusOf(file, folder).problem;
  known[key] = {{"seen", seen}, {"problem", problem}};
  return problem;
}

// Replaces the addresses by those of a server with a copy of the folder above the sets' folders.
void TakeFrom(const std::string& server, const std::string& name, std::vector<RemoteFile>& files) {
  const std::string base = server.ends_with('/') ? server : server + "/";
  for (RemoteFile& file : files) file.urls = {base + name + "/" + file.name};
}

// Returns the folder that --from names; empty if it is the address of a server.
fs::path LocalFolder(const std::string& from) {
  const bool is_url = from.find("://") != std::string::npos;
  if (is_url && !from.starts_with("file:")) return {};
  const fs::path folder = is_url ? PathOfFileUrl(from) : fs::path(from);
  std::error_code ignored;
  if (fs::is_directory(folder, ignored)) return fs::absolute(folder).lexically_normal();
  const std::string begin = WhereItBegins(folder);
  throw DataError(fmt::format("there is no folder {}", folder.string()),
                  begin + (begin.empty() ? "" : "; ") +
                      "the address of a server begins with http:// or https://");
}

// Returns the file, packed or not, with its path as the only address: in the first place where it is as published, else
// in the first that has it at all.
std::optional<RemoteFile> FileIn(const std::vector<fs::path>& places, const RemoteFile& file) {
  std::optional<RemoteFile> wrong;
  for (const fs::path& place : places) {
    const std::string name = NameIn(place, file);
    const bool packed = name == file.name;
    if (name.empty() || (!packed && file.content_sha256.empty())) continue;
    const fs::path path = place / name;
    RemoteFile found = file;
    if (!packed) found = {name, {}, file.content_sha256, 0, file.content_sha256};
    found.urls = {path.string()};
    if (CheckFile(found, path).empty()) return found;
    if (packed && CheckContent(file, path).empty()) {  // it was packed again
      found.sha256 = Sha256::Of(ReadFile(path));
      found.bytes = 0;
      return found;
    }
    if (!wrong) wrong = found;
  }
  return wrong;
}

// A wrong packed file would be read in place of the unpacked one beside it.
void RefuseWrongBeside(const RemoteFile& unpacked, const RemoteFile& published,
                       const fs::path& folder) {
  if (unpacked.name == published.name) return;
  const std::string wrong = CheckFile(published, folder / published.name);
  if (wrong.empty() || wrong == "missing") return;
  throw DataError(fmt::format("{}: {}", (folder / published.name).string(), wrong),
                  fmt::format("remove it: it would be read in place of {}", unpacked.name));
}

// Returns the files to copy from a local folder into `folder`.
std::vector<RemoteFile> FilesToCopy(const fs::path& from, const std::string& name,
                                    const fs::path& folder) {
  std::vector<RemoteFile> files;
  std::vector<std::string> missing;
  for (const RemoteFile& published : Make(name)->files()) {
    const std::optional<RemoteFile> file = FileIn({from / name, from}, published);
    if (file) {
      RefuseWrongBeside(*file, published, folder);
      files.push_back(*file);
    } else if (!published.urls.empty() && !StatusOf(published, folder).problem.empty()) {
      missing.push_back(published.name);
    }
  }
  if (missing.empty()) return files;
  throw DataError(fmt::format("{} lacks {} of data set '{}'", from.string(), Join(missing), name),
                  fmt::format("they are looked for there and in {}", (from / name).string()));
}

// Creates the usual cache folder, whose other files are trusted.  If that fails, FetchFiles reports it.
void MakeCache(const fs::path& folder) {
  try {
    MakePrivateFolder(folder, 0755);
  } catch (const RunFileError&) {
  }
}

fs::path FirstExisting(const std::vector<fs::path>& places) {
  std::error_code ignored;
  for (const fs::path& place : places) {
    if (fs::is_directory(place, ignored)) return place;
  }
  return {};
}

std::string WhereText(const DatasetStatus& set) {
  if (set.own) return "your own files, named in the config";
  if (set.files == 0) return "made on the spot";
  if (set.folder.empty()) return fmt::format("not here: dtrain data fetch {}", set.name);
  if (set.files_here == set.files) return set.folder.string();
  return fmt::format("{} ({} of {} files as published)", set.folder.string(), set.files_here,
                     set.files);
}

std::string TableRow(const std::string& name, const std::string& classes, const std::string& train,
                     const std::string& test, const std::string& where) {
  return fmt::format("{:<16}{:>8}{:>10}{:>9}  {}\n", name, classes, train, test, where);
}

}  // namespace

std::vector<DatasetStatus> ListDatasets(const std::string& root) {
  std::vector<DatasetStatus> sets;
  for (const auto& [name, entry] : DatasetRegistry::All()) {
    const std::unique_ptr<DatasetSource> source = entry.make();
    const std::vector<RemoteFile> files = FetchedFiles(*source);
    DatasetStatus set{name,
                      entry.help,
                      source->is_own(),
                      source->classes(),
                      source->size(Split::kTrain),
                      source->size(Split::kTest),
                      static_cast<int>(files.size()),
                      0,
                      {}};
    if (!files.empty()) set.folder = FirstExisting(DataPlaces(name, root));
    if (!set.folder.empty()) {
      set.files_here =
          static_cast<int>(std::count_if(files.begin(), files.end(), [&](const auto& f) {
            return !NameIn(set.folder, f).empty();
          }));
    }
    sets.push_back(std::move(set));
  }
  return sets;
}

std::string DatasetTable(const std::vector<DatasetStatus>& sets) {
  std::string table = TableRow("name", "classes", "train", "test", "where");
  for (const DatasetStatus& set : sets) {
    const auto number = [&set](int64_t n) { return set.own ? "-" : std::to_string(n); };
    table += TableRow(set.name, number(set.classes), number(set.train_samples),
                      number(set.test_samples), WhereText(set));
  }
  return table;
}

bool VerifyReport::ok() const {
  return std::all_of(files.begin(), files.end(), [](const auto& f) { return f.problem.empty(); });
}

VerifyReport VerifyDataset(const std::string& name, const std::string& root) {
  if (Make(name)->files().empty()) return {name, {}, {}};
  return Verify(name, LocateData(name, root));
}

std::vector<FileStatus> DifferentFiles(const std::string& name, const fs::path& folder,
                                       const fs::path& given_memory) {
  std::vector<FileStatus> different;
  try {
    const fs::path memory = TrustedMemory(given_memory);
    json known = Remembered(memory);
    const json before = known;
    for (const RemoteFile& file : Make(name)->files()) {
      const std::string present = NameIn(folder, file);
      const bool packed = present == file.name;
      if (present.empty() || (packed ? file.sha256 : file.content_sha256).empty()) continue;
      const std::string problem = ProblemOf(file, folder, folder / present, known);
      if (!problem.empty()) different.push_back({(folder / present).string(), problem});
    }
    if (memory.empty() || known == before) return different;
    MakePrivateFolder(memory.parent_path(), 0755);
    WriteFileDurably(memory, JsonText(known, 1) + "\n");
  } catch (const StoppedError&) {
    throw;
  } catch (const std::exception& error) {
    log::Debug("which files of {} were verified is not remembered: {}", name, error.what());
  }
  return different;
}

fs::path UsualMemory() {
  try {
    return FetchFolder("verified.json", "");
  } catch (const DataError&) {
    return {};
  }
}

std::string VerifyText(const VerifyReport& report) {
  if (report.files.empty()) {
    return fmt::format("{} is made on the spot: there are no files to verify\n", report.name);
  }
  std::string text;
  for (const FileStatus& file : report.files) {
    text += fmt::format("{:<31} {}\n", file.name, file.problem.empty() ? "ok" : file.problem);
  }
  return text + fmt::format("{} in {}: {}\n", report.name, report.folder.string(),
                            report.ok() ? "all as published" : "NOT as published");
}

fs::path FetchDataset(const std::string& name, const std::string& root,
                      const FetchOptions& options) {
  std::vector<RemoteFile> files = FetchedFiles(*Make(name));
  if (files.empty()) return {};
  const fs::path local = options.from.empty() ? "" : LocalFolder(options.from);
  if (!options.from.empty() && local.empty()) TakeFrom(options.from, name, files);
  for (const fs::path& place : DataPlaces(name, root)) {
    if (Verify(name, place).ok()) return place;
  }
  const fs::path folder = FetchFolder(name, root);
  if (!local.empty()) files = FilesToCopy(local, name, folder);
  if (root.empty()) MakeCache(folder.parent_path());
  FetchFiles(files, folder, options);
  return folder;
}

}  // namespace dtrain
