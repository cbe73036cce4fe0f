#include "framework/data/images/image_folder.h"

#include <algorithm>
#include <atomic>
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

constexpr size_t kNamedErrors = 10;

std::vector<std::string> FoldersIn(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (it->is_directory(error) && !name.starts_with('.')) names.push_back(name);
  }
  if (error) throw DataError(fmt::format("{}: {}", folder.string(), error.message()));
  std::ranges::sort(names);
  return names;
}

// Returns the images below folder/name, as paths relative to `folder`.
std::vector<fs::path> ImagesIn(const fs::path& folder, const std::string& name,
                               int64_t& passed_over) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder / name, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().filename().string().starts_with('.')) {
      if (it->is_directory(error)) it.disable_recursion_pending();
      continue;
    }
    if (it->is_directory(error)) continue;
    if (IsImageName(it->path())) {
      files.push_back(it->path().lexically_relative(folder));
    } else {
      ++passed_over;
    }
  }
  if (error) throw DataError(fmt::format("{}: {}", (folder / name).string(), error.message()));
  std::ranges::sort(files, {}, [](const fs::path& path) { return path.string(); });
  return files;
}

}  // namespace

ImageList ListImages(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    const std::string begins = WhereItBegins(folder);
    throw DataError(fmt::format("there is no folder {}", folder.string()),
                    fmt::format("name the folder that has a folder of images for each class{}{}",
                                begins.empty() ? "" : "; ", begins));
  }
  ImageList list;
  list.folder = folder;
  list.classes = FoldersIn(folder);
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
    std::vector<fs::path> files = ImagesIn(folder, list.classes[c], list.passed_over);
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

LabelledImages ReadImages(const ImageList& list, const ImageSetSpec& spec, int threads) {
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
    for (int t = 1; t < threads; ++t) others.emplace_back(work);
    work();
  }
  EndIfStopped("reading " + list.folder.string());
  std::erase(problems, "");
  if (turned > 0) {
    log::Info("{}: {} turned upright by EXIF orientation", list.folder.string(),
              Counted(turned, "image"));
  }
  if (problems.empty()) return images;
  const size_t count = problems.size();
  if (count > kNamedErrors) problems.resize(kNamedErrors);
  throw DataError(fmt::format("{} of {} images in {} cannot be used:\n  {}{}", count,
                              list.files.size(), list.folder.string(), Join(problems, "\n  "),
                              count > kNamedErrors ? "\n  ..." : ""),
                  "remove them or mend them; nothing was started");
}

}  // namespace dtrain
