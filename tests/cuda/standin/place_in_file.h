// PlaceInFile says where an allocation of the stand-in's device memory lies: in a file in memory, which other processes open
// by its number in this one.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace dtrain::standin {

struct PlaceInFile {
  pid_t process;
  int file;
  off_t offset;
  size_t bytes;
};

}  // namespace dtrain::standin
