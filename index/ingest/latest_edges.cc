// Chooses the latest edges by three external sorts (KeySorter):
// 1. all edges by pair of vertices: a pair's first edge is its latest one;
// 2. the pairs by that time, with their numbers of edges: the position at which a share is reached
//    is the first pair of a set;
// 3. the edges of these pairs by their number in the input.

#include "index/ingest/latest_edges.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "index/generation/key_sorter.h"
#include "index/ids/id_collector.h"
#include "index/ingest/edge_file.h"
#include "index/ingest/hold_out.h"
#include "index/ingest/ingest_context.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint64_t kMinSortBytes = std::uint64_t{4} << 20;
constexpr std::uint64_t kMaxSortBytes = std::uint64_t{1} << 30;

/// Words whose bytes compare as the words do.
template <std::size_t kWords>
using Words = std::array<std::uint64_t, kWords>;

template <std::size_t kWords>
std::string_view KeyOf(const Words<kWords>& words, std::array<char, kWords * 8>& key) {
  for (std::size_t i = 0; i < kWords; ++i) {
    const std::uint64_t word = __builtin_bswap64(words[i]);
    std::memcpy(key.data() + i * 8, &word, sizeof(word));
  }
  return {key.data(), key.size()};
}

template <std::size_t kWords>
Words<kWords> WordsOf(std::string_view key) {
  Words<kWords> words{};
  std::memcpy(words.data(), key.data(), sizeof(words));
  for (std::uint64_t& word : words) word = __builtin_bswap64(word);
  return words;
}

/// Maps later times to smaller words.
std::uint64_t Descending(std::int64_t time) {
  return ~(static_cast<std::uint64_t>(time) ^ std::uint64_t{1} << 63);
}

/// Accepts all ids and keeps none.
class NoIds final : public IdCollector {
 public:
  explicit NoIds(IdType type) : IdCollector(type) {}
  bool AddNode(std::string_view) override { return true; }
  void AddEdge(std::string_view, std::string_view) override {}
  void AddEdge(std::int64_t, std::int64_t) override {}
  std::uint64_t node_count() const override { return 0; }
  std::uint64_t memory_bytes() const override { return 0; }
};

/// Receives all edges of the input, and sorts the edges of the held-out types by pair.
class PairTimes final : public EdgeSplitter {
 public:
  PairTimes(const IngestOptions& options, SpillSpace& space, std::uint64_t memory_bytes)
      : seed_(options.build.partition.seed),
        types_(options.hold_out),
        sorter_(space, memory_bytes) {}

  void Begin() override { ++begun_; }
  Result<EdgeSplit> SplitOf(const ExternalEdge&) override { return EdgeSplit::kTest; }
  Status HoldOut(EdgeSplit, const ExternalEdge& edge, std::span<const std::string>) override {
    if (!types_.Has(edge.type)) return Status::Ok();
    ++edges_;
    std::array<char, 16> key;
    const std::uint64_t pair = DrawOfPair(seed_, edge.src, edge.dst);
    return sorter_.AddString(KeyOf<2>({pair, Descending(edge.time)}, key), begun_ - 1);
  }
  void Keep() override {}
  std::uint64_t memory_bytes() const override { return sorter_.memory_bytes(); }

  std::uint64_t edges() const { return edges_; }
  KeySorter& sorter() { return sorter_; }

 private:
  const std::uint64_t seed_;
  const HeldOutTypes types_;
  KeySorter sorter_;
  std::uint64_t begun_ = 0;
  std::uint64_t edges_ = 0;
};

/// An edge with the time of its pair.
struct TimedEdge {
  Words<2> pair;  ///< Descending(latest time), number of the pair
  std::uint64_t number;
};

/// Returns a plan that reads only the ends, types and times of the same edges.
InputPlan PlanOfTimes(const InputPlan& plan) {
  InputPlan times = plan;
  IngestOptions& options = times.options;
  std::erase_if(options.columns, [](const std::string& name) {
    return name != "src" && name != "dst" && name != "type" && name != "time";
  });
  std::erase_if(options.edge_arrays,
                [](const EdgeArrayFile& array) { return array.name != "time"; });
  return times;
}

class LatestEdges {
 public:
  LatestEdges(const IngestOptions& options, SpillSpace& space, std::uint64_t memory_bytes,
              const JobControl& control)
      : options_(options), space_(space), memory_bytes_(memory_bytes), control_(control) {}

  Result<EdgeSpool> Choose(PairTimes& times) {
    RHIZOME_ASSIGN_OR_RETURN(const SpillFile edges, FindTimesOfPairs(times.sorter()));
    RHIZOME_RETURN_IF_ERROR(FindBounds(times.edges()));
    return Select(edges);
  }

 private:
  /// Returns the edges with the times of their pairs, and adds the pairs to `pairs_`.
  Result<SpillFile> FindTimesOfPairs(KeySorter& edges) {
    pairs_.emplace(space_, memory_bytes_);
    RHIZOME_ASSIGN_OR_RETURN(SpillWriter writer, SpillWriter::Create(space_, std::size_t{1} << 16));
    std::optional<Words<2>> current;  // Descending(latest time), number of the pair
    std::uint64_t count = 0;
    std::uint64_t added = 0;
    const auto end_pair = [&]() -> Status {
      std::array<char, 24> key;
      if (!current) return Status::Ok();
      return pairs_->AddString(KeyOf<3>({(*current)[0], (*current)[1], count}, key), added++);
    };
    RHIZOME_RETURN_IF_ERROR(edges.Merge(
        control_,
        [&](std::string_view key, std::span<const std::uint64_t> numbers, bool) -> Status {
          const auto [pair, time] = WordsOf<2>(key);
          if (!current || (*current)[1] != pair) {
            RHIZOME_RETURN_IF_ERROR(end_pair());
            current = {time, pair};
            count = 0;
          }
          count += numbers.size();
          for (const std::uint64_t number : numbers) {
            const TimedEdge edge{*current, number};
            RHIZOME_RETURN_IF_ERROR(writer.Append(std::as_bytes(std::span(&edge, 1))));
          }
          return Status::Ok();
        }));
    RHIZOME_RETURN_IF_ERROR(end_pair());
    return writer.Finish();
  }

  /// Finds the last pair of the test set, and the last one of the validation set.
  Status FindBounds(std::uint64_t edges) {
    const auto limit = [&](double share) {
      return static_cast<std::uint64_t>(share * static_cast<double>(edges));
    };
    std::uint64_t test_left = limit(options_.hold_out.test);
    std::uint64_t valid_left = limit(options_.hold_out.valid);
    bool test_ended = false;
    bool valid_ended = false;
    return pairs_->Merge(control_,
                         [&](std::string_view key, std::span<const std::uint64_t>, bool) -> Status {
                           const auto [time, pair, count] = WordsOf<3>(key);
                           test_ended = test_ended || count > test_left;
                           if (!test_ended) {
                             test_left -= count;
                             last_test_ = {time, pair};
                             return Status::Ok();
                           }
                           valid_ended = valid_ended || count > valid_left;
                           if (valid_ended) return Status::Ok();
                           valid_left -= count;
                           last_valid_ = {time, pair};
                           return Status::Ok();
                         });
  }

  std::optional<EdgeSplit> SetOf(const Words<2>& pair) const {
    if (last_test_ && pair <= *last_test_) return EdgeSplit::kTest;
    if (last_valid_ && pair <= *last_valid_) return EdgeSplit::kValid;
    return std::nullopt;
  }

  /// Returns the held-out edges in the order of the input.
  Result<EdgeSpool> Select(const SpillFile& edges) {
    KeySorter held(space_, memory_bytes_);
    std::uint64_t added = 0;
    RHIZOME_ASSIGN_OR_RETURN(SpillReader reader, SpillReader::Open(edges, /*ahead=*/true));
    while (true) {
      RHIZOME_ASSIGN_OR_RETURN(const auto block, reader.Next());
      if (block.empty()) break;
      for (std::size_t at = 0; at < block.size(); at += sizeof(TimedEdge)) {
        TimedEdge edge;
        std::memcpy(&edge, block.data() + at, sizeof(edge));
        const auto set = SetOf(edge.pair);
        if (!set) continue;
        const std::uint64_t key = edge.number << 1 | (*set == EdgeSplit::kTest ? 1 : 0);
        RHIZOME_RETURN_IF_ERROR(held.AddInteger(static_cast<std::int64_t>(key), added++));
      }
    }
    RHIZOME_ASSIGN_OR_RETURN(auto writer, EdgeSpoolWriter::Create(space_, kSpoolBlockEdges));
    RHIZOME_RETURN_IF_ERROR(held.Merge(
        control_, [&](std::string_view key, std::span<const std::uint64_t>, bool) -> Status {
          const std::int64_t word = KeySorter::IntegerOf(key);
          writer.edges.src.push_back(word >> 1);
          writer.edges.dst.push_back(
              static_cast<VertexId>((word & 1) != 0 ? EdgeSplit::kTest : EdgeSplit::kValid));
          return writer.FlushIfFull(writer.edges.size());
        }));
    return writer.Finish(writer.edges.size());
  }

  const IngestOptions& options_;
  SpillSpace& space_;
  const std::uint64_t memory_bytes_;
  const JobControl& control_;
  std::optional<KeySorter> pairs_;
  std::optional<Words<2>> last_test_;
  std::optional<Words<2>> last_valid_;
};

}  // namespace

Result<EdgeSpool> ChooseLatest(FileSystem& fs, const InputPlan& plan, SpillSpace& space,
                               std::uint64_t memory_bytes, const JobControl& control) {
  const InputPlan times = PlanOfTimes(plan);
  // A sorter is filled while another one is read.
  const std::uint64_t sort_bytes = std::clamp(memory_bytes / 4, kMinSortBytes, kMaxSortBytes);
  IngestContext context(fs, times, control, /*spills=*/true);
  NoIds ids(times.options.id_type);
  PairTimes pairs(times.options, space, sort_bytes);
  RHIZOME_RETURN_IF_ERROR(ReadEdges(context, ids, nullptr, &pairs));
  return LatestEdges(times.options, space, sort_bytes, control).Choose(pairs);
}

}  // namespace internal
}  // namespace rhizome
