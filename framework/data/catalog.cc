#include "framework/data/catalog.h"

#include <algorithm>

#include <fmt/format.h>

namespace dtrain {
namespace fs = std::filesystem;
namespace {

std::unique_ptr<DatasetSource> Make(const std::string& name) {
  return DatasetRegistry::Get("data set", name).make();
}

// The files that a set needs.
std::vector<RemoteFile> FetchedFiles(const DatasetSource& source) {
  std::vector<RemoteFile> files = source.files();
  std::erase_if(files, [](const RemoteFile& file) { return file.urls.empty(); });
  return files;
}

VerifyReport Verify(const std::string& name, const fs::path& folder) {
  VerifyReport report{name, folder, {}};
  for (const RemoteFile& file : Make(name)->files()) {
    if (file.urls.empty() && !fs::exists(folder / file.name)) continue;
    report.files.push_back({file.name, CheckFile(file, folder / file.name)});
  }
  return report;
}

fs::path FirstExisting(const std::vector<fs::path>& places) {
  std::error_code ignored;
  for (const fs::path& place : places) {
    if (fs::is_directory(place, ignored)) return place;
  }
  return {};
}

std::string WhereText(const DatasetStatus& set) {
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
            return fs::exists(set.folder / f.name);
          }));
    }
    sets.push_back(std::move(set));
  }
  return sets;
}

std::string DatasetTable(const std::vector<DatasetStatus>& sets) {
  std::string table = TableRow("name", "classes", "train", "test", "where");
  for (const DatasetStatus& set : sets) {
    table += TableRow(set.name, std::to_string(set.classes), std::to_string(set.train_samples),
                      std::to_string(set.test_samples), WhereText(set));
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
  const std::vector<RemoteFile> files = FetchedFiles(*Make(name));
  if (files.empty()) return {};
  for (const fs::path& place : DataPlaces(name, root)) {
    if (Verify(name, place).ok()) return place;
  }
  const fs::path folder = FetchFolder(name, root);
  FetchFiles(files, folder, options);
  return folder;
}

}  // namespace dtrain
