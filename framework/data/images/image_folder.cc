#include "framework/data/images/image_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
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

constexpr size_t kNamedErrors = 100;

// Identifies a folder, whatever path leads to it.
using FolderId = std::pair<dev_t, ino_t>;

FolderId IdOf(const fs::path& folder) {
  struct stat status = {};
  if (::stat(folder.c_str(), &status) != 0) {
    throw DataError(fmt::format("{}: {}", folder.string(), std::strerror(errno)));
  }
  return {status.st_dev, status.st_ino};
}

// Lists the entries of a folder by name, without those that begin with a dot.
std::vector<fs::directory_entry> EntriesOf(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (!it->path().filename().string().starts_with('.')) entries.push_back(*it);
  }
  if (error) throw DataError(fmt::format("{}: {}", folder.string(), error.message()));
  return entries;
}

// True if the entry is a folder to be read; counts a link that is not followed.
bool IsFolder(const fs::directory_entry& entry, bool follow_links, ImageList& list) {
  std::error_code ignored;
  if (!entry.is_directory(ignored)) return false;
  if (follow_links || !entry.is_symlink(ignored)) return true;
  ++list.links_left_out;
  return false;
}

// Adds the images below `folder`; `above` are the folders that lead to it.
void AddImages(const fs::path& folder, bool follow_links, std::vector<FolderId>& above,
               std::vector<fs::path>& files, ImageList& list) {
  const FolderId id = IdOf(folder);
  if (std::ranges::find(above, id) != above.end()) {  // a link to a folder that contains it
    ++list.links_left_out;
    return;
  }
  above.push_back(id);
  for (const fs::directory_entry& entry : EntriesOf(folder)) {
    std::error_code ignored;
    if (entry.is_directory(ignored)) {
      if (IsFolder(entry, follow_links, list)) {
        AddImages(entry.path(), follow_links, above, files, list);
      }
    } else if (IsImageName(entry.path())) {
      files.push_back(entry.path());
    } else {
      ++list.passed_over;
    }
  }
  above.pop_back();
}

std::vector<std::string> FoldersIn(const fs::path& folder, bool follow_links, ImageList& list) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : EntriesOf(folder)) {
    if (IsFolder(entry, follow_links, list)) names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

std::vector<fs::path> ImagesBelow(const fs::path& folder, bool follow_links, ImageList& list) {
  std::vector<fs::path> files;
  // A link to the list's folder would take the images of all classes.
  std::vector<FolderId> above;
  if (!list.folder.empty()) above.push_back(IdOf(list.folder));
  AddImages(folder, follow_links, above, files, list);
  std::ranges::sort(files, {}, [](const fs::path& path) { return path.string(); });
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
  list.classes = FoldersIn(folder, follow_links, list);
  if (list.classes.empty()) {
    throw DataError(fmt::format("{} has no folder in it", folder.string()),
                    "it needs a folder of images for each class");
  }
  if (std::ssize(list.classes) > kClassesMost) {
    throw DataError(fmt::format("{} has {} folders; dtrain takes {} classes", folder.string(),
                                list.classes.size(), kClassesMost));
  }
  std::vector<std::string> empty;
  for (size_t c = 0; c < list.classes.size(); ++c) {
    std::vector<fs::path> files = ImagesBelow(folder / list.classes[c], follow_links, list);
    for (fs::path& file : files) file = file.lexically_relative(folder);
    if (files.empty()) empty.push_back(Printable(list.classes[c]));
    list.labels.insert(list.labels.end(), files.size(), static_cast<uint16_t>(c));
    std::ranges::move(files, std::back_inserter(list.files));
  }
  if (empty.empty()) return list;
  throw DataError(fmt::format("{}: {} of {} classes {} no image (.jpg, .jpeg, .png): {}",
                              folder.string(), empty.size(), list.classes.size(),
                              empty.size() == 1 ? "has" : "have", Join(empty)),
                  "put images there, or remove the folder");
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
  if (count <= options.skip_broken && count < std::ssize(list.files)) {
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
      fmt::format("remove them or mend them, or data.skip_broken: {}; nothing was started", count));
}

}  // namespace dtrain
