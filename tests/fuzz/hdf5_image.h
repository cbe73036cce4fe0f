// Makes valid HDF5 files with odd content in memory, as a fuzzer's input directs.  HDF5 1.10 itself
// crashes on damaged bytes, so dtrain passes a checkpoint to it only after checking the seal.
// These files test dtrain's part.
#pragma once

#include <hdf5.h>

#include <string>
#include <vector>

#include "framework/checkpoint/checkpoint_seal.h"
#include "framework/hdf5/hdf5_file.h"
#include "framework/hdf5/memory_file.h"
#include "tests/fuzz/fuzz_target.h"

namespace dtrain::fuzz {

class Hdf5Image {
 public:
  explicit Hdf5Image(InputReader& in) : in_(in) {
    [[maybe_unused]] static const herr_t no_exit_handler = H5dont_atexit();
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    // Without this each file would return half a megabyte of cache to the system, which costs a
    // third of the time.
    H5set_free_list_limits(-1, -1, -1, -1, -1, -1);
    const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    H5Pset_fapl_stdio(access.get());
    H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110);
    const Hdf5Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
    H5Pset_userblock(creation.get(), kSealBytes);
    file_ = {H5Fcreate(memory_.path().c_str(), H5F_ACC_TRUNC, creation.get(), access.get()),
             H5Fclose};
    links_ = {H5Pcreate(H5P_LINK_CREATE), H5Pclose};
    H5Pset_create_intermediate_group(links_.get(), 1);
  }

  // The next three add an item that is as it should be, absent, or of another type or shape, as the
  // input directs.
  void Number(const char* group, const char* name, int64_t usual) {
    const uint8_t choice = in_.Byte();
    if (choice == 0) return Attribute(group, name, H5T_STD_I64LE, 0, &usual);
    const int64_t value = in_.Number();
    if (choice == 1) return Attribute(group, name, H5T_STD_I64LE, 0, &value);
    Odd(group, name, choice);
  }
  void Text(const char* group, const char* name) {
    const uint8_t choice = in_.Byte();
    if (choice > 1) return Odd(group, name, choice);
    const std::string text(in_.Text());
    const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(type.get(), text.size() + 1);
    Attribute(group, name, type.get(), 0, text.c_str());
  }
  void Bytes(const std::string& name, std::string_view usual) {
    const uint8_t choice = in_.Byte();
    if (choice == 2) return;
    if (choice > 3) return Floats(name, choice);
    std::string text(choice == 0 ? usual : in_.LongText());
    if (choice != 3) text += '\0';
    Data(name, {text.size()}, H5T_STD_U8LE, text.data());
  }
  // Chunks that were never written take no space in the file, however large the shape is.
  void Floats(const std::string& name, uint8_t choice) {
    std::vector<hsize_t> shape;
    for (uint8_t axes = choice % 4; axes > 0; --axes) {
      shape.push_back(choice >= 128 ? static_cast<hsize_t>(in_.Number()) >> 2 : in_.Byte() % 6);
    }
    hsize_t count = 1;
    for (const hsize_t extent : shape) count *= extent;
    const std::vector<float> values(choice >= 128 ? 0 : count, 0.5f);
    Data(name, shape, (choice & 64) != 0 ? H5T_STD_I16LE : H5T_IEEE_F32LE,
         choice >= 128 ? nullptr : values.data());
  }

  // Returns the file with a valid seal.
  std::string Sealed() {
    file_.Close();
    const std::string_view content = memory_.Content().substr(kSealBytes);
    return SealOf(content) + std::string(content);
  }

 private:
  void Attribute(const char* group, const char* name, hid_t type, hsize_t count,
                 const void* value) {
    const Hdf5Handle owner(
        H5Lexists(file_.get(), group, H5P_DEFAULT) > 0
            ? H5Gopen2(file_.get(), group, H5P_DEFAULT)
            : H5Gcreate2(file_.get(), group, links_.get(), H5P_DEFAULT, H5P_DEFAULT),
        H5Gclose);
    const Hdf5Handle space(
        count == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &count, nullptr), H5Sclose);
    const Hdf5Handle attribute(
        H5Acreate2(owner.get(), name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    H5Awrite(attribute.get(), type, value);
  }
  void Odd(const char* group, const char* name, uint8_t choice) {
    const std::vector<int64_t> list(64, in_.Byte());
    const char* const word = "word";
    const Hdf5Handle variable(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(variable.get(), H5T_VARIABLE);
    switch (choice % 5) {
      case 0:
        return Attribute(group, name, H5T_STD_I64LE, 1 + choice % 64, list.data());
      case 1:
        return Attribute(group, name, variable.get(), 0, &word);
      case 2:
        return Attribute(group, name, H5T_IEEE_F64LE, 0, list.data());
      case 3:
        return Attribute(group, name, H5T_C_S1, 1 + choice % 64, list.data());
      default:  // absent
        return;
    }
  }
  void Data(const std::string& name, const std::vector<hsize_t>& shape, hid_t type,
            const void* values) {
    const int rank = static_cast<int>(shape.size());
    const Hdf5Handle space(
        rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, shape.data(), nullptr),
        H5Sclose);
    const Hdf5Handle how(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    if (values == nullptr && rank > 0) {
      const std::vector<hsize_t> chunk(shape.size(), 1);
      H5Pset_chunk(how.get(), rank, chunk.data());
    }
    const Hdf5Handle data(H5Dcreate2(file_.get(), name.c_str(), type, space.get(), links_.get(),
                                     how.get(), H5P_DEFAULT),
                          H5Dclose);
    if (values != nullptr && data.get() >= 0) {
      H5Dwrite(data.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    }
  }

  InputReader& in_;
  MemoryFile memory_;
  Hdf5Handle file_, links_;
};

}  // namespace dtrain::fuzz
