#include "framework/setup/run_setup.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "framework/comm/gather.h"
#include "framework/core/bytes.h"
#include "framework/core/error.h"
#include "framework/core/isa.h"
#include "framework/core/log.h"
#include "framework/core/memory.h"
#include "framework/core/process.h"
#include "framework/core/text.h"
#include "framework/data/files/catalog.h"
#include "framework/data/images/image_set.h"
#include "framework/data/text/sentence_pairs.h"
#include "framework/device/buffer.h"
#include "framework/device/cpu/threads.h"
#include "framework/device/cuda/module.h"
#include "framework/launch/agreement.h"
#include "framework/nn/kernel.h"
#include "framework/nn/net.h"
#include "framework/nn/tokens.h"
#include "framework/setup/data_summary.h"
#include "framework/setup/locate_model.h"
#include "framework/setup/run_exchange.h"

namespace dtrain {
namespace fs = std::filesystem;

// Layers and data do not include each other's headers, so this is checked here.
static_assert(kPadToken == token::kPad, "layers mask what data sets pad with");

namespace {

// Throws ConfigError if the target is out of range for the measure of the run: the model's accuracy; without one the
// perplexity of sentences; else the loss, which may be any number.
void CheckStop(const RunConfig& config, const Graph& graph, const std::vector<FieldSpec>& fields) {
  const double target = config.stop.target;
  if (!graph.metric_names().empty()) {
    if (target <= 1) return;
    throw ConfigError(
        fmt::format("stop.target is {}; it is an accuracy here, above 0 and at most 1", target),
        "write 0.98 for 98 %; 0 switches it off");
  }
  const bool sentences = std::any_of(fields.begin(), fields.end(), [](const FieldSpec& field) {
    return field.dtype == DType::kI32 && field.sample_shape.rank() > 0;
  });
  if (!sentences || target == 0 || target >= 1) return;
  throw ConfigError(
      fmt::format("stop.target is {}; it is a perplexity here, which is at least 1", target),
      "a run on sentences is evaluated by perplexity; 0 switches the target off");
}

// Throws ConfigError if the model gives the shape of its samples and the data have another one.
void CheckSample(const RunConfig& config, const Graph& graph,
                 const std::vector<FieldSpec>& fields) {
  const std::vector<int64_t>& sample = graph.made_for();
  if (sample.empty() || fields.empty()) return;
  const bool is_shape = sample.size() <= Shape::kMaxRank;
  if (is_shape && fields[0].sample_shape == Shape(sample)) return;
  throw ConfigError(fmt::format("{}: the model is made for samples of [{}], those of {} are {}",
                                graph.where_made_for(), fmt::join(sample, ", "), config.data.name,
                                fields[0].sample_shape.ToString()),
                    "change the model's sample, or leave it out");
}

// Freezes layers.  Every pattern must match a layer: a misspelt one would train layers that should be frozen.
void FreezeLayers(const RunConfig& config, Graph& graph) {
  const auto fail = [&](const char* key, const std::string& pattern) {
    std::vector<std::string> names;
    for (const GraphLayer& layer : graph.layers()) {
      if (!layer.params.empty()) names.push_back(layer.name);
    }
    throw ConfigError(fmt::format("weights.{}: '{}' is no layer with parameters of {}", key,
                                  pattern, config.model.file),
                      SuggestName(pattern, names));
  };
  for (const std::string& pattern : config.weights.except) {
    const auto& layers = graph.layers();
    if (std::ranges::none_of(layers, [&](const GraphLayer& layer) {
          return !layer.params.empty() && NameMatches(pattern, layer.name);
        })) {
      fail("except", pattern);
    }
  }
  for (const std::string& pattern : config.weights.freeze) {
    if (graph.Freeze(pattern) == 0) fail("freeze", pattern);
  }
  const auto& entries = graph.weights().entries;
  if (std::ranges::all_of(entries, [](const ArenaEntry& e) { return e.lr_factor == 0; })) {
    throw ConfigError(config.model.file + ": every layer is frozen, so there is nothing to train",
                      "leave a layer out of weights.freeze, or give one an lr_factor above 0");
  }
}

}  // namespace

Graph ReadModel(const RunConfig& config) {
  try {
    return ReadModel(config, config.data.source->fields());
  } catch (const ConfigError&) {
    // The model may be right, and the data read otherwise than meant: labels that begin at 1 are a class more, an index
    // is a column more.
    if (config.data.source->is_read() && log::IsFirstRank()) TellData(config, *LoadData(config));
    throw;
  }
}

Graph ReadModel(const RunConfig& config, const std::vector<FieldSpec>& fields) {
  Graph graph =
      Graph::FromText(config.model.yaml, config.model.file, fields,
                      fmt::format("the data ({}, {})", config.data.name, config.data.where));
  CheckSample(config, graph, fields);
  if (graph.weights().size() == 0) {
    throw ConfigError(config.model.file + ": no layer of the model has parameters",
                      "there is nothing to train: add a convolution or inner_product layer");
  }
  const int64_t share = (config.batch + config.workers - 1) / config.workers;
  graph.CheckTrainable((share + config.accumulate - 1) / config.accumulate);
  if (config.sync_batch_norm) graph.SyncWorkers();
  FreezeLayers(config, graph);
  if (graph.syncs_workers() && !config.strategy->traits().equal_weights()) {
    throw ConfigError(
        fmt::format("{}: a layer with 'sync: true' needs workers that take their steps "
                    "together; in '{}' each takes its own",
                    config.model.file, config.strategy_name),
        "use a synchronous strategy (allreduce, ps_bsp), or leave 'sync' out");
  }
  CheckStop(config, graph, fields);
  return graph;
}

std::vector<ModelListing> ListModels() {
  std::vector<ModelListing> listings;
  for (const auto& [name, path] : NamedModels("")) {
    const Graph graph = Graph::FromFile(path.string(), {});
    ModelListing listing{name, graph.weights().size(), 0};
    for (const GraphLayer& layer : graph.layers())
      listing.forward_flops += layer.cost.forward_flops;
    listings.push_back(listing);
  }
  if (listings.empty()) throw ConfigError("there are no models to list", ModelHint("", ""));
  return listings;
}

std::unique_ptr<Dataset> LoadData(const RunConfig& config) {
  std::filesystem::path folder;
  if (!config.data.source->files().empty()) folder = LocateData(config.data.name, config.data.root);
  if (!folder.empty()) log::Debug("data set {} is in {}", config.data.name, folder.string());
  auto data = WithMemoryFor("data set " + config.data.name,
                            [&] { return config.data.source->Load(folder, config.seed); });
  const int64_t samples = data->size(Split::kTrain);
  // The config's check of the batch counted broken images, too.
  if (samples < config.batch && samples < config.data.source->size(Split::kTrain)) {
    throw DataError(fmt::format("batch {} is more than the {} training samples of {} that can be "
                                "read",
                                config.batch, samples, config.data.name),
                    fmt::format("take a batch of {} or less, or mend the others", samples));
  }
  return data;
}

void DecideTargets(const Graph& graph, Dataset& dataset) {
  const auto keeps = [](const GraphLayer& layer) {
    return layer.layer->role() == LayerRole::kLoss &&
           layer.layer->score_meaning() != ScoreMeaning::kNumbers;
  };
  if (std::ranges::any_of(graph.layers(), keeps)) dataset.KeepTargets();
}

std::vector<RankCpus> GatherCpus(Transport& transport) {
  const std::string mine = ToBytes(transport.node_ranks().front(), UsableCpus());
  std::vector<RankCpus> ranks;
  for (const std::string& bytes : Gather(transport, mine)) {
    ByteReader reader(bytes);
    const Rank node = reader.Value<Rank>();
    ranks.push_back({node, reader.Values<int>()});
  }
  return ranks;
}

int AgreeOnThreads(Transport& transport, const std::vector<RankCpus>& cpus, int workers) {
  const bool root = transport.rank() == 0;
  return std::stoi(Broadcast(transport, root ? std::to_string(ThreadsByRule(cpus, workers)) : ""));
}

ExecutionPlan DecidePlan(const RunConfig& config, const Graph& graph, int workers,
                         int threads_by_rule) {
  ExecutionPlan plan;
  if (config.plan_is_file()) plan = ReadPlan(config.plan);
  const ExecutionPlan given = plan;
  plan.device = NameOf(DeviceKindOf(config.device));
  plan.gpu = plan.device == "cuda" ? CudaGpu() : "";
  plan.isa = IsaName(CpuIsa());
  plan.precision = config.precision;
  // They were chosen for another device or precision.
  if (!SameKernels(given, plan)) plan.kernels.clear();
  plan.workers = workers;
  plan.collective = config.collective;
  ResolveBuckets(config, LayerGradientsOf(graph), plan);
  plan.node_of = PlanNodesOf(config);
  if (given.node_of.size() == plan.node_of.size()) plan.node_of = given.node_of;
  if (config.threads > 0) {
    plan.threads = static_cast<int>(config.threads);
  } else if (!config.plan_is_file()) {
    plan.threads = threads_by_rule;
  }
  ExecutionPlan before = given;
  // Buckets that are still to be planned do not differ.
  if (plan.buckets.empty() || !BucketsMatter(config, given, plan)) before.buckets = plan.buckets;
  const std::string differences = config.plan_is_file() ? Differences(before, plan) : "";
  if (!differences.empty()) {
    log::Warning("not bit-equal to the runs of {}: {}", config.plan, differences);
  }
  return plan;
}

int ThreadsHere(int workers) {
  return ThreadsByRule(std::vector<RankCpus>(static_cast<size_t>(workers), {0, UsableCpus()}),
                       workers);
}

// Warns of kernels that are not those of the plan that was given.
static void CompareKernels(const std::map<std::string, std::string>& given,
                           const std::map<std::string, std::string>& chosen) {
  for (const auto& [layer, kernel] : given) {
    const auto now = chosen.find(layer);
    if (now == chosen.end() || now->second == kernel) continue;
    log::Warning(
        "not bit-equal to the runs of the plan: layer '{}' is computed by {} here, not by {}",
        layer, now->second, kernel);
  }
}

std::unique_ptr<Net> MakeNet(const Graph& graph, const NetUse& use, ExecutionPlan& plan) {
  ApplyThreadBudget(plan.threads);
  const Device device = DeviceOf(plan);
  if (use.measure && device.queue == nullptr) {
    throw ConfigError(
        "plan: measure times cuDNN's engines, and the kernels of a CPU are chosen by rule",
        "plan: auto, or device: cuda");
  }
  auto net = std::make_unique<Net>(graph, device, plan.kernels, use.measure);
  const int64_t largest = use.shares.empty() ? 0 : LargestPart(use.shares.front(), use.parts);
  if (device.queue != nullptr && largest > 0 && use.decides) net->FollowKernelsOf(largest);
  if (use.evaluated > 0) net->Prepare(Mode::kEvaluate, use.evaluated);
  if (use.estimated > 0) net->Prepare(Mode::kEstimate, use.estimated);
  if (use.shares.empty()) return net;
  // The usual size is prepared last, so that its memory is in place.
  for (auto share = use.shares.rbegin(); share != use.shares.rend(); ++share) {
    PrepareParts(*net, *share, use.parts);
  }
  std::map<std::string, std::string> chosen = net->ChosenKernels(largest);
  if (use.decides) CompareKernels(plan.kernels, chosen);
  plan.kernels = std::move(chosen);
  return net;
}

bool ComputesInBf16(const ExecutionPlan& plan) {
  if (plan.device == "cuda") return plan.precision == "bf16";
  return std::any_of(plan.kernels.begin(), plan.kernels.end(),
                     [](const auto& kernel) { return kernel.second == "amx"; });
}

Device DeviceOf(const ExecutionPlan& plan) {
  Device device{DeviceKindOf(plan.device), plan.threads, CpuIsa()};
  device.precision = PrecisionOf(plan.precision, device.kind);
  if (device.kind == DeviceKind::kCuda) device.queue = OpenCuda(device.precision);
  return device;
}

namespace {

// /dev/dxg: Linux under Windows (WSL).
bool HasGpuDriver() {
  std::error_code error;
  return fs::exists("/dev/nvidiactl", error) || fs::exists("/dev/dxg", error);
}

}  // namespace

std::optional<std::string> WhyNoAutoGpu(bool driver, const fs::path& folder) {
  if (!driver) return "this machine has no NVIDIA driver";
  if (const auto lack = WhyNoCuda(folder)) return lack->why;
  // The GPU may be of another kind than the module was built for, or taken by others.
  try {
    const Device gpu = {.kind = DeviceKind::kCuda, .queue = OpenCuda(Precision::kFp32, folder)};
    const Buffer numbers(gpu, 2 * sizeof(float));
    const Tensor terms[] = {{numbers.data(), {1}}, {numbers.f32() + 1, {1}}};
    KernelArgs args;
    args.inputs = {terms, 1};
    args.outputs = {terms + 1, 1};
    InsertedKernels::Make("add", gpu, "device: auto")->Forward(args);
    gpu.Record().Wait();
  } catch (const Error& error) {
    return error.what();
  }
  return std::nullopt;
}

namespace {

const std::optional<std::string>& WhyNoGpuHere() {
  static const std::optional<std::string> why = WhyNoAutoGpu(HasGpuDriver());
  return why;
}

}  // namespace

DeviceKind DeviceKindOf(const std::string& device) {
  if (device == "auto") return WhyNoGpuHere() ? DeviceKind::kCpu : DeviceKind::kCuda;
  if (device == "cpu") return DeviceKind::kCpu;
  if (device == "cuda") return DeviceKind::kCuda;
  throw ConfigError("no device is called '" + device + "'", "allowed: auto, cpu, cuda");
}

void CheckDevice(const RunConfig& config) {
  const DeviceKind kind = DeviceKindOf(config.device);
  PrecisionOf(config.precision, kind);
  if (kind != DeviceKind::kCuda) return;
  if (const auto lack = WhyNoCuda()) {
    throw ConfigError(
        fmt::format("device 'cuda' is not available on {}: {}", HostName(), lack->why), lack->hint);
  }
}

void TellDevice(const RunConfig& config) {
  if (config.device != "auto") return;
  const std::optional<std::string>& why = WhyNoGpuHere();
  if (!why) return log::Info("device: auto takes the GPU, {}", CudaGpu());
  const auto text = fmt::format("device: auto takes the CPU, not a GPU: {}", *why);
  // The user of a machine without a driver expects no GPU.
  HasGpuDriver() ? log::Info("{}", text) : log::Debug("{}", text);
}

void TellModel(const Graph& graph) {
  for (const std::string& warning : graph.warnings()) log::Warning("{}", warning);
}

std::string FrozenText(const Graph& graph) {
  constexpr size_t kNamesMost = 8;
  std::vector<std::string> frozen;
  size_t layers = 0;
  int64_t numbers = 0;
  for (const GraphLayer& layer : graph.layers()) {
    if (layer.params.empty()) continue;
    ++layers;
    if (layer.lr_factor != 0) continue;
    const bool moves = !layer.frozen && !layer.states.empty();
    frozen.push_back(layer.name + (moves ? " without its statistics" : ""));
    numbers += layer.param_range.size();
  }
  if (frozen.empty()) return "";
  const std::string count = fmt::format("{} of {} layers with parameters, {} of {} parameters",
                                        frozen.size(), layers, numbers, graph.weights().size());
  if (frozen.size() > kNamesMost) {
    frozen.resize(kNamesMost);
    frozen.emplace_back("...");
  }
  return fmt::format("{} ({})", Join(frozen), count);
}

void TellData(const RunConfig& config, const Dataset& dataset) {
  if (const auto data = DescribeData(dataset)) {
    log::Info("data: {}", TextOf(*data, config.data.name));
    for (const std::string& warning : data->warnings) log::Warning("data: {}", warning);
  }
  const std::vector<RemoteFile> files = config.data.source->files();
  if (files.empty()) return;
  const fs::path folder = LocateData(config.data.name, config.data.root);
  for (const FileStatus& file : DifferentFiles(config.data.name, folder, UsualMemory())) {
    log::Warning("{} is not as published: {}", file.name, file.problem);
  }
}

Precision PrecisionOf(const std::string& precision, DeviceKind device) {
  if (precision == "fp32") return Precision::kFp32;
  if (precision == "tf32" || precision == "fp16") {
    if (device == DeviceKind::kCuda) {
      return precision == "tf32" ? Precision::kTf32 : Precision::kFp16;
    }
    throw ConfigError(
        fmt::format("precision {} needs a GPU: the CPU has no such products", precision),
        "precision: fp32, or device: cuda");
  }
  if (precision != "bf16") throw ConfigError("no precision is called '" + precision + "'");
  if (device == DeviceKind::kCpu && !AmxAvailable()) {
    throw ConfigError("precision bf16 needs AMX: " + WhyNoAmx(), "precision: fp32");
  }
  return Precision::kBf16;
}

ModelLayout ModelLayoutOf(const Graph& graph) { return {graph.weights(), graph.state(), ""}; }

ModelLayout ModelLayoutOf(const Graph& graph, const Dataset& dataset) {
  ModelLayout layout = ModelLayoutOf(graph);
  if (const SentencePairs* pairs = dataset.sentence_pairs()) layout.text = pairs->info().ToText();
  if (const ImageSetSpec* images = dataset.image_info()) layout.images = ToText(*images);
  return layout;
}

void AgreeOnRun(Transport& transport, const RunConfig& config, const Graph& graph,
                const ExecutionPlan& plan, const std::string& data_sha256) {
  // A server needs no GPU.
  const bool has_gpu = !plan.gpu.empty() && PlacementOf(config).IsWorker(transport.rank());
  CheckAgreement(transport, {{"program", Version() + " " + SourceRevision()},
                             {"config", config.effective_yaml},
                             {"model", graph.Describe()},
                             // Includes keys that do not change shapes.
                             {"model file", config.model.yaml},
                             {"instruction set", IsaName(CpuIsa())},
                             {"GPU", has_gpu ? CudaGpu() : plan.gpu},
                             {"execution plan", ToJson(plan)},
                             {"data set", data_sha256}});
}

}  // namespace dtrain
