// HDF5 files that refer to other files, as an attacker or another program may have made them.
#pragma once

#include <gtest/gtest.h>
#include <hdf5.h>

#include <filesystem>
#include <string>
#include <vector>

#include "framework/checkpoint/checkpoint_seal.h"
#include "tests/checkpoint/checkpoint_sample.h"

namespace dtrain {

// Ways in which an HDF5 file can refer to values outside itself.
enum class Elsewhere {
  kExternalStorage,
  kExternalLink,
  kSoftLink,       // to an external link beside it
  kExternalGroup,  // the group is in another file
  kVirtual,
  kUserLink  // a link class of the user's own
};

inline constexpr Elsewhere kEverywhere[] = {Elsewhere::kExternalStorage, Elsewhere::kExternalLink,
                                            Elsewhere::kSoftLink,        Elsewhere::kExternalGroup,
                                            Elsewhere::kVirtual,         Elsewhere::kUserLink};

// Opens a file, on disk or in memory, for writing.
inline hid_t OpenToChange(const std::filesystem::path& path) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_stdio(access);  // other drivers need the real path, which a file in memory lacks
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, access);
  EXPECT_GE(file, 0) << path;
  H5Pclose(access);
  return file;
}

inline hid_t LeadNowhere(const char*, hid_t, const void*, size_t, hid_t, hid_t) { return -1; }

inline void MakeUserLink(hid_t file, const std::string& name, const std::string& other) {
  const auto kind = static_cast<H5L_type_t>(100);
  const H5L_class_t user = {H5L_LINK_CLASS_T_VERS, kind,    "user", nullptr, nullptr, nullptr,
                            LeadNowhere,           nullptr, nullptr};
  H5Lregister(&user);
  EXPECT_GE(H5Lcreate_ud(file, name.c_str(), kind, other.c_str(), other.size() + 1, H5P_DEFAULT,
                         H5P_DEFAULT),
            0);
  H5Lunregister(kind);
}

inline void MakeData(hid_t file, const std::string& name, hid_t how, hid_t space) {
  const hid_t data =
      H5Dcreate2(file, name.c_str(), H5T_IEEE_F32LE, space, H5P_DEFAULT, how, H5P_DEFAULT);
  EXPECT_GE(data, 0);
  H5Dclose(data);
}

// Replaces the data set `group`/`name` of the given shape by a reference to `other`.
inline void MoveTo(const std::filesystem::path& path, const std::string& group,
                   const std::string& name, const std::vector<hsize_t>& shape, Elsewhere where,
                   const std::string& other) {
  const std::string full = group + "/" + name;
  const hid_t file = OpenToChange(path);
  const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
  const hid_t how = H5Pcreate(H5P_DATASET_CREATE);
  EXPECT_GE(H5Ldelete(file, full.c_str(), H5P_DEFAULT), 0);
  switch (where) {
    case Elsewhere::kExternalStorage:
      H5Pset_external(how, other.c_str(), 0, H5F_UNLIMITED);
      MakeData(file, full, how, space);
      break;
    case Elsewhere::kExternalLink:
      EXPECT_GE(
          H5Lcreate_external(other.c_str(), "/data", file, full.c_str(), H5P_DEFAULT, H5P_DEFAULT),
          0);
      break;
    case Elsewhere::kSoftLink:
      H5Lcreate_external(other.c_str(), "/data", file, "/beside", H5P_DEFAULT, H5P_DEFAULT);
      EXPECT_GE(H5Lcreate_soft("/beside", file, full.c_str(), H5P_DEFAULT, H5P_DEFAULT), 0);
      break;
    case Elsewhere::kExternalGroup:
      H5Ldelete(file, group.c_str(), H5P_DEFAULT);
      EXPECT_GE(
          H5Lcreate_external(other.c_str(), "/", file, group.c_str(), H5P_DEFAULT, H5P_DEFAULT), 0);
      break;
    case Elsewhere::kVirtual:
      H5Pset_virtual(how, space, other.c_str(), "/data", space);
      MakeData(file, full, how, space);
      break;
    case Elsewhere::kUserLink:
      MakeUserLink(file, full, other);
      break;
  }
  H5Pclose(how);
  H5Sclose(space);
  H5Fclose(file);
}

// Writes a valid seal: a seal does not prove who wrote the checkpoint.
inline void SealAgain(const std::filesystem::path& path) {
  const std::string content = Slurp(path).substr(kSealBytes);
  Spit(path, SealOf(content) + content);
}

}  // namespace dtrain
