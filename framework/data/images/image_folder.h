// Folders of images have one folder per class: FOLDER/cat/anything/below/1.jpg is a cat.
//
// Classes are numbered in the byte order of their names, images in that of their paths.  Files without an image's name
// ending, and names that begin with a dot, are ignored.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/data/images/image_set.h"

namespace dtrain {

struct ImageList {
  std::filesystem::path folder;
  std::vector<std::string> classes;          // names of its folders
  std::vector<std::filesystem::path> files;  // below `folder`
  std::vector<uint16_t> labels;              // of each file
  int64_t passed_over = 0;                   // files that are no images by their names
};

// Throws DataError if there is no such folder, it contains no folder, or a class has no image.
ImageList ListImages(const std::filesystem::path& folder);

// Returns the same images with labels by the classes of `other`; throws DataError if a class is missing there.
ImageList WithClassesOf(const ImageList& other, ImageList list);

// Decodes all images with `threads` threads, and logs how many were turned by EXIF orientation.  Throws DataError with
// the number of broken images and the names of the first ones.
LabelledImages ReadImages(const ImageList& list, const ImageSetSpec& spec, int threads);

}  // namespace dtrain
