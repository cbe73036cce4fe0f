#include "framework/data/images/image_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/log.h"
#include "framework/core/printable.h"
#include "framework/core/stop_request.h"
#include "framework/core/text.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

constexpr size_t kNamedErrors = 100, kNamedFolders = 10;

// Identifies a folder, whatever path leads to it.
using FolderId = std::pair<dev_t, ino_t>;

FolderId IdOf(const fs::path& folder) {
  struct stat status = {};
  if (::stat(folder.c_str(), &status) != 0) {
    throw DataError(fmt::format("{}: {}", folder.string(), std::strerror(errno)));
  }
  return {status.st_dev, status.st_ino};
}

// Lists the entries of a folder, without those that begin with a dot.
std::vector<fs::directory_entry> EntriesOf(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (!it->path().filename().string().starts_with('.')) entries.push_back(*it);
  }
  if (error) throw DataError(fmt::format("{}: {}", folder.string(), error.message()));
  return entries;
}

bool IsFolder(const fs::directory_entry& entry) {
  std::error_code ignored;
  return entry.is_directory(ignored);
}

std::string TextOf(const fs::path& path) { return path.string(); }

// Reads folders with all below them, each once, whatever paths lead to it.
class FolderReader {
 public:
  using Files = std::vector<fs::path>;

  FolderReader(const fs::path& root, bool follow_links, ImageList& list)
      : follow_links_(follow_links), list_(list) {
    // A link to a folder above would take images of all kinds.
    std::error_code ignored;
    for (const fs::path& path :
         {fs::absolute(root).lexically_normal(), fs::canonical(root, ignored)}) {
      for (fs::path above = path; above.has_relative_path(); above = above.parent_path()) {
        if (fs::exists(above, ignored)) seen_.insert(IdOf(above));
      }
      if (fs::exists(path.root_path(), ignored)) seen_.insert(IdOf(path.root_path()));
    }
    seen_.erase(IdOf(root));
  }

  // Counts the folder as one that was read.
  void Skip(const fs::path& folder) { seen_.insert(IdOf(folder)); }

  // Adds the images of a folder to `files`, but those behind links only when FollowLinks is called.
  void Read(const fs::directory_entry& folder, Files& files) {
    std::error_code ignored;
    if (folder.is_symlink(ignored)) {
      links_.push_back({folder.path(), &files});
    } else {
      ReadFolder(folder.path(), files);
    }
  }
  void ReadFolder(const fs::path& folder, Files& files) {
    if (!seen_.insert(IdOf(folder)).second) return list_.left_out.push_back(folder);
    std::vector<fs::directory_entry> entries = EntriesOf(folder);
    std::ranges::sort(entries, {}, [](const auto& entry) { return TextOf(entry.path()); });
    for (const fs::directory_entry& entry : entries) {
      if (IsFolder(entry)) {
        Read(entry, files);
      } else if (IsImageName(entry.path())) {
        files.push_back(entry.path());
      } else {
        ++list_.passed_over;
      }
    }
  }

  void FollowLinks() {
    while (!links_.empty()) {
      std::vector<Link> links = std::exchange(links_, {});
      std::ranges::sort(links, {}, [](const Link& link) { return TextOf(link.path); });
      for (const Link& link : links) {
        if (follow_links_) {
          ReadFolder(link.path, *link.files);
        } else {
          list_.left_out.push_back(link.path);
        }
      }
    }
  }

 private:
  struct Link {
    fs::path path;
    Files* files;
  };

  const bool follow_links_;
  ImageList& list_;
  std::set<FolderId> seen_;
  std::vector<Link> links_;  // that are still to be followed
};

// Returns the folders in `folder`, by name; links that are not followed are left out.
std::vector<fs::directory_entry> ClassFolders(const fs::path& folder, bool follow_links,
                                              ImageList& list) {
  std::vector<fs::directory_entry> folders;
  for (const fs::directory_entry& entry : EntriesOf(folder)) {
    std::error_code ignored;
    if (!IsFolder(entry)) continue;
    if (follow_links || !entry.is_symlink(ignored)) {
      folders.push_back(entry);
    } else {
      list.left_out.push_back(entry.path());
    }
  }
  std::ranges::sort(folders, {}, [](const auto& entry) { return TextOf(entry.path().filename()); });
  return folders;
}

}  // namespace

std::string SomeOf(const std::vector<fs::path>& paths) {
  const size_t shown = std::min(paths.size(), kNamedFolders);
  std::vector<std::string> names;
  for (size_t i = 0; i < shown; ++i) names.push_back(Printable(paths[i].string()));
  if (shown < paths.size()) names.push_back(fmt::format("and {} more", paths.size() - shown));
  return Join(names);
}

std::vector<fs::path> ImagesBelow(const fs::path& folder, bool follow_links, ImageList& list) {
  std::vector<fs::path> files;
  FolderReader reader(folder, follow_links, list);
  reader.ReadFolder(folder, files);
  reader.FollowLinks();
  std::ranges::sort(files, {}, TextOf);
  return files;
}

ImageList ListImages(const fs::path& folder, bool follow_links) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    const std::string begins = WhereItBegins(folder);
    throw DataError(fmt::format("there is no folder {}", folder.string()),
                    fmt::format("name the folder that has a folder of images for each class{}{}",
                                begins.empty() ? "" : "; ", begins));
  }
  ImageList list;
  list.folder = folder;
  const std::vector<fs::directory_entry> folders = ClassFolders(folder, follow_links, list);
  if (folders.empty()) {
    throw DataError(fmt::format("{} has no folder in it", folder.string()),
                    "it needs a folder of images for each class");
  }
  if (std::ssize(folders) > kClassesMost) {
    throw DataError(fmt::format("{} has {} folders; dtrain takes {} classes", folder.string(),
                                folders.size(), kClassesMost));
  }
  std::vector<FolderReader::Files> files(folders.size());
  FolderReader reader(folder, follow_links, list);
  reader.Skip(folder);
  for (size_t c = 0; c < folders.size(); ++c) reader.Read(folders[c], files[c]);
  reader.FollowLinks();
  for (fs::path& path : list.left_out) path = path.lexically_relative(folder);
  std::ranges::sort(list.left_out, {}, TextOf);
  std::vector<std::string> empty;
  for (size_t c = 0; c < folders.size(); ++c) {
    list.classes.push_back(folders[c].path().filename().string());
    std::ranges::sort(files[c], {}, TextOf);
    if (files[c].empty()) empty.push_back(Printable(list.classes[c]));
    list.labels.insert(list.labels.end(), files[c].size(), static_cast<uint16_t>(c));
    for (const fs::path& file : files[c]) list.files.push_back(file.lexically_relative(folder));
  }
  if (empty.empty()) return list;
  std::string hint = "put images there, or remove the folder";
  if (!list.left_out.empty()) hint += "; not read, as links: " + SomeOf(list.left_out);
  throw DataError(fmt::format("{}: {} of {} classes {} no image (.jpg, .jpeg, .png): {}",
                              folder.string(), empty.size(), list.classes.size(),
                              empty.size() == 1 ? "has" : "have", Join(empty)),
                  hint);
}

ImageList WithClassesOf(const ImageList& other, ImageList list) {
  std::vector<uint16_t> number_of;
  for (const std::string& name : list.classes) {
    const auto found = std::ranges::lower_bound(other.classes, name);
    if (found == other.classes.end() || *found != name) {
      throw DataError(fmt::format("{} has a class '{}' that {} does not have", list.folder.string(),
                                  Printable(name), other.folder.string()),
                      "the folders of both must have the same names");
    }
    number_of.push_back(static_cast<uint16_t>(found - other.classes.begin()));
  }
  for (uint16_t& label : list.labels) label = number_of[label];
  list.classes = other.classes;
  return list;
}

namespace {

// Removes the images that have a problem.
void LeaveOut(const std::vector<std::string>& problems, size_t pixels, LabelledImages& images) {
  size_t kept = 0;
  for (size_t i = 0; i < problems.size(); ++i) {
    if (!problems[i].empty()) continue;
    std::copy_n(images.images.begin() + static_cast<std::ptrdiff_t>(i * pixels), pixels,
                images.images.begin() + static_cast<std::ptrdiff_t>(kept * pixels));
    images.labels[kept++] = images.labels[i];
  }
  images.labels.resize(kept);
  images.images.resize(kept * pixels);
}

}  // namespace

LabelledImages ReadImages(const ImageList& list, const ImageSetSpec& spec,
                          const ReadOptions& options, std::vector<std::string>& broken) {
  const auto pixels = static_cast<size_t>(spec.image_shape.count());
  LabelledImages images;
  images.labels = list.labels;
  images.images.resize(list.files.size() * pixels);
  std::vector<std::string> problems(list.files.size());
  std::atomic<size_t> next = 0;
  std::atomic<int64_t> turned = 0;
  const auto work = [&] {
    for (size_t i = next++; i < list.files.size() && !StopRequested(); i = next++) {
      const fs::path path = list.folder / list.files[i];
      try {
        turned += DecodeImage(ReadFile(path), Printable(path.string()), spec.image_shape, spec.fit,
                              spec.orientation, images.images.data() + i * pixels);
      } catch (const DataError& error) {
        problems[i] = error.what();
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (int t = 1; t < options.threads; ++t) others.emplace_back(work);
    work();
  }
  EndIfStopped("reading " + list.folder.string());
  if (turned > 0) {
    log::Info("{}: {} turned upright by EXIF orientation", list.folder.string(),
              Counted(turned, "image"));
  }
  const auto count = static_cast<int64_t>(
      std::ranges::count_if(problems, [](const std::string& problem) { return !problem.empty(); }));
  if (count == 0) return images;
  if (count <= options.skip_broken - std::ssize(broken) && count < std::ssize(list.files)) {
    LeaveOut(problems, pixels, images);
    for (size_t i = 0; i < problems.size(); ++i) {
      if (!problems[i].empty()) broken.push_back(Printable(list.files[i].string()));
    }
    return images;
  }
  std::erase(problems, "");
  if (problems.size() > kNamedErrors) problems.resize(kNamedErrors);
  throw DataError(
      fmt::format("{} of {} images in {} cannot be used:\n  {}{}", count, list.files.size(),
                  list.folder.string(), Join(problems, "\n  "),
                  count > std::ssize(problems) ? "\n  ..." : ""),
      fmt::format("remove them or mend them, or data.skip_broken: {}; nothing was started",
                  count + std::ssize(broken)));
}

}  // namespace dtrain
