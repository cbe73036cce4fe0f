// Graph is a model without weights and without a device: named layers in execution order, the values between them, the
// parameters and their ranges in the arenas.
//
// Read from a YAML list of layers (configs/models).  A layer takes the previous layer's output
// unless `input` names others; the model's inputs ("data", "label") have names too.  `lr_factor` of any layer
// multiplies the learning rate for its parameters.
//
//   layers:
//     - {name: conv1, type: convolution, outputs: 6, kernel: 5, pad: 2}
//     - {name: loss, type: softmax_cross_entropy, input: [fc3, label]}
//
// Groups of layers that repeat are written once, as blocks (blocks.h).
//
// Every error of the file is reported at once with its position; shapes that do not fit name the
// layer and both shapes.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/config/reader.h"
#include "framework/core/layout.h"
#include "framework/device/tensor.h"
#include "framework/nn/layer.h"

namespace dtrain {

struct GraphValue {
  std::string name;  // the producing layer's, or the input's
  DType dtype = DType::kF32;
  Shape sample_shape;
  int producer = -1;          // layer index; -1 for an input of the model
  int64_t classes = 0;        // FieldSpec::classes; 0 for what layers compute
  bool has_gradient = false;  // an earlier layer has parameters that are not frozen
};

struct GraphLayer {
  std::string name;
  std::string type;
  std::string where;  // "lenet5.yaml:7:5"
  std::shared_ptr<Layer> layer;
  std::vector<int> inputs;  // value indices
  int output = -1;          // value index
  std::vector<ParamSpec> params;
  std::vector<StateSpec> states;
  Range param_range;     // of all its parameters in the weight and gradient arenas
  int first_param = 0;   // index of its first entry in Graph::weights()
  int first_state = 0;   // index of its first entry in Graph::state()
  Cost cost;             // per sample
  double lr_factor = 1;  // of its parameters (ArenaEntry)
  bool frozen = false;   // by Graph::Freeze: parameters and state keep their values

  // True if it takes part in sums over the workers (Layer); a frozen layer does not.
  bool syncs_workers() const { return !frozen && layer->syncs_workers(); }
};

class Graph {
 public:
  // Reads a model file.  Throws ConfigError with all errors.  Without `inputs` the model has the inputs that its own
  // key `inputs` lists, or images of the shape in its `sample` key, and labels.
  static Graph FromFile(const std::string& path, const std::vector<FieldSpec>& inputs);
  // `data` names the source of the inputs in messages.
  static Graph FromText(const std::string& yaml, const std::string& file_name,
                        const std::vector<FieldSpec>& inputs, const std::string& data = "the data");

  // Throws ConfigError listing all layers whose output reaches no loss, or if `samples` samples at a time need more
  // memory than any machine has.
  void CheckTrainable(int64_t samples) const;

  const std::string& name() const { return name_; }
  const std::vector<FieldSpec>& inputs() const { return inputs_; }
  // The sample shape in the model's own file, and its position there, "lenet5.yaml:3:1"; both are empty if the file has
  // none.
  const std::vector<int64_t>& made_for() const { return made_for_; }
  const std::string& where_made_for() const { return where_made_for_; }
  // Warnings about valid but suspicious parts of the file, with their positions.
  const std::vector<std::string>& warnings() const { return warnings_; }
  const std::vector<GraphValue>& values() const { return values_; }
  const std::vector<GraphLayer>& layers() const { return layers_; }

  // Weights, gradients and solver vectors have this layout (core/layout.h), in backward order.
  const ArenaLayout& weights() const { return weights_; }
  const ArenaLayout& state() const { return state_; }

  // Returns the shapes of all values, batch axis included, for inputs of these shapes.  If the inputs have their sample
  // shapes, so do all values; else it calls Layer::InferShapes again.  The nets of several threads share a graph, so
  // the caller must hold LockLayers, and go on holding it while kernels are made.
  std::vector<Shape> ShapesFor(std::span<const Shape> inputs) const;
  std::unique_lock<std::mutex> LockLayers() const { return std::unique_lock(*layers_mutex_); }

  // Returns one line per layer with type, output shape and parameters: for users, and, hashed, to check that ranks
  // agree.
  std::string Describe() const;

  // Implements the run config's `batch_norm: sync`: layers that can use the statistics of all workers do so.
  void SyncWorkers();
  bool syncs_workers() const;  // true if a layer does

  // Freezes the layers with parameters whose names match (NameMatches: "conv*"), before a net is made.  Returns the
  // number of matching layers.  A frozen layer keeps its parameters and its state; a layer with state computes as in
  // evaluation.  The gradients of its parameters are zeros, and no gradients are computed for layers that no trained
  // layer precedes.
  int Freeze(const std::string& pattern);

  std::vector<std::string> metric_names() const;  // of its metric layers

  // Fills a weight arena (weights().size() floats) from the layers' initialisers.
  void InitializeWeights(uint64_t seed, float* weights) const;
  void InitializeState(float* state) const;

 private:
  static Graph Read(config::Document document, const std::vector<FieldSpec>& inputs,
                    const std::string& data);
  struct Reading;  // the state while layers are read in order
  void ReadLayer(config::Reader& reader, Reading& reading);
  bool FindInputs(config::Reader& reader, Reading& reading, GraphLayer& layer) const;
  struct WrongInput {
    std::string what, hint;
  };
  std::optional<WrongInput> FindWrongInput(const GraphLayer& layer) const;
  bool AddLayer(config::Reader& reader, Reading& reading, GraphLayer layer);
  int LayerOfScores(const Reading& reading, int value, int64_t scores) const;
  void WarnOfScores(const GraphLayer& loss, const Reading& reading);
  void FollowGradient(GraphLayer& layer);
  void LayOutArenas();

  std::string name_;
  std::vector<FieldSpec> inputs_;
  std::vector<int64_t> made_for_;
  std::string where_made_for_;
  std::vector<std::string> warnings_;
  std::vector<GraphValue> values_;
  std::vector<GraphLayer> layers_;
  std::shared_ptr<std::mutex> layers_mutex_ = std::make_shared<std::mutex>();
  ArenaLayout weights_;
  ArenaLayout state_;
};

}  // namespace dtrain
