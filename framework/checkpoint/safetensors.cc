#include "framework/checkpoint/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/sha256.h"
#include "framework/core/text.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "tensors are copied as they lie");

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeader = 100'000'000;  // the format's own limit
constexpr uint64_t kMostExtent = std::numeric_limits<int64_t>::max();
constexpr char kMetadata[] = "__metadata__";

// Returns the bytes of an element; 0 for a type that the format does not have.
uint64_t BytesOf(const std::string& dtype) {
  static const std::map<std::string, uint64_t> bytes = {
      {"F64", 8}, {"I64", 8}, {"U64", 8},  {"F32", 4},     {"I32", 4},
      {"U32", 4}, {"F16", 2}, {"BF16", 2}, {"I16", 2},     {"U16", 2},
      {"I8", 1},  {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};
  const auto it = bytes.find(dtype);
  return it == bytes.end() ? 0 : it->second;
}

// Returns a * b, or the largest number if that overflows.
uint64_t Times(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<uint64_t>::max() : product;
}

float FromBf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Converts IEEE half precision: 1 sign, 5 exponent, 10 fraction bits.
float FromF16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t fraction = bits & 0x3ff;
  if (exponent == 0) {  // zero and subnormal: fraction * 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 0x1f ? 0xff : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

const std::string kNoHash(64, '0');

// Returns the metadata member as it is written in the header.  It occurs there exactly once: within a string its quotes
// would be escaped, and a tensor's value is not a string.
std::string HashMember(const std::string& hash) {
  return fmt::format(R"("{}":"{}")", kFileSha256, hash);
}

// Parses the header.  nlohmann::json silently keeps the last of repeated keys, so a repetition is reported in
// `repeated`.
json ParseHeader(const std::string& text, std::string& repeated) {
  std::set<std::string> seen;
  const auto note = [&](int depth, json::parse_event_t event, json& value) {
    if (depth == 1 && event == json::parse_event_t::key) {
      const auto name = value.get<std::string>();
      if (!seen.insert(name).second) repeated = name;
    }
    return true;
  };
  return json::parse(text, note);
}

}  // namespace

int64_t SafeTensorEntry::count() const {
  // If one extent is 0, the product of the others may overflow.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

void SafetensorsReader::Fail(const std::string& what, const std::string& hint) const {
  throw CheckpointError(fmt::format("cannot read {}: {}", path_.string(), what), hint);
}

void SafetensorsReader::ThrowDamaged(const std::string& problem) const {
  throw CheckpointError(fmt::format("{} is damaged: {}", path_.string(), problem),
                        "a program that saves it anew should leave file_sha256 and weights_sha256 "
                        "out of the metadata");
}

SafetensorsReader::SafetensorsReader(fs::path path)
    : path_(std::move(path)), file_(std::make_unique<MemoryFile>()) {
  file_->CopyFrom(path_);
  content_ = file_->Content();
  const uint64_t bytes = content_.size();
  if (bytes < kLengthBytes) {
    Fail(fmt::format("{} bytes are too few for a safetensors file", bytes));
  }
  uint64_t length = 0;
  std::memcpy(&length, content_.data(), kLengthBytes);
  if (length > kMaxHeader || length > bytes - kLengthBytes) {
    Fail(fmt::format("byte 0: a header of {} bytes in a file of {}", length, bytes),
         "it is truncated, or not a safetensors file");
  }
  data_begin_ = kLengthBytes + length;
  data_bytes_ = bytes - data_begin_;
  ReadHeader();
  CheckPlaces();
  CheckHash();
}

void SafetensorsReader::ReadHeader() {
  const std::string text(content_.substr(kLengthBytes, data_begin_ - kLengthBytes));
  json header;
  std::string repeated;
  try {
    header = ParseHeader(text, repeated);
  } catch (const json::parse_error& error) {
    Fail(fmt::format("byte {}: the header is not JSON", kLengthBytes + error.byte));
  } catch (const json::out_of_range&) {
    Fail("the header has a number that is too large");
  }
  if (!header.is_object()) Fail("byte 8: the header is not a JSON object");
  if (!repeated.empty()) Fail(fmt::format("the header names '{}' twice", repeated));
  for (const auto& [name, value] : header.items()) {
    if (name != kMetadata) {
      AddEntry(name, &value);
      continue;
    }
    if (!value.is_object()) Fail("__metadata__ is not a JSON object");
    for (const auto& [key, entry] : value.items()) {
      if (!entry.is_string()) Fail(fmt::format("__metadata__: '{}' is not a text", key));
      metadata_[key] = entry.get<std::string>();
    }
  }
}

void SafetensorsReader::AddEntry(const std::string& name, const void* value) {
  const json& fields = *static_cast<const json*>(value);
  SafeTensorEntry entry;
  entry.name = name;
  try {
    entry.dtype = fields.at("dtype").get<std::string>();
    if (!fields.at("shape").is_array()) Fail(fmt::format("'{}': its shape is no list", name));
    for (const json& extent : fields.at("shape")) {
      if (!extent.is_number_unsigned() || extent.get<uint64_t>() > kMostExtent)
        Fail(fmt::format("'{}': shape {}", name, fields["shape"].dump()));
      entry.shape.push_back(extent.get<int64_t>());
    }
    const json& offsets = fields.at("data_offsets");
    if (offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned()) {
      Fail(fmt::format("'{}': data_offsets {}", name, offsets.dump()));
    }
    entry.begin = offsets[0].get<uint64_t>();
    entry.end = offsets[1].get<uint64_t>();
  } catch (const json::exception&) {
    Fail(fmt::format("'{}' lacks one of dtype, shape and data_offsets, or has it wrong", name));
  }
  if (BytesOf(entry.dtype) == 0) Fail(fmt::format("'{}': unknown dtype '{}'", name, entry.dtype));
  if (entry.begin > entry.end || entry.end > data_bytes_) {
    Fail(fmt::format("'{}': data_offsets [{}, {}] do not fit the {} bytes of data", name,
                     entry.begin, entry.end, data_bytes_),
         "the file is truncated or damaged");
  }
  uint64_t bytes = BytesOf(entry.dtype);
  for (const int64_t extent : entry.shape) bytes = Times(bytes, static_cast<uint64_t>(extent));
  if (bytes != entry.end - entry.begin) {
    Fail(fmt::format("'{}': {} {} needs {} bytes, its data_offsets [{}, {}] hold {}", name,
                     entry.dtype, entry.shape, bytes, entry.begin, entry.end,
                     entry.end - entry.begin));
  }
  entries_.push_back(std::move(entry));
}

// Checks that the tensors follow each other without gaps from the first byte of the data to the last.
void SafetensorsReader::CheckPlaces() {
  std::vector<const SafeTensorEntry*> by_place;
  for (const SafeTensorEntry& entry : entries_) by_place.push_back(&entry);
  std::sort(by_place.begin(), by_place.end(), [](const auto* a, const auto* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  uint64_t at = 0;
  std::string before = "the header";
  for (const SafeTensorEntry* entry : by_place) {
    if (entry->begin != at) {
      Fail(fmt::format("byte {}: '{}' {} {}", data_begin_ + entry->begin, entry->name,
                       entry->begin < at ? "overlaps" : "leaves a gap behind", before));
    }
    at = entry->end;
    before = "'" + entry->name + "'";
  }
  if (at != data_bytes_) {
    Fail(fmt::format("byte {}: {} bytes behind {} belong to no tensor", data_begin_ + at,
                     data_bytes_ - at, before));
  }
}

void SafetensorsReader::CheckHash() const {
  const auto given = metadata_.find(kFileSha256);
  if (given == metadata_.end()) return;
  const std::string member = HashMember(given->second);
  const size_t at = content_.substr(0, data_begin_).find(member);
  if (at == std::string::npos || given->second.size() != kNoHash.size()) {
    ThrowDamaged(fmt::format("its {} {:?} is not as dtrain writes it", kFileSha256, given->second));
  }
  Sha256 hash;
  hash.Update(content_.substr(0, at));
  hash.Update(HashMember(kNoHash));
  hash.Update(content_.substr(at + member.size()));
  const std::string expected = hash.HexDigest();
  if (given->second == expected) return;
  ThrowDamaged(
      fmt::format("its {} is {:?}, its bytes have {:?}", kFileSha256, given->second, expected));
}

void SafetensorsReader::DropPrefix(const std::string& prefix) {
  for (SafeTensorEntry& entry : entries_) {
    DT_CHECK(entry.name.starts_with(prefix));
    entry.name.erase(0, prefix.size());
  }
}

const SafeTensorEntry* SafetensorsReader::Find(const std::string& name) const {
  const auto it = std::find_if(entries_.begin(), entries_.end(),
                               [&](const SafeTensorEntry& entry) { return entry.name == name; });
  return it == entries_.end() ? nullptr : &*it;
}

std::string_view SafetensorsReader::Bytes(const SafeTensorEntry& entry) const {
  return content_.substr(data_begin_ + entry.begin, entry.end - entry.begin);
}

void SafetensorsReader::ReadFloats(const SafeTensorEntry& entry, float* values) const {
  const std::string_view bytes = Bytes(entry);
  if (entry.dtype == "F32") {
    std::memcpy(values, bytes.data(), bytes.size());
    return;
  }
  if (entry.dtype != "BF16" && entry.dtype != "F16") {
    Fail(fmt::format("'{}' is {}; weights are F32, BF16 or F16", entry.name, entry.dtype),
         "convert it with tensor.float() before it is saved");
  }
  const auto widen = entry.dtype == "BF16" ? FromBf16 : FromF16;
  for (int64_t i = 0; i < entry.count(); ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + 2 * i, 2);
    values[i] = widen(bits);
  }
}

void SafetensorsReader::ReadInts(const SafeTensorEntry& entry, int32_t* values) const {
  const std::string_view bytes = Bytes(entry);
  if (entry.dtype == "I32") {
    std::memcpy(values, bytes.data(), bytes.size());
    return;
  }
  if (entry.dtype != "I64") {
    Fail(fmt::format("'{}' is {}; whole numbers are I32 or I64", entry.name, entry.dtype));
  }
  for (int64_t i = 0; i < entry.count(); ++i) {
    int64_t wide = 0;
    std::memcpy(&wide, bytes.data() + 8 * i, 8);
    values[i] = static_cast<int32_t>(wide);
    if (values[i] != wide) Fail(fmt::format("'{}' holds {}", entry.name, wide));
  }
}

bool LooksLikeSafetensors(const fs::path& path) {
  if (path.extension() == ".safetensors") return true;
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return false;  // reading a pipe would block
  std::ifstream file(path, std::ios::binary);
  char start[kLengthBytes + 2] = {};
  return file.read(start, sizeof(start)) && start[kLengthBytes] == '{' &&
         start[kLengthBytes + 1] == '"';
}

void WriteSafetensors(const fs::path& path, std::vector<SafeTensorSource> tensors,
                      std::map<std::string, std::string> metadata) {
  const bool hashed = metadata.contains(kFileSha256);
  if (hashed) metadata[kFileSha256] = kNoHash;
  // Tensors of wide types come first, so that each begins at a multiple of its element size.
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    const uint64_t wide_a = BytesOf(a.dtype), wide_b = BytesOf(b.dtype);
    return wide_a != wide_b ? wide_a > wide_b : a.name < b.name;
  });
  json header = json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  uint64_t at = 0;
  for (const SafeTensorSource& tensor : tensors) {
    uint64_t bytes = BytesOf(tensor.dtype);
    DT_CHECK(bytes > 0) << "dtype " << tensor.dtype;
    for (const int64_t extent : tensor.shape) bytes *= static_cast<uint64_t>(extent);
    DT_CHECK(!header.contains(tensor.name)) << tensor.name << " twice";
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  std::string content = header.dump();
  content.append((kLengthBytes - content.size() % kLengthBytes) % kLengthBytes, ' ');
  const uint64_t length = content.size();
  content.insert(0, reinterpret_cast<const char*>(&length), kLengthBytes);
  content.reserve(content.size() + at);
  for (const SafeTensorSource& tensor : tensors) {
    const json& offsets = header[tensor.name]["data_offsets"];
    content.append(static_cast<const char*>(tensor.data),
                   offsets[1].get<uint64_t>() - offsets[0].get<uint64_t>());
  }
  if (hashed) {
    const std::string hash = Sha256::Of(content);
    content.replace(content.find(HashMember(kNoHash)), HashMember(kNoHash).size(),
                    HashMember(hash));
  }
  WriteOutput(path, content);
}

}  // namespace dtrain
