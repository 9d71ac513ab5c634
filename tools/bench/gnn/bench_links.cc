#include "tools/bench/gnn/bench_links.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "cache/feed/feed_pipeline.h"
#include "cache/feed/seed_numbers.h"
#include "cache/job/safetensors.h"
#include "cache/job/work_clock.h"
#include "gnn/links/link_decoder.h"
#include "gnn/models/model.h"
#include "gnn/ops/torch_guard.h"
#include "gnn/ops/torch_threads.h"
#include "storage/io/files.h"
#include "tools/bench/harness/bench_common.h"
#include "tools/bench/harness/child_process.h"
#include "tools/cli/id_text.h"
#include "tools/cli/json.h"
#include "tools/cli/pair_input.h"
#include "tools/cli/sibling_binary.h"
#include "tools/cli/text_output.h"

// BenchLinks (1) opens the graph and draws the edges that are scored samplewise (DrawEdges); (2)
// trains a model for one step, for its file; (3) runs the verbs (Layerwise); (4) computes batches
// of vertices and of edges samplewise (SamplewiseModel); (5) compares rates, and with all
// neighbours the scores.

namespace rhizome {
namespace {

constexpr const char* kLinksArray = "rhizome-bench";

/// Number of minibatches that are scheduled together, as in `rhizome infer --mode samplewise`.
constexpr std::uint32_t kLinksSuperbatch = 32;

/// Work done and its time. `cpu_seconds`: over all threads.
struct Work {
  std::uint64_t items = 0;
  double seconds = 0;
  double cpu_seconds = 0;

  Json ToJson() const {
    return {{"items", items},
            {"seconds", seconds},
            {"cpu_seconds", cpu_seconds},
            {"per_second", static_cast<double>(items) / seconds},
            {"per_cpu_second", static_cast<double>(items) / cpu_seconds}};
  }
};

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

/// Returns the processor time of all children that have ended.
double ChildCpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
}

/// Draws `count` edges without replacement, or all of them in random order (Vitter's algorithm R).
Result<std::vector<VertexPair>> DrawEdges(const GraphSnapshot& graph, std::uint64_t count,
                                          std::uint64_t seed) {
  RHIZOME_ASSIGN_OR_RETURN(const PairInput input, AllEdges(graph));
  std::mt19937_64 random(seed);
  std::vector<VertexPair> drawn;
  std::vector<VertexPair> block(4096);
  for (std::uint64_t seen = 0;;) {
    RHIZOME_ASSIGN_OR_RETURN(const std::size_t got, input.next(block));
    for (const VertexPair& edge : std::span(block).first(got)) {
      const std::uint64_t place = seen < count ? seen : random() % (seen + 1);
      if (seen < count) drawn.push_back(edge);
      if (place < count) drawn[place] = edge;
      ++seen;
    }
    if (got < block.size()) break;
  }
  std::shuffle(drawn.begin(), drawn.end(), random);
  return drawn;
}

/// Runs the verbs of a user on the store of the bench.
class Layerwise {
 public:
  Layerwise(const BenchLinksOptions& options, const Store& store, Path scratch)
      : options_(options), store_(store.path().string()), scratch_(std::move(scratch)) {
    for (const std::int64_t one : options.graph.fanouts)
      fanout_ += fmt::format("{}{}", fanout_.empty() ? "" : ",",
                             one == kAllNeighbors ? "all" : std::to_string(one));
  }
  ~Layerwise() {
    if (!options_.graph.store) return;
    static_cast<void>(Run("array", {"drop", store_, kLinksArray, "--all-versions"}));
  }
  Layerwise(const Layerwise&) = delete;
  Layerwise& operator=(const Layerwise&) = delete;

  Path model() const { return scratch_ / "model.safetensors"; }

  /// Writes the file of a model with a decoder, after one step of training.
  Status MakeModel() const {
    const auto made = Run("train", {store_,
                                    "--task",
                                    "link",
                                    "--model",
                                    options_.model,
                                    "--decoder",
                                    "mlp",
                                    "--features",
                                    options_.features,
                                    "--direction",
                                    "in",
                                    "--layers",
                                    std::to_string(options_.graph.fanouts.size()),
                                    "--hidden",
                                    std::to_string(options_.hidden),
                                    "--dim",
                                    std::to_string(options_.hidden),
                                    "--fanout",
                                    fanout_,
                                    "--batch-size",
                                    "100",
                                    "--steps",
                                    "1",
                                    "--epochs",
                                    "1",
                                    "--seed",
                                    std::to_string(options_.graph.seed),
                                    "--out",
                                    model().string()});
    return made ? Status::Ok() : made.error();
  }

  Result<Work> Embed() const {
    return Timed("infer", "vertices_per_second",
                 {store_, "--model-file", model().string(), "--features", options_.features,
                  "--fanout", fanout_, "--seed", std::to_string(options_.graph.seed), "--out",
                  kLinksArray, "--new-version", "--keep", "1"});
  }
  Result<Work> ScoreAll() const {
    return Timed("score", "pairs_per_second",
                 Scoring({"--all-edges", "--out", (scratch_ / "all.npy").string()}));
  }

  /// Returns the scores of some edges.
  Result<std::vector<float>> Score(const GraphSnapshot& graph,
                                   std::span<const VertexPair> edges) const {
    const Path pairs = scratch_ / "pairs.tsv", out = scratch_ / "scores.npy";
    RHIZOME_ASSIGN_OR_RETURN(TextOutput file, TextOutput::Create(pairs.string()));
    for (const VertexPair& edge : edges) {
      RHIZOME_ASSIGN_OR_RETURN(const ExternalId src, graph.ExternalIdOf(edge.src));
      RHIZOME_ASSIGN_OR_RETURN(const ExternalId dst, graph.ExternalIdOf(edge.dst));
      std::string line;
      RHIZOME_RETURN_IF_ERROR(AppendIdField(src, TableForm::kTabs, line));
      line += '\t';
      RHIZOME_RETURN_IF_ERROR(AppendIdField(dst, TableForm::kTabs, line));
      RHIZOME_RETURN_IF_ERROR(file.Line(line));
    }
    RHIZOME_RETURN_IF_ERROR(file.Commit());
    const auto scored = Run("score", Scoring({"--pairs", pairs.string(), "--out", out.string()}));
    if (!scored) return Fail(scored.error());
    std::vector<float> scores(edges.size());
    const std::span<std::byte> to = std::as_writable_bytes(std::span(scores));
    RHIZOME_ASSIGN_OR_RETURN(
        const std::vector<std::byte> bytes,
        ReadWholeFile(FileSystem::Posix(), out, to.size() + (std::uint64_t{1} << 16)));
    if (bytes.size() < to.size()) return Fail(Status::IoError("score wrote too few scores"));
    std::memcpy(to.data(), bytes.data() + bytes.size() - to.size(), to.size());
    return scores;
  }

 private:
  std::vector<std::string> Scoring(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), {store_, "--array", kLinksArray, "--decoder", model().string()});
    return flags;
  }

  Result<Json> Run(const std::string& verb, const std::vector<std::string>& flags) const {
    RHIZOME_ASSIGN_OR_RETURN(const std::string self, SiblingPath("rhizome"));
    std::vector<std::string> command = {self, verb};
    command.insert(command.end(), flags.begin(), flags.end());
    command.emplace_back("--json");
    if (verb != "array") {
      command.insert(command.end(), {"--threads", std::to_string(options_.graph.threads)});
      if (options_.memory_bytes > 0)
        command.insert(command.end(), {"--memory", std::to_string(options_.memory_bytes)});
    }
    return RunForJson(command, verb, scratch_);
  }

  /// Runs a verb; `rate`: the field with its items per second.
  Result<Work> Timed(const std::string& verb, const std::string& rate,
                     const std::vector<std::string>& flags) const {
    const double before = ChildCpuSeconds();
    RHIZOME_ASSIGN_OR_RETURN(const Json report, Run(verb, flags));
    const double seconds = report["seconds"];
    return Work{
        .items = static_cast<std::uint64_t>(std::llround(report[rate].get<double>() * seconds)),
        .seconds = seconds,
        .cpu_seconds = ChildCpuSeconds() - before};
  }

  const BenchLinksOptions& options_;
  const std::string store_;
  const Path scratch_;
  std::string fanout_;
};

/// Computes batches from sampled neighbourhoods, in this process.
class SamplewiseModel {
 public:
  static Result<SamplewiseModel> Load(const BenchLinksOptions& options, const GraphSnapshot& graph,
                                      const Path& file, const Path& scratch) {
    RHIZOME_ASSIGN_OR_RETURN(const auto loaded, LoadSafetensors(FileSystem::Posix(), file));
    RHIZOME_ASSIGN_OR_RETURN(Model model, Model::FromFile(loaded.file));
    RHIZOME_RETURN_IF_ERROR(model.SetTypes(graph.vertex_types()));
    RHIZOME_RETURN_IF_ERROR(model.FitRelations(graph.edge_types(), /*by_side=*/false));
    RHIZOME_ASSIGN_OR_RETURN(
        LinkDecoder decoder,
        LinkDecoder::Load({.name = {}, .path = file}, options.hidden, graph.edge_types()));
    SamplewiseModel made(graph, std::move(model), std::move(decoder));
    FeedPipelineOptions& feed = made.feed_;
    feed.sampler.sampler = {.fanouts = options.graph.fanouts,
                            .seed = options.graph.seed,
                            .threads = options.graph.threads};
    made.model_.FitSampling(feed.sampler);
    feed.features = options.features;
    feed.cache_bytes = options.memory_bytes > 0 ? options.memory_bytes / 2 : std::uint64_t{1} << 30;
    feed.superbatch = kLinksSuperbatch;
    feed.scratch = scratch;
    return made;
  }

  /// Computes the rows of all batches. If they have pairs, appends their scores to `scores`.
  Result<Work> Compute(const std::vector<SeedBatch>& batches, std::vector<float>& scores,
                       const JobControl& control) const {
    const WorkClock clock;
    Work work;
    RHIZOME_ASSIGN_OR_RETURN(
        const std::unique_ptr<FeedPipeline> pipeline,
        FeedPipeline::Open(
            graph_, feed_,
            [&batches, next = std::size_t{0}]() mutable -> std::optional<SeedBatch> {
              if (next == batches.size()) return std::nullopt;
              return batches[next++];
            },
            control));
    for (std::size_t i = 0; i < batches.size(); ++i) {
      RHIZOME_RETURN_IF_ERROR(
          control.Report({.phase = "samplewise", .done = i, .total = batches.size()}));
      RHIZOME_ASSIGN_OR_RETURN(const std::optional<Minibatch> minibatch, pipeline->Next());
      const torch::Tensor rows = RowsOf(*minibatch);
      const auto& pairs = minibatch->pairs;
      work.items += pairs.empty() ? minibatch->seed_count : pairs.size();
      if (!pairs.empty()) AppendScores(rows, pairs, scores);
    }
    work.seconds = clock.seconds();
    work.cpu_seconds = clock.cpu_seconds();
    return work;
  }

 private:
  SamplewiseModel(const GraphSnapshot& graph, Model model, LinkDecoder decoder)
      : graph_(graph), model_(std::move(model)), decoder_(std::move(decoder)) {}

  torch::Tensor RowsOf(const Minibatch& minibatch) const {
    const c10::InferenceMode guard;
    const std::vector<LayerGraph> graphs = model_.MakeGraphs(minibatch);
    return model_.Embed(model_.FirstRows(minibatch, model_.Features(minibatch), {}), graphs, {})
        .contiguous();
  }

  void AppendScores(const torch::Tensor& rows, std::span<const MinibatchPair> pairs,
                    std::vector<float>& scores) const {
    const float* const x = rows.data_ptr<float>();
    const auto dim = static_cast<std::size_t>(rows.size(1));
    std::vector<PairRows> given;
    for (const MinibatchPair& pair : pairs)
      given.push_back(decoder_.PairOf(x + pair.src * dim, x + pair.dst * dim, pair.type));
    scores.resize(scores.size() + given.size());
    decoder_.decoder().Score(given, std::span(scores).last(given.size()));
  }

  const GraphSnapshot& graph_;
  Model model_;
  LinkDecoder decoder_;
  FeedPipelineOptions feed_;
};

std::vector<SeedBatch> EdgeBatches(std::span<const VertexPair> edges, std::size_t size) {
  std::vector<SeedBatch> batches;
  for (std::size_t first = 0; first < edges.size(); first += size) {
    SeedBatch& batch = batches.emplace_back();
    batch.tag = batch.key = batches.size();
    SeedNumbers numbers(batch.vertices);
    for (const VertexPair& edge : edges.subspan(first, std::min(size, edges.size() - first)))
      batch.pairs.push_back(numbers.Of(edge));
  }
  return batches;
}

std::vector<SeedBatch> VertexBatches(const BenchLinksOptions& options, std::uint64_t vertices) {
  std::vector<SeedBatch> batches;
  for (std::uint32_t b = 0; b < options.batches; ++b)
    batches.push_back(
        {.tag = b,
         .key = b,
         .vertices = DrawSeeds(vertices, options.graph.batch_size, options.graph.seed, b)});
  return batches;
}

double LargestDifference(std::span<const float> a, std::span<const float> b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max<double>(largest, std::abs(a[i] - b[i]));
  return largest;
}

/// Describes both ways of a task. `layerwise` is the sum of the verbs that it needs.
Json Compared(const Work& layerwise, const Work& samplewise) {
  const Json ours = layerwise.ToJson(), naive = samplewise.ToJson();
  const auto ratio = [&](const char* field) {
    return ours[field].get<double>() / naive[field].get<double>();
  };
  return {{"layerwise", ours},
          {"samplewise", naive},
          {"ratio", ratio("per_second")},
          {"cpu_ratio", ratio("per_cpu_second")}};
}

Result<Json> Measure(const BenchLinksOptions& options, const JobControl& control) {
  SetTorchThreads(options.graph.threads);
  RHIZOME_ASSIGN_OR_RETURN(const BenchGraph opened, OpenBenchGraph(options.graph, control));
  const GraphSnapshot& graph = *opened.graph;
  RHIZOME_ASSIGN_OR_RETURN(ScratchFolder scratch, ScratchFolder::Create(options.graph.dir));
  RHIZOME_ASSIGN_OR_RETURN(
      const std::vector<VertexPair> edges,
      DrawEdges(graph, std::uint64_t{options.batches} * options.graph.batch_size,
                options.graph.seed));
  if (edges.empty()) return Fail(Status::InvalidArgument("the graph has no edges to score"));

  const Layerwise layerwise(options, *opened.store, scratch.path());
  RHIZOME_RETURN_IF_ERROR(layerwise.MakeModel());
  RHIZOME_RETURN_IF_ERROR(control.Report({.phase = "infer"}));
  RHIZOME_ASSIGN_OR_RETURN(const Work embed, layerwise.Embed());
  RHIZOME_RETURN_IF_ERROR(control.Report({.phase = "score"}));
  RHIZOME_ASSIGN_OR_RETURN(const Work score, layerwise.ScoreAll());
  const Work links{.items = score.items,
                   .seconds = embed.seconds + score.seconds,
                   .cpu_seconds = embed.cpu_seconds + score.cpu_seconds};

  RHIZOME_ASSIGN_OR_RETURN(
      const SamplewiseModel naive,
      SamplewiseModel::Load(options, graph, layerwise.model(), scratch.path()));
  std::vector<float> scores;
  RHIZOME_ASSIGN_OR_RETURN(
      const Work naive_embed,
      naive.Compute(VertexBatches(options, graph.vertex_count()), scores, control));
  RHIZOME_ASSIGN_OR_RETURN(
      const Work naive_links,
      naive.Compute(EdgeBatches(edges, options.graph.batch_size), scores, control));

  Json json = {{"workload", "scores of all edges"}};
  json.update(DescribeGraph(options.graph, graph));
  json["model"] = options.model;
  json["hidden"] = options.hidden;
  json["fanouts"] = options.graph.fanouts;
  json["batch_size"] = options.graph.batch_size;
  json["links"] = Compared(links, naive_links);
  json["embedding"] = Compared(embed, naive_embed);
  json["score_seconds"] = score.seconds;
  json["figure"] = json["links"]["ratio"];
  json["unit"] = "edges scored per second layerwise, relative to samplewise";
  const auto& fanouts = options.graph.fanouts;
  if (std::all_of(fanouts.begin(), fanouts.end(), [](auto n) { return n == kAllNeighbors; })) {
    RHIZOME_ASSIGN_OR_RETURN(const std::vector<float> same, layerwise.Score(graph, edges));
    json["largest_difference"] = LargestDifference(scores, same);
    json["largest_score"] = LargestDifference(same, std::vector<float>(same.size()));
  }
  json["machine"] = DescribeMachine(graph.store().path());
  return json;
}

}  // namespace

Result<Json> BenchLinks(const BenchLinksOptions& options, const JobControl& control) {
  return GuardedTorch([&] { return Measure(options, control); });
}

}  // namespace rhizome
