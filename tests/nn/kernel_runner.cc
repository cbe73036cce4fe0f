// Runs kernels on memory that is poisoned wherever their contract forbids them to look.
#include <bit>
#include <cstring>

#include "framework/core/check.h"
#include "framework/device/cpu/threads.h"
#include "framework/kernels/cpu/reorder.h"
#include "tests/nn/layer_harness.h"

namespace dtrain {
namespace {

constexpr char kPoison = static_cast<char>(0xff);  // a NaN as fp32, -1 as int32

// Memory of a device, and the tensor in it that a kernel gets.
struct Cell {
  Device device;
  Buffer buffer;
  Tensor tensor;

  Cell(const Device& where, const Shape& shape, Form form)
      : device(where),
        buffer(where, static_cast<size_t>(StoredCount(shape, form.format)) * SizeOf(form.dtype)),
        tensor{buffer.data(), shape, form.dtype, form.format} {
    Poison();
  }
  void Poison() { Poison(device, buffer); }
  void Set(const void* values) { CopyIn(device, buffer, values); }

  static void Poison(const Device& device, const Buffer& buffer) {
    if (device.queue == nullptr) {
      if (buffer.bytes() > 0) std::memset(buffer.data(), kPoison, buffer.bytes());
    } else {
      CopyIn(device, buffer, std::vector<char>(buffer.bytes(), kPoison).data());
    }
  }
  static void CopyIn(const Device& device, const Buffer& to, const void* from) {
    if (to.bytes() == 0) return;
    if (device.queue == nullptr) {
      std::memcpy(to.data(), from, to.bytes());
    } else {
      device.queue->Upload(to.data(), from, to.bytes());
      device.Record().Wait();
    }
  }
};

// Returns an fp32 tensor of the machine's memory in 16 bits, or the other way round.
Cell Converted(const Tensor& from, DType dtype) {
  Cell to(Device{}, from.shape, {from.format, dtype});
  for (int64_t i = 0, count = StoredCount(from.shape, from.format); i < count; ++i) {
    if (from.dtype == DType::kF16) {
      to.tensor.f32()[i] = static_cast<float>(from.as<_Float16>()[i]);
    } else if (dtype == DType::kF16) {
      to.tensor.as<_Float16>()[i] = static_cast<_Float16>(from.f32()[i]);
    } else if (dtype == DType::kF32) {
      to.tensor.f32()[i] = std::bit_cast<float>(uint32_t{from.as<uint16_t>()[i]} << 16);
    } else {
      to.tensor.as<uint16_t>()[i] =
          static_cast<uint16_t>(std::bit_cast<uint32_t>(ToBf16(from.f32()[i])) >> 16);
    }
  }
  return to;
}

// Returns rows [first, first + rows) of `from` in the kernel's form.
Cell Fill(const Device& device, const RefTensor& from, Form form, int64_t first, int64_t rows,
          bool labels) {
  const Shape shape = from.shape.WithBatch(rows);
  const double* values = from.values.data() + first * from.shape.CountFrom(1);
  Cell plain(Device{}, shape, {Format::kPlain, labels ? DType::kI32 : DType::kF32});
  for (int64_t i = 0, count = shape.count(); i < count; ++i) {
    if (labels) plain.tensor.i32()[i] = static_cast<int32_t>(values[i]);
    if (!labels) plain.tensor.f32()[i] = static_cast<float>(values[i]);
  }
  Cell host(Device{}, shape, {form.format, plain.tensor.dtype});
  if (form.format == Format::kPlain) {
    std::swap(host, plain);
  } else {
    Reorder(plain.tensor, host.tensor, Device{});
  }
  if (form.dtype != DType::kF32) host = Converted(host.tensor, form.dtype);
  if (device.queue == nullptr) return host;
  Cell cell(device, shape, host.tensor.form());
  cell.Set(host.buffer.data());
  return cell;
}

std::vector<float> PlainValues(const Device& device, Tensor tensor) {
  Buffer host;
  if (device.queue != nullptr) {
    host = Buffer(static_cast<size_t>(StoredCount(tensor.shape, tensor.format)) *
                  SizeOf(tensor.dtype));
    device.queue->Download(host.data(), tensor.data, host.bytes());
    device.Record().Wait();
    tensor.data = host.data();
  }
  std::vector<float> values(static_cast<size_t>(tensor.shape.count()));
  const Tensor plain = {values.data(), tensor.shape};
  if (SizeOf(tensor.dtype) == 2) {
    Reorder(Converted(tensor, DType::kF32).tensor, plain, Device{});
  } else {
    Reorder(tensor, plain, Device{});
  }
  return values;
}

std::vector<Tensor> Views(const std::vector<Cell>& cells) {
  std::vector<Tensor> views;
  for (const Cell& cell : cells) views.push_back(cell.tensor);
  return views;
}

KernelRequest RequestFor(const CaseSetup& setup, const KernelVariant& variant) {
  KernelRequest request;
  request.layer = &setup.layer();
  request.inputs = setup.input_shapes();
  request.outputs = setup.output_shapes();
  request.available = variant.available;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    request.needs_input_gradient.push_back(setup.HasGradient(i));
  }
  request.fused_relu = variant.fused_relu;
  request.mode = variant.mode;
  request.read_as_plain = variant.read_as_plain;
  request.device = variant.device;
  return request;
}

class Runner {
 public:
  Runner(const CaseSetup& setup, const KernelVariant& variant, const RefArgs& args,
         const RunOptions& options)
      : setup_(setup), variant_(variant), args_(args), options_(options) {
    rows_ = options.rows < 0 ? args.inputs[0].shape[0] : options.rows;
    kernel_ = variant.entry->make(Request(), variant.offer);
    needs_ = kernel_->Needs();
    for (size_t i = 0; i < args.inputs.size(); ++i) {
      const bool labels = setup.ClassesOf(i) > 0;
      inputs_.push_back(Fill(variant.device, args.inputs[i], variant.offer.inputs[i],
                             options.first_row, rows_, labels));
    }
    for (const RefTensor& param : args.params) {
      params_.push_back(Fill(variant.device, param, Format::kPlain, 0, param.shape[0], false));
    }
    for (size_t p = 0; p < needs_.params.size(); ++p) {
      const Form form = needs_.params[p];
      if (form.plain()) continue;
      const auto cell = [&] { return Cell(variant.device, args.params[p].shape, form); };
      forms_.push_back({p, cell(), cell()});
    }
    if (!forms_.empty()) make_forms_ = InsertedKernels::Make("params", variant.device, "a test");
    for (const RefTensor& state : args.state) {
      states_.push_back(Fill(variant.device, state, Format::kPlain, 0, state.shape[0], false));
    }
    for (size_t i = 0; i < args.outputs.size(); ++i) {
      outputs_.emplace_back(variant.device, args.outputs[i].shape.WithBatch(rows_),
                            variant.offer.outputs[i]);
    }
    scratch_ = Buffer(variant.device, std::max<size_t>(needs_.scratch_bytes, 1));
    saved_ = Buffer(variant.device, std::max<size_t>(needs_.saved_bytes, 1));
    Poison(saved_);
  }

  KernelResult Run() {
    Forward();
    KernelResult result;
    for (const Tensor& y : output_views_) {
      result.outputs.push_back(PlainValues(variant_.device, y));
    }
    for (const Tensor& state : state_views_)
      result.state.push_back(PlainValues(variant_.device, state));
    if (HasBackward()) Backward(result);
    return result;
  }

 private:
  KernelRequest Request() const {
    KernelRequest request = RequestFor(setup_, variant_);
    request.layer_index = args_.layer_index;
    for (Shape& shape : request.inputs) shape = shape.WithBatch(rows_);
    for (Shape& shape : request.outputs) shape = shape.WithBatch(rows_);
    if (!options_.wants_input_gradients) {
      request.needs_input_gradient.assign(request.inputs.size(), false);
    }
    return request;
  }

  bool HasBackward() const { return setup_.HasBackward(variant_.mode); }

  void Poison(const Buffer& buffer) const { Cell::Poison(variant_.device, buffer); }

  KernelArgs CommonArgs() {
    KernelArgs args;
    args.inputs = input_views_;
    args.outputs = output_views_;
    args.params = param_views_;
    args.state = state_views_;
    args.scratch = scratch_.data();
    args.saved = saved_.data();
    args.accumulate = options_.accumulate;
    static_cast<StepValues&>(args) = {.loss_scale = static_cast<float>(args_.loss_scale),
                                      .seed = args_.seed,
                                      .step = args_.step,
                                      .first_position = args_.first_position + options_.first_row};
    if (variant_.device.queue != nullptr) {
      values_ = Buffer(variant_.device, sizeof(StepValues));
      variant_.device.queue->Upload(values_.data(), static_cast<StepValues*>(&args),
                                    sizeof(StepValues));
      variant_.device.Record().Wait();
      args.values = static_cast<const StepValues*>(values_.data());
    }
    args.worker_sums = options_.worker_sums;
    Poison(scratch_);
    return args;
  }

  void Forward() {
    input_views_ = Views(inputs_);
    output_views_ = Views(outputs_);
    param_views_ = Views(params_);
    MakeForms();
    state_views_ = Views(states_);
    const bool in_place = options_.in_place && needs_.forward_in_place &&
                          !(HasBackward() && needs_.backward_reads_inputs);
    if (in_place) output_views_[0].data = input_views_[0].data;
    if (HasBackward()) MakeGradients();
    KernelArgs args = CommonArgs();
    if (needs_.forward_writes_gradients) args.input_gradients = input_gradient_views_;
    kernel_->Forward(args);
  }

  void Backward(KernelResult& result) {
    const bool shared = output_views_[0].data == input_views_[0].data;
    if (!needs_.backward_reads_inputs && !shared) {
      for (Cell& cell : inputs_) cell.Poison();
    }
    if (!needs_.backward_reads_outputs && !shared) {
      for (Cell& cell : outputs_) cell.Poison();
    }
    KernelArgs args = CommonArgs();
    args.adds_input_gradient = options_.adds_input_gradient;
    args.output_gradients = output_gradient_views_;
    args.input_gradients = input_gradient_views_;
    args.param_gradients = param_gradient_views_;
    kernel_->Backward(args);
    AddForms();
    for (const Tensor& dx : input_gradient_views_) {
      result.input_gradients.emplace_back();
      if (dx.data != nullptr) result.input_gradients.back() = PlainValues(variant_.device, dx);
    }
    for (const Tensor& dw : param_gradient_views_) {
      result.param_gradients.push_back(PlainValues(variant_.device, dw));
    }
  }

  // Converts parameters as a program does (KernelNeeds::params), one call each: here their memory is not contiguous.
  void MakeForms() {
    for (const FormedParam& form : forms_) {
      Tensor& view = param_views_[form.param];
      KernelArgs args;
      args.inputs = {&view, 1};
      args.outputs = {&form.value.tensor, 1};
      make_forms_->Forward(args);
      view = form.value.tensor;
    }
  }
  void AddForms() {
    if (param_gradient_views_.empty()) return;
    for (const FormedParam& form : forms_) {
      const Tensor& plain = param_gradients_[form.param].tensor;
      KernelArgs args;
      args.input_gradients = {&plain, 1};
      args.output_gradients = {&form.gradient.tensor, 1};
      args.accumulate = options_.accumulate;
      make_forms_->Backward(args);
      param_gradient_views_[form.param] = plain;
    }
  }

  void MakeGradients() {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      output_gradients_.push_back(Fill(variant_.device, args_.output_gradients[i],
                                       variant_.offer.outputs[i], options_.first_row, rows_,
                                       false));
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      Form form = inputs_[i].tensor.form();
      if (form.dtype == DType::kI32) form.dtype = DType::kF32;
      if (i == 0 && options_.adds_input_gradient) {
        const Shape& shape = inputs_[i].tensor.shape;
        const RefTensor ones = {shape, std::vector<double>(static_cast<size_t>(shape.count()), 1)};
        input_gradients_.push_back(Fill(variant_.device, ones, form, 0, rows_, false));
        continue;
      }
      input_gradients_.emplace_back(variant_.device, inputs_[i].tensor.shape, form);
    }
    for (const RefTensor& param : args_.params) {
      Cell& cell = param_gradients_.emplace_back(variant_.device, param.shape, Format::kPlain);
      if (options_.accumulate) {
        cell.Set(std::vector<float>(static_cast<size_t>(param.shape.count()), 1.0f).data());
      }
    }
    output_gradient_views_ = Views(output_gradients_);
    input_gradient_views_ = Views(input_gradients_);
    param_gradient_views_ = Views(param_gradients_);
    for (const FormedParam& form : forms_) param_gradient_views_[form.param] = form.gradient.tensor;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const bool wanted = options_.wants_input_gradients && setup_.HasGradient(i);
      if (!wanted) input_gradient_views_[i].data = nullptr;
    }
    // A frozen layer computes no gradients of its parameters.
    if (variant_.mode == Mode::kEvaluate) param_gradient_views_.clear();
    if (options_.in_place && needs_.backward_in_place && input_gradient_views_[0].data != nullptr) {
      input_gradient_views_[0].data = output_gradient_views_[0].data;
    }
  }

  const CaseSetup& setup_;
  const KernelVariant& variant_;
  const RefArgs& args_;
  const RunOptions& options_;
  int64_t rows_ = 0;
  std::unique_ptr<Kernel> kernel_;
  KernelNeeds needs_;
  struct FormedParam {
    size_t param;
    Cell value, gradient;
  };
  std::vector<FormedParam> forms_;
  std::unique_ptr<Kernel> make_forms_;  // null if there are none
  std::vector<Cell> inputs_, outputs_, params_, states_;
  std::vector<Cell> output_gradients_, input_gradients_, param_gradients_;
  std::vector<Tensor> input_views_, output_views_, param_views_, state_views_;
  std::vector<Tensor> output_gradient_views_, input_gradient_views_, param_gradient_views_;
  Buffer scratch_, saved_, values_;
};

// Returns one form for all inputs that can have it; the others are plain.
std::vector<Form> AvailableAs(const std::vector<Shape>& shapes, Form form) {
  std::vector<Form> available;
  for (const Shape& shape : shapes) available.push_back(shape.rank() == 4 ? form : Form());
  return available;
}

// True if the kernel exists for bf16 only.  Other kernels compute the same for any precision.
bool OnlyForBf16(const KernelEntry& entry, const CaseSetup& setup) {
  KernelVariant variant = {&entry, {DeviceKind::kCpu, 1, CpuIsa()}};
  variant.available = AvailableAs(setup.input_shapes(), Form());
  const bool fp32 = entry.offer(RequestFor(setup, variant)).has_value();
  variant.device.precision = Precision::kBf16;
  return !fp32 && entry.offer(RequestFor(setup, variant)).has_value();
}

}  // namespace

std::string KernelVariant::ToString() const {
  std::string text = std::string(NameOf(device.kind)) + " " + entry->implementation + " isa " +
                     IsaName(device.isa) + ", threads " + std::to_string(device.threads) +
                     ", formats";
  for (const Form& form : offer.inputs) text += " " + NameOf(form);
  for (const Form& form : offer.outputs) text += " -> " + NameOf(form);
  if (device.precision != Precision::kFp32) text.append(", ").append(NameOf(device.precision));
  if (fused_relu) text += ", fused relu";
  if (mode == Mode::kEstimate) return text + ", estimate of the state";
  return text + (mode == Mode::kTrain ? ", training" : ", evaluation");
}

std::vector<KernelVariant> VariantsOf(const std::string& type, const CaseSetup& setup, Mode mode) {
  std::vector<KernelVariant> variants;
  const auto consider = [&](KernelVariant variant) {
    const auto offer = variant.entry->offer(RequestFor(setup, variant));
    if (!offer) return;
    variant.offer = *offer;
    const bool known = std::any_of(variants.begin(), variants.end(), [&](const KernelVariant& v) {
      return v.ToString() == variant.ToString();
    });
    if (!known) variants.push_back(variant);
  };
  const auto consider_formats = [&](const KernelEntry& entry, const Device& device) {
    const bool cpu = device.kind == DeviceKind::kCpu;
    std::vector<Form> forms = {Form(), Form(Format::kChannelsLast)};
    if (cpu) {
      forms.emplace_back(Format::kBatchBlocked);
    } else {
      for (const DType type : {DType::kBF16, DType::kF16}) {
        forms.emplace_back(Format::kChannelsLast, type);
      }
    }
    for (const Form form : forms) {
      for (const bool relu : {false, true}) {
        KernelVariant variant = {&entry, device, AvailableAs(setup.input_shapes(), form),
                                 {},     relu,   mode};
        consider(variant);
        variant.read_as_plain = true;
        if (!cpu) consider(variant);
      }
    }
  };
  if (const Device gpu = DeviceUnderTest(); gpu.kind != DeviceKind::kCpu) {
    for (const KernelEntry& entry : KernelRegistry::Of(type, gpu.kind)) {
      consider_formats(entry, gpu);
      if (type == "convolution" || type == "inner_product") {
        for (const Precision precision : {Precision::kBf16, Precision::kFp16}) {
          consider_formats(entry, DeviceUnderTest(precision));
        }
      }
    }
    return variants;
  }
  for (const KernelEntry& entry : KernelRegistry::Of(type, DeviceKind::kCpu)) {
    if (OnlyForBf16(entry, setup)) {
      for (const int threads : {1, 2}) {
        consider_formats(entry, {DeviceKind::kCpu, threads, CpuIsa(), Precision::kBf16});
      }
    }
    for (int isa = 0; isa <= static_cast<int>(CpuIsa()); ++isa) {
      consider_formats(entry, {DeviceKind::kCpu, 1, static_cast<Isa>(isa)});
    }
    consider_formats(entry, {DeviceKind::kCpu, 2, CpuIsa()});
  }
  return variants;
}

KernelNeeds NeedsOf(const CaseSetup& setup, const KernelVariant& variant) {
  return variant.entry->make(RequestFor(setup, variant), variant.offer)->Needs();
}

bool CanRunInPlace(const CaseSetup& setup, const KernelVariant& variant) {
  const KernelNeeds needs = NeedsOf(setup, variant);
  return needs.forward_in_place || needs.backward_in_place;
}

KernelResult RunKernel(const CaseSetup& setup, const KernelVariant& variant, const RefArgs& args,
                       const RunOptions& options) {
  ApplyThreadBudget(variant.device.threads);
  return Runner(setup, variant, args, options).Run();
}

}  // namespace dtrain
