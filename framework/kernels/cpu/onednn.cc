#include "framework/kernels/cpu/onednn.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdlib>

#include <fmt/format.h>

#include "framework/core/check.h"
#include "framework/core/memory.h"
#include "framework/kernels/cpu/packed_gemm.h"

namespace dtrain {
namespace {

#if defined(__x86_64__)
// Returns true if CPUID reports AMX (leaf 7, EDX bit 24: amx_tile) but not its tile palette (leaf 0x1D, subleaf 1).
bool AmxIsHalfHidden() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d >> 24 & 1) == 0) return false;
  return !__get_cpuid_count(0x1D, 1, &a, &b, &c, &d) || (a | b | c) == 0;
}
#else
bool AmxIsHalfHidden() { return false; }
#endif

// Limits oneDNN to AVX-512 if AMX is half hidden, unless an environment variable already sets a limit without AMX.
// Returns true if it set the limit.
bool LimitInstructionSet() {
  if (!AmxIsHalfHidden()) return false;
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    const char* text = std::getenv(name);
    if (text == nullptr) continue;
    const std::string value = text;
    if (value != "ALL" && value != "DEFAULT" && value.find("AMX") == std::string::npos)
      return false;
  }
  return dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16) == dnnl_success;
}

[[maybe_unused]] const bool limited = LimitInstructionSet();

dnnl::memory::dims DimsOf(const Shape& shape) {
  dnnl::memory::dims dims;
  for (int i = 0; i < shape.rank(); ++i) dims.push_back(shape[i]);
  return dims;
}

dnnl::memory::format_tag TagOf(int rank, Format format) {
  using Tag = dnnl::memory::format_tag;
  static constexpr Tag kPlainTags[] = {Tag::a,    Tag::a,     Tag::ab,    Tag::abc,
                                       Tag::abcd, Tag::abcde, Tag::abcdef};
  DT_CHECK(format == Format::kPlain || (format == Format::kChannelsLast && rank == 4))
      << NameOf(format) << " rank " << rank;
  return format == Format::kPlain ? kPlainTags[rank] : Tag::acdb;
}

}  // namespace

const dnnl::engine& OneDnnEngine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::memory::desc OneDnnDesc(const Shape& shape, Format format) {
  return {DimsOf(shape), dnnl::memory::data_type::f32, TagOf(shape.rank(), format)};
}

dnnl::memory::desc OneDnnAnyDesc(const Shape& shape) {
  return {DimsOf(shape), dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
}

OneDnnOp::OneDnnOp(const dnnl::primitive& primitive, const std::vector<Argument>& arguments)
    : primitive_(primitive) {
  for (const Argument& argument : arguments) {
    memories_.emplace_back(argument.desc, OneDnnEngine(), nullptr);
    // oneDNN refuses an empty scratchpad instead of ignoring it.
    if (argument.desc.get_size() > 0) arguments_.push_back({argument.name, memories_.back().get()});
  }
}

void OneDnnOp::Run(std::initializer_list<const void*> addresses) {
  static thread_local const dnnl::stream stream(OneDnnEngine());
  DT_CHECK(addresses.size() == memories_.size()) << addresses.size();
  size_t i = 0;
  for (const void* address : addresses) {
    dnnl_memory_set_data_handle(memories_[i++].get(), const_cast<void*>(address));
  }
  const dnnl_status_t status = dnnl_primitive_execute(
      primitive_.get(), stream.get(), static_cast<int>(arguments_.size()), arguments_.data());
  if (status == dnnl_out_of_memory) throw NoMemoryError(0, "a primitive of oneDNN");
  DT_CHECK(status == dnnl_success) << "oneDNN status " << status;
}

void Multiply(const Gemm& g) {
  const int64_t depth = g.trans_a ? g.a.rows : g.a.columns;
  DT_CHECK(depth == (g.trans_b ? g.b.columns : g.b.rows)) << depth;
  DT_CHECK(g.c.rows == (g.trans_a ? g.a.columns : g.a.rows)) << g.c.rows;
  DT_CHECK(g.c.columns == (g.trans_b ? g.b.rows : g.b.columns)) << g.c.columns;
  // oneDNN generates the code of dnnl_sgemm at the first call, and version 2.6 dereferences null if that allocation
  // fails, so check first that memory is available.
  [[maybe_unused]] static const bool asked = (RequireMemory(size_t{16} << 20), true);
  const dnnl_status_t status = dnnl_sgemm(g.trans_a ? 'T' : 'N', g.trans_b ? 'T' : 'N', g.c.rows,
                                          g.c.columns, depth, 1.0f, g.a.data, g.a.stride, g.b.data,
                                          g.b.stride, g.add ? 1.0f : 0.0f, g.c.data, g.c.stride);
  if (status == dnnl_out_of_memory) {
    throw NoMemoryError(
        0, fmt::format("oneDNN's product of {}x{} and {}x{}", g.c.rows, depth, depth, g.c.columns));
  }
  DT_CHECK(status == dnnl_success)
      << "dnnl_sgemm " << g.c.rows << "x" << g.c.columns << "x" << depth << ": " << status;
}

void WeightGradient(const ConstMatrix& dy, const ConstMatrix& x, bool add, const Matrix& dw) {
  Multiply({.a = dy, .b = x, .c = dw, .add = add, .trans_a = true});
}

}  // namespace dtrain
