#include "gnn/ranks/home_tree.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <utility>

#include "storage/base/check.h"
#include "storage/base/mutant.h"

// A step of HomeTree on a rank:
//   1. Add appends the values of the rank's homes, and Fold adds siblings into whole nodes.
//   2. Finish walks the tree from the root (Combine): it adds the nodes that the rank has alone
//      (Collapse); for a node of several ranks, the rank with the right child sends it to the rank
//      with the left child, which adds it.
//   3. Finish sends the total from rank 0 down the same tree (HandOut).

namespace rhizome {
inline namespace internal {
namespace {

/// Header of a message: all fields of a StepSum except its numbers, which follow. If has_numbers is
/// 0, zeros follow in their place.
struct Head {
  double loss_sum, weight;
  std::uint64_t seeds, minibatches, stops, has_numbers;
};

}  // namespace

StepSum& StepSum::operator+=(const StepSum& other) {
  if (numbers.empty()) {
    numbers = other.numbers;
  } else if (!other.numbers.empty()) {
    RHIZOME_CHECK(numbers.size() == other.numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] += other.numbers[i];
  }
  loss_sum += other.loss_sum;
  weight += other.weight;
  seeds += other.seeds;
  minibatches += other.minibatches;
  stops += other.stops;
  return *this;
}

HomeTree::HomeTree(Transport* transport, std::uint32_t homes)
    : transport_(transport),
      homes_(homes),
      rank_(transport == nullptr ? 0 : transport->rank()),
      ranks_(transport == nullptr ? 1 : transport->ranks()) {
  RHIZOME_CHECK(homes_ >= ranks_);
}

std::uint32_t HomeTree::EndOf(const Node& node) const {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>((std::uint64_t{node.index} + 1) << node.level, homes_));
}

bool HomeTree::IsOfOneRank(const Node& node) const {
  return RankOf(FirstOf(node)) == RankOf(EndOf(node) - 1);
}

/// Returns whether this rank has a home in the node.
bool HomeTree::TakesPart(const Node& node) const {
  return RankOf(FirstOf(node)) <= rank_ && rank_ <= RankOf(EndOf(node) - 1);
}

void HomeTree::Add(StepSum of_home) {
  RHIZOME_CHECK(added_ < own().count);
  values_.push_back({{0, own().first + added_++}, std::move(of_home)});
  Fold();
}

/// Adds siblings at the right end of `values_` as long as they form a whole node.
void HomeTree::Fold() {
  while (values_.size() >= 2) {
    Value& left = values_[values_.size() - 2];
    const Value& right = values_.back();
    const bool siblings = left.node.level == right.node.level && left.node.index % 2 == 0 &&
                          left.node.index + 1 == right.node.index;
    if (!siblings) return;
    left.sum += right.sum;
    left.node = {left.node.level + 1, left.node.index / 2};
    values_.pop_back();
  }
}

Status HomeTree::Send(std::uint32_t peer, const StepSum& sum, std::size_t numbers) {
  message_.resize(sizeof(Head) + numbers * sizeof(float));
  const Head head{sum.loss_sum,    sum.weight, sum.seeds,
                  sum.minibatches, sum.stops,  !sum.numbers.empty()};
  std::memcpy(message_.data(), &head, sizeof head);
  const std::span<std::byte> sent = std::span(message_).subspan(sizeof head);
  if (sum.numbers.empty()) {
    std::fill(sent.begin(), sent.end(), std::byte{0});
  } else {
    std::memcpy(sent.data(), sum.numbers.data(), sent.size());
  }
  return transport_->Exchange(peer, message_, {});
}

Result<StepSum> HomeTree::Receive(std::uint32_t peer, std::size_t numbers) {
  message_.resize(sizeof(Head) + numbers * sizeof(float));
  RHIZOME_RETURN_IF_ERROR(transport_->Exchange(peer, {}, message_));
  Head head{};
  std::memcpy(&head, message_.data(), sizeof head);
  StepSum sum{.numbers = std::vector<float>(head.has_numbers != 0 ? numbers : 0),
              .loss_sum = head.loss_sum,
              .weight = head.weight,
              .seeds = head.seeds,
              .minibatches = head.minibatches,
              .stops = head.stops};
  if (!sum.numbers.empty())
    std::memcpy(sum.numbers.data(), message_.data() + sizeof head, numbers * sizeof(float));
  return sum;
}

/// Returns the value that begins with the node's first home, which must be a home of this rank.
std::vector<HomeTree::Value>::iterator HomeTree::At(const Node& node) {
  const auto found = std::find_if(values_.begin(), values_.end(), [&](const Value& value) {
    return FirstOf(value.node) == FirstOf(node);
  });
  RHIZOME_CHECK(found != values_.end());
  return found;
}

/// Adds up a node that this rank has alone. If the number of homes is not a power of two, some
/// nodes in it have no right sibling, and Fold has not added them.
void HomeTree::Collapse(const Node& node) {
  const auto first = At(node);
  auto end = first;
  while (end != values_.end() && FirstOf(end->node) < EndOf(node)) ++end;
  if (RHIZOME_MUTANT("a rank adds its homes from the left"))
    for (auto next = first + 1; next != end; ++next) first->sum += std::exchange(next->sum, {});
  for (auto last = end - 1; last != first; --last) (last - 1)->sum += last->sum;
  values_.erase(first + 1, end);
}

/// Adds up a node in which this rank takes part. Afterwards the rank of its first home has the
/// value.
Status HomeTree::Combine(const Node& node, std::size_t numbers) {
  if (!TakesPart(node)) return Status::Ok();
  if (IsOfOneRank(node)) {
    Collapse(node);
    return Status::Ok();
  }
  const Node left{node.level - 1, node.index * 2}, right{node.level - 1, node.index * 2 + 1};
  RHIZOME_RETURN_IF_ERROR(Combine(left, numbers));
  if (FirstOf(right) >= homes_) return Status::Ok();
  RHIZOME_RETURN_IF_ERROR(Combine(right, numbers));
  const std::uint32_t to = RankOf(FirstOf(left)), from = RankOf(FirstOf(right));
  if (rank_ == from && to != from) RHIZOME_RETURN_IF_ERROR(Send(to, At(right)->sum, numbers));
  if (rank_ == to && to != from) {
    RHIZOME_ASSIGN_OR_RETURN(const StepSum of_right, Receive(from, numbers));
    At(left)->sum += of_right;
  }
  if (rank_ == to && to == from) At(left)->sum += At(right)->sum;
  if (rank_ == from) values_.erase(At(right));
  return Status::Ok();
}

/// Sends the sum to all ranks of a node from the rank of its first home.
Status HomeTree::HandOut(const Node& node, std::size_t numbers, StepSum& sum) {
  if (!TakesPart(node) || IsOfOneRank(node)) return Status::Ok();
  const Node left{node.level - 1, node.index * 2}, right{node.level - 1, node.index * 2 + 1};
  if (FirstOf(right) < homes_) {
    const std::uint32_t from = RankOf(FirstOf(left)), to = RankOf(FirstOf(right));
    if (from != to && rank_ == from) RHIZOME_RETURN_IF_ERROR(Send(to, sum, numbers));
    if (from != to && rank_ == to) {
      RHIZOME_ASSIGN_OR_RETURN(sum, Receive(from, numbers));
    }
    RHIZOME_RETURN_IF_ERROR(HandOut(right, numbers, sum));
  }
  return HandOut(left, numbers, sum);
}

Result<StepSum> HomeTree::Finish(std::size_t numbers) {
  RHIZOME_CHECK(added_ == own().count);
  const Node root{static_cast<std::uint32_t>(std::bit_width(homes_ - 1)), 0};
  RHIZOME_RETURN_IF_ERROR(Combine(root, numbers));
  StepSum sum;
  if (rank_ == 0) sum = std::move(At(root)->sum);
  RHIZOME_RETURN_IF_ERROR(HandOut(root, numbers, sum));
  values_.clear();
  added_ = 0;
  return sum;
}

}  // namespace internal
}  // namespace rhizome
