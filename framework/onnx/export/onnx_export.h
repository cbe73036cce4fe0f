// Exports saved weights as ONNX files that bring along what is needed to use them.
//
// The metadata of a file (metadata_props), all of it text, lists and vocabularies as JSON:
//
//   model, epoch, step, source_revision   where the weights come from
//   images   input            what the graph expects: normalised pixels, and the formula
//            sample           [C, H, W]
//            mean, deviation  of each channel, of pixel / 255
//            classes          how many
//            class_names      a list; empty where classes are numbers
//   text     source_language, target_language, tokens
//            source_vocabulary, target_vocabulary   lists; a word's number is its place
//            pad, start, end, unknown               the numbers of the marks
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "framework/checkpoint/weights_file.h"
#include "framework/onnx/onnx_graph.h"

namespace dtrain {

// One graph, or two of a model for translation: encoder and decoder.  `origin` is for messages.  Throws
// CheckpointError where the file does not say what its model is, else as TranslateModel.
std::vector<OnnxGraph> OnnxOf(const StoredWeights& stored, const std::string& origin);

// Writes them: `output`, or, of two, that name with ".encoder" and ".decoder" before its ".onnx".  Which these are.
std::vector<std::filesystem::path> WriteOnnx(const std::filesystem::path& output,
                                             const std::vector<OnnxGraph>& graphs);

}  // namespace dtrain
