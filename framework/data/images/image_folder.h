// Folders of images have one folder per class: FOLDER/cat/anything/below/1.jpg is a cat.
//
// Classes are numbered in the byte order of their names, images in that of their paths.  Files without an image's name
// ending, and names that begin with a dot, are ignored.  A symbolic link to a folder counts as the folder, unless that
// contains the list's folder, or is read already: no image is listed twice.  A folder's own path comes before links to
// it, and of several links the first by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/data/images/image_set.h"

namespace dtrain {

struct ImageList {
  std::filesystem::path folder;
  std::vector<std::string> classes;             // names of its folders
  std::vector<std::filesystem::path> files;     // below `folder`
  std::vector<uint16_t> labels;                 // of each file
  int64_t passed_over = 0;                      // files that are no images by their names
  std::vector<std::filesystem::path> left_out;  // folders that are not read: links, mostly
};

// Returns the images in a folder and its subfolders, sorted; adds what it passes over to `list`.  Throws DataError if a
// folder cannot be read.
std::vector<std::filesystem::path> ImagesBelow(const std::filesystem::path& folder,
                                               bool follow_links, ImageList& list);

// Returns the first ten of the paths, for messages.
std::string SomeOf(const std::vector<std::filesystem::path>& paths);

// Throws DataError if there is no such folder, it contains no folder, or a class has no image.
ImageList ListImages(const std::filesystem::path& folder, bool follow_links = true);

// Returns the same images with labels by the classes of `other`; throws DataError if a class is missing there.
ImageList WithClassesOf(const ImageList& other, ImageList list);

struct ReadOptions {
  int threads = 1;
  int64_t skip_broken = 0;  // broken images left out, with those of earlier calls; more: error
};

// Decodes all images, and logs how many were turned by EXIF orientation.  Adds the names of left-out images to
// `broken`, which has those of earlier calls.  Throws DataError with the number of broken images and their names.
LabelledImages ReadImages(const ImageList& list, const ImageSetSpec& spec,
                          const ReadOptions& options, std::vector<std::string>& broken);

}  // namespace dtrain
