#include "gnn/links/decoder.h"

#include <vector>

namespace rhizome {
inline namespace internal {
namespace {

class PackedGroup final : public QueryGroup {
 public:
  explicit PackedGroup(PackedQueries queries) : queries_(std::move(queries)) {}
  void Score(const ProductRows& rows, std::size_t count, float* out,
             std::size_t stride) const override {
    queries_.Score(rows, count, out, stride);
  }

 private:
  const PackedQueries queries_;
};

}  // namespace

void QueryDecoder::Score(std::span<const PairRows> pairs, std::span<float> scores) const {
  std::vector<float> query(dim_);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    Query({.given = pairs[i].src, .relation = pairs[i].relation, .open = EdgeEnd::kDst},
          query.data());
    scores[i] = Combine(combination_, dim_, query.data(), pairs[i].dst);
  }
}

std::unique_ptr<QueryGroup> QueryDecoder::Group(std::span<const QueryRows> queries) const {
  std::vector<float> rows(queries.size() * dim_);
  for (std::size_t i = 0; i < queries.size(); ++i) Query(queries[i], rows.data() + i * dim_);
  return std::make_unique<PackedGroup>(PackedQueries(combination_, dim_, rows));
}

}  // namespace internal
}  // namespace rhizome
