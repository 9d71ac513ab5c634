#include <rhizome/graph.h>
#include <rhizome/ingest.h>
#include <rhizome/loader.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <random>
#include <span>
#include <vector>

// usage: feed_consumer FOLDER
// Makes a store in FOLDER and trains a small model on minibatches from the loader: softmax
// regression, in plain loops, on the features of a vertex, the mean over its sampled neighbours,
// and the mean over theirs. Fails unless the loss falls and the test accuracy is well above the
// share of the most frequent class.
using namespace rhizome;

namespace {

constexpr int kVertices = 4000;
constexpr int kClasses = 4;
constexpr int kDim = 64;
constexpr int kInputs = 3 * kDim + 1;  // own, neighbours, their neighbours, a constant 1
constexpr int kEpochs = 6;

/// Writes a graph in which vertices of the same class are linked more often than others; features
/// are weak hints at the class.
void WriteInput(const Path& folder) {
  std::mt19937 random(17);
  std::normal_distribution<float> noise;
  std::ofstream nodes(folder / "nodes.tsv"), edges(folder / "edges.tsv"),
      features(folder / "feat.tsv");
  for (int v = 0; v < kVertices; ++v) {
    const int label = v % kClasses;
    nodes << v << '\t' << label << '\t' << std::array{"train", "valid", "test"}[v / 4 % 3] << '\n';
    for (int e = 0; e < 6; ++e) {
      int u = static_cast<int>(random() % kVertices);
      if (random() % 10 < 8) u = u / kClasses * kClasses + label;
      if (u != v) edges << v << '\t' << u << '\n';
    }
    for (int d = 0; d < kDim; ++d) {
      const float hint = d % kClasses == label ? 0.15F : 0;
      features << v << '\t' << d << '\t' << noise(random) + hint << '\n';
    }
  }
}

Status MakeStore(const Path& folder) {
  WriteInput(folder);
  IngestOptions options;
  options.edges = {EdgeFile(folder / "edges.tsv")};
  options.undirected = true;
  options.nodes = folder / "nodes.tsv";
  options.node_columns = {"id", "label", "split"};
  options.arrays = {{.name = "feat", .path = folder / "feat.tsv", .dim = kDim}};
  options.build.partition.partitions = 2;
  const JobControl control;
  const auto report = Ingest(FileSystem::Posix(), folder / "g.rz", options, control);
  return report ? Status::Ok() : report.error();
}

/// Returns the mean of the rows of each target's sampled neighbours; zeros if it has none. `rows`
/// has a row for each vertex that is a neighbour.
std::vector<float> MeanOfNeighbors(const Minibatch& m, std::size_t targets,
                                   const std::vector<float>& rows) {
  std::vector<float> means(targets * kDim);
  for (std::size_t v = 0; v < targets; ++v) {
    const std::span<const std::uint32_t> list = m.NeighborsOf(v);
    for (const std::uint32_t u : list)
      for (int d = 0; d < kDim; ++d)
        means[v * kDim + d] += rows[u * kDim + d] / static_cast<float>(list.size());
  }
  return means;
}

/// Returns the inputs of every seed, [seed_count, kInputs].
std::vector<float> InputsOf(const Minibatch& m) {
  std::vector<float> rows(m.features.rows() * kDim);
  if (!m.features.CopyTo(rows).ok()) return {};
  const std::vector<float> near = MeanOfNeighbors(m, m.hop_offsets[2], rows);
  const std::vector<float> far = MeanOfNeighbors(m, m.seed_count, near);
  std::vector<float> inputs;
  for (std::size_t v = 0; v < m.seed_count; ++v) {
    for (const std::vector<float>* part :
         std::array<const std::vector<float>*, 3>{&rows, &near, &far})
      inputs.insert(inputs.end(), part->begin() + static_cast<std::ptrdiff_t>(v * kDim),
                    part->begin() + static_cast<std::ptrdiff_t>((v + 1) * kDim));
    inputs.push_back(1);
  }
  return inputs;
}

struct Network {
  std::vector<float> weights = std::vector<float>(kInputs * kClasses);

  std::array<float, kClasses> Chances(const float* inputs) const {
    std::array<float, kClasses> chances{};
    for (int i = 0; i < kInputs; ++i)
      for (int c = 0; c < kClasses; ++c) chances[c] += inputs[i] * weights[i * kClasses + c];
    float sum = 0;
    for (float& chance : chances) sum += chance = std::exp(chance);
    for (float& chance : chances) chance /= sum;
    return chances;
  }

  /// Takes one step of gradient descent on the cross entropy. Returns the sum of losses over the
  /// seeds.
  double Learn(const Minibatch& m) {
    const std::vector<float> inputs = InputsOf(m);
    std::vector<float> gradient(weights.size());
    double loss = 0;
    for (std::size_t v = 0; v < m.seed_count; ++v) {
      const float* const row = &inputs[v * kInputs];
      std::array<float, kClasses> error = Chances(row);
      loss -= std::log(error[m.labels[v]]);
      error[m.labels[v]] -= 1;
      for (int i = 0; i < kInputs; ++i)
        for (int c = 0; c < kClasses; ++c) gradient[i * kClasses + c] += row[i] * error[c];
    }
    const float rate = 0.5F / static_cast<float>(m.seed_count);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= rate * gradient[i];
    return loss;
  }

  std::uint64_t CountRight(const Minibatch& m) const {
    const std::vector<float> inputs = InputsOf(m);
    std::uint64_t right = 0;
    for (std::size_t v = 0; v < m.seed_count; ++v) {
      const auto chances = Chances(&inputs[v * kInputs]);
      right += std::max_element(chances.begin(), chances.end()) - chances.begin() == m.labels[v];
    }
    return right;
  }
};

LoaderOptions OptionsFor(Split set) {
  LoaderOptions options;
  options.sampler.fanouts = {10, 5};
  options.features = "feat";
  options.labels = "label";
  options.split = "split";
  options.set = set;
  options.batch_size = 100;
  options.memory_bytes = std::uint64_t{4} << 20;
  return options;
}

/// Returns the mean loss of each epoch.
Result<std::vector<double>> Train(const Graph& graph, Network& network) {
  LoaderOptions options = OptionsFor(Split::kTrain);
  options.epochs = kEpochs;
  const JobControl control;
  RHIZOME_ASSIGN_OR_RETURN(const auto loader, Loader::Open(graph, options, control));
  std::vector<double> losses;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    double loss = 0;
    while (true) {
      RHIZOME_ASSIGN_OR_RETURN(const std::optional<Minibatch> minibatch, loader->Next());
      if (!minibatch) break;  // end of the epoch
      loss += network.Learn(*minibatch);
    }
    const LoaderReport report = loader->report();
    losses.push_back(loss / static_cast<double>(report.seeds));
    std::printf("epoch %d: loss %.3f, %llu rows read for %llu wanted, %llu bytes\n", epoch,
                losses.back(), static_cast<unsigned long long>(report.costs.rows_read),
                static_cast<unsigned long long>(report.costs.rows_requested),
                static_cast<unsigned long long>(report.costs.bytes_read));
  }
  return losses;
}

Result<double> Accuracy(const Graph& graph, const Network& network) {
  LoaderOptions options = OptionsFor(Split::kTest);
  options.shuffle = false;
  const JobControl control;
  RHIZOME_ASSIGN_OR_RETURN(const auto loader, Loader::Open(graph, options, control));
  std::uint64_t right = 0;
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(const std::optional<Minibatch> minibatch, loader->Next());
    if (!minibatch) break;
    right += network.CountRight(*minibatch);
  }
  return static_cast<double>(right) / static_cast<double>(loader->seed_count());
}

Status Run(const Path& folder) {
  RHIZOME_RETURN_IF_ERROR(MakeStore(folder));
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(FileSystem::Posix(), folder / "g.rz", Store::Mode::kRead));
  RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(*store));
  Network network;
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<double> losses, Train(*graph, network));
  RHIZOME_ASSIGN_OR_RETURN(const double accuracy, Accuracy(*graph, network));
  std::printf("test accuracy %.3f, of the most frequent class %.3f\n", accuracy, 1.0 / kClasses);
  const bool learnt = losses.back() < 0.7 * losses.front() && accuracy > 0.75;
  return learnt ? Status::Ok() : Status::InvalidArgument("the network has not learnt");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  const Status status = Run(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 2;
}
