#include "framework/hdf5/hdf5_file.h"

#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/core/text.h"

namespace dtrain {
namespace {

static_assert(std::is_same_v<hid_t, int64_t>, "Hdf5Handle holds a hid_t");

// A chunk of 4 MB is larger than HDF5's chunk cache, so it is written directly.
constexpr int64_t kChunkElements = 1 << 20;
constexpr hsize_t kTextBytesMax = 256 << 20;

// Replaces HDF5's traversal of external links, which would open any file.
hid_t RefuseExternalLink(const char*, hid_t, const void* value, size_t bytes, hid_t, hid_t) {
  unsigned flags = 0;
  const char *file = "?", *object = nullptr;
  H5Lunpack_elink_val(value, bytes, &flags, &file, &object);
  H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_LINK, H5E_CANTOPENOBJ,
           "it is a link into another file, '%s'; dtrain reads only this file", file);
  return -1;
}

bool ForbidOtherFiles() {
  const H5L_class_t external = {
      H5L_LINK_CLASS_T_VERS, H5L_TYPE_EXTERNAL, "external", nullptr, nullptr, nullptr,
      RefuseExternalLink,    nullptr,           nullptr};
  return H5Lregister(&external) >= 0;
}

// Plugins that a file needs are loaded only from the folder that the user names.
bool ForbidPlugins() {
  return std::getenv("HDF5_PLUGIN_PATH") != nullptr || H5PLset_loading_state(0) >= 0;
}

// Every entry point calls this, since the error stack's settings are per thread.  HDF5 1.10 closes a file that could
// not be flushed once more at exit, and crashes.  All handles are closed explicitly, so its exit handler is switched
// off, before HDF5's first use.
void PrepareHdf5() {
  [[maybe_unused]] static const herr_t no_exit_handler = H5dont_atexit();
  static const bool forbidden = ForbidOtherFiles() && ForbidPlugins();
  DT_CHECK(forbidden);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

herr_t TakeFirst(unsigned depth, const H5E_error2_t* error, void* out) {
  if (depth == 0 && error->desc != nullptr) *static_cast<std::string*>(out) = error->desc;
  return 0;
}

std::string Hdf5Reason() {
  const int error = errno;
  std::string reason = "unknown reason";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, TakeFirst, &reason);
  // errno says more than "Problems closing file".
  return error == EFBIG || error == ENOSPC ? std::strerror(error) : reason;
}

int64_t Built(int64_t id, const std::string& what) {
  if (id < 0) throw CheckpointError(fmt::format("cannot build {}: {}", what, Hdf5Reason()));
  return id;
}

Hdf5Handle Properties(hid_t kind) { return {Built(H5Pcreate(kind), "a file"), H5Pclose}; }

// The default driver resolves the path of a link, and fails for a file in memory, which has none.
Hdf5Handle AccessInMemory() {
  Hdf5Handle access = Properties(H5P_FILE_ACCESS);
  Built(H5Pset_fapl_stdio(access.get()), "a file");
  return access;
}

// Halves the longest axis until a chunk is small enough.
std::vector<hsize_t> BlockOf(std::vector<hsize_t> shape) {
  const auto count = [&] {
    hsize_t product = 1;
    for (hsize_t n : shape) product *= n;
    return product;
  };
  while (count() > kChunkElements) {
    hsize_t& longest = *std::max_element(shape.begin(), shape.end());
    longest = (longest + 1) / 2;
  }
  return shape;
}

Hdf5Handle WriteData(const Hdf5Handle& file, const Hdf5Handle& links, const std::string& name,
                     const std::vector<hsize_t>& shape, hid_t file_type, hid_t memory_type,
                     const void* values) {
  const int rank = static_cast<int>(shape.size());
  const Hdf5Handle space(Built(H5Screate_simple(rank, shape.data(), nullptr), name), H5Sclose);
  const Hdf5Handle how = Properties(H5P_DATASET_CREATE);
  const std::vector<hsize_t> chunk = BlockOf(shape);
  Built(H5Pset_chunk(how.get(), rank, chunk.data()), name);
  Built(H5Pset_fletcher32(how.get()), name);
  Hdf5Handle data(Built(H5Dcreate2(file.get(), name.c_str(), file_type, space.get(), links.get(),
                                   how.get(), H5P_DEFAULT),
                        name),
                  H5Dclose);
  Built(H5Dwrite(data.get(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), name);
  return data;
}

struct Collected {
  std::vector<std::string> names;
  std::string refused;  // name that could not be opened, after a slash
};

herr_t CollectDataSet(hid_t group, const char* name, const H5L_info_t*, void* out) {
  auto& collected = *static_cast<Collected*>(out);
  H5O_info_t object;
  if (H5Oget_info_by_name(group, name, &object, H5P_DEFAULT) < 0) {
    collected.refused = std::string("/") + name;
    return -1;
  }
  if (object.type == H5O_TYPE_DATASET) collected.names.emplace_back(name);
  return 0;
}

// Describes the place of a data set's values if that is not its own file; else "".
std::string OtherPlaceOf(const Hdf5Handle& how) {
  if (H5Pget_layout(how.get()) == H5D_VIRTUAL) return "it is a virtual data set, made of others";
  if (H5Pget_external_count(how.get()) == 0) return "";
  char file[256] = {};
  off_t begin = 0;
  hsize_t bytes = 0;
  H5Pget_external(how.get(), 0, sizeof(file) - 1, file, &begin, &bytes);
  return fmt::format("its values lie in another file, '{}'", file);
}

// Describes the compression filter of a data set that this HDF5 lacks; "" if it has all.
std::string MissingFilter(const Hdf5Handle& data) {
  const Hdf5Handle how(H5Dget_create_plist(data.get()), H5Pclose);
  for (int i = 0; i < H5Pget_nfilters(how.get()); ++i) {
    unsigned flags = 0, config = 0;
    size_t values = 0;
    char name[64] = {};
    const H5Z_filter_t id =
        H5Pget_filter2(how.get(), i, &flags, &values, nullptr, sizeof(name) - 1, name, &config);
    if (H5Zfilter_avail(id) > 0) continue;
    return fmt::format("it is compressed by filter {} ('{}'), which this HDF5 does not have", id,
                       name);
  }
  return "";
}

herr_t CollectName(hid_t, const char* name, const H5L_info_t*, void* out) {
  static_cast<std::vector<std::string>*>(out)->push_back(name);
  return 0;
}

}  // namespace

Hdf5Builder::Hdf5Builder(uint64_t user_block) {
  PrepareHdf5();
  const Hdf5Handle access = AccessInMemory();
  // This format has checksums of its own metadata too.
  Built(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110), "a file");
  const std::string path = memory_.path();
  const Hdf5Handle creation = Properties(H5P_FILE_CREATE);
  Built(H5Pset_userblock(creation.get(), user_block), "a file");
  file_ = {Built(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()), "a file"),
           H5Fclose};
  link_properties_ = Properties(H5P_LINK_CREATE);
  Built(H5Pset_create_intermediate_group(link_properties_.get(), 1), "a file");
}

void Hdf5Builder::WriteFloats(const std::string& name, const std::vector<int64_t>& shape,
                              const float* values) {
  std::vector<hsize_t> dims(shape.begin(), shape.end());
  if (dims.empty()) dims = {1};  // a scalar cannot be chunked
  WriteData(file_, link_properties_, name, dims, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, values);
}

void Hdf5Builder::WriteText(const std::string& name, std::string_view text) {
  // An empty data set cannot be chunked; the ending zero keeps every text one byte long.
  const std::string bytes = std::string(text) + '\0';
  WriteData(file_, link_properties_, name, {bytes.size()}, H5T_STD_U8LE, H5T_NATIVE_UINT8,
            bytes.data());
}

Hdf5Handle Hdf5Builder::OpenGroup(const std::string& name) {
  if (H5Lexists(file_.get(), name.c_str(), H5P_DEFAULT) > 0) {
    return {Built(H5Gopen2(file_.get(), name.c_str(), H5P_DEFAULT), name), H5Gclose};
  }
  return {
      Built(H5Gcreate2(file_.get(), name.c_str(), link_properties_.get(), H5P_DEFAULT, H5P_DEFAULT),
            name),
      H5Gclose};
}

void Hdf5Builder::SetAttribute(const std::string& group, const std::string& name, int64_t value) {
  const Hdf5Handle owner = OpenGroup(group);
  const Hdf5Handle space(Built(H5Screate(H5S_SCALAR), name), H5Sclose);
  const Hdf5Handle attribute(Built(H5Acreate2(owner.get(), name.c_str(), H5T_STD_I64LE, space.get(),
                                              H5P_DEFAULT, H5P_DEFAULT),
                                   name),
                             H5Aclose);
  Built(H5Awrite(attribute.get(), H5T_NATIVE_INT64, &value), name);
}

void Hdf5Builder::SetAttribute(const std::string& group, const std::string& name,
                               std::string_view text) {
  const std::string bytes(text);
  const Hdf5Handle owner = OpenGroup(group);
  const Hdf5Handle space(Built(H5Screate(H5S_SCALAR), name), H5Sclose);
  const Hdf5Handle type(Built(H5Tcopy(H5T_C_S1), name), H5Tclose);
  Built(H5Tset_size(type.get(), bytes.size() + 1), name);
  const Hdf5Handle attribute(Built(H5Acreate2(owner.get(), name.c_str(), type.get(), space.get(),
                                              H5P_DEFAULT, H5P_DEFAULT),
                                   name),
                             H5Aclose);
  Built(H5Awrite(attribute.get(), type.get(), bytes.c_str()), name);
}

MemoryFile& Hdf5Builder::Finish() {
  Built(file_.Close(), "the file");
  return memory_;
}

Hdf5Reader::Hdf5Reader(const MemoryFile& bytes, std::filesystem::path path)
    : path_(std::move(path)) {
  PrepareHdf5();
  const Hdf5Handle access = AccessInMemory();
  file_ = {H5Fopen(bytes.path().c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose};
  hsize_t size = 0;
  if (file_.get() >= 0 && H5Fget_filesize(file_.get(), &size) >= 0) {
    file_bytes_ = static_cast<int64_t>(size);
    return;
  }
  // The driver for files in memory clears the error stack.
  throw CheckpointError(
      fmt::format("cannot read {}: it is truncated or damaged: {}", path_.string(), Hdf5Reason()));
}

void Hdf5Reader::Fail(const std::string& name) const {
  throw CheckpointError(fmt::format("cannot read {}: {}: {}", path_.string(), name, Hdf5Reason()));
}

bool Hdf5Reader::Has(const std::string& name) const {
  const htri_t exists = H5Lexists(file_.get(), name.c_str(), H5P_DEFAULT);
  if (exists < 0) Fail(name);  // the file is corrupt
  return exists > 0;
}

std::vector<std::string> Hdf5Reader::DataSets(const std::string& group) const {
  Collected collected;
  if (!Has(group)) return {};
  if (H5Lvisit_by_name(file_.get(), group.c_str(), H5_INDEX_NAME, H5_ITER_INC, CollectDataSet,
                       &collected, H5P_DEFAULT) < 0) {
    Fail(group + collected.refused);
  }
  return collected.names;
}

std::vector<std::string> Hdf5Reader::Children(const std::string& group) const {
  std::vector<std::string> names;
  if (!Has(group)) return names;
  if (H5Literate_by_name(file_.get(), group.c_str(), H5_INDEX_NAME, H5_ITER_INC, nullptr,
                         CollectName, &names, H5P_DEFAULT) < 0) {
    Fail(group);
  }
  return names;
}

Hdf5Handle Hdf5Reader::OpenData(const std::string& name) const {
  Hdf5Handle data(H5Dopen2(file_.get(), name.c_str(), H5P_DEFAULT), H5Dclose);
  if (data.get() < 0) Fail(name);
  const Hdf5Handle how(H5Dget_create_plist(data.get()), H5Pclose);
  if (how.get() < 0) Fail(name);
  const std::string elsewhere = OtherPlaceOf(how);
  if (elsewhere.empty()) return data;
  throw CheckpointError(
      fmt::format("cannot read {}: {}: {}; dtrain reads only this file", path_.string(), name,
                  elsewhere),
      "write the values themselves into the file; in h5py: new['name'] = old['name'][...]");
}

void Hdf5Reader::FailToRead(const Hdf5Handle& data, const std::string& name) const {
  const std::string reason = Hdf5Reason(), filter = MissingFilter(data);
  if (filter.empty()) {
    throw CheckpointError(fmt::format("cannot read {}: {}: {}", path_.string(), name, reason));
  }
  throw CheckpointError(fmt::format("cannot read {}: {}: {}", path_.string(), name, filter),
                        "compress it by another one: h5repack -f GZIP=4 OLD NEW");
}

std::vector<int64_t> Hdf5Reader::ShapeOf(const std::string& name) const {
  const Hdf5Handle data = OpenData(name);
  const Hdf5Handle space(H5Dget_space(data.get()), H5Sclose);
  hsize_t dims[H5S_MAX_RANK];
  const int rank = H5Sget_simple_extent_dims(space.get(), dims, nullptr);
  if (rank < 0) Fail(name);
  return {dims, dims + rank};
}

void Hdf5Reader::ReadValues(const std::string& name, int64_t type, size_t count,
                            void* values) const {
  const Hdf5Handle data = OpenData(name);
  const Hdf5Handle space(H5Dget_space(data.get()), H5Sclose);
  const hssize_t stored = H5Sget_simple_extent_npoints(space.get());
  if (stored < 0) Fail(name);
  if (static_cast<uint64_t>(stored) != count) {
    throw CheckpointError(fmt::format("cannot read {}: {} has {}, {} are expected", path_.string(),
                                      name, Counted(stored, "number"), count));
  }
  if (H5Dread(data.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) FailToRead(data, name);
}

void Hdf5Reader::ReadFloats(const std::string& name, std::span<float> values) const {
  ReadValues(name, H5T_NATIVE_FLOAT, values.size(), values.data());
}

void Hdf5Reader::ReadDoubles(const std::string& name, std::span<double> values) const {
  ReadValues(name, H5T_NATIVE_DOUBLE, values.size(), values.data());
}

void Hdf5Reader::ReadBytes(const std::string& name, std::span<uint8_t> values) const {
  ReadValues(name, H5T_NATIVE_UINT8, values.size(), values.data());
}

void Hdf5Reader::ReadRows(const std::string& name, int64_t begin, int64_t type, size_t count,
                          void* values) const {
  const Hdf5Handle data = OpenData(name);
  const Hdf5Handle space(H5Dget_space(data.get()), H5Sclose);
  hsize_t extents[H5S_MAX_RANK], starts[H5S_MAX_RANK] = {static_cast<hsize_t>(begin)};
  const int rank = H5Sget_simple_extent_dims(space.get(), extents, nullptr);
  if (rank < 1) Fail(name);
  hsize_t each = 1;
  for (int axis = 1; axis < rank; ++axis) each *= extents[axis];
  DT_CHECK(each > 0 && count % each == 0) << name << ": " << count << " are no whole entries";
  extents[0] = count / each;
  const hsize_t all = count;
  const Hdf5Handle memory(H5Screate_simple(1, &all, nullptr), H5Sclose);
  if (H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, starts, nullptr, extents, nullptr) < 0 ||
      H5Dread(data.get(), type, memory.get(), space.get(), H5P_DEFAULT, values) < 0) {
    FailToRead(data, name);
  }
}

void Hdf5Reader::ReadRows(const std::string& name, int64_t begin, std::span<float> values) const {
  ReadRows(name, begin, H5T_NATIVE_FLOAT, values.size(), values.data());
}

void Hdf5Reader::ReadRows(const std::string& name, int64_t begin, std::span<double> values) const {
  ReadRows(name, begin, H5T_NATIVE_DOUBLE, values.size(), values.data());
}

void Hdf5Reader::ReadRows(const std::string& name, int64_t begin, std::span<uint8_t> values) const {
  ReadRows(name, begin, H5T_NATIVE_UINT8, values.size(), values.data());
}

Hdf5Reader::ValueType Hdf5Reader::TypeOf(const std::string& name) const {
  const Hdf5Handle data = OpenData(name);
  const Hdf5Handle type(H5Dget_type(data.get()), H5Tclose);
  if (type.get() < 0) Fail(name);
  const H5T_class_t type_class = H5Tget_class(type.get());
  if (type_class == H5T_FLOAT) return ValueType::kFloat;
  if (type_class != H5T_INTEGER) return ValueType::kOther;
  const bool byte = H5Tget_size(type.get()) == 1 && H5Tget_sign(type.get()) == H5T_SGN_NONE;
  return byte ? ValueType::kBytes : ValueType::kWhole;
}

int64_t Hdf5Reader::ValueBytesOf(const std::string& name) const {
  const Hdf5Handle data = OpenData(name);
  const Hdf5Handle type(H5Dget_type(data.get()), H5Tclose);
  if (type.get() < 0) Fail(name);
  return static_cast<int64_t>(H5Tget_size(type.get()));
}

std::string Hdf5Reader::ReadText(const std::string& name) const {
  const std::vector<int64_t> shape = ShapeOf(name);
  const bool sound = shape.size() == 1 && shape[0] >= 1 &&
                     shape[0] <= std::min(int64_t{kTextBytesMax}, file_bytes_);
  if (!sound) throw CheckpointError(fmt::format("{}: {} is not a text", path_.string(), name));
  std::string text(shape[0], '\0');
  const Hdf5Handle data = OpenData(name);
  if (H5Dread(data.get(), H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()) < 0) {
    FailToRead(data, name);
  }
  text.pop_back();
  return text;
}

// Checks the size, since H5Aread writes the whole attribute, whatever the buffer's size.
Hdf5Handle Hdf5Reader::OpenAttribute(const std::string& group, const std::string& name,
                                     int type_class) const {
  Hdf5Handle attribute(
      H5Aopen_by_name(file_.get(), group.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT),
      H5Aclose);
  if (attribute.get() < 0) Fail(group + "@" + name);
  const Hdf5Handle type(H5Aget_type(attribute.get()), H5Tclose);
  const Hdf5Handle space(H5Aget_space(attribute.get()), H5Sclose);
  const bool single = H5Sget_simple_extent_npoints(space.get()) == 1 &&
                      H5Tget_class(type.get()) == type_class && H5Tis_variable_str(type.get()) <= 0;
  if (single) return attribute;
  throw CheckpointError(fmt::format("cannot read {}: {}@{} is not a single {}", path_.string(),
                                    group, name, type_class == H5T_INTEGER ? "number" : "text"));
}

int64_t Hdf5Reader::IntAttribute(const std::string& group, const std::string& name) const {
  const Hdf5Handle attribute = OpenAttribute(group, name, H5T_INTEGER);
  int64_t value = 0;
  if (H5Aread(attribute.get(), H5T_NATIVE_INT64, &value) < 0) Fail(group + "@" + name);
  return value;
}

std::string Hdf5Reader::TextAttribute(const std::string& group, const std::string& name) const {
  const Hdf5Handle attribute = OpenAttribute(group, name, H5T_STRING);
  const Hdf5Handle type(H5Aget_type(attribute.get()), H5Tclose);
  if (type.get() < 0) Fail(group + "@" + name);
  std::string text(H5Tget_size(type.get()), '\0');
  if (H5Aread(attribute.get(), type.get(), text.data()) < 0) Fail(group + "@" + name);
  text.resize(text.find('\0') == std::string::npos ? text.size() : text.find('\0'));
  return text;
}

}  // namespace dtrain
