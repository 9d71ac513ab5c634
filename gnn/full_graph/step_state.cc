#include "gnn/full_graph/step_state.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "cache/job/job_description.h"
#include "cache/job/safetensors.h"
#include "storage/section/untrusted_json.h"

// A state is a safetensors file: a tensor for each sum and for the scores, and one for each array
// with the chunk numbers and hashes of its files. The metadata holds the job, the other numbers as
// JSON, and a hash of everything else. SaveStepState fills these in and writes the file;
// LoadStepState checks the hash and the job, and decodes the rest.

namespace rhizome {
inline namespace internal {
namespace {

using Json = nlohmann::json;

constexpr const char* kStateJob = "job";
constexpr const char* kStateNumbers = "numbers";
constexpr const char* kStateHash = "xxh3";

/// Name of the tensor with the scores that the sink keeps.
constexpr const char* kStateScores = "scores";

/// Number of floats that describe a file: its chunk number, then its hash, as bits.
constexpr std::size_t kFileFloats = 5;

std::string NameOfSum(std::uint64_t pass, std::size_t group, std::size_t index) {
  return fmt::format("sum.{:04}.{}.{:04}", pass, group, index);
}

/// Stores a sum as a tensor of floats. A number of 8 bytes becomes the bits of two floats.
void PutSum(const std::string& name, const torch::Tensor& sum, TensorFile& file) {
  const torch::Tensor values = sum.contiguous();
  const bool wide = values.scalar_type() == torch::kFloat64;
  NamedTensor& stored = file.tensors[wide ? name + ".wide" : name];
  stored.shape = values.sizes().vec();
  if (wide) stored.shape.push_back(2);
  stored.values.resize(static_cast<std::size_t>(values.numel()) * (wide ? 2 : 1));
  std::memcpy(stored.values.data(), values.data_ptr(), stored.values.size() * sizeof(float));
}

torch::Tensor TakeSum(const std::string& name, const TensorFile& file) {
  auto found = file.tensors.find(name);
  const bool wide = found == file.tensors.end();
  if (wide) found = file.tensors.find(name + ".wide");
  if (found == file.tensors.end()) return {};
  std::vector<std::int64_t> shape = found->second.shape;
  if (wide) shape.pop_back();
  torch::Tensor sum = torch::empty(shape, wide ? torch::kFloat64 : torch::kFloat32);
  std::memcpy(sum.data_ptr(), found->second.values.data(),
              found->second.values.size() * sizeof(float));
  return sum;
}

void PutSums(std::uint64_t pass, const TileSums& sums, TensorFile& file) {
  for (std::size_t group = 0; group < TileSums::kGroups; ++group) {
    for (std::size_t i = 0; i < sums.count(); ++i)
      if (sums.Of(group, i).defined()) PutSum(NameOfSum(pass, group, i), sums.Of(group, i), file);
  }
}

TileSums TakeSums(std::uint64_t pass, std::size_t count, const TensorFile& file) {
  TileSums sums(count);
  for (std::size_t group = 0; group < TileSums::kGroups; ++group) {
    for (std::size_t i = 0; i < count; ++i)
      sums.Set(group, i, TakeSum(NameOfSum(pass, group, i), file));
  }
  return sums;
}

void PutFiles(const std::string& array, const std::vector<ScratchFile>& files, TensorFile& out) {
  NamedTensor& stored = out.tensors["files." + array];
  stored.shape = {static_cast<std::int64_t>(files.size()), kFileFloats};
  for (const ScratchFile& file : files) {
    stored.values.push_back(std::bit_cast<float>(file.chunk));
    float hash[kFileFloats - 1];
    static_assert(sizeof(hash) == sizeof(file.hash));
    std::memcpy(hash, &file.hash, sizeof(hash));
    stored.values.insert(stored.values.end(), std::begin(hash), std::end(hash));
  }
}

std::vector<ScratchFile> TakeFiles(const NamedTensor& stored) {
  std::vector<ScratchFile> files(stored.values.size() / kFileFloats);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const float* const at = stored.values.data() + i * kFileFloats;
    files[i].chunk = std::bit_cast<std::uint32_t>(*at);
    std::memcpy(&files[i].hash, at + 1, sizeof(files[i].hash));
  }
  return files;
}

StepState Decode(const TensorFile& file) {
  const Json json = ParseUntrustedJson(file.metadata.at(kStateNumbers));
  StepState state;
  json.at("step").get_to(state.step);
  json.at("chunk_rows").get_to(state.chunk_rows);
  json.at("stored_sums").get_to(state.stored_sums);
  json.at("pass").get_to(state.pass);
  json.at("chunk").get_to(state.chunk);
  std::uint64_t pass = 0;
  for (const Json& count : json.at("sums"))
    state.sums.push_back(TakeSums(pass++, count.get<std::size_t>(), file));
  state.current = TakeSums(pass, json.at("current").get<std::size_t>(), file);
  const auto scores = file.tensors.find(kStateScores);
  if (scores != file.tensors.end()) state.scores = scores->second.values;
  constexpr std::string_view kFiles = "files.";
  for (const auto& [name, stored] : file.tensors)
    if (name.starts_with(kFiles)) state.files[name.substr(kFiles.size())] = TakeFiles(stored);
  return state;
}

}  // namespace

Status SaveStepState(const Path& path, const std::string& job, const StepState& state) {
  TensorFile file;
  Json sums = Json::array();
  for (std::uint64_t pass = 0; pass < state.sums.size(); ++pass) {
    PutSums(pass, state.sums[pass], file);
    sums.push_back(state.sums[pass].count());
  }
  PutSums(state.sums.size(), state.current, file);
  for (const auto& [array, files] : state.files) PutFiles(array, files, file);
  if (!state.scores.empty()) {
    file.tensors[kStateScores] = {.shape = {static_cast<std::int64_t>(state.scores.size())},
                                  .values = state.scores};
  }
  const Json numbers = {{"step", state.step},
                        {"chunk_rows", state.chunk_rows},
                        {"stored_sums", state.stored_sums},
                        {"pass", state.pass},
                        {"chunk", state.chunk},
                        {"sums", sums},
                        {"current", state.current.count()}};
  file.metadata[kStateJob] = job;
  file.metadata[kStateNumbers] = numbers.dump();
  file.metadata[kStateHash] = HashWithout(file, kStateHash);
  return SaveSafetensors(path, file, OutputFile::Place::kScratch);
}

Result<std::optional<StepState>> LoadStepState(FileSystem& fs, const Path& path,
                                               const std::string& job) {
  const Result<LoadedTensorFile> loaded = LoadSafetensors(fs, path);
  if (!loaded) {
    if (loaded.error().code() == StatusCode::kIoError) return Fail(loaded.error());
    return std::optional<StepState>();
  }
  const auto& metadata = loaded->file.metadata;
  const bool sound = metadata.contains(kStateJob) && metadata.contains(kStateNumbers) &&
                     metadata.contains(kStateHash) &&
                     metadata.at(kStateHash) == HashWithout(loaded->file, kStateHash);
  if (!sound || !CompareJobs(metadata.at(kStateJob), job, {})) return std::optional<StepState>();
  try {
    return std::optional(Decode(loaded->file));
  } catch (const Json::exception&) {
    return std::optional<StepState>();
  }
}

}  // namespace internal
}  // namespace rhizome
