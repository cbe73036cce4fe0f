// Folders of pictures, one folder a class: FOLDER/cat/anything/below/1.jpg is a cat.
//
// Classes are numbered in the order of their names' bytes, pictures in that of their paths.  What does not end as
// pictures do, and what begins with a dot, is passed over.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/data/images/image_set.h"

namespace dtrain {

struct PictureList {
  std::filesystem::path folder;
  std::vector<std::string> classes;          // names of its folders
  std::vector<std::filesystem::path> files;  // below `folder`
  std::vector<uint16_t> labels;              // of each file
  int64_t passed_over = 0;                   // files that are no pictures by their names
};

// Throws DataError where there is no such folder, it has no folder in it, or a class has no picture.
PictureList ListPictures(const std::filesystem::path& folder);

// The same pictures with labels by the classes of another list; DataError where that has no such class.
PictureList WithClassesOf(const PictureList& other, PictureList list);

// Decodes all of them by that many threads, and logs how many were turned by EXIF orientation.  Throws DataError that
// names the first broken ones and counts them.
LabelledImages ReadPictures(const PictureList& list, const ImageSetSpec& spec, int threads);

}  // namespace dtrain
